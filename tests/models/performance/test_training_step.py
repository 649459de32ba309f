"""A training step by hand: memory, pipeline, reduction, links, dollars and joules."""

import numpy as np
import pytest

from models.hardware.cluster import Cluster
from models.performance.collectives import hierarchical_s
from models.performance.machine import machine
from models.performance.operator import pass_time
from models.performance.training import Fleet, train
from models.workload.recipes import recipe_named
from models.workload.tasks import TrainingTask
from models.workload.training import backward_operators, forward_operators
from rtl.errors import InputError

BF16 = recipe_named("training", "bf16")
CLUSTER = Cluster(domain=8, network="infiniband-ndr")
SEQ = 128
ALONE = {"tp": 1, "pp": 1, "micro_batch": 1, "virtual_stages": 1, "recompute": 0}
# By hand: 2 · 1000 · 256 for embedding and head, and a layer of 256 · 64 · 2 · (4 + 2) attention,
# 3 · 256 · 512 MLP and 2 · 256 norms, four times, with a last norm.
EMBEDDING = 256_000
LAYER = 196_608 + 393_216 + 512
PARAMETERS = 2 * EMBEDDING + 4 * LAYER + 256
# Elements kept per token and layer: 4 · 256, (2 · 4 + 2 · 2) · 64 and 3 · 512.
KEPT = 1024 + 768 + 1536


def task(tiny, sequences) -> TrainingTask:
    return TrainingTask(
        model=tiny, global_batch_tokens=sequences * SEQ, seq_len=SEQ, training_tokens=1e9
    )


@pytest.fixture(scope="module")
def one(make_chip, ideal):
    return machine(make_chip(), CLUSTER, ideal, 1e6)


@pytest.fixture(scope="module")
def micro(one, tiny):
    """One micro-batch of one sequence through all layers: forward and backward, in seconds."""
    ahead, back = (
        pass_time(one, ops(tiny, 1, SEQ), BF16) for ops in (forward_operators, backward_operators)
    )
    return tuple(float((p.layers_s + p.head_s)[0]) for p in (ahead, back))


def step(one, tiny, sequences, chips, **given):
    result = train(one, task(tiny, sequences), Fleet(chips=chips), BF16, ALONE | given)
    assert result.feasible[0]
    assert sum(b[0] for b in result.bound_s.values()) == pytest.approx(result.seconds[0])
    return result


def test_parameters_by_hand(tiny):
    assert tiny.parameters == PARAMETERS == 2_873_600


def test_one_chip_runs_its_micro_batches_and_updates(one, tiny, micro):
    """The update reads and writes 12 bytes of state, reads 4 of gradient and writes 2 of weight."""
    result = step(one, tiny, sequences=6, chips=1)
    update = PARAMETERS * (2 * 12 + 4 + 2) / 1e12
    assert result.seconds[0] == pytest.approx(6 * sum(micro) + update)
    assert result.mapping["micro_batches"][0] == 6
    for name in ("links", "network", "pipeline", "power"):
        assert result.bound_s[name][0] == 0


def test_memory_by_hand(one, tiny):
    logits = SEQ * 1000 * (2 + 4)
    plain = step(one, tiny, 6, 1)
    assert plain.memory_bytes[0] == 18 * PARAMETERS + 4 * KEPT * SEQ * 2 + logits
    # Recomputation keeps four inputs of layers, and all of one layer.
    again = step(one, tiny, 6, 1, recompute=1)
    assert again.memory_bytes[0] == 18 * PARAMETERS + (4 * 256 + KEPT) * SEQ * 2 + logits
    # Two stages hold two layers, embedding or head, and two micro-batches in flight.
    piped = step(one, tiny, 6, 2, pp=2)
    stage = EMBEDDING + (PARAMETERS - 2 * EMBEDDING) / 2
    assert piped.memory_bytes[0] == 18 * stage + 2 * 2 * KEPT * SEQ * 2 + logits
    # ZeRO-1 divides 12 of the 18 bytes over the replicas.
    spread = step(one, tiny, 6, 2)
    assert spread.memory_bytes[0] == plain.memory_bytes[0] - 12 * PARAMETERS / 2


