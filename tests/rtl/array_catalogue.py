"""Named arrays and shapes that every test of a whole array runs through."""

import numpy as np

from rtl.config import MatmulConfig

CONFIGS = {
    "one element": MatmulConfig(1, 1),
    "one row": MatmulConfig(1, 6),
    "one column": MatmulConfig(6, 1),
    "2 × 2": MatmulConfig(2, 2),
    "3 × 5, odd and wide": MatmulConfig(3, 5),
    "5 × 3, odd and tall": MatmulConfig(5, 3),
    "4 × 4": MatmulConfig(4, 4),
    "8 × 8": MatmulConfig(8, 8),
    "16 × 4": MatmulConfig(16, 4),
    "4 × 16": MatmulConfig(4, 16),
}

# RedMulE's list of ragged (M, N, K), of which its own array got 24 × 16 × 16 wrong; a third of
# each here, for the Python simulator.
RAGGED = [
    (max(1, m // 3), max(1, n // 3), max(1, k // 3))
    for m, n, k in [
        (12, 16, 16),
        (24, 16, 16),
        (30, 32, 17),
        (24, 32, 1),
        (31, 32, 31),
        (5, 32, 3),
        (36, 31, 32),
        (3, 11, 32),
        (17, 13, 17),
        (23, 20, 33),
    ]
]


def operands(m, k, n, seed=0):
    """Random int8 matrices over the full range."""
    random = np.random.default_rng(seed)
    return (
        random.integers(-128, 128, (m, k), np.int8),
        random.integers(-128, 128, (k, n), np.int8),
    )
