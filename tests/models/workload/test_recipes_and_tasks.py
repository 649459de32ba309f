"""Precision recipes, and the tasks that name them."""

import pytest

from models.workload.catalog import model_named
from models.workload.recipes import RECIPES, recipe_named
from models.workload.tasks import ServingTask, TrainingTask
from rtl.errors import InputError
from rtl.formats import FORMATS

MODEL = model_named("qwen3-0.6b")
ALL = [recipe for recipes in RECIPES.values() for recipe in recipes.values()]


def training(**changes):
    facts = {"global_batch_tokens": 4096 * 8, "seq_len": 4096, "training_tokens": 1e9}
    return TrainingTask(MODEL, **facts | changes)


def serving(**changes):
    facts = {"prompt_tokens": 1000, "output_tokens": 200, "tpot_s": 0.02, "ttft_s": 1.0}
    return ServingTask(MODEL, **facts | changes)


def test_training_takes_18_bytes_a_parameter():
    # Megatron Core's distributed optimizer guide: 18 for bf16 parameters and fp32 gradients.
    for recipe in RECIPES["training"].values():
        assert (recipe.weight_bytes, recipe.gradient_bytes, recipe.optimizer_bytes) == (2, 4, 12)
        assert recipe.state_bytes == 18
        assert recipe.kv_bytes == 0


@pytest.mark.parametrize(
    ("name", "weight", "activation", "kv", "matmul"),
    [
        ("bf16", 2, 2, 2, "bf16"),
        ("fp8", 1, 1, 1, "fp8_e4m3"),
        ("int8", 1, 1, 1, "int8"),
        ("w4a8", 0.53125, 1, 1, "int8"),
    ],
)
def test_serving_recipes(name, weight, activation, kv, matmul):
    recipe = recipe_named("serving", name)
    assert (recipe.weight_bytes, recipe.activation_bytes, recipe.kv_bytes) == (
        weight,
        activation,
        kv,
    )
    assert recipe.matmul_format == matmul
    assert recipe.gradient_bytes == recipe.optimizer_bytes == 0


def test_fp8_training_keeps_attention_in_bf16():
    recipe = recipe_named("training", "FP8")
    assert (recipe.matmul_format, recipe.attention_format) == ("fp8_e4m3", "bf16")


def test_int8_training_is_the_one_that_is_not_shown_at_scale():
    assert [r.name for r in ALL if not r.stable] == ["int8"]
    assert not recipe_named("training", "int8").stable


@pytest.mark.parametrize("recipe", ALL, ids=lambda r: f"{r.training}-{r.name}")
def test_every_recipe_is_made_of_known_formats_and_has_a_source(recipe):
    for format_name in (recipe.matmul_format, recipe.attention_format, recipe.weight_format):
        assert format_name in FORMATS
    assert recipe.source


def test_unknown_recipes():
    with pytest.raises(InputError, match=r"unknown training recipe 'w4a8'.*Known: bf16, fp8, int8"):
        recipe_named("training", "w4a8")
    with pytest.raises(InputError, match=r"unknown kind of recipe 'serve'; did you mean 'serving'"):
        recipe_named("serve", "bf16")


def test_a_training_task():
    task = training()
    assert task.sequences == 8
    assert task.steps == 1e9 / 32768


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 0}, r"training seq_len is 0; give a positive number"),
        ({"training_tokens": float("nan")}, r"training_tokens is nan; give a positive"),
        (
            {"global_batch_tokens": 10_000},
            r"10000, no whole number of sequences of 4096 tokens; 8192 is 2 of them",
        ),
        ({"global_batch_tokens": 100}, r"no whole number .*; 4096 is 1 of them"),
        ({"training_tokens": 1000}, r"training_tokens is 1000, less than one batch of 32768"),
        ({"recipes": ()}, r"no training recipe to choose from; name at least one"),
        ({"recipes": ("bf16", "w4a8")}, r"unknown training recipe 'w4a8'"),
    ],
)
def test_training_tasks_that_cannot_be(changes, message):
    with pytest.raises(InputError, match=message):
        training(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output_tokens": -1}, r"serving output_tokens is -1; give a positive number"),
        ({"tpot_s": 0.0}, r"serving tpot_s is 0\.0; give a positive number"),
        ({"recipes": ("fp9",)}, r"unknown serving recipe 'fp9'; did you mean 'fp8'"),
    ],
)
def test_serving_tasks_that_cannot_be(changes, message):
    with pytest.raises(InputError, match=message):
        serving(**changes)


def test_a_task_without_a_limit():
    assert serving(tpot_s=float("inf")).tpot_s == float("inf")
