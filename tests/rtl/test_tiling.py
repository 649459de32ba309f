import numpy as np
from array_catalogue import operands
from hypothesis import given
from hypothesis import strategies as st

from rtl.cycles import tile_count
from rtl.tiling import assemble, cut

sizes = st.integers(1, 12)


@given(sizes, sizes, sizes, sizes, sizes)
def test_what_is_cut_adds_up_to_the_product(m, k, n, rows, cols):
    a, b = operands(m, k, n)
    tiles = list(cut(a, b, rows, cols))
    assert len(tiles) == tile_count(k, n, rows, cols)
    assert all(tile.weights.shape == (rows, cols) for tile in tiles)
    assert all(tile.activations.shape == (m, rows) for tile in tiles)
    results = [tile.activations.astype(np.int32) @ tile.weights.astype(np.int32) for tile in tiles]
    product = assemble(m, n, tiles, results)
    assert np.array_equal(product, a.astype(np.int32) @ b.astype(np.int32))


def test_edges_are_padded_with_zeros():
    a, b = np.ones((2, 3), np.int8), np.ones((3, 1), np.int8)
    first, second = cut(a, b, 2, 2)
    assert first.weights.tolist() == [[1, 0], [1, 0]]
    assert second.weights.tolist() == [[1, 0], [0, 0]]
    assert second.activations.tolist() == [[1, 0], [1, 0]]


def test_beats_start_at_the_bottom_row():
    (tile,) = cut(np.zeros((1, 2), np.int8), np.array([[1], [2]], np.int8), 2, 1)
    assert tile.beats.tolist() == [[2], [1]]
