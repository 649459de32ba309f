"""Prefill and decode by hand: memory, pipelines, service levels, SRAM residence."""

from dataclasses import replace

import pytest

from models.hardware.cluster import Cluster
from models.performance.inference import decode, prefill
from models.performance.machine import machine
from models.performance.operator import pass_time
from models.workload.catalog import model_named
from models.workload.inference import decode_operators, prefill_operators
from models.workload.recipes import recipe_named
from models.workload.tasks import ServingTask

BF16 = recipe_named("serving", "bf16")
CLUSTER = Cluster(domain=8, network="infiniband-ndr")
ALONE = {"tp": 1, "pp": 1, "batch": 8}
EMBEDDING = 256_000
PARAMETERS = 2_873_600


@pytest.fixture(scope="module")
def task(tiny):
    return ServingTask(model=tiny, prompt_tokens=200, output_tokens=100, tpot_s=1.0, ttft_s=1.0)


@pytest.fixture(scope="module")
def make(make_chip, ideal):
    # 1 MB of SRAM holds no model.
    return lambda **given: machine(make_chip(**({"sram_bytes": 1e6} | given)), CLUSTER, ideal, 1e6)


def adds_up(result) -> bool:
    return sum(b[0] for b in result.bound_s.values()) == pytest.approx(result.seconds[0])


def test_decode_runs_at_the_mean_context_and_holds_the_full_one(make, task, tiny):
    one = make()
    result = decode(one, task, BF16, ALONE)
    ops = decode_operators(tiny, 8, 250)
    one_pass = pass_time(one, ops, BF16)
    assert result.seconds[0] == pytest.approx(float((one_pass.layers_s + one_pass.head_s)[0]))
    # 2 · 2 heads · 64 elements in each of 4 layers for 300 tokens of 8 sequences, in bf16.
    cache = 8 * 300 * 4 * 256 * 2
    working = float(ops.activation_elements.max()) * 2
    assert result.memory_bytes[0] == 2 * PARAMETERS + cache + working
    assert result.tokens_per_s[0] == pytest.approx(8 / result.seconds[0])
    assert adds_up(result)


def test_prefill_is_one_pass_over_the_prompts(make, task, tiny):
    one = make()
    result = prefill(one, task, BF16, ALONE)
    one_pass = pass_time(one, prefill_operators(tiny, 8, 200), BF16)
    assert result.seconds[0] == pytest.approx(float((one_pass.layers_s + one_pass.head_s)[0]))
    assert result.tokens_per_s[0] == pytest.approx(8 * 200 / result.seconds[0])
    assert adds_up(result)


def test_a_pipeline_keeps_a_batch_on_every_stage(make, task, tiny):
    """Each of two stages has half of the layers and of the caches of two batches."""
    one = make()
    lone, piped = (decode(one, task, BF16, ALONE | {"pp": pp}) for pp in (1, 2))
    stage = EMBEDDING + (PARAMETERS - 2 * EMBEDDING) / 2
    working = float(decode_operators(tiny, 8, 250).activation_elements.max()) * 2
    assert piped.memory_bytes[0] == 2 * stage + 8 * 300 * 4 * 256 * 2 + working
    # A token crosses both stages and two hand-overs of 8 · 256 elements over the links.
    hop = 8 * 256 * 2 / 100e9 + 3e-6
    assert piped.bound_s["links"][0] == pytest.approx(2 * hop)
    assert piped.bound_s["network"][0] == 0
    operators = sum(piped.bound_s[b][0] for b in ("compute", "vector", "hbm"))
    assert operators >= lone.seconds[0]
    assert adds_up(piped)
    # Every pass of one stage finishes a batch.
    assert piped.tokens_per_s[0] * piped.chips[0] == pytest.approx(8 / (piped.seconds[0] / 2))


def test_hand_over_beyond_the_domain_takes_the_network(make, task):
    result = decode(make(), task, BF16, {"tp": 8, "pp": 2, "batch": 8})
    hop = 8 * 256 * 2 / 8 / 50e9 + 5e-6
    assert result.bound_s["network"][0] == pytest.approx(2 * hop)
    no_links = decode(make(link_bytes_per_s=0), task, BF16, {"tp": 1, "pp": 2, "batch": 8})
    assert no_links.bound_s["links"][0] == 0
    assert no_links.bound_s["network"][0] > 0
    assert no_links.feasible[0]


