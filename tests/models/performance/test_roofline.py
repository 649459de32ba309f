"""Operators: matrix, vector and HBM time by hand; re-reads; residency; a pass adds up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.hardware.cluster import Cluster
from models.performance.breakdown import operator_rows
from models.performance.machine import machine
from models.performance.operator import _rereads, operator_times, pass_time
from models.workload.inference import decode_operators, prefill_operators
from models.workload.operators import Operator, Operators
from models.workload.recipes import recipe_named
from models.workload.training import backward_operators, forward_operators

TRAIN = recipe_named("training", "bf16")
SERVE = recipe_named("serving", "bf16")
CLUSTER = Cluster(domain=8, network="infiniband-ndr")
# (512 × 256) · (256 × 384)
LAYER = Operator(
    "layer",
    repeat=3.0,
    m=512.0,
    k=256.0,
    n=384.0,
    weight_elements=256.0 * 384,
    activation_elements=512.0 * (256 + 384),
    vector_flops=1e5,
)


@pytest.fixture(scope="module")
def make(make_chip, ideal):
    return lambda **given: machine(make_chip(**given), CLUSTER, ideal, 1e6)


def times(one, operator, recipe=TRAIN):
    t = operator_times(one, Operators.of([operator]), recipe)
    return [float(x.ravel()[0]) for x in (t.compute_s, t.vector_s, t.hbm_s, t.hbm_bytes)]


def test_a_layer_by_hand(make):
    """Four 128 × 128 arrays at 1 GHz, 512 vector lanes, 1 TB/s.

    1,409 cycles; 100,000 FLOPs over 2 · 512 a cycle; 98,304 weights and 327,680 activations of
    two bytes, which 32 MB of SRAM need not read twice.
    """
    compute, vector, hbm, traffic = times(make(), LAYER)
    assert compute == pytest.approx(1409e-9)
    assert vector == pytest.approx(1e5 / 1024e9)
    assert traffic == 851_968
    assert hbm == pytest.approx(851_968e-12)


def test_rereads_by_hand():
    """4 KiB for operands hold 32 × 32 fp32 sums: 384/32 − 1 reads of A and 512/32 − 1 of B.

    A panel of weights at a time would read A 47 more times, one of activations B 63 more times.
    """
    inputs, weights = 512 * 256 * 2.0, 256 * 384 * 2.0
    sums = 11 * inputs + 15 * weights
    arguments = [np.array(x) for x in (512.0, 384.0, inputs, weights)]
    assert _rereads(*arguments, np.array(4096.0)) == sums
    assert sums < 47 * inputs < 63 * weights
    # With half of the weights in the buffer A is read once more; with all of either, never.
    assert _rereads(*arguments, np.array(weights / 2)) == inputs
    assert _rereads(*arguments, np.array(weights)) == 0
    assert _rereads(*arguments, np.array(inputs)) == 0


@given(st.floats(0, 1e9), st.floats(1, 100))
def test_more_buffer_never_reads_more(buffer, factor):
    arguments = [np.array(x) for x in (512.0, 384.0, 262144.0, 196608.0)]
    small, large = (_rereads(*arguments, np.array(b)) for b in (buffer, buffer * factor))
    assert 0 <= large <= small
    assert np.isfinite(small)


def test_small_sram_reads_again_and_experts_each_for_themselves(make):
    one = make(sram_bytes=8192)
    traffic = times(one, LAYER)[3]
    again = traffic - 851_968
    assert again == 11 * 512 * 256 * 2 + 15 * 256 * 384 * 2
    # Eight independent matmuls re-read eight times as much, not 64 times.
    eight = replace(LAYER, parallel=8.0)
    assert times(one, eight)[3] - 851_968 == 8 * again


def test_serving_keeps_small_activations_on_chip_and_training_writes_them(make):
    activations = 512 * (256 + 384) * 2
    # Four times the activations is the least SRAM that holds them in a quarter of it.
    for sram, kept in ((4 * activations, True), (4 * activations - 8, False)):
        one = make(sram_bytes=sram)
        assert times(one, LAYER, SERVE)[3] == 196_608 + (0 if kept else activations)
        assert times(one, LAYER, TRAIN)[3] == 196_608 + activations


def test_gradients_are_read_and_written(make):
    plain, accumulating = LAYER, replace(LAYER, gradient_elements=1000.0)
    assert times(make(), accumulating)[3] - times(make(), plain)[3] == 2 * 1000 * 4


def test_a_chip_without_the_format_never_finishes(make):
    one = make()
    chips = replace(one.chips, rates=np.array([[1.0, 0.0, 2.0]]))
    one = replace(one, chips=chips)
    assert times(one, LAYER, recipe_named("serving", "fp8"))[0] == np.inf
    # fp8 training multiplies attention in bf16.
    attention = replace(LAYER, attention=True)
    assert np.isfinite(times(one, attention, recipe_named("training", "fp8"))[0])


@pytest.mark.parametrize("zero", ["arrays", "sram_bytes", "hbm_bytes_per_s", "clock_hz"])
def test_zeros_make_infinity_never_nan(make, zero):
    with np.errstate(all="raise", under="ignore"):
        found = times(make(**{zero: 0.0}), LAYER)
    assert not np.isnan(found).any()
    if zero != "sram_bytes":
        assert max(found) == np.inf


def test_a_pass_adds_its_operators_up(make, tiny):
    one = make()
    tables = {
        "forward": (forward_operators(tiny, 1, 128), TRAIN),
        "backward": (backward_operators(tiny, 1, 128), TRAIN),
        "prefill": (prefill_operators(tiny, 4, 128), SERVE),
        "decode": (decode_operators(tiny, 16, 256), SERVE),
    }
    for ops, recipe in tables.values():
        whole = pass_time(one, ops, recipe)
        rows = operator_rows(one, ops, recipe)
        assert [row.name for row in rows] == list(ops.names)
        total = sum(row.seconds for row in rows)
        assert whole.layers_s + whole.head_s == pytest.approx(total)
        assert whole.bound_s.sum() == pytest.approx(total)
        on_chip = sum(max(row.compute_s, row.vector_s) for row in rows)
        assert whole.on_chip_layers_s + whole.on_chip_head_s == pytest.approx(on_chip)
        assert whole.on_chip_bound_s.sum() == pytest.approx(on_chip)
        assert whole.hbm_bytes == pytest.approx(sum(row.hbm_bytes for row in rows))
        ends = sum(r.seconds for r in rows if r.name.startswith(("embedding", "final", "head")))
        assert whole.head_s == pytest.approx(ends)
        assert 0 < ends < total
        # Energy by hand: FLOPs at 0.2 pJ and 2.5 pJ · 2/128, each k × n operand of two bytes loaded
        # at 1.6 pJ a byte, vector FLOPs at 1.2 pJ.
        flops = float(ops.total_flops)
        assert whole.mac_j == pytest.approx(flops * 0.2e-12)
        loaded = sum(row.repeat * row.parallel * row.k * row.n for row in rows) * 2
        assert whole.feed_j == pytest.approx(flops * 2.5e-12 / 64 + loaded * 1.6e-12)
        assert whole.vector_j == pytest.approx(float(ops.total("vector_flops")) * 1.2e-12)
        for row in rows:
            assert 0 <= row.utilization <= 1
            assert row.seconds == max(row.compute_s, row.vector_s, row.hbm_s)


def test_points_and_designs_broadcast(make_chip, random_chips, ideal, tiny):
    """A table over TP × batch on many designs is what each design and point gives alone."""
    chips = random_chips(12, seed=3)
    many = machine(chips, CLUSTER, ideal, 1e6)
    tp, batch = np.array([[1.0], [2.0]]), np.array([[1.0, 8.0, 64.0]])
    whole = pass_time(many, decode_operators(tiny, batch, 512, tp), SERVE)
    assert whole.layers_s.shape == (12, 2, 3)
    for d in (0, 5, 11):
        lone = machine(chips[d : d + 1], CLUSTER, ideal, 1e6)
        for i in range(2):
            for j in range(3):
                ops = decode_operators(tiny, batch[0, j], 512, tp[i, 0])
                alone = pass_time(lone, ops, SERVE)
                for name in ("layers_s", "head_s", "hbm_bytes", "mac_j"):
                    assert getattr(whole, name)[d, i, j] == pytest.approx(
                        float(getattr(alone, name)[0]), rel=1e-12
                    )
