"""What a user can get wrong: one line that says how to mend it, exit code 2, no traceback."""

import json
import tomllib

import pytest

from models.hardware.catalog import chip_facts

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}
MODEL = ("--model", "llama-3.1-8b")


@pytest.fixture
def refused(diptych):
    def call(*arguments):
        said = diptych(*arguments)
        assert said.code == 2
        assert said.out == ""
        assert said.err.startswith("diptych: ")
        assert said.err.count("\n") == 1
        return said.err

    return call


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"training__model": '"lama-3.1-405b"'},
            "training.model: unknown model 'lama-3.1-405b'; did you mean 'llama-3.1-405b'?",
        ),
        ({"serving__model": '"nowhere/config.json"'}, "serving.model: cannot read nowhere/config"),
        ({"training__model": "7"}, "training.model = 7: input should be a valid string"),
        ({"power_w": "-5"}, "budget.power_w = -5: input should be greater than 0"),
        ({"power_w": '"700"'}, "budget.power_w = '700': input should be a valid number"),
        ({"power_w": "[700]"}, "budget.power_w = [700]: input should be a valid number"),
        ({"power_w": None}, "budget.power_w is missing; add it"),
        ({"die_mm2": "1e5"}, "at most the reticle, 858 mm2; lower budget.die_mm2"),
        ({"node": '"n55"'}, "budget.node: unknown process node 'n55'; did you mean 'n5'?"),
        (
            {"styles": '["systolc"]'},
            "budget.styles.0: unknown style 'systolc'; did you mean 'systolic'?",
        ),
        ({"styles": "[]"}, "budget.styles is empty; name at least one"),
        ({"styles": '"systolic"'}, "budget.styles = 'systolic': input should be a valid list"),
        ({"domain": "0"}, "cluster.domain = 0: input should be greater than or equal to 1"),
        ({"network": '"infiniband"'}, "did you mean 'infiniband-ndr'?"),
        ({"tpot_ms": "0"}, "serving.tpot_ms = 0: input should be greater than 0"),
        ({"ttft_ms": "nan"}, "serving.ttft_ms = nan: input should be a finite number"),
        ({"global_batch_tokens": "100"}, "no whole number of sequences of 8192 tokens; 8192 is 1"),
        ({"training_tokens": "5"}, "less than one batch"),
        ({"serving__recipes": '["w4a16"]'}, "serving.recipes.0: unknown serving recipe 'w4a16'"),
        (
            {"equal": '"w4a8"'},
            "formats.equal: unknown recipe of both jobs 'w4a8'. Known: bf16, fp8, int8",
        ),
        ({"chips": '["h1000"]'}, "compare.chips.0: unknown chip 'h1000'; did you mean 'h100'?"),
        ({"seed": "-1"}, "seed = -1: input should be greater than or equal to 0"),
        ({"seed": "1\nsed = 1"}, "unknown setting 'sed'; did you mean 'seed'?"),
        (
            {"power_w": "1\npower = 1"},
            "unknown setting of [budget] 'power'; did you mean 'power_w'?",
        ),
        ({"seed": "1\nseed = 2"}, "is not valid TOML: Cannot overwrite a value (at line"),
        ({"seed": ""}, "is not valid TOML"),
        ({"trials": "1e9"}, "trials = 1000000000: input should be less than or equal to"),
    ],
)
def test_scenarios(refused, scenario_file, tmp_path, settings, says):
    path = scenario_file(**settings)
    message = refused("sweep", path, "--out", tmp_path / "out")
    assert message.startswith(f"diptych: {path}")
    assert says in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b"", "name is missing"),
        (b"a = " + b"[" * 3000, "is not valid TOML"),
        (b"formats = 3\nname = 'a'", "is missing"),
    ],
)
def test_files_that_are_no_scenario(refused, tmp_path, content, says):
    path = tmp_path / "asked.toml"
    path.write_bytes(content)
    assert says in refused("sweep", path)


def test_a_scenario_may_begin_with_a_byte_order_mark(diptych, scenario_file):
    path = scenario_file()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert diptych("evaluate", "--chip", "h100", *MODEL, "--scenario", path).code == 0


