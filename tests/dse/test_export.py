"""From a chosen chip to Verilog."""

import json

import pytest

from dse.commands.exporting import _NATIVE_FORMAT
from models.hardware.technology import DATAPATHS
from rtl.config import scaled
from rtl.formats import FORMATS


def test_every_datapath_multiplies_in_a_known_format():
    assert _NATIVE_FORMAT.keys() == set(DATAPATHS)
    assert set(_NATIVE_FORMAT.values()) <= FORMATS.keys()


def test_a_format_without_gateware_is_refused(diptych, run):
    said = diptych("rtl", "export", "--run", run, "--design", "decode")
    assert said.code == 2
    assert "the equal/decode design multiplies in bf16, which the gateware can't yet" in said.err
    assert "--format with one that it can: int8" in said.err
    assert not (run / "rtl").exists()


@pytest.mark.parametrize(("design", "mode"), [("decode", "equal"), ("Free/Training", "free")])
def test_a_design_is_written_with_its_sides(diptych, run, result, tmp_path, design, mode):
    chip = result["formats"][mode]["designs"][design.lower().rpartition("/")[2]]["chip"]
    sides = scaled(chip["rows"], chip["cols"], 8)
    said = diptych(
        "rtl", "export", "--run", run, "--design", design, "--format", "INT8", "--scale", 8,
        "--out", tmp_path, "--json",
    )  # fmt: skip
    answer = said.json
    assert (answer["rows"], answer["cols"]) == sides
    assert answer["format"] == "int8"
    assert sorted(answer["files"]) == sorted(path.name for path in tmp_path.iterdir())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["config"]["rows"], manifest["config"]["cols"]) == sides
    assert manifest["config"]["operand_format"] == "int8"
    wanted = _NATIVE_FORMAT[chip["datapath"]]
    assert manifest["provenance"] == {
        "run": run.name,
        "design": f"{mode}/{design.lower().rpartition('/')[2]}",
        "design_rows": chip["rows"],
        "design_cols": chip["cols"],
        "requested_format": wanted,
        "substituted": wanted != "int8",
        "scale": 8,
    }
    assert "module systolic_array" in (tmp_path / "systolic_array.v").read_text()


def test_where_a_design_goes_by_default(diptych, run):
    arguments = ("rtl", "export", "--run", run, "--format", "int8", "--scale", 16)
    said = diptych(*arguments)
    assert "int8 in place of the design's bf16; the manifest says so" in said.out
    assert "scaled down by 16 from" in said.out
    assert (run / "rtl" / "decode" / "systolic_array.v").is_file()
    diptych(*arguments, "--design", "FREE/mixed")
    assert (run / "rtl" / "free" / "mixed" / "manifest.json").is_file()


def test_an_array_without_a_run(diptych, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = diptych("rtl", "export", "--rows", 2, "--cols", 3, "--format", "Int8", "--name", "tiny")
    assert said.code == 0
    assert "in place of" not in said.out
    manifest = json.loads((tmp_path / "build" / "tiny" / "manifest.json").read_text())
    assert manifest["provenance"] == {"requested_format": "int8", "substituted": False, "scale": 1}
    assert (manifest["config"]["rows"], manifest["config"]["cols"]) == (2, 3)
