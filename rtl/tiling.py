"""How a product of any shape is cut into weight tiles for the array, and put together again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tile", "assemble", "cut"]


@dataclass(frozen=True, eq=False)
class Tile:
    """One weight tile and the activation vectors that stream through it.

    Attributes
    ----------
    k, n : slice
        The part of K and of N the tile covers; at a ragged edge less than the array's sides.
    weights : ndarray, (rows, cols)
        Weights by array row and column, zero beyond the edge.
    activations : ndarray, (M, rows)
        Activation vectors in the order of M, zero beyond the edge.
    """

    k: slice
    n: slice
    weights: NDArray[Any]
    activations: NDArray[Any]

    @property
    def beats(self) -> NDArray[Any]:
        """The weights in the order the `weights` stream takes them: the bottom row first."""
        return self.weights[::-1]


def cut(a: NDArray[Any], b: NDArray[Any], rows: int, cols: int) -> Iterator[Tile]:
    """Cut A (M, K) and B (K, N) into weight tiles, K within N.

    K runs innermost so that a caller finishes the sums of one block of columns before it starts
    the next.
    """
    (m, k_end), n_end = a.shape, b.shape[1]
    for n in range(0, n_end, cols):
        for k in range(0, k_end, rows):
            across_k = slice(k, min(k + rows, k_end))
            across_n = slice(n, min(n + cols, n_end))
            weights = np.zeros((rows, cols), b.dtype)
            weights[: across_k.stop - k, : across_n.stop - n] = b[across_k, across_n]
            activations = np.zeros((m, rows), a.dtype)
            activations[:, : across_k.stop - k] = a[:, across_k]
            yield Tile(across_k, across_n, weights, activations)


def assemble(
    m: int, n: int, tiles: Iterable[Tile], results: Iterable[NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Add the tiles' result vectors over K into the (M, N) product.

    Parameters
    ----------
    m, n : int
        Shape of the product.
    tiles : iterable of Tile
        As `cut` gave them.
    results : iterable of ndarray, (M, cols)
        What the array answered for each tile.
    """
    product = np.zeros((m, n), np.int32)
    for tile, partial in zip(tiles, results, strict=True):
        product[:, tile.n] += partial[:, : tile.n.stop - tile.n.start]
    return product
