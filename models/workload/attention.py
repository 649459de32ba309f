"""Operators of attention: grouped-query (MHA and MQA are its ends) and multi-head latent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.arrays import FloatArray
from models.workload.operators import Operator
from models.workload.passes import VECTOR_FLOPS, Pass, linear
from models.workload.transformer import Transformer

__all__ = ["attention_rows", "heads_on_chip"]


def heads_on_chip(model: Transformer, work: Pass) -> tuple[FloatArray, FloatArray]:
    """Return the key-value heads on the fullest chip, and the query heads that each serves there.

    Whole groups are divided first; beyond one key-value head per chip, that head is replicated
    and its queries are divided.
    """
    kv_heads = work.shard(model.kv_heads)
    return kv_heads, np.asarray(np.ceil(work.shard(model.heads) / kv_heads))


def attention_rows(model: Transformer, work: Pass) -> list[Operator]:
    """Return the operators of every layer's attention, from its projections to its output."""
    return (_latent if model.is_mla else _grouped_query)(model, work)


def _grouped_query(model: Transformer, work: Pass) -> list[Operator]:
    kv_heads, group = heads_on_chip(model, work)
    query = kv_heads * group * model.head_dim
    key = kv_heads * model.head_dim
    normed = VECTOR_FLOPS["rotary"] + model.qk_norm * VECTOR_FLOPS["norm"]
    rows = [
        linear(
            "qkv",
            model.layers,
            work.tokens,
            model.hidden,
            query + 2 * key,
            # Keys and values leave for the cache; in training they are activations.
            written=query if work.cached else query + 2 * key,
            kv_elements=work.tokens * 2 * key if work.cached else 0.0,
            vector_flops=work.tokens * (query + key) * normed,
        )
    ]
    kinds = (("", model.full_layers, np.inf), ("local_", model.local_layers, model.sliding_window))
    for prefix, layers, window in kinds:
        if layers:
            operand = work.sequences * work.read(window) * key
            rows += _attend(
                prefix,
                layers,
                instances=work.sequences * kv_heads,
                queries=work.length * group,
                attended=work.attended(window),
                widths=(model.head_dim, model.head_dim),
                operands=(operand, operand),
                cached=work.cached,
            )
    return [*rows, linear("attention_output", model.layers, work.tokens, query, model.hidden)]


def _latent(model: Transformer, work: Pass) -> list[Operator]:
    """Return multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1.2).

    The projections to the latents are replicated on every chip, as the latents are; the heads are
    divided. With an indexer, queries attend to the cached tokens that it selects.
    """
    heads = work.shard(model.heads)
    rope = model.qk_rope_head_dim
    latent = model.kv_lora_rank + rope
    query = heads * (model.qk_nope_head_dim + rope)
    rank = model.q_lora_rank
    rows = []
    if rank:
        norm = work.tokens * rank * VECTOR_FLOPS["norm"]
        rows.append(
            linear("q_down", model.layers, work.tokens, model.hidden, rank, vector_flops=norm)
        )
    rows += [
        linear(
            "q_up" if rank else "q",
            model.layers,
            work.tokens,
            rank or model.hidden,
            query,
            vector_flops=work.tokens * heads * rope * VECTOR_FLOPS["rotary"],
        ),
        linear(
            "kv_down",
            model.layers,
            work.tokens,
            model.hidden,
            latent,
            # Prefill expands the new latents at once, so it writes them twice: for that, and to
            # the cache. Decode reads them from the cache alone.
            written=0.0 if work.phase == "decode" else latent,
            kv_elements=work.tokens * latent if work.cached else 0.0,
            vector_flops=work.tokens
            * (model.kv_lora_rank * VECTOR_FLOPS["norm"] + rope * VECTOR_FLOPS["rotary"]),
        ),
    ]
    if model.index_heads:
        rows += _indexer(model, work)
    rows += (_absorbed if work.phase == "decode" else _expanded)(model, work)
    output = heads * model.v_head_dim
    return [*rows, linear("attention_output", model.layers, work.tokens, output, model.hidden)]


