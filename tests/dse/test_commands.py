"""What commands answer: JSON for programs, text for people, remarks beside both."""

import json
import tomllib

import pytest

from dse.scenario import default_scenario
from models.evaluate import OBJECTIVES, PHASES
from models.hardware.catalog import chip_facts, chip_names
from models.workload.catalog import model_names

SMALL = ("--model", "llama-3.1-8b")


def test_sweep_writes_its_four_files_and_prints_the_result(diptych, tmp_path):
    folder = tmp_path / "runs" / "deep"
    said = diptych("sweep", "--trials", 5, "--seed", 9, "--out", folder, "--json")
    assert {path.name for path in folder.iterdir()} == {
        "result.json",
        "trials.jsonl",
        "scenario.toml",
        "summary.png",
    }
    assert said.json == json.loads((folder / "result.json").read_text())
    assert said.json["seed"] == 9
    assert "50 trials" in said.err
    used = tomllib.loads((folder / "scenario.toml").read_text())
    assert used == {**tomllib.loads(default_scenario()), "trials": 5, "seed": 9}
    assert (folder / "summary.png").read_bytes().startswith(b"\x89PNG\r\n")
    header, *lines = (folder / "trials.jsonl").read_text().splitlines()
    assert "fingerprint" in json.loads(header)
    assert [json.loads(line)["study"] for line in lines].count("free/pareto") == 5


def test_the_folder_is_named_after_the_scenario(diptych, scenario_file, tmp_path, monkeypatch):
    path = scenario_file(trials=1)
    path.write_text(path.read_text().replace('name = "default"', 'name = "mine"'))
    monkeypatch.chdir(tmp_path)
    diptych("sweep", path)
    assert (tmp_path / "runs" / "mine" / "result.json").is_file()


def test_the_built_in_scenario_is_printed(diptych):
    said = diptych("sweep", "--print-scenario")
    assert said.out == default_scenario()
    assert said.err == ""
    assert diptych("sweep", "--print-scenario", "--json").json == {"scenario": default_scenario()}


def test_show_tells_what_sweep_told(diptych, run):
    said = diptych("show", run, "--json")
    assert said.out == (run / "result.json").read_text()
    assert said.err == ""
    text = diptych("show", run).out
    for word in ("training", "decode", "prefill", "mixed", "H100 SXM", "TPOT", "held by"):
        assert word in text


@pytest.mark.parametrize("phase", PHASES)
def test_evaluate_adds_up(diptych, phase):
    answer = diptych("evaluate", "--chip", "H100", *SMALL, "--phase", phase, "--json").json
    assert answer["chip"] == chip_facts("h100")["label"]
    assert answer["model"] == "llama-3.1-8b"
    assert answer["phase"] == phase
    work = answer["work"]
    assert work["feasible"]
    assert sum(work["bound_s"].values()) == pytest.approx(work["seconds"])
    for row in answer["operators"]:
        assert row["seconds"] == max(row["compute_s"], row["vector_s"], row["hbm_s"])
        assert row["seconds"] == row[f"{row['bound']}_s"]
        assert 0 <= row["utilization"] <= 1
    text = diptych("evaluate", "--chip", "h100", *SMALL, "--phase", phase).out
    for row in answer["operators"]:
        assert row["name"] in text


def test_evaluate_takes_what_is_given(diptych):
    base = ("evaluate", "--chip", "h100", *SMALL, "--json")
    assert diptych(*base, "--recipe", "W4A8").json["work"]["recipe"] == "w4a8"
    assert diptych(*base, "--recipe", "bf16").json["work"]["recipe"] == "bf16"
    long = diptych(*base, "--prompt", 8192, "--tpot-ms", 200).json["work"]
    short = diptych(*base, "--prompt", 128, "--tpot-ms", 200).json["work"]
    assert short["tokens_per_s_per_chip"] > long["tokens_per_s_per_chip"]
    training = (*base, "--phase", "training", "--recipe", "bf16")
    work = diptych(*training, "--fleet-chips", 64).json["work"]
    assert work["chips"] == 64
    assert work["recipe"] == "bf16"
    # A batch is a whole number of sequences, whatever their length.
    assert diptych(*training, "--seq-len", 1000).code == 0


def test_what_a_chip_cannot_do_is_said_with_json_and_without(diptych):
    arguments = ("evaluate", "--chip", "h100", *SMALL, "--tpot-ms", 0.001)
    said = diptych(*arguments, "--json")
    assert said.code == 2
    work = said.json["work"]
    assert not work["feasible"]
    assert work["violations"][0].startswith("decode.tpot: needs ")
    assert ", allowed 1e-06" in said.err
    assert ", over by " in said.err
    assert diptych(*arguments).code == 2