def test_recomputation_runs_forward_again(one, tiny, micro):
    plain, again = step(one, tiny, 6, 1), step(one, tiny, 6, 1, recompute=1)
    assert again.seconds[0] - plain.seconds[0] == pytest.approx(6 * micro[0])


@pytest.mark.parametrize("n", [2, 3, 8, 12, 64])
def test_dp_of_n_is_dp_of_one_plus_the_reduction(one, tiny, micro, n):
    """n replicas with a batch each: gradients of 4 bytes reduce, weights of 2 gather."""
    lone, many = step(one, tiny, 2, 1), step(one, tiny, 2 * n, n)
    assert many.mapping["dp"][0] == n
    within, between = hierarchical_s(PARAMETERS * (4 + 2) / 2, n, 8, 100e9, 3e-6, 50e9, 5e-6)
    exposed = max(float(within + between) - micro[1], 0)
    assert exposed > 0
    update = PARAMETERS * (2 * 12 + 4 + 2) / 1e12
    expected = lone.seconds[0] + exposed + update / n - update
    assert many.seconds[0] == pytest.approx(expected)
    wires = "links" if n <= 8 else "network"
    assert many.bound_s[wires][0] == pytest.approx(exposed)


@pytest.mark.parametrize(("pp", "virtual"), [(2, 1), (2, 2), (4, 1)])
def test_a_pipeline_adds_its_bubble(one, tiny, pp, virtual):
    """(PP − 1)/v micro-batches beside the eight that each stage runs."""
    result = step(one, tiny, 8, pp, pp=pp, virtual_stages=virtual)
    steady = sum(result.bound_s[b][0] for b in ("compute", "vector", "hbm", "links", "network"))
    stage = EMBEDDING + (PARAMETERS - 2 * EMBEDDING) / pp
    steady -= stage * (2 * 12 + 4 + 2) / 1e12
    assert result.bound_s["pipeline"][0] == pytest.approx(steady / 8 * (pp - 1) / virtual)


def test_tensor_parallelism_all_reduces_four_times_a_layer(one, tiny):
    """128 tokens of 256 elements in bf16; 2 · (1/2) of them at 100 GB/s, and two exchanges."""
    result = step(one, tiny, 3, 2, tp=2)
    message, wait = 128 * 256 * 2 / 100e9, 2 * 3e-6
    assert result.bound_s["links"][0] == pytest.approx(3 * 4 * 4 * message)
    assert result.bound_s["latency"][0] == pytest.approx(3 * 4 * 4 * wait)
    again = step(one, tiny, 3, 2, tp=2, recompute=1)
    assert again.bound_s["links"][0] == pytest.approx(3 * 4 * 6 * message)
    assert again.bound_s["latency"][0] == pytest.approx(3 * 4 * 6 * wait)
    alone = step(one, tiny, 3, 1)
    assert alone.bound_s["links"][0] == alone.bound_s["latency"][0] == 0


def test_dollars_are_capital_and_electricity(one, tiny):
    """What the whole fleet costs while it runs, and the joules that the meter counts."""
    for sequences, chips, used in ((6, 1, 1), (3, 8, 3)):
        result = step(one, tiny, sequences, chips)
        assert result.chips[0] == used
        steps = 1e9 / (sequences * SEQ)
        capital = one.usd_per_s[0] * result.seconds[0] * steps * chips
        electricity = result.joules[0] / 3.6e6 * 0.08
        assert result.usd[0] == pytest.approx(capital + electricity)
        # PUE 1.2 on packages, hosts and networks; idle chips draw their static power.
        overhead = 150 + 50 + 4.4
        working = result.power_w[0].sum() + overhead
        idle = one.energy.total_static_w[0] + overhead
        at_wall = 1.2 * (used * working + (chips - used) * idle)
        assert result.joules[0] == pytest.approx(at_wall * result.seconds[0] * steps)
        tokens = sequences * SEQ / result.seconds[0] / chips
        assert result.tokens_per_s[0] == pytest.approx(tokens)


