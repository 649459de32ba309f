"""The architecture of a decoder language model: its facts, its parameters, its KV cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from models.arrays import ArrayLike, FloatArray
from models.workload import huggingface
from rtl.errors import InputError

__all__ = ["Transformer"]

_POSITIVE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")

# What must come along with a feature: the fact that turns it on, and the facts it needs.
_NEEDS = {
    "experts": ("top_k", "moe_ffn", "moe_layers"),
    "moe_layers": ("experts",),
    "kv_lora_rank": ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"),
    "sliding_window": ("local_layers",),
    "local_layers": ("sliding_window",),
    "index_heads": ("index_head_dim", "index_top_k", "kv_lora_rank", "q_lora_rank"),
}

# Pairs of facts of which the first may not exceed the second.
_AT_MOST = (
    ("kv_heads", "heads"),
    ("top_k", "experts"),
    ("moe_layers", "layers"),
    ("local_layers", "layers"),
)


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer, as far as its cost depends on it.

    The order of the layers does not change what they cost, so layers are counted by kind and not
    listed. A fact that does not apply is 0 or False.

    Attributes
    ----------
    name : str
    layers, hidden : int
        Decoder layers; width of the residual stream.
    heads, kv_heads, head_dim : int
        Query heads, key-value heads (equal for MHA, fewer for GQA, 1 for MQA) and elements per
        head, which many models choose apart from ``hidden / heads``.
    ffn : int
        Inner width of the dense MLP.
    vocab : int
    gated_mlp : bool
        Three matrices (gate, up, down; SwiGLU) rather than two.
    tied_embeddings : bool
        The head reuses the embedding table.
    qkv_bias, output_bias, mlp_bias, router_bias, attention_sinks, qk_norm : bool
        Small vectors that an exact parameter count needs. `qk_norm` is one gain per head element
        for queries and one for keys; `attention_sinks` one logit per query head.
    experts, top_k, moe_ffn, shared_experts, moe_layers : int
        Mixture of experts: routed experts per layer, how many a token visits, inner width of one,
        shared experts of that width that every token visits, and how many layers have them.
    q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim : int
        Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1). A positive
        `kv_lora_rank` turns it on; `q_lora_rank` may be 0, for queries projected directly.
    sliding_window, local_layers : int
        Tokens that a local layer attends to, and how many layers are local.
    index_heads, index_head_dim, index_top_k : int
        Sparse attention's indexer (DeepSeek-V3.2, arXiv:2512.02556): its heads, their width, and
        the cached tokens that it selects for each query.
    dtype : str
        Format of the published weights before quantization, a name of `rtl.formats`.

    Raises
    ------
    InputError
        For a value out of its range, or facts that contradict each other.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated_mlp: bool = True
    tied_embeddings: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    router_bias: bool = False
    attention_sinks: bool = False
    qk_norm: bool = False
    experts: int = 0
    top_k: int = 0
    moe_ffn: int = 0
    shared_experts: int = 0
    moe_layers: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    sliding_window: int = 0
    local_layers: int = 0
    index_heads: int = 0
    index_head_dim: int = 0
    index_top_k: int = 0
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 1 if field.name in _POSITIVE else 0
            if field.type == "int" and (type(value) is not int or value < least):
                raise self._error(f"{field.name} is {value!r}; give a whole number from {least} up")
            if field.type == "bool" and type(value) is not bool:
                raise self._error(f"{field.name} is {value!r}; give true or false")
        for feature, needed in _NEEDS.items():
            missing = [name for name in needed if not getattr(self, name)]
            if getattr(self, feature) and missing:
                raise self._error(
                    f"{feature} is {getattr(self, feature)}, which also needs "
                    f"{' and '.join(missing)}; give it, or set {feature} to 0"
                )
        for smaller, larger in _AT_MOST:
            low, high = getattr(self, smaller), getattr(self, larger)
            if low > high:
                raise self._error(f"{smaller} is {low}, more than {larger}, {high}; lower it")
        if self.heads % self.kv_heads:
            raise self._error(
                f"{self.heads} heads do not divide into {self.kv_heads} kv_heads; every key-value "
                "head serves the same number of query heads, so give a divisor of heads"
            )
        if self.is_mla and (self.qkv_bias or self.qk_norm):
            raise self._error(
                "latent attention (kv_lora_rank) with qkv_bias or qk_norm is not modelled; "
                "set them to false"
            )

    def _error(self, problem: str) -> InputError:
        return InputError(f"model {self.name!r}: {problem}")

    @classmethod
    def from_config(cls, path: str | Path, name: str | None = None) -> Self:
        """Read a Hugging Face ``config.json``.

        Parameters
        ----------
        path : str or Path
            The file, or a directory that has one.
        name : str, optional
            Name of the model; otherwise the file's name, or its directory's for ``config.json``.

        Raises
        ------
        InputError
            For a file that is not there or is not a JSON object, a field it lacks, an unknown
            ``model_type``, or values that `Transformer` refuses.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"cannot read {path}: {error.strerror}; give the path of a Hugging Face "
                "config.json, or of a directory that has one"
            ) from error
        except ValueError as error:
            raise InputError(
                f"{path} is not JSON ({error}); give a Hugging Face config.json"
            ) from error
        if not isinstance(config, dict):
            raise InputError(
                f"{path} holds a JSON {type(config).__name__}, not an object; give a Hugging Face "
                "config.json"
            )
        if name is None:
            name = path.resolve().parent.name if path.name == "config.json" else path.stem
        return cls(name=name, **huggingface.architecture(config, str(path)))

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any], *, name: str) -> Self:
        """Read a Hugging Face configuration that is already a mapping; see `from_config`."""
        return cls(name=name, **huggingface.architecture(config, name))

    # Kinds

    @property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return self.moe_layers > 0

    @property
    def is_mla(self) -> bool:
        """Whether attention caches a latent (MLA) rather than keys and values."""
        return self.kv_lora_rank > 0

    @property
    def dense_layers(self) -> int:
        """Layers with a dense MLP."""
        return self.layers - self.moe_layers

    @property
    def full_layers(self) -> int:
        """Layers that attend to the whole context."""
        return self.layers - self.local_layers

    # Parameters

    @property
    def parameters(self) -> int:
        """All parameters: what must be resident. Multi-token-prediction modules do not count."""
        return sum(self.parameter_parts.values())

    @property
    def active_parameters(self) -> int:
        """Parameters that one token touches: all but the experts it does not visit.

        The embedding table counts, as Qwen and Meta do it; OpenAI's published figures leave it
        out.
        """
        parts = self.parameter_parts | {
            "routed_experts": self._expert_parameters(self.top_k),
            "biases": self._biases(self.top_k),
        }
        return sum(parts.values())

    @property
    def active_matrix_parameters(self) -> int:
        """Weights that one token is multiplied by: half of the linear FLOPs of a forward pass.

        No embedding look-up, norms or biases; the head counts whether it is tied or not.
        """
        parts = self.parameter_parts
        return (
            parts["attention"]
            + parts["indexer"]
            + parts["mlp"]
            + parts["router"]
            + self._expert_parameters(self.top_k)
            + parts["shared_experts"]
            + self.embedding_parameters
        )

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding table, and of the head if it is not tied."""
        return self.vocab * self.hidden

    @property
    def parameter_parts(self) -> dict[str, int]:
        """Parameters by part of the model; they sum to `parameters`."""
        indexer = self.index_heads and (
            self.q_lora_rank * self.index_heads * self.index_head_dim
            + self.hidden * (self.index_head_dim + self.index_heads)
        )
        head_norms = 2 * self.head_dim if self.qk_norm else 0
        # The indexer's key norm is a LayerNorm: a gain and a bias.
        latent_norms = self.q_lora_rank + self.kv_lora_rank + 2 * self.index_head_dim
        return {
            "embedding": self.embedding_parameters,
            "attention": self.layers * self._attention_parameters,
            "indexer": self.layers * indexer,
            "mlp": self.dense_layers * self._mlp_matrices * self.hidden * self.ffn,
            "router": self.moe_layers * self.hidden * self.experts,
            "routed_experts": self._expert_parameters(self.experts),
            "shared_experts": self._expert_parameters(self.shared_experts),
            "head": 0 if self.tied_embeddings else self.embedding_parameters,
            "norms": self.hidden + self.layers * (2 * self.hidden + head_norms + latent_norms),
            "biases": self._biases(self.experts),
        }

    @property
    def _mlp_matrices(self) -> int:
        return 3 if self.gated_mlp else 2

    @property
    def _attention_parameters(self) -> int:
        """Weights of one layer's attention projections."""
        if not self.is_mla:
            return self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        query = self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        queries = (
            self.q_lora_rank * (self.hidden + query) if self.q_lora_rank else self.hidden * query
        )
        latent = self.hidden * (self.kv_lora_rank + self.qk_rope_head_dim)
        expansion = self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)
        return queries + latent + expansion + self.heads * self.v_head_dim * self.hidden

    def _expert_parameters(self, experts: int) -> int:
        return self.moe_layers * experts * self._mlp_matrices * self.hidden * self.moe_ffn

    def _biases(self, experts: int) -> int:
        """Biases and sinks, with those of so many routed experts per layer."""
        per_layer = (
            self.qkv_bias * (self.heads + 2 * self.kv_heads) * self.head_dim
            + self.output_bias * self.hidden
            + self.attention_sinks * self.heads
        )
        inner = self._mlp_matrices - 1
        mlp = self.mlp_bias * (inner * self.ffn + self.hidden)
        expert = self.mlp_bias * (inner * self.moe_ffn + self.hidden)
        moe = self.router_bias * self.experts + (experts + self.shared_experts) * expert
        return self.layers * per_layer + self.dense_layers * mlp + self.moe_layers * moe

    # KV cache

    def kv_elements_per_layer(self, tp: ArrayLike = 1) -> FloatArray:
        """Return the KV-cache elements that one token leaves in one layer on one chip.

        ``2 * kv_heads * head_dim`` for MHA, GQA and MQA, whose heads are divided over tensor
        parallelism and replicated beyond one head per chip; ``kv_lora_rank + qk_rope_head_dim``
        for MLA (plus the indexer's key), which every chip of the group holds whole.

        Parameters
        ----------
        tp : array_like
            Degree of tensor parallelism.
        """
        tp = np.asarray(tp, dtype=np.float64)
        if self.is_mla:
            latent = self.kv_lora_rank + self.qk_rope_head_dim + self.index_head_dim
            return np.full(tp.shape, float(latent))
        return np.asarray(2.0 * np.ceil(self.kv_heads / tp) * self.head_dim)

    @property
    def kv_elements_per_token(self) -> int:
        """KV-cache elements that one token leaves in the whole model, within every window."""
        return self.layers * int(self.kv_elements_per_layer())

    def kv_elements(self, context: ArrayLike, tp: ArrayLike = 1) -> FloatArray:
        """Return the KV-cache elements of one sequence, on one chip.

        Parameters
        ----------
        context : array_like
            Tokens in the cache. A local layer keeps at most its window of them.
        tp : array_like
            Degree of tensor parallelism.

        Returns
        -------
        ndarray
            The broadcast shape of the two.
        """
        context = np.asarray(context, dtype=np.float64)
        kept = self.full_layers * context
        if self.local_layers:
            kept = kept + self.local_layers * np.minimum(context, self.sliding_window)
        return np.asarray(kept * self.kv_elements_per_layer(tp))
