"""Operators of a layer's MLP: dense, or routed and shared experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload.operators import Operator
from models.workload.passes import VECTOR_FLOPS, Pass, linear
from models.workload.transformer import Transformer

__all__ = ["experts_hit", "mlp_rows"]


def experts_hit(model: Transformer, tokens: ArrayLike) -> FloatArray:
    """Return how many distinct routed experts of a layer a batch is expected to visit.

    E (1 - (1 - k/E)^T) for T tokens that each visit k of E experts, every choice equally likely;
    real routers are less even, and visit fewer.

    Parameters
    ----------
    tokens : array_like
        Tokens in the batch.
    """
    missed = (1 - model.top_k / model.experts) ** np.asarray(tokens, dtype=np.float64)
    return np.asarray(model.experts * (1 - missed))


def mlp_rows(model: Transformer, work: Pass) -> list[Operator]:
    """Return the operators of every layer's MLP, of the dense layers and of those with experts."""
    rows = []
    if model.dense_layers:
        rows += _mlp("mlp", model, work, model.dense_layers, work.shard(model.ffn))
    if model.is_moe:
        router = VECTOR_FLOPS["softmax"] * work.tokens * model.experts
        rows.append(
            linear(
                "router",
                model.moe_layers,
                work.tokens,
                model.hidden,
                model.experts,
                vector_flops=router,
            )
        )
        rows += _routed(model, work)
        if model.shared_experts:
            width = work.shard(model.shared_experts * model.moe_ffn)
            rows += _mlp("shared", model, work, model.moe_layers, width)
    return rows


def _mlp(
    prefix: str, model: Transformer, work: Pass, layers: int, width: FloatArray
) -> list[Operator]:
    """Return both GEMMs of an MLP, gate and up as one; the activation function is an epilogue."""
    branches = 2 if model.gated_mlp else 1
    # Training also keeps what the activation function was applied to.
    written = width * (branches + 1 if work.phase == "training" else 1)
    return [
        linear(
            f"{prefix}_up",
            layers,
            work.tokens,
            model.hidden,
            branches * width,
            written=written,
            vector_flops=VECTOR_FLOPS["swiglu"] * work.tokens * width,
        ),
        linear(f"{prefix}_down", layers, work.tokens, width, model.hidden),
    ]


def _routed(model: Transformer, work: Pass) -> list[Operator]:
    """Return the routed experts: one GEMM per expert hit, over its mean share of the tokens.

    Tensor parallelism slices each expert, so every chip has a part of all of them.
    """
    hit = experts_hit(model, work.tokens)
    visits = replace(work, sequences=work.sequences * model.top_k)
    up, down = _mlp("expert", model, visits, model.moe_layers, work.shard(model.moe_ffn))
    combine = 2 * visits.tokens * model.hidden
    return [
        replace(
            row,
            parallel=hit,
            m=visits.tokens / hit,
            weight_elements=hit * row.weight_elements,
            vector_flops=row.vector_flops + extra,
        )
        for row, extra in ((up, 0.0), (down, combine))
    ]
