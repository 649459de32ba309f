"""Inference: the operators of prefill and of a decode step, and the KV cache they share."""

from __future__ import annotations

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload.forward import (
    ALL_REDUCES_PER_LAYER,
    forward_rows,
    tensor_parallel_elements_per_layer,
)
from models.workload.operators import Operators
from models.workload.passes import Pass
from models.workload.recipes import Recipe
from models.workload.transformer import Transformer

__all__ = [
    "ALL_REDUCES_PER_LAYER",
    "decode_operators",
    "kv_bytes",
    "prefill_operators",
    "tensor_parallel_elements_per_layer",
]


def prefill_operators(
    model: Transformer,
    batch: ArrayLike,
    prompt: ArrayLike,
    tp: ArrayLike = 1,
    prefix: ArrayLike = 0,
) -> Operators:
    """Return the operators that process a batch of prompts and fill the KV cache.

    Parameters
    ----------
    model : Transformer
    batch : array_like
        Sequences.
    prompt : array_like
        New tokens of each; the head runs on the last of them alone.
    tp : array_like
        Degree of tensor parallelism; the table is that of one chip of the group.
    prefix : array_like
        Tokens of each that are in the cache already: earlier chunks, or a shared prefix.

    Returns
    -------
    Operators
        Points have the broadcast shape of the arguments.
    """
    prompt = np.asarray(prompt, dtype=np.float64)
    context = prompt + np.asarray(prefix)
    work = Pass.of("prefill", sequences=batch, length=prompt, context=context, tp=tp)
    return Operators.of(forward_rows(model, work))


def decode_operators(
    model: Transformer, batch: ArrayLike, context: ArrayLike, tp: ArrayLike = 1
) -> Operators:
    """Return the operators of one decode step: one new token for each sequence.

    Parameters
    ----------
    model : Transformer
    batch : array_like
        Sequences.
    context : array_like
        Tokens that each attends to, the new one included.
    tp : array_like
        Degree of tensor parallelism; the table is that of one chip of the group.

    Returns
    -------
    Operators
        Points have the broadcast shape of the arguments.
    """
    work = Pass.of("decode", sequences=batch, length=1, context=context, tp=tp)
    return Operators.of(forward_rows(model, work))


def kv_bytes(
    model: Transformer, context: ArrayLike, recipe: Recipe, tp: ArrayLike = 1
) -> FloatArray:
    """Return the bytes that one sequence's KV cache takes on one chip.

    Parameters
    ----------
    model : Transformer
    context : array_like
        Tokens in the cache; local layers keep at most their window.
    recipe : Recipe
        Gives the format of the cache.
    tp : array_like
        Degree of tensor parallelism: divides key-value heads, and does not divide latents.
    """
    return model.kv_elements(context, tp) * recipe.kv_bytes
