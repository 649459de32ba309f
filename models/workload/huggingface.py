"""Hugging Face ``config.json``: which of its fields say what, for each ``model_type``.

The tables at the end are the whole knowledge: a row names a fact of `Transformer` and how to read
it. A reader is given the configuration and the facts of the rows above it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

from rtl.errors import InputError, lookup

__all__ = ["FAMILIES", "architecture"]

Config = Mapping[str, Any]
Facts = Mapping[str, Any]
Reader = Callable[[Config, Facts], Any]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class _Missing(Exception):
    """A field that has no default and is not in the configuration."""


def architecture(config: Config, source: str) -> dict[str, Any]:
    """Read the facts of `Transformer`, all but its name, from a configuration.

    Parameters
    ----------
    config : mapping
        A parsed ``config.json``. Multimodal models nest the language model in ``text_config``.
    source : str
        Where it came from, for error messages.

    Raises
    ------
    InputError
        For an unknown ``model_type``, or a field that is not there or of the wrong kind.
    """
    text = config.get("text_config")
    if isinstance(text, Mapping):
        config = ChainMap(dict(text), dict(config))
    try:
        model_type = key("model_type")(config, {})
        family = lookup(f"model_type in {source}", str(model_type), FAMILIES)
        facts: dict[str, Any] = {}
        for fact, read in family.items():
            try:
                facts[fact] = read(config, facts)
            except (TypeError, ZeroDivisionError) as error:
                raise InputError(
                    f"{source}: cannot work out {fact} ({error}); "
                    "counts and sizes must be whole numbers"
                ) from error
    except _Missing as missing:
        raise InputError(
            f"{source} has no {missing}; Hugging Face puts it at the top of config.json, "
            "or under text_config for a multimodal model"
        ) from None
    return facts


# Readers


def key(*names: str, default: Any = _Missing) -> Reader:
    """Read the first of these fields that is there and not null.

    `default` is a value, or a reader; without one the field is required.
    """

    def read(config: Config, facts: Facts) -> Any:
        for name in names:
            if config.get(name) is not None:
                return config[name]
        if default is _Missing:
            raise _Missing(" or ".join(repr(name) for name in names))
        return default(config, facts) if callable(default) else default

    return read


def constant(value: Any) -> Reader:
    """Give a fact of the architecture that its configuration does not state."""
    return lambda config, facts: value


def when(fact: str, read: Reader) -> Reader:
    """Read only if the earlier fact is not zero; otherwise 0."""
    return lambda config, facts: read(config, facts) if facts[fact] else 0


def same(fact: str) -> Reader:
    """Repeat an earlier fact."""
    return lambda config, facts: facts[fact]


def local_layers(rule: Reader) -> Reader:
    """Count the local layers in ``layer_types``; without that field, follow the family's rule."""

    def read(config: Config, facts: Facts) -> Any:
        kinds = config.get("layer_types")
        if not kinds:
            return rule(config, facts)
        return sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)

    return read


def _dtype(config: Config, facts: Facts) -> str:
    given = key("torch_dtype", "dtype", default="bfloat16")(config, facts)
    return lookup("torch_dtype", str(given), _DTYPES)


def _mistral_local(config: Config, facts: Facts) -> Any:
    return facts["layers"] if config.get("sliding_window") else 0


def _qwen_local(config: Config, facts: Facts) -> Any:
    if not (config.get("use_sliding_window") and config.get("sliding_window")):
        return 0
    return max(0, facts["layers"] - key("max_window_layers")(config, facts))


def _llama4_local(config: Config, facts: Facts) -> Any:
    """Count the layers with rotary embedding, which attend in chunks; every fourth has neither."""
    rotary = config.get("no_rope_layers")
    if rotary:
        return sum(bool(layer) for layer in rotary)
    return facts["layers"] - facts["layers"] // config.get("no_rope_layer_interval", 4)


def _llama4_moe_layers(config: Config, facts: Facts) -> Any:
    listed = config.get("moe_layers")
    if listed is not None:
        return len(listed)
    step = key("interleave_moe_layer_step", default=1)(config, facts)
    return facts["layers"] // step if step else 0


def _qwen_moe_layers(config: Config, facts: Facts) -> int:
    step = key("decoder_sparse_step", default=1)(config, facts)
    dense = key("mlp_only_layers", default=())(config, facts)
    return sum(layer not in dense and (layer + 1) % step == 0 for layer in range(facts["layers"]))


def _deepseek_moe_layers(config: Config, facts: Facts) -> int:
    first = key("first_k_dense_replace")(config, facts)
    step = key("moe_layer_freq", default=1)(config, facts)
    return sum(layer >= first and layer % step == 0 for layer in range(facts["layers"]))


def _latent_head_dim(config: Config, facts: Facts) -> Any:
    """Add the parts of a query head without and with rotary embedding."""
    return key("qk_nope_head_dim")(config, facts) + key("qk_rope_head_dim")(config, facts)


