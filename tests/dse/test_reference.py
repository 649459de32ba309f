"""The run that the project ships is what its scenario gives."""

import json
from pathlib import Path

import pytest

from dse.run import RESULT, SCENARIO
from dse.scenario import load_scenario
from dse.sweep import open_run, sweep

REFERENCE = Path(__file__).parents[2] / "runs" / "reference"


def differences(found, expected, where="result"):
    """Return where two results differ: text, whole numbers and parameters exactly, others nearly.

    Parameters of a trial are exact, since the search must have gone the same way.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return [f"{where}: {sorted(found.keys() ^ expected.keys())} on one side only"]
        return [
            line
            for key in expected
            for line in differences(found[key], expected[key], f"{where}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return [f"{where}: {len(found)} items, not {len(expected)}"]
        return [
            line
            for i, pair in enumerate(zip(found, expected))
            for line in differences(*pair, f"{where}[{i}]")
        ]
    same = type(found) is type(expected) and found == expected
    if (
        not same
        and isinstance(expected, float)
        and isinstance(found, float)
        and ".params" not in where
    ):
        # Shares and losses near nothing have no relative accuracy.
        same = found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    return [] if same else [f"{where}: {found!r}, not {expected!r}"]


def test_the_reference_run_is_reproduced(tmp_path):
    assert (REFERENCE / RESULT).is_file(), "no reference run: `make reference` writes it"
    scenario, text = load_scenario(REFERENCE / SCENARIO)
    folder = tmp_path / "reference"
    log = open_run(folder, scenario, text, resume=False, overwrite=False)
    sweep(scenario, folder, log)
    found = json.loads((folder / RESULT).read_text())
    expected = json.loads((REFERENCE / RESULT).read_text())
    assert differences(found, expected) == [], (
        "the answer moved; if it was meant to, renew it with `make reference` and say why"
    )


@pytest.mark.parametrize(
    ("found", "expected", "alike"),
    [
        ({"a": 1.0 + 1e-7}, {"a": 1.0}, True),
        ({"a": 1.0 + 1e-5}, {"a": 1.0}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 3}, {"a": 4}, False),
        ({"params": {"volts": 0.7 + 1e-12}}, {"params": {"volts": 0.7}}, False),
        ({"a": [1, "x"]}, {"a": [1, "x"]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": None}, {"a": 1.0}, False),
        ({"b": 1}, {"a": 1}, False),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_what_counts_as_a_difference(found, expected, alike):
    assert (differences(found, expected) == []) == alike