def _expanded(model: Transformer, work: Pass) -> list[Operator]:
    """Return latent attention with keys and values expanded per head: fewest FLOPs per query.

    Tokens of an earlier prefix are expanded again, from the cache.
    """
    heads = work.shard(model.heads)
    rank, nope, value = model.kv_lora_rank, model.qk_nope_head_dim, model.v_head_dim
    prefix = work.sequences * (work.context - work.length)
    context = work.sequences * work.context
    expand = replace(
        linear("kv_up", model.layers, context, rank, heads * (nope + value)),
        activation_elements=work.tokens * rank + context * heads * (nope + value),
        kv_elements=prefix * (rank + model.qk_rope_head_dim),
    )
    return [
        expand,
        *_attend(
            "",
            model.layers,
            instances=work.sequences * heads,
            queries=work.length,
            attended=work.attended(model.index_top_k or np.inf),
            widths=(model.head_dim, value),
            # All heads share the rotary part of the key.
            operands=(context * (heads * nope + model.qk_rope_head_dim), context * heads * value),
            cached=False,
        ),
    ]


def _absorbed(model: Transformer, work: Pass) -> list[Operator]:
    """Return latent attention on the cached latents themselves: fewest bytes per query.

    The key expansion is absorbed into the query and the value expansion follows the attention,
    one GEMM per head each, so that all heads share one read of the latent cache.
    """
    heads = work.shard(model.heads)
    rank, nope, value = model.kv_lora_rank, model.qk_nope_head_dim, model.v_head_dim
    latent = rank + model.qk_rope_head_dim
    window = model.index_top_k or np.inf

    def per_head(name: str, k: int, n: int) -> Operator:
        one = linear(name, model.layers, work.tokens, k, n)
        return replace(
            one,
            parallel=heads,
            weight_elements=heads * one.weight_elements,
            activation_elements=heads * one.activation_elements,
        )

    return [
        per_head("query_absorb", nope, rank),
        *_attend(
            "",
            model.layers,
            instances=work.sequences,
            queries=work.length * heads,
            attended=work.attended(window),
            widths=(latent, rank),
            # The values are the first part of the keys, already on chip.
            operands=(work.sequences * work.read(window) * latent, np.zeros(())),
            cached=True,
        ),
        per_head("value_up", rank, value),
    ]


def _indexer(model: Transformer, work: Pass) -> list[Operator]:
    """Return DeepSeek sparse attention's indexer (DeepSeek-V3.2), replicated on every chip.

    It scores every cached token for every query; the selection of the best is not counted.
    """
    width, heads = model.index_head_dim, model.index_heads
    tokens, attended = work.tokens, work.attended()
    keys = work.sequences * work.read() * width
    cached = {"kv_elements" if work.cached else "activation_elements": keys}
    scores = Operator(
        "index_scores",
        model.layers,
        parallel=work.sequences,
        m=work.length * heads,
        k=width,
        n=attended,
        vector_flops=tokens * heads * attended * VECTOR_FLOPS["index"],
        attention=True,
        **cached,
    )
    queries = tokens * heads * (width + 1)
    return [
        linear("index_queries", model.layers, tokens, model.q_lora_rank, heads * width),
        linear(
            "index_keys",
            model.layers,
            tokens,
            model.hidden,
            width + heads,
            written=heads if work.cached else width + heads,
            kv_elements=tokens * width if work.cached else 0.0,
        ),
        replace(scores, activation_elements=scores.activation_elements + queries),
    ]


def _attend(
    prefix: str,
    layers: int,
    *,
    instances: FloatArray,
    queries: FloatArray,
    attended: FloatArray,
    widths: tuple[int, int],
    operands: tuple[FloatArray, FloatArray],
    cached: bool,
) -> list[Operator]:
    """Return the two fused GEMMs of attention: scores = Q·K^T, then softmax(scores)·V.

    The scores stay on chip. `widths` are a key's and a value's elements, `operands` the elements
    of keys and of values read by all instances, from the KV cache or from the activations.
    """
    source = "kv_elements" if cached else "activation_elements"
    scores = Operator(
        f"{prefix}attention_scores",
        layers,
        parallel=instances,
        m=queries,
        k=widths[0],
        n=attended,
        vector_flops=VECTOR_FLOPS["softmax"] * instances * queries * attended,
        attention=True,
        **{source: operands[0]},
    )
    values = Operator(
        f"{prefix}attention_values",
        layers,
        parallel=instances,
        m=queries,
        k=attended,
        n=widths[1],
        attention=True,
        **{source: operands[1]},
    )
    return [
        # Queries in, attention output out.
        replace(row, activation_elements=row.activation_elements + instances * queries * width)
        for row, width in zip((scores, values), widths)
    ]
