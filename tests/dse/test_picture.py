import copy

import pytest

from dse.picture import draw_comparison, draw_run, front_data, share_bars
from models.hardware.chip import PARTS


@pytest.mark.parametrize("measure", ["area_share", "peak_power_share"])
def test_bars_are_the_shares_of_every_design_and_chip(result, measure):
    bars = share_bars(result, measure)
    labels = [label for label, _ in bars]
    assert len(labels) == len(set(labels)) == 8 + len(result["chips"])
    for _, shares in bars:
        assert shares.keys() == set(PARTS)
        assert sum(shares.values()) == pytest.approx(1)
    decode = result["formats"]["equal"]["designs"]["decode"]["chip"][measure]
    assert dict(bars)[
        next(label for label in labels if "decode" in label and "equal" in label)
    ] == (decode)
    for chip in result["chips"].values():
        assert dict(bars)[chip["label"]] == chip["chip"][measure]


@pytest.mark.parametrize("mode", ["equal", "free"])
def test_the_front_is_in_millions_and_chips_stand_beside_it(result, mode):
    data = front_data(result, mode)
    front = result["formats"][mode]["pareto"]
    assert data["training"] == [pytest.approx(p["training_usd"] / 1e6) for p in front]
    assert data["serving"] == [p["mixed_usd"] for p in front]
    chips = {label: (training, serving) for label, training, serving in data["chips"]}
    for chip in result["chips"].values():
        work = chip["work"][mode]
        if work["training"]["feasible"] and work["mixed"]["feasible"]:
            assert chips.pop(chip["label"]) == (
                pytest.approx(work["training"]["usd"] / 1e6),
                work["mixed"]["usd"],
            )
    assert not chips


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_a_run_is_drawn(result, tmp_path, suffix, magic):
    path = tmp_path / f"run{suffix}"
    draw_run(result, path)
    assert path.read_bytes().startswith(magic)


def test_a_run_without_a_front_is_drawn(result, tmp_path):
    empty = copy.deepcopy(result)
    empty["chips"] = {}
    for answer in empty["formats"].values():
        answer["pareto"] = []
        answer["designs"] = {}
    draw_run(empty, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")


def test_chips_that_can_do_nothing_are_drawn(tmp_path):
    work = {o: {"feasible": False} for o in ("training", "decode", "prefill", "mixed")}
    answer = {"chips": [{"label": "none", "work": work, "per": {}}]}
    draw_comparison(answer, tmp_path / "x.png")
    assert (tmp_path / "x.png").is_file()
