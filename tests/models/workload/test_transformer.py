"""Parameters, KV cache and validation of an architecture."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.workload.catalog import catalog, model_named, model_names
from models.workload.transformer import Transformer
from rtl.errors import InputError

TINY = Transformer(
    name="tiny", layers=2, hidden=8, heads=4, kv_heads=2, head_dim=3, ffn=10, vocab=20
)

# Parameters of the published checkpoints, to the last one where their size is public.
CHECKPOINTS = {
    # safetensors metadata on huggingface.co/<vendor>/<model>
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    # The v0.3 checkpoint has 140,630,071,296, with 768 more words of 6,144 twice.
    "mixtral-8x22b": 140_630_071_296 - 2 * 768 * 6144,
    # Headers of the checkpoint without the multi-token-prediction module.
    "deepseek-v3": 671_026_419_200,
    "deepseek-r1": 671_026_419_200,
    # Headers of the checkpoint. The paper's 1.04T (arXiv:2507.20534) counts a 61st MoE layer.
    "kimi-k2": 1_026_408_232_448,
    # Parameter counts of the GGUF checkpoints.
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    # Model card: 0.6B, of which 0.44B are not embedding; the head is tied.
    "qwen3-0.6b": 596_049_920,
}

# Published totals that are rounded, or count more than the language model, in billions.
ROUNDED = {
    # Language part of the 109B; the rest is the vision encoder.
    "llama-4-scout": 107.77,
    # DeepSeek-V3's 671B; the indexer adds 0.13%.
    "deepseek-v3.2": 671.0,
}

# Published active parameters in billions, and whether the embedding table is among them.
ACTIVE = {
    "mixtral-8x7b": (12.9, True),  # arXiv:2401.04088, section 1
    "mixtral-8x22b": (39, True),  # mistral.ai/news/mixtral-8x22b
    "qwen3-30b-a3b": (3.3, True),  # model card
    "qwen3-235b-a22b": (22, True),  # model card
    "deepseek-v3": (36.6, False),  # README_WEIGHTS.md of the repository
    "deepseek-r1": (36.6, False),
    "kimi-k2": (32, False),  # model card
    "llama-4-scout": (17, True),  # model card
    "gpt-oss-20b": (3.61, False),  # arXiv:2508.10925, table 1
    "gpt-oss-120b": (5.13, False),
}


def test_every_catalogue_model_is_checked_against_a_published_total():
    assert CHECKPOINTS.keys() | ROUNDED.keys() == set(model_names())


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_parameters_equal_the_checkpoint(name):
    assert model_named(name).parameters == CHECKPOINTS[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_are_near_the_published_total(name):
    assert model_named(name).parameters == pytest.approx(ROUNDED[name] * 1e9, rel=0.005)


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_are_near_the_published_figure(name):
    model = model_named(name)
    published, with_embedding = ACTIVE[name]
    counted = model.active_parameters - (0 if with_embedding else model.embedding_parameters)
    assert counted == pytest.approx(published * 1e9, rel=0.017)


def test_parts_of_gpt_oss_agree_with_its_model_card():
    # arXiv:2508.10925, table 1: MLP 114.71B, attention 0.96B, embedding and unembedding 1.16B.
    parts = model_named("gpt-oss-120b").parameter_parts
    assert parts["router"] + parts["routed_experts"] + parts["biases"] == pytest.approx(
        114.71e9, abs=1e7
    )
    assert parts["attention"] == pytest.approx(0.96e9, abs=5e6)
    assert parts["embedding"] + parts["head"] == pytest.approx(1.16e9, abs=5e6)


def test_parameters_of_a_small_model_by_hand():
    attention = 8 * 12 + 2 * 8 * 6 + 12 * 8  # queries, keys and values, output
    layer = attention + 3 * 8 * 10 + 2 * 8  # and MLP, norms
    assert TINY.parameters == 2 * layer + 8 + 2 * 20 * 8
    assert replace(TINY, tied_embeddings=True).parameters == TINY.parameters - 160
    assert replace(TINY, gated_mlp=False).parameters == TINY.parameters - 2 * 80
    assert replace(TINY, qk_norm=True).parameters == TINY.parameters + 2 * 6
    assert replace(TINY, qkv_bias=True).parameters == TINY.parameters + 2 * (12 + 6 + 6)
    assert replace(TINY, output_bias=True).parameters == TINY.parameters + 2 * 8
    assert replace(TINY, mlp_bias=True).parameters == TINY.parameters + 2 * (10 + 10 + 8)
    assert replace(TINY, attention_sinks=True).parameters == TINY.parameters + 2 * 4


def test_a_mixture_of_experts_by_hand():
    moe = replace(TINY, experts=4, top_k=2, moe_ffn=5, shared_experts=1, moe_layers=1)
    expert = 3 * 8 * 5
    assert moe.parameters == TINY.parameters - 3 * 8 * 10 + 8 * 4 + 5 * expert
    assert moe.active_parameters == moe.parameters - 2 * expert
    with_biases = replace(moe, mlp_bias=True)
    assert with_biases.parameters - moe.parameters == (10 + 10 + 8) + 5 * (5 + 5 + 8)
    idle = with_biases.parameters - with_biases.active_parameters
    assert idle == 2 * (expert + 5 + 5 + 8)


def test_a_dense_model_is_all_active():
    assert TINY.active_parameters == TINY.parameters
    unused = {"embedding", "norms", "biases"}
    parts = TINY.parameter_parts
    assert TINY.active_matrix_parameters == sum(
        size for part, size in parts.items() if part not in unused
    )


def test_head_dim_is_not_hidden_over_heads():
    # LMCache issue 688: Qwen3 heads are wider than hidden / heads.
    model = model_named("qwen3-0.6b")
    assert model.head_dim == 2 * model.hidden // model.heads
    assert model.kv_elements_per_token == 28 * 2 * 8 * 128


def test_experts_use_their_own_width():
    # GenZ sizes DeepSeek's experts by the dense width and finds 11.8 TB.
    assert model_named("deepseek-v3").parameters * 2 == pytest.approx(1.34e12, rel=0.005)


# KV cache


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_kv_elements_of_mqa_gqa_and_mha(kv_heads):
    model = replace(TINY, kv_heads=kv_heads)
    assert model.kv_elements_per_token == 2 * (2 * kv_heads * 3)
    assert model.kv_elements(100) == 100 * model.kv_elements_per_token


def test_kv_elements_of_mla():
    model = model_named("deepseek-v3")
    assert model.kv_elements_per_token == 61 * 576
    assert model.kv_elements(4096) * 2 / 2**20 == 274.5


def test_sparse_attention_also_caches_the_indexer_key():
    assert model_named("deepseek-v3.2").kv_elements_per_token == 61 * (576 + 128)


def test_local_layers_cache_their_window():
    model = model_named("gpt-oss-120b")
    per_layer = 2 * 8 * 64
    assert model.kv_elements(100) == 36 * 100 * per_layer
    assert model.kv_elements(4096) == 18 * (4096 + 128) * per_layer
    assert model.kv_elements_per_token == 36 * per_layer


def test_tensor_parallelism_divides_heads_and_replicates_latents():
    tp = np.array([1, 2, 3, 8, 16])
    np.testing.assert_array_equal(
        model_named("llama-3.1-70b").kv_elements_per_layer(tp), 256 * np.array([8, 4, 3, 1, 1])
    )
    np.testing.assert_array_equal(model_named("deepseek-v3").kv_elements_per_layer(tp), 576)


@given(
    contexts=st.lists(st.integers(1, 100_000), min_size=1, max_size=4),
    tps=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    name=st.sampled_from(model_names()),
)
def test_kv_elements_broadcast(contexts, tps, name):
    model = model_named(name)
    both = model.kv_elements(np.array(contexts)[:, None], np.array(tps))
    assert both.shape == (len(contexts), len(tps))
    for i, context in enumerate(contexts):
        for j, tp in enumerate(tps):
            assert both[i, j] == model.kv_elements(context, tp)


# Validation


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, r"model 'tiny': layers is 0; give a whole number from 1 up"),
        ({"hidden": 8.0}, r"hidden is 8\.0; give a whole number"),
        ({"vocab": True}, r"vocab is True; give a whole number"),
        ({"experts": -1}, r"experts is -1; give a whole number from 0 up"),
        ({"qk_norm": 1}, r"qk_norm is 1; give true or false"),
        ({"kv_heads": 3}, r"4 heads do not divide into 3 kv_heads.*divisor"),
        ({"kv_heads": 8}, r"kv_heads is 8, more than heads, 4"),
        ({"experts": 4}, r"experts is 4, which also needs top_k and moe_ffn and moe_layers"),
        (
            {"experts": 4, "top_k": 5, "moe_ffn": 1, "moe_layers": 1},
            r"top_k is 5, more than experts, 4",
        ),
        (
            {"experts": 4, "top_k": 1, "moe_ffn": 1, "moe_layers": 3},
            r"moe_layers is 3, more than layers, 2",
        ),
        ({"local_layers": 1}, r"local_layers is 1, which also needs sliding_window"),
        ({"sliding_window": 128}, r"sliding_window is 128, which also needs local_layers"),
        ({"kv_lora_rank": 4}, r"kv_lora_rank is 4, which also needs qk_nope_head_dim and"),
    ],
)
def test_facts_that_cannot_be(changes, message):
    with pytest.raises(InputError, match=message):
        replace(TINY, **changes)


def test_every_catalogue_model_is_made_of_whole_numbers():
    for name, entry in catalog().items():
        assert entry.model.name == name
        assert entry.source.startswith("https://huggingface.co/")
