"""Precision recipes: which number format each tensor and each matmul of a workload has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from rtl.errors import lookup
from rtl.formats import format_named

__all__ = ["RECIPES", "Kind", "Recipe", "kind_for", "recipe_named"]

Kind = Literal["training", "serving"]


@dataclass(frozen=True)
class Recipe:
    """Number formats of a training run or of a deployment; formats are names of `rtl.formats`.

    Attributes
    ----------
    name : str
    training : bool
        A recipe for training rather than for serving.
    matmul_format : str
        What linear layers multiply in, after any dequantization of their weights.
    attention_format : str
        What queries, keys, scores and values are multiplied in.
    weight_format, activation_format : str
        What weights and activations are in memory.
    kv_format : str or None
        What the KV cache is in memory; None in training.
    gradient_format : str or None
        What weight gradients are accumulated in; None in serving.
    optimizer_formats : tuple of str
        One format for each value per parameter that the optimizer keeps: the master copy and
        Adam's two moments. Empty in serving.
    stable : bool
        Whether published work shows it at scale, without loss of quality.
    source : str
    """

    name: str
    training: bool
    matmul_format: str
    attention_format: str
    weight_format: str
    activation_format: str
    kv_format: str | None
    gradient_format: str | None
    optimizer_formats: tuple[str, ...]
    stable: bool
    source: str

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name.endswith("_format") and getattr(self, field.name) is not None:
                format_named(getattr(self, field.name))
        for name in self.optimizer_formats:
            format_named(name)

    @property
    def weight_bytes(self) -> float:
        """Bytes per weight."""
        return _bytes(self.weight_format)

    @property
    def activation_bytes(self) -> float:
        """Bytes per activation."""
        return _bytes(self.activation_format)

    @property
    def kv_bytes(self) -> float:
        """Bytes per KV-cache element; 0 in training, which has none."""
        return _bytes(self.kv_format)

    @property
    def gradient_bytes(self) -> float:
        """Bytes per accumulated weight gradient; 0 in serving, which has none."""
        return _bytes(self.gradient_format)

    @property
    def optimizer_bytes(self) -> float:
        """Bytes per parameter of optimizer state, beside weight and gradient; 0 in serving."""
        return sum(_bytes(name) for name in self.optimizer_formats)

    @property
    def state_bytes(self) -> float:
        """Bytes per parameter altogether: weight, gradient and optimizer state."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes


def _bytes(format_name: str | None) -> float:
    return format_named(format_name).bytes_per_element if format_name else 0.0


def kind_for(work: str) -> Kind:
    """Return the kind of recipe that a phase or an objective needs; all but training serve."""
    return "training" if work == "training" else "serving"


def recipe_named(kind: Kind, name: str) -> Recipe:
    """Find a recipe by name, in any case of letters.

    Parameters
    ----------
    kind : "training" or "serving"
    name : str

    Raises
    ------
    InputError
        For an unknown kind or name; the message lists the known ones.
    """
    return lookup(f"{kind} recipe", name, lookup("kind of recipe", kind, RECIPES))


def _training(name: str, matmul: str, attention: str, stable: bool, source: str) -> Recipe:
    """Return a mixed-precision recipe: bf16 in memory, fp32 where updates accumulate.

    18 bytes per parameter, as in Megatron Core's distributed optimizer guide.
    """
    return Recipe(
        name,
        training=True,
        matmul_format=matmul,
        attention_format=attention,
        weight_format="bf16",
        activation_format="bf16",
        kv_format=None,
        gradient_format="fp32",
        optimizer_formats=("fp32", "fp32", "fp32"),
        stable=stable,
        source=source,
    )


def _serving(name: str, matmul: str, weight: str, kv: str, source: str) -> Recipe:
    """Return a recipe that multiplies in its activations' format, attention in its KV cache's."""
    return Recipe(
        name,
        training=False,
        matmul_format=matmul,
        attention_format=kv,
        weight_format=weight,
        activation_format=matmul,
        kv_format=kv,
        gradient_format=None,
        optimizer_formats=(),
        stable=True,
        source=source,
    )


RECIPES: dict[str, dict[str, Recipe]] = {
    kind: {recipe.name: recipe for recipe in recipes}
    for kind, recipes in {
        "training": (
            _training(
                "bf16",
                "bf16",
                "bf16",
                True,
                "Llama 3 (arXiv:2407.21783, section 3.3): bf16, gradients accumulated in fp32",
            ),
            _training(
                "fp8",
                "fp8_e4m3",
                "bf16",
                True,
                "DeepSeek-V3 (arXiv:2412.19437, section 3.3): E4M3 linear layers, attention bf16",
            ),
            _training(
                "int8",
                "int8",
                "int8",
                False,
                "Jetfire (arXiv:2403.12422): int8 pre-training, shown on GPT-2 sizes only",
            ),
        ),
        "serving": (
            _serving("bf16", "bf16", "bf16", "bf16", "the published weights' own format"),
            _serving(
                "fp8",
                "fp8_e4m3",
                "fp8_e4m3",
                "fp8_e4m3",
                "fp8 versus int8 accuracy study (arXiv:2411.02355); FlashAttention-3 in fp8 "
                "(arXiv:2407.08608)",
            ),
            _serving(
                "int8",
                "int8",
                "int8",
                "int8",
                "SmoothQuant W8A8 (arXiv:2211.10438); SageAttention in int8 (arXiv:2410.02367)",
            ),
            _serving(
                "w4a8",
                "int8",
                "int4_g128",
                "int8",
                "QServe (arXiv:2405.04532), W4A8 in groups of 128; its KV cache has 4 bits, this "
                "one 8; here embedding and head have 4 bits too, which it leaves at 16",
            ),
        ),
    }.items()
}
