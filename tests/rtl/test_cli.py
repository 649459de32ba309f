import dataclasses
import json

import pytest
from typer.testing import CliRunner

import rtl.simulation.python as python_simulation
from rtl.cli import app
from rtl.errors import InputError

SMALL = ["simulate", "--rows", "3", "--cols", "2", "--m", "4", "--k", "7", "--n", "5"]


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


def test_json_is_all_of_standard_output():
    result = run(*SMALL, "--json", "--seed", "3")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["correct"] is True
    assert answer["cycles"] == answer["predicted_cycles"] == 2 * 3 + 2 + 4 + 1 + 8 * 4
    assert answer["utilization"] == 4 * 7 * 5 / (6 * answer["cycles"])
    assert answer["macs"] == 140
    assert (answer["config"]["rows"], answer["config"]["cols"]) == (3, 2)
    assert answer["shape"] == {"m": 4, "k": 7, "n": 5}


def test_report_reads():
    result = run(*SMALL)
    assert result.exit_code == 0
    for text in ("3 × 2 ws array", "equals NumPy", "45", "140", "51.9%"):
        assert text in result.stdout


def test_stalls_take_longer_and_pass():
    answer = json.loads(run(*SMALL, "--json", "--stall", "0.5").stdout)
    assert answer["correct"]
    assert answer["cycles"] > answer["predicted_cycles"]


def test_waveforms_are_written(tmp_path):
    result = run(*SMALL, "--json", "--vcd", str(tmp_path / "waves.vcd"))
    assert (tmp_path / "waves.vcd").stat().st_size > 0
    json.loads(result.stdout)
    assert "waves.vcd" in result.stderr.replace("\n", "")


@pytest.mark.parametrize("defect", [{"correct": False}, {"cycles": 46}])
def test_a_defect_exits_with_1(defect, monkeypatch):
    honest = python_simulation.simulate

    def broken(*arguments, **options):
        return dataclasses.replace(honest(*arguments, **options), **defect)

    monkeypatch.setattr(python_simulation, "simulate", broken)
    assert run(*SMALL).exit_code == 1
    assert run(*SMALL, "--json").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "65"], "rows must be from 1 to 64, not 65"),
        (["--k", "-1"], "k must be 0 or more"),
        (["--m", "1000000"], r"about 8,000,0\d\d cycles, some .* minutes .* smaller --m"),
        (["--stall", "1"], "the stall probability must be from 0 to below 1"),
        (["--seed", "-1"], "the seed must be 0 or more"),
        (["--k", "200000", "--m", "1", "--n", "1"], "K = 200,000 can overflow"),
    ],
)
def test_input_errors_reach_the_caller(arguments, message):
    result = run("simulate", "--rows", "8", "--cols", "8", "--n", "16", *arguments)
    assert isinstance(result.exception, InputError)
    assert result.stdout == ""
    with pytest.raises(InputError, match=message):
        raise result.exception