# Tables. Every default is the one of that family's configuration class in transformers.

_DECODER: dict[str, Reader] = {
    "layers": key("num_hidden_layers"),
    "hidden": key("hidden_size"),
    "heads": key("num_attention_heads"),
    "kv_heads": key("num_key_value_heads", default=same("heads")),
    "head_dim": key("head_dim", default=lambda config, facts: facts["hidden"] // facts["heads"]),
    "ffn": key("intermediate_size"),
    "vocab": key("vocab_size"),
    "tied_embeddings": key("tie_word_embeddings", default=False),
    "dtype": _dtype,
}

_LLAMA = _DECODER | {
    "qkv_bias": key("attention_bias", default=False),
    "output_bias": key("attention_bias", default=False),
    "mlp_bias": key("mlp_bias", default=False),
}

_MISTRAL = _DECODER | {
    "local_layers": local_layers(_mistral_local),
    "sliding_window": when("local_layers", key("sliding_window")),
}

_MIXTRAL = _MISTRAL | {
    "moe_layers": same("layers"),
    "experts": key("num_local_experts"),
    "top_k": key("num_experts_per_tok"),
    # All layers have experts, of the one width that the configuration states.
    "moe_ffn": same("ffn"),
}

_QWEN2 = _DECODER | {
    # Qwen2 always has biases on queries, keys and values, and its configuration does not say so.
    "qkv_bias": constant(True),
    "local_layers": local_layers(_qwen_local),
    "sliding_window": when("local_layers", key("sliding_window")),
}

_QWEN3 = _QWEN2 | {
    "qkv_bias": key("attention_bias", default=False),
    "output_bias": key("attention_bias", default=False),
    "qk_norm": constant(True),
}

_QWEN3_MOE = _QWEN3 | {
    "moe_layers": _qwen_moe_layers,
    "experts": when("moe_layers", key("num_experts")),
    "top_k": when("moe_layers", key("num_experts_per_tok")),
    "moe_ffn": when("moe_layers", key("moe_intermediate_size")),
}

_DEEPSEEK = _DECODER | {
    "qkv_bias": key("attention_bias", default=False),
    "moe_layers": _deepseek_moe_layers,
    "experts": when("moe_layers", key("n_routed_experts")),
    "top_k": when("moe_layers", key("num_experts_per_tok")),
    "moe_ffn": when("moe_layers", key("moe_intermediate_size")),
    "shared_experts": when("moe_layers", key("n_shared_experts", default=0)),
    # Balancing without an auxiliary loss adds one bias per expert to the router.
    "router_bias": lambda config, facts: config.get("topk_method") == "noaux_tc",
    "q_lora_rank": key("q_lora_rank", default=0),
    "kv_lora_rank": key("kv_lora_rank"),
    "qk_nope_head_dim": key("qk_nope_head_dim"),
    "qk_rope_head_dim": key("qk_rope_head_dim"),
    "v_head_dim": key("v_head_dim"),
    "head_dim": _latent_head_dim,
}

_DEEPSEEK_V32 = _DEEPSEEK | {
    "index_heads": key("index_n_heads"),
    "index_head_dim": key("index_head_dim"),
    "index_top_k": key("index_topk"),
}

_GPT_OSS = _DECODER | {
    "qkv_bias": key("attention_bias", default=True),
    "output_bias": key("attention_bias", default=True),
    "attention_sinks": constant(True),
    # Local and full layers alternate, a local one first.
    "local_layers": local_layers(lambda config, facts: (facts["layers"] + 1) // 2),
    "sliding_window": when("local_layers", key("sliding_window")),
    "moe_layers": same("layers"),
    "experts": key("num_local_experts"),
    "top_k": key("num_experts_per_tok", "experts_per_token"),
    "moe_ffn": same("ffn"),
    "router_bias": constant(True),
    "mlp_bias": constant(True),
}

_LLAMA4 = _DECODER | {
    "ffn": key("intermediate_size_mlp"),
    "qkv_bias": key("attention_bias", default=False),
    "output_bias": key("attention_bias", default=False),
    "local_layers": local_layers(_llama4_local),
    # A token attends within its chunk, so to at most, and on average to half, a chunk of tokens.
    "sliding_window": when("local_layers", key("attention_chunk_size", default=8192)),
    "moe_layers": _llama4_moe_layers,
    "experts": when("moe_layers", key("num_local_experts")),
    "top_k": when("moe_layers", key("num_experts_per_tok")),
    "moe_ffn": when("moe_layers", key("intermediate_size")),
    # One shared expert beside the routed ones, of their width; its qk norm has no gain.
    "shared_experts": when("moe_layers", constant(1)),
}

FAMILIES: dict[str, Mapping[str, Reader]] = {
    "llama": _LLAMA,
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "mistral": _MISTRAL,
    "mixtral": _MIXTRAL,
    "qwen2": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK_V32,
    "kimi_k2": _DEEPSEEK,
    "gpt_oss": _GPT_OSS,
}
