"""Training: the operators of a micro-batch's forward and backward pass, and what they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload.attention import heads_on_chip
from models.workload.forward import (
    ALL_REDUCES_PER_LAYER,
    forward_rows,
    tensor_parallel_elements_per_layer,
)
from models.workload.operators import Operator, Operators
from models.workload.passes import Pass
from models.workload.transformer import Transformer
from rtl.errors import unknown

__all__ = [
    "ALL_REDUCES_PER_LAYER",
    "RECOMPUTE",
    "activation_elements_stored",
    "backward_operators",
    "forward_operators",
    "model_flops_per_token",
    "tensor_parallel_elements_per_layer",
]

RECOMPUTE = ("none", "full")


def forward_operators(
    model: Transformer, sequences: ArrayLike, seq_len: ArrayLike, tp: ArrayLike = 1
) -> Operators:
    """Return the operators of one micro-batch's forward pass, through all layers and the head.

    Parameters
    ----------
    model : Transformer
    sequences : array_like
        Sequences in the micro-batch.
    seq_len : array_like
        Tokens of each; every token attends to those before it.
    tp : array_like
        Degree of tensor parallelism; the table is that of one chip of the group.

    Returns
    -------
    Operators
        Points have the broadcast shape of the arguments. Pipeline parallelism divides `repeat`.
    """
    return Operators.of(forward_rows(model, _pass(sequences, seq_len, tp)))


def backward_operators(
    model: Transformer, sequences: ArrayLike, seq_len: ArrayLike, tp: ArrayLike = 1
) -> Operators:
    """Return the operators of one micro-batch's backward pass.

    A linear layer Y = X·W becomes its input gradient dX = dY·W^T and its weight gradient
    dW = X^T·dY, of the forward pass's FLOPs each. Attention becomes five GEMMs: the scores again,
    which were not kept, and both gradients of each of its two (FlashAttention-2,
    arXiv:2307.08691, algorithm 2). Full recomputation adds one more forward pass.

    Parameters and points are those of `forward_operators`.
    """
    forward = forward_rows(model, _pass(sequences, seq_len, tp))
    return Operators.of([row for before in reversed(forward) for row in _backward(before)])


def _pass(sequences: ArrayLike, seq_len: ArrayLike, tp: ArrayLike) -> Pass:
    return Pass.of("training", sequences=sequences, length=seq_len, context=seq_len, tp=tp)


def _backward(row: Operator) -> list[Operator]:
    """Return the rows that a forward row becomes in the backward pass.

    A GEMM's input gradient reads the output's gradient and writes the input's; its weight
    gradient reads both again: each moves as many activations as the forward GEMM. The derivative
    of an elementwise function costs about twice the function.
    """
    vector = 2 * row.vector_flops
    if not np.any(row.m):
        return [
            replace(
                row,
                name=f"{row.name}_gradient",
                weight_elements=0.0,
                gradient_elements=row.weight_elements,
                vector_flops=vector + row.weight_elements,
            )
        ]
    input_gradient = replace(
        row, name=f"{row.name}_input_gradient", k=row.n, n=row.k, vector_flops=vector
    )
    weight_gradient = replace(
        row,
        name=f"{row.name}_weight_gradient",
        m=row.k,
        k=row.m,
        weight_elements=0.0,
        gradient_elements=row.weight_elements,
        vector_flops=0.0,
    )
    if not row.attention:
        return [input_gradient, weight_gradient]
    # The k × n operand is keys or values, whose gradients are activations. FlashAttention reads
    # Q, K, V, O and dO once and writes dQ, dK and dV once: twice the forward pass's traffic.
    gradients = [
        replace(input_gradient, activation_elements=2 * row.activation_elements),
        replace(
            weight_gradient,
            name=f"{row.name}_operand_gradient",
            activation_elements=0.0,
            gradient_elements=0.0,
        ),
    ]
    if not row.name.endswith("scores"):
        return gradients
    again = replace(row, name=f"{row.name}_again", activation_elements=0.0)
    return [again, *gradients]


def activation_elements_stored(
    model: Transformer,
    sequences: ArrayLike,
    seq_len: ArrayLike,
    tp: ArrayLike = 1,
    recompute: Literal["none", "full"] = "none",
) -> FloatArray:
    """Return the activations that one layer keeps for its backward pass, in elements per chip.

    The mean over the model's layers, for one micro-batch. With "full" recomputation a layer keeps
    its input alone: hidden/tp per token. With "none" it keeps, per token,

    - 4·hidden/tp: the inputs of both norms and their outputs (sequence parallelism);
    - queries, keys, values and attention output, (2·heads + 2·kv_heads)·head_dim/tp;
    - for a dense MLP the gate, the up projection and their product, 3·ffn/tp, or 2·ffn/tp of an
      MLP without gate; for experts as much per expert that a token visits, and the router logits;
    - for latent attention both latents, which are not divided, and the expanded heads.

    Scores are not kept, nor FlashAttention's one log-sum-exp per head. For a GPT layer (MHA,
    ffn = 4·hidden, tp = 1) that is 16·hidden elements, the 34·hidden bytes of Korthikanti et al.
    (arXiv:2205.05198, section 4.1) less the dropout masks.

    Raises
    ------
    InputError
        For an unknown `recompute`.
    """
    if recompute not in RECOMPUTE:
        raise unknown("recompute", recompute, RECOMPUTE)
    work = _pass(sequences, seq_len, tp)
    stream = work.shard(work.tokens) * model.hidden
    if recompute == "full":
        return stream
    inner = 3 if model.gated_mlp else 2
    dense = inner * work.shard(model.ffn)
    experts = (
        inner * model.top_k * work.shard(model.moe_ffn)
        + inner * work.shard(model.shared_experts * model.moe_ffn)
        + model.experts
    )
    mlp = (model.dense_layers * dense + model.moe_layers * experts) / model.layers
    return np.asarray(4 * stream + work.tokens * (_attention_stored(model, work) + mlp))


def _attention_stored(model: Transformer, work: Pass) -> FloatArray:
    """Return the elements per token that attention keeps, apart from its input."""
    if not model.is_mla:
        kv_heads, group = heads_on_chip(model, work)
        return 2 * (group + 1) * kv_heads * model.head_dim
    per_head = model.head_dim + model.qk_nope_head_dim + 2 * model.v_head_dim
    latents = model.q_lora_rank + model.kv_lora_rank + model.qk_rope_head_dim
    indexer = (model.index_heads + 1) * model.index_head_dim
    return np.asarray(latents + indexer + work.shard(model.heads) * per_head)


def model_flops_per_token(model: Transformer, seq_len: ArrayLike) -> FloatArray:
    """Return the FLOPs that training needs per token, without any recomputation.

    Three times the forward pass, causal attention included: the numerator of model FLOPs
    utilization (MFU; PaLM, arXiv:2204.02311, appendix B).
    """
    seq_len = np.asarray(seq_len, dtype=np.float64)
    return np.asarray(3 * forward_operators(model, 1, seq_len).total_flops / seq_len)
