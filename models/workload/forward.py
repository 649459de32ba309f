"""The operators of a whole forward pass, from the embedding to the head."""

from __future__ import annotations

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload.attention import attention_rows
from models.workload.mlp import mlp_rows
from models.workload.operators import Operator
from models.workload.passes import VECTOR_FLOPS, Pass, linear
from models.workload.transformer import Transformer

__all__ = [
    "ALL_REDUCES_PER_LAYER",
    "forward_rows",
    "tensor_parallel_elements_per_layer",
]

# One after the attention output and one after the MLP (Megatron-LM, arXiv:1909.08053, figure 4).
ALL_REDUCES_PER_LAYER = 2


def forward_rows(model: Transformer, work: Pass) -> list[Operator]:
    """Return the operators of one forward pass through all layers, on one chip.

    Norms and residual sums are divided by tensor parallelism over the tokens (sequence
    parallelism, arXiv:2205.05198), the vocabulary over embedding and head.
    """
    looked_up = np.minimum(work.tokens, model.vocab) * model.hidden / work.tp
    head = work.shard(model.vocab)
    return [
        Operator(
            "embedding",
            weight_elements=looked_up,
            activation_elements=work.shard(work.tokens) * model.hidden,
        ),
        _norm("attention_norm", model, work, model.layers, work.tokens),
        *attention_rows(model, work),
        _norm("mlp_norm", model, work, model.layers, work.tokens),
        *mlp_rows(model, work),
        _norm("final_norm", model, work, 1, work.head_tokens),
        linear(
            "head",
            1,
            work.head_tokens,
            model.hidden,
            head,
            vector_flops=VECTOR_FLOPS["softmax"] * work.head_tokens * head,
        ),
    ]


def _norm(name: str, model: Transformer, work: Pass, layers: int, tokens: FloatArray) -> Operator:
    """Return a residual sum and the norm of it: two vectors read and two written."""
    elements = work.shard(tokens) * model.hidden
    return Operator(
        name,
        layers,
        activation_elements=4 * elements,
        vector_flops=(VECTOR_FLOPS["residual"] + VECTOR_FLOPS["norm"]) * elements,
    )


def tensor_parallel_elements_per_layer(model: Transformer, tokens: ArrayLike) -> FloatArray:
    """Return the elements that tensor parallelism all-reduces in one layer of one forward pass.

    `ALL_REDUCES_PER_LAYER` messages of tokens × hidden, summed here. The backward pass moves as
    many again. With sequence parallelism each all-reduce becomes a reduce-scatter and an
    all-gather of the same elements. The embedding's and the head's own exchange, once per pass
    and not per layer, is not included.

    Parameters
    ----------
    tokens : array_like
        Tokens in the batch, over all sequences.
    """
    return np.asarray(ALL_REDUCES_PER_LAYER * np.asarray(tokens, dtype=np.float64) * model.hidden)
