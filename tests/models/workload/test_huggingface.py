"""Reading config.json: every family's peculiarities, and every way a file can be wrong."""

import json
from pathlib import Path

import pytest

from models.workload.catalog import load_model, model_named
from models.workload.huggingface import FAMILIES
from models.workload.transformer import Transformer
from rtl.errors import InputError

# The vendors' own files (llama-3.1-70b: Meta-Llama-3.1-70B, mixtral-8x7b: Mixtral-8x7B-v0.1,
# deepseek-v3: DeepSeek-V3, gpt-oss-20b, qwen3-30b-a3b: Qwen3-30B-A3B), without the fields that do
# not describe the architecture.
CONFIGS = sorted((Path(__file__).parent / "configs").glob("*.json"))

DENSE = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "intermediate_size": 96,
    "vocab_size": 100,
}


def read(**changes):
    return Transformer.from_mapping(DENSE | changes, name="given")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_catalogue_entries_equal_the_vendors_files(path):
    assert Transformer.from_config(path) == model_named(path.stem)


def test_five_vendor_files_are_there():
    assert len(CONFIGS) == 5


def test_defaults_of_a_plain_llama():
    model = read()
    assert (model.kv_heads, model.head_dim, model.dtype) == (8, 8, "bf16")
    assert not model.tied_embeddings


def test_an_explicit_head_dim_wins():
    assert read(head_dim=32).head_dim == 32


def test_qwen2_has_biases_that_its_file_does_not_mention():
    model = read(model_type="qwen2")
    assert model.qkv_bias
    assert not model.output_bias


def test_a_window_that_qwen_does_not_use():
    unused = read(model_type="qwen3", sliding_window=512, use_sliding_window=False)
    assert (unused.local_layers, unused.sliding_window) == (0, 0)
    used = read(
        model_type="qwen2", sliding_window=512, use_sliding_window=True, max_window_layers=3
    )
    assert (used.local_layers, used.sliding_window) == (1, 512)


def test_mistral_is_local_in_every_layer():
    model = read(model_type="mistral", sliding_window=32)
    assert (model.local_layers, model.sliding_window) == (4, 32)


def test_layer_types_say_which_layers_are_local():
    kinds = ["sliding_attention", "full_attention", "full_attention", "full_attention"]
    assert read(model_type="mistral", sliding_window=32, layer_types=kinds).local_layers == 1


def test_qwen_moe_layers_follow_step_and_exceptions():
    moe = {
        "model_type": "qwen3_moe",
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
    }
    assert read(**moe).moe_layers == 4
    assert read(**moe, decoder_sparse_step=3).moe_layers == 1  # the third of four
    assert read(**moe, mlp_only_layers=[0, 1, 2]).moe_layers == 1
    assert read(**moe, mlp_only_layers=[0, 1, 2, 3]).experts == 0


def test_deepseek_starts_dense():
    config = json.loads(next(p for p in CONFIGS if p.stem == "deepseek-v3").read_text())
    model = Transformer.from_mapping(config | {"first_k_dense_replace": 10}, name="v3")
    assert (model.dense_layers, model.moe_layers) == (10, 51)
    lite = Transformer.from_mapping(
        config | {"model_type": "deepseek_v2", "q_lora_rank": None, "topk_method": "greedy"},
        name="lite",
    )
    assert lite.q_lora_rank == 0
    assert not lite.router_bias


def test_a_multimodal_model_nests_its_language_model():
    text = {key: value for key, value in DENSE.items() if key != "model_type"}
    text |= {
        "model_type": "llama4_text",
        "num_key_value_heads": 2,
        "intermediate_size_mlp": 200,
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 1024,
    }
    config = {"model_type": "llama4", "torch_dtype": "float16", "text_config": text}
    model = Transformer.from_mapping(config, name="llama4")
    assert (model.ffn, model.moe_ffn, model.shared_experts) == (200, 96, 1)
    # One of four layers has no rotary embedding, and sees everything.
    assert (model.moe_layers, model.local_layers, model.sliding_window) == (2, 3, 1024)
    assert model.dtype == "fp16"


def test_a_model_takes_its_directorys_name(tmp_path):
    directory = tmp_path / "My-Model"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(DENSE))
    assert Transformer.from_config(directory).name == "My-Model"
    assert load_model(directory).name == "My-Model"
    assert load_model(str(directory / "config.json")).layers == 4


# Errors


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.json: No such file.*give the path"):
        Transformer.from_config(tmp_path / "none.json")


def test_a_directory_without_a_config(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*config\.json: No such file"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layers: 4", r"is not JSON \(.*\); give a Hugging Face config\.json"),
        ("[1, 2]", r"holds a JSON list, not an object"),
        ("\x00", r"is not JSON"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Transformer.from_config(path)


def test_a_missing_field_is_named_with_its_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in DENSE.items() if k != "vocab_size"}))
    with pytest.raises(
        InputError, match=r"config\.json has no 'vocab_size'; .*at the top of.*text_config"
    ):
        Transformer.from_config(path)


def test_a_null_field_is_missing():
    with pytest.raises(InputError, match=r"given has no 'hidden_size'"):
        read(hidden_size=None)


def test_no_model_type():
    with pytest.raises(InputError, match=r"has no 'model_type'"):
        read(model_type=None)


def test_an_unknown_model_type_lists_the_known():
    with pytest.raises(
        InputError, match=r"unknown model_type in given 'bert'.*Known: llama, "
    ) as e:
        read(model_type="bert")
    assert all(family in str(e.value) for family in FAMILIES)
    assert "\n" not in str(e.value)


def test_a_value_of_the_wrong_kind():
    with pytest.raises(InputError, match=r"model 'given': ffn is '96'; give a whole number"):
        read(intermediate_size="96")


def test_a_count_that_a_rule_cannot_use():
    with pytest.raises(InputError, match=r"given: cannot work out head_dim \(.*whole numbers"):
        read(num_attention_heads="8")
    with pytest.raises(InputError, match=r"given: cannot work out moe_layers"):
        read(model_type="qwen3_moe", decoder_sparse_step=0)


def test_an_unknown_name_suggests_and_offers_a_path():
    with pytest.raises(InputError, match=r"did you mean 'llama-3.1-70b'\?.*or give a path to a co"):
        load_model("llama-31-70b")


def test_names_match_in_any_case():
    assert load_model("LLAMA-3.1-70B") is model_named("llama-3.1-70b")