def test_power_stretches_the_step_and_throttles_the_clock(make_chip, ideal, tiny):
    one = machine(make_chip(), CLUSTER, ideal, 1e6)
    free = step(one, tiny, 6, 1)
    static = one.energy.total_static_w[0]
    # Half of what the step draws above static power.
    cap = static + (free.power_w[0].sum() - static) / 2
    capped = step(machine(make_chip(power_w=cap), CLUSTER, ideal, 1e6), tiny, 6, 1)
    assert capped.seconds[0] == pytest.approx(2 * free.seconds[0])
    assert capped.bound_s["power"][0] == pytest.approx(free.seconds[0])
    assert capped.power_w[0].sum() == pytest.approx(cap)
    assert capped.clock_hz[0] == pytest.approx(0.5e9)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"power_w": 10}, "time"),
        ({"arrays": 0, "fabricated": 0}, "time"),
        ({"hbm_bytes_per_s": 0}, "time"),
        ({"hbm_bytes": 1e6}, "memory"),
    ],
)
def test_what_can_not_train_says_why(make_chip, ideal, tiny, given, name):
    one = machine(make_chip(**given), CLUSTER, ideal, 1e6)
    result = train(one, task(tiny, 6), Fleet(chips=8), BF16)
    assert not result.feasible[0]
    assert result.usd[0] == np.inf
    assert name in [c.name for c in result.constraints if not c.met[0]]
    assert result.mappings_feasible[0] == 0


def test_a_fleet_of_nothing_trains_nothing(one, tiny):
    result = train(one, task(tiny, 6), Fleet(megawatts=1e-6), BF16)
    assert [c.name for c in result.constraints if not c.met[0]] == ["fleet"]
    assert np.isfinite(result.tokens_per_s[0])


def test_fleets(one):
    # 1 MW over a PUE of 1.2 and 1000 + 150 + 50 W, and 4.4 W for 100 GB/s through a switch.
    assert Fleet(megawatts=1.0).size(one)[0] == 691
    assert Fleet(chips=5).size(one)[0] == 5
    for bad in ({}, {"megawatts": 1.0, "chips": 2}, {"chips": -1}, {"megawatts": -1.0}):
        with pytest.raises(InputError, match="give one of them, above 0"):
            Fleet(**bad)


def test_pinned_axes_must_exist(one, tiny):
    with pytest.raises(InputError, match="unknown mapping axis 'dp'"):
        train(one, task(tiny, 6), Fleet(chips=8), BF16, {"dp": 2})
    with pytest.raises(InputError, match="tp of 16 in a domain of 8 chips"):
        train(one, task(tiny, 6), Fleet(chips=16), BF16, {"tp": 16})


def test_free_choice_is_the_best_of_all_pinned_mappings(one, tiny):
    work = task(tiny, 32)
    free = train(one, work, Fleet(chips=16), BF16)
    usd = [
        train(one, work, Fleet(chips=16), BF16, {"tp": tp, "pp": pp}).usd[0]
        for tp in (1, 2, 4, 8)
        for pp in (1, 2, 4)
    ]
    assert free.usd[0] == min(usd)


def test_an_empty_fleet_breaks_a_requirement_and_no_arithmetic(make_chip, tiny, tech):
    chips = make_chip(hbm_bytes_per_s=0.0, hbm_bytes=0.0, stacks=0.0)
    one = machine(chips, Cluster(8, "infiniband-ndr"), tech, 1e6)
    with np.errstate(all="raise", under="ignore"):
        result = train(one, task(tiny, 6), Fleet(megawatts=1e-6), BF16)
    assert not result.feasible[0]
    assert not np.isnan(result.usd).any()
    assert "fleet" in {c.name for c in result.constraints if not c.met[0]}
