"""What is asked of a fleet: a model to train, or requests to serve. Facts, not choices."""

from __future__ import annotations

from dataclasses import dataclass

from models.workload.recipes import Kind, recipe_named
from models.workload.transformer import Transformer
from rtl.errors import InputError

__all__ = ["ServingTask", "TrainingTask"]


@dataclass(frozen=True)
class TrainingTask:
    """A training run.

    Attributes
    ----------
    model : Transformer
    global_batch_tokens : int
        Tokens of one optimizer step, a whole number of sequences.
    seq_len : int
        Tokens of a sequence.
    training_tokens : float
        Tokens of the whole run, at least one batch.
    recipes : tuple of str
        Names of the training recipes to choose from.

    Raises
    ------
    InputError
        For a number out of its range or an unknown recipe.
    """

    model: Transformer
    global_batch_tokens: int
    seq_len: int
    training_tokens: float
    recipes: tuple[str, ...] = ("bf16",)

    def __post_init__(self) -> None:
        _check_positive(
            "training",
            global_batch_tokens=self.global_batch_tokens,
            seq_len=self.seq_len,
            training_tokens=self.training_tokens,
        )
        if self.global_batch_tokens % self.seq_len:
            whole = max(1, round(self.global_batch_tokens / self.seq_len))
            raise InputError(
                f"training global_batch_tokens is {self.global_batch_tokens}, no whole number of "
                f"sequences of {self.seq_len} tokens; {whole * self.seq_len} is {whole} of them"
            )
        if self.training_tokens < self.global_batch_tokens:
            raise InputError(
                f"training_tokens is {self.training_tokens:g}, less than one batch of "
                f"{self.global_batch_tokens}; raise it or lower global_batch_tokens"
            )
        _check_recipes("training", self.recipes)

    @property
    def sequences(self) -> int:
        """Sequences of one optimizer step."""
        return self.global_batch_tokens // self.seq_len

    @property
    def steps(self) -> float:
        """Optimizer steps of the run."""
        return self.training_tokens / self.global_batch_tokens


@dataclass(frozen=True)
class ServingTask:
    """Requests to serve, all of one size, and their service levels.

    Attributes
    ----------
    model : Transformer
    prompt_tokens, output_tokens : int
        Length of a request's prompt and of its answer.
    tpot_s : float
        Longest time per output token after the first (TPOT).
    ttft_s : float
        Longest time to the first token (TTFT).
    recipes : tuple of str
        Names of the serving recipes to choose from.

    Raises
    ------
    InputError
        For a number out of its range or an unknown recipe.
    """

    model: Transformer
    prompt_tokens: int
    output_tokens: int
    tpot_s: float
    ttft_s: float
    recipes: tuple[str, ...] = ("bf16",)

    def __post_init__(self) -> None:
        _check_positive(
            "serving",
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            tpot_s=self.tpot_s,
            ttft_s=self.ttft_s,
        )
        _check_recipes("serving", self.recipes)

    @property
    def mean_context(self) -> float:
        """Tokens that a decode step attends to, on average: the prompt and half of the output."""
        return self.prompt_tokens + self.output_tokens / 2

    @property
    def full_context(self) -> int:
        """Tokens that a request holds in the KV cache when it ends."""
        return self.prompt_tokens + self.output_tokens


def _check_positive(kind: Kind, **values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise InputError(f"{kind} {name} is {value!r}; give a positive number")


def _check_recipes(kind: Kind, names: tuple[str, ...]) -> None:
    if not names:
        raise InputError(f"no {kind} recipe to choose from; name at least one, such as bf16")
    for name in names:
        recipe_named(kind, name)
