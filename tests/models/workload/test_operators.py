"""The table itself, and what a layer asks of a chip in every phase."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.workload.catalog import model_named, model_names
from models.workload.inference import decode_operators, prefill_operators
from models.workload.mlp import experts_hit
from models.workload.operators import Operator, Operators
from models.workload.training import backward_operators, forward_operators
from models.workload.transformer import Transformer
from rtl.errors import InputError

TINY = Transformer(
    name="tiny", layers=2, hidden=8, heads=4, kv_heads=2, head_dim=3, ffn=10, vocab=20
)
NUMBERS = [f.name for f in fields(Operators) if f.name not in ("names", "attention")]
# Rows that tensor parallelism does not divide: every chip of the group computes them.
REPLICATED = ("q_down", "kv_down", "router", "index_queries", "index_keys", "index_scores")
PHASES = {
    "forward": lambda model, batch, length, tp: forward_operators(model, batch, length, tp),
    "backward": lambda model, batch, length, tp: backward_operators(model, batch, length, tp),
    "prefill": lambda model, batch, length, tp: prefill_operators(model, batch, length, tp),
    "decode": lambda model, batch, length, tp: decode_operators(model, batch, length, tp),
}


def row(table, name):
    """One operator of a table over a single point."""
    return next(entry for entry in table.table() if entry["operator"] == name)


# The table


def test_a_table_of_two_rows():
    table = Operators.of(
        [
            Operator("gemm", repeat=3, parallel=2, m=np.array([5.0, 6.0]), k=7, n=11),
            Operator("vector", repeat=4, vector_flops=np.array([[1.0], [2.0], [3.0]])),
        ]
    )
    assert table.names == ("gemm", "vector")
    assert table.points == (3, 2)
    assert table.m.shape == (2, 1, 2)
    assert table.k.shape == (2, 1, 1)
    np.testing.assert_array_equal(table.flops[0, 0], 2 * 3 * 2 * np.array([5, 6]) * 77)
    assert not table.flops[1].any()
    assert table.total_flops.shape == (3, 2)
    np.testing.assert_array_equal(table.total("vector_flops")[:, 1], [4, 8, 12])
    assert table.table((2, 1))[1]["vector_flops"] == 3
    assert table.table((2, 1))[0]["m"] == 6


def test_select_and_concatenate():
    table = forward_operators(TINY, np.array([1, 2]), 16)
    attention = table.select(table.attention)
    rest = table.select(~table.attention)
    assert attention.names == ("attention_scores", "attention_values")
    again = Operators.concatenate([attention, rest])
    assert sorted(again.names) == sorted(table.names)
    np.testing.assert_array_equal(again.total_flops, table.total_flops)
    assert table.select([0]).names == ("embedding",)


def test_a_layer_by_hand():
    # 3 sequences of 5 tokens on one of 2 chips: half of the heads, of the MLP, of the vocabulary.
    table = forward_operators(TINY, 3, 5, 2)
    qkv = row(table, "qkv")
    assert (qkv["repeat"], qkv["m"], qkv["k"], qkv["n"]) == (2, 15, 8, 6 + 3 + 3)
    assert qkv["weight_elements"] == 8 * 12
    assert qkv["activation_elements"] == 15 * (8 + 12)
    assert qkv["kv_elements"] == 0
    scores = row(table, "attention_scores")
    # One key-value head a sequence; its 2 query heads stand above each other.
    assert (scores["parallel"], scores["m"], scores["k"], scores["n"]) == (3, 10, 3, 3)
    assert scores["activation_elements"] == 3 * (10 * 3 + 5 * 3)
    assert scores["weight_elements"] == 0
    assert scores["attention"]
    values = row(table, "attention_values")
    assert (values["parallel"], values["m"], values["k"], values["n"]) == (3, 10, 3, 3)
    output = row(table, "attention_output")
    assert (output["m"], output["k"], output["n"]) == (15, 6, 8)
    up, down = row(table, "mlp_up"), row(table, "mlp_down")
    assert (up["m"], up["k"], up["n"]) == (15, 8, 10)
    # Gate, up projection and product are kept for the backward pass.
    assert up["activation_elements"] == 15 * (8 + 3 * 5)
    assert (down["m"], down["k"], down["n"]) == (15, 5, 8)
    head = row(table, "head")
    assert (head["repeat"], head["m"], head["k"], head["n"]) == (1, 15, 8, 10)
    norm = row(table, "mlp_norm")
    assert (norm["m"], norm["activation_elements"]) == (0, 4 * 8 * 8)
    assert row(table, "embedding")["weight_elements"] == 15 * 8 / 2


def test_decode_by_hand():
    table = decode_operators(TINY, 7, 100)
    scores, values = row(table, "attention_scores"), row(table, "attention_values")
    assert (scores["parallel"], scores["m"], scores["k"], scores["n"]) == (14, 2, 3, 100)
    assert (values["parallel"], values["m"], values["k"], values["n"]) == (14, 2, 100, 3)
    # Keys read by one, values by the other; the new ones written by the projection.
    assert scores["kv_elements"] == values["kv_elements"] == 7 * 100 * 2 * 3
    qkv = row(table, "qkv")
    assert qkv["kv_elements"] == 7 * 2 * 2 * 3
    assert qkv["activation_elements"] == 7 * (8 + 12)
    assert row(table, "mlp_up")["activation_elements"] == 7 * (8 + 10)


def test_backward_by_hand():
    table = backward_operators(TINY, 3, 5)
    down, gradient = row(table, "mlp_down_input_gradient"), row(table, "mlp_down_weight_gradient")
    assert (down["m"], down["k"], down["n"]) == (15, 8, 10)
    assert (down["weight_elements"], down["gradient_elements"]) == (80, 0)
    assert (gradient["m"], gradient["k"], gradient["n"]) == (10, 15, 8)
    assert (gradient["weight_elements"], gradient["gradient_elements"]) == (0, 80)
    assert table.names[0].startswith("head")
    values = row(table, "attention_values_input_gradient")
    assert (values["m"], values["k"], values["n"], values["attention"]) == (10, 3, 3, True)
    assert row(table, "attention_scores_again")["m"] == 10
    embedding = row(table, "embedding_gradient")
    assert (embedding["weight_elements"], embedding["gradient_elements"]) == (0, 15 * 8)


def test_elementwise_flops_by_hand():
    table = forward_operators(TINY, 3, 5)
    # Rotary embedding of queries and keys, 3 each; softmax of 4 heads' causal scores, 5 each.
    assert row(table, "qkv")["vector_flops"] == 15 * (12 + 6) * 3
    assert row(table, "attention_scores")["vector_flops"] == 3 * 4 * (1 + 2 + 3 + 4 + 5) * 5
    assert row(table, "mlp_up")["vector_flops"] == 15 * 10 * 5
    assert row(table, "mlp_norm")["vector_flops"] == 15 * 8 * (1 + 4)
    assert row(table, "head")["vector_flops"] == 15 * 20 * 5
    backward = backward_operators(TINY, 3, 5)
    assert row(backward, "mlp_up_input_gradient")["vector_flops"] == 2 * 15 * 10 * 5
    assert row(backward, "mlp_up_weight_gradient")["vector_flops"] == 0


def test_a_chunk_reads_the_window_of_each_of_its_tokens():
    local = replace(TINY, sliding_window=4, local_layers=1)
    table = prefill_operators(local, 1, 3, prefix=100)
    # The first of three new tokens sees 3 before it, so 3 + 3 in all.
    assert row(table, "local_attention_scores")["kv_elements"] == 6 * 2 * 3
    assert row(table, "local_attention_scores")["n"] == 4
    assert row(table, "attention_scores")["kv_elements"] == 103 * 2 * 3


@pytest.mark.parametrize("phase", PHASES)
@given(
    name=st.sampled_from(model_names()),
    tps=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    batches=st.lists(st.integers(1, 300), min_size=1, max_size=3),
    length=st.integers(1, 9000),
)
def test_arrays_equal_one_point_at_a_time(phase, name, tps, batches, length):
    model, operators = model_named(name), PHASES[phase]
    table = operators(model, np.array(batches), length, np.array(tps)[:, None])
    assert table.points == (len(tps), len(batches))
    for i, tp in enumerate(tps):
        for j, batch in enumerate(batches):
            assert table.table((i, j)) == operators(model, batch, length, tp).table()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", model_names())
def test_every_number_is_finite_and_none_is_negative(phase, name):
    table = PHASES[phase](model_named(name), np.array([1, 1000]), 5000, np.array([[1], [7], [512]]))
    for column in NUMBERS:
        values = getattr(table, column)
        assert np.isfinite(values).all(), column
        assert (values >= 0).all(), column
    vector = table.m.max(axis=(1, 2)) == 0
    assert not table.flops[vector].any()
    assert not table.weight_elements[table.attention].any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forward_operators(TINY, 0, 8), r"training sequences is 0; give 1 or more"),
        (lambda: decode_operators(TINY, 1, 8, [1, 0]), r"decode tp is 0; give 1 or more"),
        (lambda: prefill_operators(TINY, 1, 0), r"prefill length is 0"),
        (
            lambda: prefill_operators(TINY, 1, 8, prefix=-1),
            r"prefill context is shorter than the 8",
        ),
    ],
)
def test_points_out_of_range(call, message):
    with pytest.raises(InputError, match=message):
        call()


# Tensor parallelism


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", model_names())
def test_chips_of_a_group_share_the_flops(phase, name):
    model = replace(model_named(name), vocab=8 * 1000)
    whole = PHASES[phase](model, 4, 64, 1)
    for tp in (2, 4, 8):
        if any(count % tp for count in (model.heads, model.kv_heads, model.ffn)):
            continue
        shard = PHASES[phase](model, 4, 64, tp)
        for index, operator in enumerate(whole.names):
            chips = 1 if operator.startswith(REPLICATED) else tp
            assert chips * shard.flops[index] == pytest.approx(whole.flops[index], rel=1e-12)


@given(
    name=st.sampled_from(model_names()), tp=st.integers(1, 128), phase=st.sampled_from([*PHASES])
)
def test_rounding_up_loses_no_work(name, tp, phase):
    model = model_named(name)
    whole, shard = PHASES[phase](model, 4, 64, 1), PHASES[phase](model, 4, 64, tp)
    assert (shard.flops * tp >= whole.flops * (1 - 1e-12)).all()


def test_key_value_heads_are_replicated_beyond_one_a_chip():
    model = model_named("llama-3.1-70b")  # 64 query heads on 8 key-value heads
    scores = row(decode_operators(model, 1, 100, 16), "attention_scores")
    assert (scores["parallel"], scores["m"]) == (1, 4)
    assert row(decode_operators(model, 1, 100, 16), "qkv")["n"] == (4 + 2) * 128
    # Three chips: one has 3 key-value heads and all of their 24 queries.
    scores = row(decode_operators(model, 1, 100, 3), "attention_scores")
    assert (scores["parallel"], scores["m"]) == (3, 8)


# Mixture of experts


@given(name=st.sampled_from([n for n in model_names() if model_named(n).is_moe]))
def test_experts_hit(name):
    model = model_named(name)
    assert experts_hit(model, 1) == pytest.approx(model.top_k)
    hit = experts_hit(model, np.arange(1, 200))
    assert (np.diff(hit) >= 0).all()
    # Two tokens miss one another's experts with probability (1 - k/E) each.
    assert hit[1] == pytest.approx(model.top_k * (2 - model.top_k / model.experts))
    assert hit[-1] <= model.experts
    assert experts_hit(model, 10**6) == pytest.approx(model.experts)


def test_a_batch_reads_the_experts_it_hits_and_computes_on_those_it_visits():
    model = model_named("mixtral-8x7b")  # 2 of 8 experts
    one = row(decode_operators(model, 1, 100), "expert_up")
    assert one["weight_elements"] == pytest.approx(2 * 4096 * 2 * 14336)
    two = row(decode_operators(model, 2, 100), "expert_up")
    assert two["parallel"] == pytest.approx(8 * (1 - 0.75**2))
    assert two["parallel"] * two["m"] == pytest.approx(2 * 2)
    many = row(decode_operators(model, 1000, 100), "expert_up")
    assert many["weight_elements"] == pytest.approx(8 * 4096 * 2 * 14336)
    assert many["parallel"] * many["m"] == pytest.approx(1000 * 2)


def test_dense_and_moe_layers_are_counted_apart():
    table = decode_operators(model_named("deepseek-v3"), 1, 100)
    assert row(table, "mlp_up")["repeat"] == 3
    assert row(table, "expert_up")["repeat"] == row(table, "shared_up")["repeat"] == 58
    # Experts are 2,048 wide, the dense MLP 18,432.
    assert row(table, "expert_down")["k"] == 2048
    assert row(table, "mlp_down")["k"] == 18432
