import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from array_catalogue import CONFIGS, operands
from hypothesis import given
from hypothesis import strategies as st

from rtl.config import MAX_SIDE, MIN_SIDE, MatmulConfig, scaled
from rtl.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "rows must be from 1 to 64, not 0; an array has at least one row"),
        ({"cols": -3}, "cols must be from 1 to 64, not -3"),
        ({"cols": 65}, "cols must be from 1 to 64, not 65; tile the product"),
        ({"dataflow": "os"}, "unknown dataflow 'os'.*Known: ws"),
        ({"operand_format": "itn8"}, "unknown format 'itn8'; did you mean 'int8'"),
        ({"operand_format": "bf16"}, "operand_format 'bf16' has no gateware yet; .* with int8"),
        ({"accumulator_format": "fp32"}, "accumulator_format 'fp32' does not fit int8.*use int32"),
    ],
)
def test_bad_values(arguments, message):
    with pytest.raises(InputError, match=message):
        MatmulConfig(**{"rows": 4, "cols": 4} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 4.0}, r"rows must be an integer, not 4.0 \(float\)"),
        ({"cols": "8"}, r"cols must be an integer, not '8' \(str\)"),
        ({"rows": True}, "rows must be an integer, not True"),
        ({"operand_format": None}, "operand_format must be a name such as 'int8', not None"),
    ],
)
def test_bad_types(arguments, message):
    with pytest.raises(TypeError, match=message):
        MatmulConfig(**{"rows": 4, "cols": 4} | arguments)


def test_is_a_frozen_value():
    config = MatmulConfig(np.int64(4), MAX_SIDE, operand_format="INT8", dataflow="WS")
    assert config == MatmulConfig(4, 64)
    assert hash(config) == hash(MatmulConfig(4, 64))
    assert type(config.rows) is int
    assert (MIN_SIDE, config.elements) == (1, 256)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.rows = 5


def test_import_needs_no_amaranth():
    code = "import rtl.config, rtl.formats, rtl.cycles, rtl.tiling, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "rtl.config" in modules
    assert not {"amaranth", "optuna", "typer", "rich"} & set(modules)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0))
def test_reference_is_the_exact_product(m, k, n, seed):
    a, b = operands(m, k, n, seed)
    product = MatmulConfig(4, 4).reference(a, b)
    assert product.dtype == np.int32
    assert np.array_equal(product, a.astype(np.int64) @ b.astype(np.int64))


def test_reference_at_the_edge_of_the_accumulator():
    config = MatmulConfig(8, 8)
    assert config.max_k == 131_071
    a = np.full((1, config.max_k), -128)
    assert config.reference(a, a.T).item() == config.max_k * 16_384 < 2**31
    longer = np.zeros((1, config.max_k + 1), int)
    with pytest.raises(InputError, match=r"K = 131,072 can overflow .*allows K up to 131,071"):
        config.reference(longer, longer.T)


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        (np.zeros((2, 3), int), np.zeros((2, 3), int), InputError, "a is 2 × 3 and b is 2 × 3"),
        (np.zeros(3, int), np.zeros((3, 1), int), InputError, "a must be a matrix.*1 dimension"),
        (np.zeros((1, 1)), np.zeros((1, 1), int), TypeError, "a must hold integers, not float64"),
        (np.zeros((1, 1), int), np.ones((1, 1), bool), TypeError, "b must hold integers, not bool"),
        ([[128]], [[1]], InputError, "a holds values from 128 to 128, but int8 holds -128 to 127"),
        ([[1]], [[-129]], InputError, "b holds values from -129 to -129.*scale or clip it"),
        (
            np.array([[2**63]], np.uint64),
            [[1]],
            InputError,
            "a holds values from 92233720368547758",
        ),
    ],
)
def test_reference_refuses(a, b, error, message):
    with pytest.raises(error, match=message):
        MatmulConfig(2, 2).reference(a, b)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
def test_utilization_is_macs_over_element_cycles(config):
    cycles = config.cycles(20, 30, 10)
    assert config.utilization(20, 30, 10) == 6000 / (config.elements * cycles)
    assert config.utilization(20, 30, 10, 2 * cycles) == config.utilization(20, 30, 10) / 2
    assert 0 < config.utilization(20, 30, 10) <= 1
    assert config.utilization(0, 30, 10) == 0


def test_cycles_refuses_what_is_no_size():
    with pytest.raises(InputError, match="k must be 0 or more, not -1"):
        MatmulConfig(2, 2).cycles(1, -1, 1)
    with pytest.raises(TypeError, match=r"n must be an integer, not 1\.5"):
        MatmulConfig(2, 2).cycles(1, 1, 1.5)


@pytest.mark.parametrize(
    ("sides", "factor", "smaller"),
    [
        ((64, 64), 8, (8, 8)),
        ((128, 32), 4, (32, 8)),
        ((10, 6), 4, (3, 2)),
        ((48, 3), 8, (6, 1)),
        ((5, 7), 1, (5, 7)),
    ],
)
def test_scaled(sides, factor, smaller):
    assert scaled(*sides, factor) == smaller


def test_scale_must_be_positive():
    with pytest.raises(InputError, match="the scale must be an integer of at least 1, not 0"):
        scaled(8, 8, 0)