def test_tensor_parallel_sums_travel_in_16_bits(make, task):
    """Two all-reduces of 8 · 256 sums in each of four layers, whatever the activations' format."""
    message, wait = 8 * 256 * 2 / 100e9, 2 * 3e-6
    for name in ("bf16", "fp8", "int8"):
        result = decode(make(), task, recipe_named("serving", name), ALONE | {"tp": 2})
        assert result.bound_s["links"][0] == pytest.approx(4 * 2 * message)
        assert result.bound_s["latency"][0] == pytest.approx(4 * 2 * wait)
    assert decode(make(), task, BF16, ALONE).bound_s["links"][0] == 0


def test_decode_from_sram_needs_no_hbm(make, task, tiny):
    """What fits in three quarters of the SRAM has no HBM time, traffic or capacity."""
    need = decode(make(), task, BF16, ALONE).memory_bytes[0]
    fits = {"sram_bytes": need / 0.75 * 1.001, "hbm_bytes": 0, "hbm_bytes_per_s": 0, "stacks": 0}
    one = make(**fits)
    result = decode(one, task, BF16, ALONE)
    assert result.feasible[0]
    assert adds_up(result)
    assert result.bound_s["hbm"][0] == 0
    on_chip = pass_time(one, decode_operators(tiny, 8, 250), BF16)
    expected = float((on_chip.on_chip_layers_s + on_chip.on_chip_head_s)[0])
    assert result.seconds[0] == pytest.approx(expected)
    short = decode(make(**fits | {"sram_bytes": need / 0.75 * 0.999}), task, BF16, ALONE)
    assert not short.feasible[0]
    assert {c.name for c in short.constraints if not c.met[0]} == {"memory", "tpot"}


@pytest.mark.parametrize("pp", [2, 4])
def test_stages_in_sram_hold_whole_layers(make, task, tiny, pp):
    """Four layers over PP stages: the head is no layer, and is spread as from HBM."""
    one = make(sram_bytes=1e9)
    result = decode(one, task, BF16, ALONE | {"pp": pp})
    on_chip = pass_time(one, decode_operators(tiny, 8, 250), BF16)
    layers, head = float(on_chip.on_chip_layers_s[0]), float(on_chip.on_chip_head_s[0])
    operators = sum(result.bound_s[b][0] for b in ("compute", "vector", "hbm"))
    assert operators == pytest.approx(pp * max(layers / pp, (layers + head) / pp))


def test_service_levels_bind(make, tiny):
    slow = ServingTask(model=tiny, prompt_tokens=200, output_tokens=100, tpot_s=1e-9, ttft_s=1e-9)
    for phase, name in ((decode, "tpot"), (prefill, "ttft")):
        result = phase(make(), slow, BF16)
        assert not result.feasible[0]
        assert [c.name for c in result.constraints if not c.met[0]] == [name]


def test_dollars_per_token_are_capital_and_electricity(make, task):
    one = make()
    for phase in (decode, prefill):
        result = phase(one, task, BF16)
        chip_seconds = 1 / result.tokens_per_s[0]
        electricity = result.joules[0] / 3.6e6 * 0.08
        assert result.usd[0] == pytest.approx(one.usd_per_s[0] * chip_seconds + electricity)
        at_wall = 1.2 * (result.power_w[0].sum() + 150 + 50 + 4.4)
        assert result.joules[0] == pytest.approx(at_wall * chip_seconds)


def test_decode_time_is_linear_in_layers(make, task, tiny):
    def seconds(layers):
        deep = replace(task, model=replace(tiny, layers=layers))
        return decode(make(), deep, BF16, ALONE).seconds[0]

    one_more = seconds(5) - seconds(4)
    assert seconds(40) - seconds(4) == pytest.approx(36 * one_more)
    assert one_more > 0


def test_batch_turns_decode_from_memory_bound_to_compute_bound(make_chip, ideal):
    """131 TFLOP/s over 1 TB/s: 131 FLOPs a byte, which bf16 weights reach at about 131 tokens."""
    short = ServingTask(
        model=model_named("llama-3.1-8b"), prompt_tokens=8, output_tokens=2, tpot_s=9, ttft_s=9
    )
    chip = make_chip(rows=64, cols=64, arrays=16, sram_bytes=50e6)
    one = machine(chip, CLUSTER, ideal, 1e6)
    binding = {
        batch: decode(one, short, BF16, {"tp": 1, "pp": 1, "batch": batch}).binding(0)
        for batch in (1, 16, 64, 256, 1024)
    }
    assert binding == {1: "hbm", 16: "hbm", 64: "hbm", 256: "compute", 1024: "compute"}
