"""FLOPs, weights and KV traffic of training, prefill and decode against what is published."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.workload.catalog import model_named, model_names
from models.workload.inference import decode_operators, kv_bytes, prefill_operators
from models.workload.recipes import recipe_named
from models.workload.training import (
    activation_elements_stored,
    backward_operators,
    forward_operators,
    model_flops_per_token,
    tensor_parallel_elements_per_layer,
)
from models.workload.transformer import Transformer
from rtl.errors import InputError

# arXiv:2005.14165, table 2.1; learned positions (25 M parameters) left out.
GPT3 = Transformer(
    name="gpt-3",
    layers=96,
    hidden=12288,
    heads=96,
    kv_heads=96,
    head_dim=128,
    ffn=4 * 12288,
    vocab=50257,
    gated_mlp=False,
    tied_embeddings=True,
    qkv_bias=True,
    output_bias=True,
    mlp_bias=True,
)
TINY = Transformer(
    name="tiny",
    layers=3,
    hidden=8,
    heads=4,
    kv_heads=2,
    head_dim=3,
    ffn=10,
    vocab=20,
    sliding_window=4,
    local_layers=1,
)


def linear_flops(table):
    return table.flops[~table.attention].sum(axis=0)


def attention_flops(table):
    return table.flops[table.attention].sum(axis=0)


# Weights


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("operators", [forward_operators, prefill_operators])
def test_every_weight_matrix_is_read_once(name, operators):
    model = model_named(name)
    table = operators(model, 4, 4096)  # a batch that hits every expert
    table = table.select([name != "embedding" for name in table.names])
    parts = model.parameter_parts
    matrices = model.parameters - parts["norms"] - parts["biases"] - parts["embedding"]
    if model.tied_embeddings:
        matrices += parts["embedding"]  # read by the head
    assert table.total("weight_elements") == pytest.approx(matrices, rel=1e-12)


@pytest.mark.parametrize("name", model_names())
def test_decoding_one_token_reads_the_active_weights(name):
    model = model_named(name)
    table = decode_operators(model, 1, 1000)
    read = table.select([name != "embedding" for name in table.names]).total("weight_elements")
    assert read == pytest.approx(model.active_matrix_parameters, rel=1e-12)


@pytest.mark.parametrize("name", model_names())
def test_gradients_are_accumulated_for_every_weight_once(name):
    model = model_named(name)
    forward = forward_operators(model, 4, 4096)
    backward = backward_operators(model, 4, 4096)
    assert backward.total("gradient_elements") == forward.total("weight_elements")
    assert not forward.gradient_elements.any()


# FLOPs


@pytest.mark.parametrize("name", model_names())
def test_forward_is_two_flops_per_active_weight_and_token(name):
    model = model_named(name)
    expected = 2 * model.active_matrix_parameters * 3 * 512
    assert linear_flops(forward_operators(model, 3, 512)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", model_names())
def test_backward_is_twice_forward(name):
    model = model_named(name)
    forward, backward = (f(model, 3, 512) for f in (forward_operators, backward_operators))
    assert linear_flops(backward) == pytest.approx(2 * linear_flops(forward))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v3"])
def test_attention_backward_is_five_gemms_for_two(name):
    model = model_named(name)
    forward = forward_operators(model, 2, 256)
    backward = backward_operators(model, 2, 256)
    scores = forward.flops[[n.endswith("scores") for n in forward.names]].sum()
    values = forward.flops[[n.endswith("attention_values") for n in forward.names]].sum()
    # Scores again and both gradients of scores; both gradients of values.
    assert attention_flops(backward) == pytest.approx(3 * scores + 2 * values)


def test_attention_flops_of_a_causal_sequence():
    model = model_named("llama-3.1-8b")
    # Query i meets i keys and i values of 128 elements, in 32 heads and 32 layers.
    pairs = sum(range(1, 513))
    assert attention_flops(forward_operators(model, 2, 512)) == 2 * pairs * 4 * 128 * 32 * 32


def test_attention_flops_within_a_window():
    pairs = {window: sum(min(i, window) for i in range(1, 11)) for window in (4, 10)}
    expected = 4 * 3 * 4 * (1 * pairs[4] + 2 * pairs[10])
    assert attention_flops(forward_operators(TINY, 1, 10)) == expected


def test_gpt3_has_175_billion_parameters_and_takes_314_zettaflops():
    assert pytest.approx(175e9, rel=0.005) == GPT3.parameters
    # arXiv:2005.14165, table D.1: 3.14e23 FLOPs for 300 billion tokens, six per parameter.
    step = 3 * linear_flops(forward_operators(GPT3, 1, 2048))
    assert step / 2048 * 300e9 == pytest.approx(3.14e23, rel=0.005)


def test_llama_405b_took_38_yottaflops():
    # arXiv:2407.21783, section 3.2: 3.8e25 FLOPs for 15.6 trillion tokens; attention adds 4%.
    model = model_named("llama-3.1-405b")
    linear = 3 * linear_flops(forward_operators(model, 1, 8192)) / 8192
    assert linear * 15.6e12 == pytest.approx(3.8e25, rel=0.01)
    total = model_flops_per_token(model, 8192) * 15.6e12
    assert 1.03 * 3.8e25 < total < 1.05 * 3.8e25


def test_active_experts_alone_cost_flops():
    # A dense roofline of a mixture of experts over-counts it 18-fold (inference-sim issue 559).
    model = model_named("deepseek-v3")
    per_token = linear_flops(decode_operators(model, 64, 1)) / 64
    assert 2 * 36e9 < per_token < 2 * 37.6e9


# Prefill and decode are one thing


@pytest.mark.parametrize("name", [n for n in model_names() if not model_named(n).is_mla])
@pytest.mark.parametrize("batch", [1, 64])
def test_prefill_of_one_token_is_decode(name, batch):
    model = model_named(name)
    one = prefill_operators(model, batch, 1, [1, 8], prefix=999).table(1)
    assert one == decode_operators(model, batch, 1000, [1, 8]).table(1)


@given(prompt=st.integers(1, 60), name=st.sampled_from(["llama-3.1-8b", "tiny", "llama-4-scout"]))
def test_decoding_a_prompt_costs_as_much_attention_as_prefilling_it(prompt, name):
    model = TINY if name == "tiny" else model_named(name)
    decoded = attention_flops(decode_operators(model, 1, np.arange(1, prompt + 1))).sum()
    assert decoded == pytest.approx(attention_flops(prefill_operators(model, 1, prompt)))


@given(first=st.integers(1, 6000), second=st.integers(1, 6000), name=st.sampled_from(model_names()))
def test_chunks_of_a_prompt_add_up(first, second, name):
    model = model_named(name)
    whole = prefill_operators(model, 2, first + second)
    chunks = [
        prefill_operators(model, 2, first),
        prefill_operators(model, 2, second, prefix=first),
    ]
    assert sum(map(attention_flops, chunks)) == pytest.approx(attention_flops(whole))


def test_prefill_runs_the_head_on_the_last_token_alone():
    model = model_named("llama-3.1-8b")
    table = prefill_operators(model, 3, 1000).table()
    assert table[-1]["operator"] == "head"
    assert table[-1]["m"] == 3
    assert forward_operators(model, 3, 1000).table()[-1]["m"] == 3000


# KV cache


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("context", [100, 8000])
def test_a_decode_step_reads_the_cache_and_writes_one_token(name, context):
    # LLM-Viewer issue 12: KV traffic goes with key-value heads, not with query heads.
    model = model_named(name)
    traffic = decode_operators(model, 5, context).total("kv_elements") / 5
    cache = model.kv_elements(context)
    if model.index_heads:
        # All of the indexer's keys, but at most index_top_k latents.
        unread = max(0, context - model.index_top_k)
        cache -= model.layers * unread * (model.kv_lora_rank + model.qk_rope_head_dim)
    assert traffic == cache + model.kv_elements_per_token


def test_training_has_no_cache():
    for name in model_names():
        assert not forward_operators(model_named(name), 2, 100).kv_elements.any()


def test_prefill_writes_every_token_to_the_cache():
    model = model_named("deepseek-v3")
    assert prefill_operators(model, 2, 100).total("kv_elements") == 2 * 100 * 61 * 576
    # A later chunk reads the earlier one's latents, to expand them again.
    chunk = prefill_operators(model, 2, 100, prefix=50)
    assert chunk.total("kv_elements") == 2 * (100 + 50) * 61 * 576


def test_latent_attention_absorbs_its_projections_in_decode():
    model = model_named("deepseek-v3")
    table = {entry["operator"]: entry for entry in decode_operators(model, 3, 1000, 8).table()}
    scores, values = table["attention_scores"], table["attention_values"]
    # 16 heads a chip share one read of the latents.
    assert (scores["parallel"], scores["m"], scores["k"], scores["n"]) == (3, 16, 576, 1000)
    assert (values["m"], values["k"], values["n"]) == (16, 1000, 512)
    assert (scores["kv_elements"], values["kv_elements"]) == (3 * 1000 * 576, 0)
    absorbed = table["query_absorb"]["weight_elements"] + table["value_up"]["weight_elements"]
    expanded = {e["operator"]: e for e in prefill_operators(model, 3, 1000, 8).table()}
    assert absorbed == expanded["kv_up"]["weight_elements"] == 16 * 512 * 256
    assert (expanded["attention_scores"]["parallel"], expanded["attention_scores"]["k"]) == (
        48,
        192,
    )


def test_sparse_attention_bounds_the_core_and_not_the_indexer():
    model = model_named("deepseek-v3.2")
    table = {entry["operator"]: entry for entry in decode_operators(model, 1, 50_000).table()}
    assert table["attention_scores"]["n"] == 2048
    assert table["index_scores"]["n"] == 50_000
    assert table["index_scores"]["kv_elements"] == 50_000 * 128


def test_kv_bytes():
    bf16, int8 = recipe_named("serving", "bf16"), recipe_named("serving", "int8")
    deepseek, llama = model_named("deepseek-v3"), model_named("llama-3.1-70b")
    assert kv_bytes(deepseek, 4096, bf16) == 274.5 * 2**20
    assert kv_bytes(deepseek, 4096, bf16, tp=8) == 274.5 * 2**20
    assert kv_bytes(llama, 1000, bf16) == 1000 * 80 * 2 * 8 * 128 * 2
    np.testing.assert_array_equal(
        kv_bytes(llama, 1000, int8, tp=[1, 8, 64]) / (1000 * 80 * 256), [8, 1, 1]
    )


# Activations and communication


def test_stored_activations_of_a_gpt_layer():
    # arXiv:2205.05198, section 4.1: 34 s b h bytes per layer, 2 of them for dropout masks.
    kept = activation_elements_stored(GPT3, 2, 2048)
    assert kept * 2 == 32 * 2048 * 2 * 12288
    # Sequence parallelism divides all of it.
    assert activation_elements_stored(GPT3, 2, 2048, 8) == kept / 8
    assert activation_elements_stored(GPT3, 2, 2048, 8, "full") == 2048 * 2 * 12288 / 8


def test_stored_activations_of_experts_are_those_of_the_experts_visited():
    # Megatron-LM issue 1784: MoE layers are not priced as dense ones.
    model = model_named("qwen3-30b-a3b")
    attention = 4 * 2048 + (2 * 32 + 2 * 4) * 128
    assert activation_elements_stored(model, 1, 10) == 10 * (attention + 8 * 3 * 768 + 128)
    mixed = model_named("deepseek-v3")
    mlp = (3 * 3 * 18432 + 58 * (9 * 3 * 2048 + 256)) / 61
    latent = 1536 + 576 + 128 * (192 + 128 + 128 + 128)
    assert activation_elements_stored(mixed, 1, 1) == pytest.approx(4 * 7168 + latent + mlp)


def test_recompute_names():
    with pytest.raises(InputError, match=r"unknown recompute 'ful'; did you mean 'full'\?"):
        activation_elements_stored(GPT3, 1, 8, 1, "ful")


def test_two_all_reduces_a_layer():
    np.testing.assert_array_equal(
        tensor_parallel_elements_per_layer(GPT3, [1, 100]), [2 * 12288, 200 * 12288]
    )


def test_backward_moves_flash_attentions_tensors():
    # Reads Q, K, V, O, dO; writes dQ, dK, dV.
    model = replace(GPT3, layers=1)
    forward, backward = (f(model, 1, 64) for f in (forward_operators, backward_operators))
    moved = [t.select(t.attention).total("activation_elements") for t in (forward, backward)]
    assert moved == [4 * 64 * 12288, 8 * 64 * 12288]
