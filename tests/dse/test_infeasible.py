"""Budgets and service levels that nothing meets: exit code 2, the constraint, and by how much."""

import json
import re

import pytest

from models.evaluate import OBJECTIVES


def test_a_service_level_that_nothing_meets(diptych, scenario_file, tmp_path):
    path = scenario_file(tpot_ms="0.001", trials=48)
    said = diptych("sweep", path, "--out", tmp_path / "run", "--json")
    assert said.code == 2
    for answer in said.json["formats"].values():
        assert answer["infeasible"].keys() == {"decode", "mixed"}
        assert answer["designs"].keys() == {"training", "prefill"}
        assert answer["pareto"] == []
        # Of the trial nearest to feasible: nothing else is in its way.
        (reason,) = answer["infeasible"]["decode"]
        numbers = re.match(
            r"decode\.tpot: needs (\S+) s, allowed 1e-06, over by (\S+) s; allow a longer TPOT",
            reason,
        )
        needs, over = (float(number) for number in numbers.groups())
        assert 1e-4 < needs < 1
        assert over == pytest.approx(needs - 1e-6, rel=0.01)
    assert "infeasible budget: no design can do decode" in said.err
    assert "over by" in said.err
    # The story is told all the same, and told again.
    again = diptych("show", tmp_path / "run")
    assert again.code == 2
    assert "no design can do decode" in again.out
    assert "infeasible budget: no design can do decode" in again.err
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == said.json
    assert (tmp_path / "run" / "summary.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"die_mm2": "5"}, r"area: needs \S+ mm2, allowed 5, over by|memory: needs"),
        ({"power_w": "5"}, r"power: needs \S+ W, allowed 5, over by"),
    ],
)
def test_a_budget_on_which_nothing_fits(diptych, scenario_file, tmp_path, settings, says):
    said = diptych(
        "sweep", scenario_file(trials=4, **settings), "--out", tmp_path / "run", "--json"
    )
    assert said.code == 2
    for answer in said.json["formats"].values():
        assert answer["designs"] == {}
        assert answer["infeasible"].keys() == set(OBJECTIVES)
        assert answer["thesis"] == []
        assert answer["gains"] == {}
        for reasons in answer["infeasible"].values():
            assert re.search(says, "; ".join(reasons))
    closing = [line for line in said.err.splitlines() if "infeasible budget" in line]
    assert len(closing) == 1
    assert f"no design can do {', '.join(OBJECTIVES)}" in closing[0]
    assert ", over by " in closing[0]
    assert diptych("show", tmp_path / "run").code == 2


def test_what_only_one_formats_mode_cannot_do_is_no_failure(diptych, scenario_file, tmp_path):
    path = scenario_file(datapaths='["int8"]', trials=48)
    said = diptych("sweep", path, "--out", tmp_path / "run", "--json")
    assert said.code == 0
    assert said.json["formats"]["equal"]["infeasible"] == {}
    (reason,) = said.json["formats"]["free"]["infeasible"]["training"]
    assert reason.startswith("formats: arrays multiply in int8, which bf16, fp8 can't do with")
    assert "no design can do training" in diptych("show", tmp_path / "run").out


def test_a_fixed_fleet_that_is_too_small_has_no_days(diptych, scenario_file, tmp_path):
    path = scenario_file(compare_chips="4", trials=48)
    said = diptych("sweep", path, "--out", tmp_path / "run", "--json")
    work = said.json["formats"]["equal"]["designs"]["training"]["work"]["training"]
    assert work["days"] > 0
    assert work["at_fixed_chips"]["days"] is None
    assert "at fixed chips" in diptych("show", tmp_path / "run").out


def test_no_chips_to_compare_with(diptych, scenario_file, tmp_path):
    said = diptych(
        "sweep", scenario_file(chips="[]", trials=8), "--out", tmp_path / "run", "--json"
    )
    assert said.json["chips"] == {}
    assert said.code in (0, 2)
