"""A forward pass: how many tokens of how many sequences, over what context, on how many chips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload.operators import Number, Operator
from rtl.errors import InputError

__all__ = ["VECTOR_FLOPS", "Pass", "linear"]

# Elementwise FLOPs per element; a transcendental counts as one, as a special-function unit issues
# it. Softmax: scale, running maximum, subtract, exponential, sum. RMS norm: square, sum, scale,
# gain. SwiGLU: negate, exponential, add, divide, multiply by the up projection. Rotary: two
# multiplications and a sum. Index: ReLU, head weight, sum over heads.
VECTOR_FLOPS = {
    "softmax": 5.0,
    "norm": 4.0,
    "residual": 1.0,
    "rotary": 3.0,
    "swiglu": 5.0,
    "index": 3.0,
}


@dataclass(frozen=True)
class Pass:
    """One forward pass on one chip of a tensor-parallel group.

    Training, prefill and decode differ in these facts alone; the operators follow from them.

    Attributes
    ----------
    phase : "training", "prefill" or "decode"
        Training keeps what the backward pass needs and caches nothing; decode uses MLA's absorbed
        form.
    sequences : ndarray
        Sequences in the batch.
    length : ndarray
        New tokens of each.
    context : ndarray
        Tokens of each once the pass is over, the new ones included.
    tp : ndarray
        Degree of tensor parallelism. What it does not divide is rounded up: the fullest chip.
    """

    phase: Literal["training", "prefill", "decode"]
    sequences: FloatArray
    length: FloatArray
    context: FloatArray
    tp: FloatArray

    @classmethod
    def of(
        cls,
        phase: Literal["training", "prefill", "decode"],
        *,
        sequences: ArrayLike,
        length: ArrayLike,
        context: ArrayLike,
        tp: ArrayLike,
    ) -> Self:
        """Make a pass from scalars or arrays that broadcast against each other.

        Raises
        ------
        InputError
            For a number below 1, or a context shorter than the new tokens.
        """
        given = {"sequences": sequences, "length": length, "context": context, "tp": tp}
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
        for name, value in arrays.items():
            if not np.all(value >= 1):
                raise InputError(f"{phase} {name} is {value.min():g}; give 1 or more")
        if np.any(arrays["context"] < arrays["length"]):
            raise InputError(
                f"{phase} context is shorter than the {arrays['length'].max():g} new tokens; "
                "count them in"
            )
        return cls(phase, **arrays)

    @property
    def tokens(self) -> FloatArray:
        """New tokens of all sequences."""
        return self.sequences * self.length

    @property
    def head_tokens(self) -> FloatArray:
        """Tokens whose logits are wanted: all in training, the last of each sequence otherwise."""
        return self.tokens if self.phase == "training" else self.sequences

    @property
    def cached(self) -> bool:
        """Whether keys and values live in a KV cache rather than among the activations."""
        return self.phase != "training"

    def shard(self, count: ArrayLike) -> FloatArray:
        """Return the fullest chip's share of heads, columns or tokens."""
        return np.asarray(np.ceil(np.asarray(count) / self.tp))

    def attended(self, window: float = np.inf) -> FloatArray:
        """Return the mean number of tokens that a query attends to, itself included.

        The query at position i attends to min(i, window) tokens; the sum over the first x
        positions is e (e + 1) / 2 + (x - e) e with e = min(x, window), from which the tokens
        before this pass are taken off. A prefill of s tokens attends to (s + 1) / 2 on average.
        """

        def below(position: FloatArray) -> FloatArray:
            edge = np.minimum(position, window)
            return np.asarray(edge * (edge + 1) / 2 + (position - edge) * edge)

        return (below(self.context) - below(self.context - self.length)) / self.length

    def read(self, window: float = np.inf) -> FloatArray:
        """Return how many tokens' keys a sequence reads: those in the window of any new token."""
        return np.asarray(np.minimum(self.context, window + self.length - 1))


def linear(
    name: str,
    repeat: Number,
    tokens: FloatArray,
    k: Number,
    n: Number,
    *,
    written: Number | None = None,
    kv_elements: Number = 0.0,
    vector_flops: Number = 0.0,
) -> Operator:
    """Return a linear layer's row: tokens × k inputs, k × n weights.

    `written` is the activation elements per token that go to memory, where an elementwise
    epilogue or the KV cache makes them differ from n.
    """
    return Operator(
        name,
        repeat,
        m=tokens,
        k=k,
        n=n,
        weight_elements=k * n,
        activation_elements=tokens * (k + (n if written is None else written)),
        kv_elements=kv_elements,
        vector_flops=vector_flops,
    )