def test_places(refused, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "no scenario file at" in refused("sweep", tmp_path)
    assert "no scenario file at" in refused("sweep", tmp_path / "nothing.toml")
    out = tmp_path / "file"
    assert "is a file; give --out a folder" in refused("sweep", "--trials", 1, "--out", out)
    assert "Not a directory" in refused("sweep", "--trials", 1, "--out", out / "below")
    assert "File exists" in refused("rtl", "export", "--rows", 2, "--cols", 2, "--out", out)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["swep"], "No such command 'swep'"),
        (["sweep", "--trial", "3"], "No such option: --trial"),
        (["sweep", "--trials", "0"], "Invalid value for '--trials': Input should be greater than"),
        (["sweep", "--trials", "many"], "Invalid value for '--trials'"),
        (["sweep", "--resume", "--overwrite"], "give one"),
        (["evaluate", "--chip", "h100"], "Missing option '--model'; see `diptych evaluate --help`"),
        (["evaluate", "--chip", "h100", *MODEL, "--phase", "prefil"], "'prefil' is not one of"),
        (["evaluate", "--chip", "h1", *MODEL], "unknown chip 'h1'; did you mean 'h100'?"),
        (["evaluate", "--chip", "", *MODEL], "unknown chip ''"),
        (["evaluate", "--chip", "x.toml", *MODEL], "cannot read the chip file x.toml"),
        (["evaluate", "--chip", "x#decode", *MODEL], "no run at x"),
        (["evaluate", "--chip", "h100", "--model", "lama"], "diptych: unknown model 'lama'"),
        (["evaluate", "--chip", "h100", *MODEL, "--recipe", "fp9"], "unknown serving recipe 'fp9'"),
        (["evaluate", "--chip", "h100", *MODEL, "--tpot-ms", "-1"], "serving.tpot_ms = -1.0"),
        (["evaluate", "--chip", "h100", *MODEL, "--tpot-ms", "inf"], "a finite number"),
        (
            ["evaluate", "--chip", "h100", *MODEL, "--phase", "training", "--batch-tokens", "9"],
            "no whole number of sequences",
        ),
        (["compare", *MODEL], "Missing argument 'CHIP'"),
        (["compare", "h100", *MODEL, "--picture", "x.foo"], "can't draw .foo"),
        (["compare", "h100", *MODEL, "--picture", "nowhere/x.png"], "No such file or directory"),
        (["chips", "h1000"], "did you mean 'h100'?"),
        (["models", "lama-3.1-8b"], "did you mean 'llama-3.1-8b'?"),
        (["technology", "hbm.edge_m"], "did you mean 'hbm.edge_mm'?"),
        (["technology", "hmb"], "unknown coefficient 'hmb'"),
        (["show", "nowhere"], "no run at nowhere"),
        (["rtl", "export"], "name a run with --run, or an array with both --rows and --cols"),
        (["rtl", "export", "--rows", "8"], "both --rows and --cols"),
        (["rtl", "export", "--rows", "-3", "--cols", "8"], "Invalid value for '--rows'"),
        (["rtl", "export", "--rows", "99", "--cols", "8"], "rows must be from 1 to 64, not 99"),
        (["rtl", "export", "--rows", "2", "--cols", "2", "--format", "bf16"], "the gateware can't"),
        (["rtl", "export", "--rows", "2", "--cols", "2", "--format", "int9"], "did you mean 'int"),
        (
            ["rtl", "export", "--rows", "2", "--cols", "2", "--name", "a b"],
            "module cannot be named",
        ),
        (["rtl", "simulate", "--rows", "0"], "rows must be from 1"),
    ],
)
def test_command_lines(refused, arguments, says):
    assert says in refused(*arguments)


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "null", '{"version": 1}', "\udcff"])
def test_results_that_are_none(refused, tmp_path, content):
    (tmp_path / "result.json").write_bytes(content.encode(errors="surrogateescape"))
    for command in (
        ["show", tmp_path],
        ["compare", f"{tmp_path}#decode", *MODEL],
        ["rtl", "export", "--run", tmp_path],
    ):
        assert str(tmp_path / "result.json") in refused(*command)


def test_an_unfinished_run_says_how_to_finish_it(refused, tmp_path):
    (tmp_path / "trials.jsonl").write_text("")
    assert "--resume`" in refused("show", tmp_path)


def test_designs_that_a_run_lacks(refused, run):
    for design in ("decod", "", "free/nothing", "half/decode"):
        assert "unknown design" in refused("evaluate", "--chip", f"{run}#{design}", *MODEL)
        assert "Known: training, decode" in refused(
            "rtl", "export", "--run", run, "--design", design
        )
    assert "did you mean 'decode'?" in refused("rtl", "export", "--run", run, "--design", "decod")
    assert f"such as {run}#decode" in refused("evaluate", "--chip", run, *MODEL)
    assert "leave out --rows" in refused("rtl", "export", "--run", run, "--rows", 3, "--cols", 3)


@pytest.fixture
def chip_file(tmp_path):
    def write(**columns):
        row = {**chip_facts("h100"), **columns}
        lines = (f"{k} = {json.dumps(v)}" for k, v in row.items() if v is not None)
        path = tmp_path / "chip.toml"
        path.write_text("\n".join(lines))
        tomllib.loads(path.read_text())
        return path

    return write


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"die_mm2": None}, "die_mm2 is missing; add it"),
        ({"die_mm2": "abc"}, "die_mm2 is 'abc', not a number above 0"),
        ({"sram_mb": -1}, "sram_mb is -1, not a number of at least 0"),
        ({"sram_mb": [1]}, "sram_mb is [1]; a chip file holds one number or text per column"),
        ({"sram_mb": True}, "sram_mb is True"),
        ({"bf16_tflops": 1e300}, "no chip has more than"),
        ({"node": "n55"}, "unknown node 'n55'; did you mean 'n5'?"),
        ({"hbm_gb": 8}, "can't do this: training.memory: needs"),
        ({"tdp_w": 5}, "can't do this: training.time: can't be met"),
    ],
)
def test_chip_files(diptych, chip_file, columns, says):
    said = diptych(
        "evaluate",
        "--chip",
        chip_file(**columns),
        "--model",
        "llama-3.1-405b",
        "--phase",
        "training",
        "--fleet-chips",
        64,
    )
    assert said.code == 2
    assert says in said.err


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"hidden_size": None}, "has no 'hidden_size'"),
        ({"model_type": None}, "has no 'model_type'"),
        ({"model_type": "lama"}, "did you mean 'llama'?"),
        ({"hidden_size": "wide"}, "must be whole numbers"),
        ({"num_hidden_layers": 0}, "layers is 0; give a whole number from 1 up"),
        ({"hidden_size": -3}, "hidden is -3"),
    ],
)
def test_model_files(refused, scenario_file, tmp_path, fields, says):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in {**CONFIG, **fields}.items() if v is not None}))
    assert says in refused("models", path)
    assert says in refused("evaluate", "--chip", "h100", "--model", path)
    assert says in refused("sweep", scenario_file(serving__model=f'"{path}"'))


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_model_files_that_are_no_object(refused, tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(content)
    assert str(path) in refused("models", path)