def test_a_design_of_a_run_is_the_chip_that_the_run_describes(diptych, run, result):
    for design in ("decode", "Equal/Decode", "free/decode"):
        mode = "free" if design.startswith("free") else "equal"
        facts = result["formats"][mode]["designs"]["decode"]
        answer = diptych("compare", f"{run}#{design}", *SMALL, "--json").json
        (chip,) = answer["chips"]
        assert chip["chip"] == facts["chip"]
        assert chip["closure"] is None


def test_a_chip_file_is_a_catalogue_row(diptych, tmp_path):
    path = tmp_path / "mine.toml"
    row = chip_facts("h200")
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in row.items()))
    mine, theirs = diptych("compare", path, "h200", *SMALL, "--json").json["chips"]
    assert mine["label"] == str(path)
    assert theirs["closure"].keys() == {"area", "tdp"}
    for key in ("chip", "work", "per"):
        assert mine[key] == theirs[key]


def test_a_file_does_not_hide_a_chip_of_the_catalogue(diptych, tmp_path, monkeypatch):
    (tmp_path / "h100").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert diptych("evaluate", "--chip", "h100", *SMALL, "--json").code == 0


def test_a_chip_that_serves_from_sram_asks_no_hbm(diptych, tmp_path):
    columns = {
        **chip_facts("h100"),
        "die_mm2": 46225,
        "sram_mb": 44000,
        "tdp_w": 25000,
        "stacks": 0,
        "sites": 0,
        "hbm_gb": 0,
        "hbm_tbps": 0,
    }
    path = tmp_path / "wafer.toml"
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in columns.items()))
    answer = diptych("evaluate", "--chip", path, *SMALL, "--json").json
    assert answer["work"]["feasible"]
    assert answer["work"]["bound_s"]["hbm"] == 0
    assert all(row["hbm_s"] == row["hbm_bytes"] == 0 for row in answer["operators"])


def test_compare_has_every_chip_on_every_work(diptych, tmp_path):
    picture = tmp_path / "side.svg"
    arguments = ("compare", "a100", "H200", *SMALL)
    answer = diptych(*arguments, "--picture", picture, "--json").json
    assert [chip["label"] for chip in answer["chips"]] == [
        chip_facts(name)["label"] for name in ("a100", "h200")
    ]
    for chip in answer["chips"]:
        assert chip["work"].keys() == set(OBJECTIVES)
        for objective, rates in chip["per"].items():
            assert chip["work"][objective]["feasible"]
            assert rates["chip"] > 0
    assert "<svg" in picture.read_text()
    text = diptych(*arguments).out
    for word in (*OBJECTIVES, "A100", "H200", "modelled over actual area"):
        assert word in text


def test_a_recipe_for_serving_only_leaves_training_alone(diptych):
    said = diptych("compare", "h100", *SMALL, "--recipe", "w4a8", "--json")
    assert "w4a8 is for serving only" in said.err
    work = said.json["chips"][0]["work"]
    assert work["decode"]["recipe"] == "w4a8"
    assert work["training"]["recipe"] in ("bf16", "fp8")


# --- the catalogues ---


def test_chips(diptych):
    rows = diptych("chips", "--json").json["chips"]
    assert [row["name"] for row in rows] == list(chip_names())
    for row in rows:
        assert row["source"]
        assert 0.5 < row["closure"]["area"] < 2
    (one,) = diptych("chips", "H100", "--json").json["chips"]
    assert one in rows
    listing = diptych("chips").out
    assert all(name in listing for name in chip_names())
    assert one["tdp_w"] in diptych("chips", "h100").out


def test_models(diptych):
    rows = diptych("models", "--json").json["models"]
    assert [row["name"] for row in rows] == list(model_names())
    for row in rows:
        assert row["source"]
        assert 0 < row["active_parameters"] <= row["parameters"]
    (one,) = diptych("models", "LLAMA-3.1-8B", "--json").json["models"]
    assert one in rows
    listing = diptych("models").out
    assert all(name in listing for name in model_names())
    text = diptych("models", "llama-3.1-8b").out
    assert f"{one['parameters']:,}" in text
    assert "True" in text


def test_technology(diptych):
    rows = diptych("technology", "--json").json["coefficients"]
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert row["low"] <= row["nominal"] <= row["high"]
        assert row["source"]
        assert row["quality"] in "SRDA"
    hbm = diptych("technology", "HBM", "--json").json["coefficients"]
    assert hbm
    assert all("hbm" in row["name"].split(".") for row in hbm)
    (edge,) = diptych("technology", "hbm.edge_mm", "--json").json["coefficients"]
    assert edge in hbm
    text = diptych("technology", "hbm.edge_mm").out
    assert edge["source"].split()[0] in text


def test_simulate(diptych):
    sizes = ("--rows", 8, "--cols", 8, "--m", 32, "--k", 32, "--n", 32)
    answer = diptych("rtl", "simulate", *sizes, "--json").json
    assert answer["correct"] is True
    assert answer["cycles"] == answer["predicted_cycles"]
    assert answer["utilization"] == pytest.approx(32**3 / (64 * answer["cycles"]))
