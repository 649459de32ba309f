"""The gateware against NumPy and against the closed form, on whole products."""

import gc

import numpy as np
import pytest
from amaranth.hdl import Fragment, Module, Signal
from array_catalogue import CONFIGS, RAGGED, operands
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.array import SystolicArray
from rtl.config import MatmulConfig
from rtl.errors import InputError
from rtl.simulation.python import SimulationHang, simulate


def check(config, a, b, **options):
    """Simulate and compare with what the test itself computes, not with what simulate says."""
    result = simulate(config, a, b, **options)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    assert result.product.dtype == np.int32
    assert np.array_equal(result.product, expected)
    assert result.correct
    shape = (a.shape[0], a.shape[1], b.shape[1])
    assert result.predicted_cycles == config.cycles(*shape)
    if options.get("stalls"):
        assert result.cycles >= result.predicted_cycles
    else:
        assert result.cycles == result.predicted_cycles
    assert result.macs == np.prod(shape)
    assert result.utilization == config.utilization(*shape, result.cycles)
    return result


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
class TestCatalogue:
    def test_creates_its_hardware(self, config):
        array = config.create()
        assert isinstance(array, SystolicArray)
        assert array.config is config
        Fragment.get(array, None)

    # Tiles shorter than, as long as and longer than the array is high; the weight loads bind in
    # the first case and the vectors in the last.
    @pytest.mark.parametrize("vectors", [-1, 0, 1], ids=["m < rows", "m = rows", "m > rows"])
    def test_tiles_follow_without_a_gap(self, config, vectors):
        m = max(1, config.rows + 3 * vectors)
        a, b = operands(m, 2 * config.rows, 2 * config.cols, seed=m)
        check(config, a, b)

    def test_one_vector(self, config):
        check(config, *operands(1, config.rows + 1, config.cols + 1))

    def test_all_at_the_minimum(self, config):
        # The greatest sum there is; a partial sum one bit too narrow turns it negative.
        a, b = np.full((3, 2 * config.rows), -128), np.full((2 * config.rows, config.cols), -128)
        result = check(config, a, b)
        assert (result.product == 2 * config.rows * 16_384).all()

    def test_random_stalls(self, config):
        a, b = operands(4, config.rows + 2, config.cols + 2)
        check(config, a, b, stalls=0.4, seed=3)


def test_every_pair_of_operands():
    every = np.arange(-128, 128, dtype=np.int8)
    check(MatmulConfig(1, 32), every[:, None], every[None, :])


def test_least_sums():
    a = np.tile(np.array([[-128], [127]]), (2, 8))
    b = np.tile(np.array([[127, -128]]), (8, 2))
    check(MatmulConfig(8, 4), a, b)


@pytest.mark.parametrize(("m", "n", "k"), RAGGED)
def test_ragged(m, n, k):
    check(MatmulConfig(4, 3), *operands(m, k, n))


def test_tiles_keep_their_own_weights():
    # Each tile's weights are its own number; one that is late or early shows as a wrong sum.
    config = MatmulConfig(3, 2)
    a = np.ones((2, 9), np.int8)
    b = np.repeat(np.arange(1, 13, dtype=np.int8).reshape(3, 4), 3, axis=0)
    check(config, a, b)


sizes = st.integers(1, 11)


@settings(max_examples=25, deadline=None)
@given(
    config=st.builds(MatmulConfig, st.integers(1, 6), st.integers(1, 6)),
    shape=st.tuples(sizes, sizes, sizes),
    stalls=st.one_of(st.just(0.0), st.tuples(*[st.sampled_from([0.0, 0.2, 0.7])] * 3)),
    extreme=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_array_on_any_shape(config, shape, stalls, extreme, seed):
    a, b = operands(*shape, seed)
    if extreme:
        a, b = (np.where(x < 0, -128, 127).astype(np.int8) for x in (a, b))
    check(config, a, b, stalls=stalls, seed=seed)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_empty_products_need_no_hardware(shape, monkeypatch):
    monkeypatch.setattr(MatmulConfig, "create", lambda self: pytest.fail("hardware was made"))
    m, k, n = shape
    result = check(MatmulConfig(2, 2), np.zeros((m, k), np.int8), np.zeros((k, n), np.int8))
    assert result.product.shape == (m, n)
    assert (result.cycles, result.utilization, result.activity) == (0, 0, 0)


def test_activity_counts_padding_and_utilization_does_not():
    result = check(MatmulConfig(4, 4), *operands(10, 5, 4))
    assert result.activity == 2 * 10 / result.cycles
    assert result.utilization == 10 * 5 * 4 / (16 * result.cycles)


def test_bad_stalls():
    a, b = operands(1, 1, 1)
    for stalls in (1, -0.1, (0, 0, 1.5)):
        with pytest.raises(InputError, match="a stall probability must be from 0 to below 1"):
            simulate(MatmulConfig(1, 1), a, b, stalls=stalls)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_takes_a_config():
    with pytest.raises(TypeError, match="SystolicArray takes a MatmulConfig, not 8"):
        SystolicArray(8)
    gc.collect()  # the refused array warns that it was not used; here and not in a later test


def test_a_stuck_array_is_reported(monkeypatch):
    class Stuck(SystolicArray):
        def elaborate(self, platform):
            m = Module()
            m.d.sync += Signal().eq(1)
            return m

    monkeypatch.setattr(MatmulConfig, "create", lambda config: Stuck(config))
    with pytest.raises(SimulationHang, match=r"has not moved for .* results of 1 of 1 tiles"):
        simulate(MatmulConfig(2, 2), *operands(1, 1, 1))


def test_waveforms(tmp_path):
    path = tmp_path / "waves.vcd"
    simulate(MatmulConfig(2, 2), *operands(2, 2, 2), vcd=path)
    assert "results__valid" in path.read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "shape"),
    [
        (MatmulConfig(16, 16), (40, 48, 33)),
        (MatmulConfig(16, 16), (5, 64, 64)),
        (MatmulConfig(32, 32), (40, 33, 64)),
        (MatmulConfig(32, 8), (9, 70, 20)),
        (MatmulConfig(64, 64), (8, 65, 64)),
    ],
    ids=str,
)
@pytest.mark.parametrize("stalls", [0.0, 0.3])
def test_large(config, shape, stalls):
    check(config, *operands(*shape), stalls=stalls)
    m, k, n = shape
    check(config, np.full((m, k), -128), np.full((k, n), -128), stalls=stalls)


@pytest.mark.long
@pytest.mark.parametrize("side", [48, 96, 128])
def test_cubes(side):
    check(MatmulConfig(12, 4), *operands(side, side, side))


@pytest.mark.long
def test_every_pair_of_operands_in_one_element():
    every = np.arange(-128, 128, dtype=np.int8)
    check(MatmulConfig(1, 1), every[:, None], every[None, :])


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    config=st.builds(MatmulConfig, st.integers(1, 10), st.integers(1, 10)),
    shape=st.tuples(*[st.integers(1, 30)] * 3),
    stalls=st.tuples(*[st.floats(0, 0.8)] * 3),
    seed=st.integers(0, 2**32),
)
def test_any_array_on_any_shape_at_length(config, shape, stalls, seed):
    check(config, *operands(*shape, seed), stalls=stalls, seed=seed)
