"""An interrupted sweep loses nothing and ends as an uninterrupted one, byte for byte."""

import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from dse.objective import STUDIES
from dse.run import PICTURE, RESULT, SCENARIO, TRIALS
from dse.scenario import FORMATS, load_scenario, with_settings
from dse.study import POPULATION
from dse.sweep import open_run
from dse.sweep import sweep as run_sweep

TRIALS_PER_STUDY = 40  # as in conftest.py

FILES = (TRIALS, RESULT, SCENARIO)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def run_in(folder, trials=TRIALS_PER_STUDY, **options):
    """Do what `diptych sweep` does, but for the picture, which takes longer than all trials."""
    asked, text = with_settings(*load_scenario(None), trials=trials)
    log = open_run(folder, asked, text, **{"resume": False, "overwrite": False, **options})
    return run_sweep(asked, folder, log)


def sweep(diptych, folder, *more, trials=TRIALS_PER_STUDY):
    return diptych("sweep", "--trials", trials, "--out", folder, "--json", *more)


def test_the_same_seed_gives_the_same_answer_and_another_another(diptych, run, tmp_path):
    run_in(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(run)
    assert sweep(diptych, tmp_path / "other", "--seed", 2).code == 0
    assert (tmp_path / "other" / TRIALS).read_bytes() != (run / TRIALS).read_bytes()


def places_to_stop():
    """Lines of the log after which a sweep may have been stopped, by what they are."""
    half = TRIALS_PER_STUDY // 2
    round_one = 1 + len(STUDIES) * half
    return {
        "within the first batch": 1 + 5,
        "between two studies": 1 + half,
        "before the second round": round_one,
        "within the first batch of the second round": round_one + 2,
        "after that batch, cut short by the generation": round_one + (POPULATION - half),
        "within the batch after it": round_one + (POPULATION - half) + 3,
        "late in the pareto study": 1 + len(STUDIES) * 2 * half - 1,
        "between the modes": 1 + len(STUDIES) * 2 * half,
        "before the last trial": len(FORMATS) * len(STUDIES) * 2 * half,
    }


@pytest.mark.parametrize("place", places_to_stop())
def test_a_sweep_stopped_anywhere_resumes_as_if_it_had_not_been(run, tmp_path, place):
    folder = tmp_path / "stopped"
    folder.mkdir()
    lines = (run / TRIALS).read_bytes().splitlines(keepends=True)
    kept = places_to_stop()[place]
    # Whole lines, and what a write that was cut short may leave after them.
    (folder / TRIALS).write_bytes(b"".join(lines[:kept]) + lines[kept][: kept % 40])
    run_in(folder, resume=True)
    assert contents(folder) == contents(run)


@pytest.mark.parametrize("left", [0, 30])
def test_a_sweep_stopped_before_its_first_trial_resumes(run, tmp_path, left):
    folder = tmp_path / "stopped"
    folder.mkdir()
    (folder / TRIALS).write_bytes((run / TRIALS).read_bytes()[:left])
    run_in(folder, resume=True)
    assert contents(folder) == contents(run)


def test_resuming_a_finished_run_gives_its_answer_and_picture_again(diptych, run, tmp_path):
    folder = tmp_path / "done"
    shutil.copytree(run, folder)
    (folder / RESULT).unlink()
    (folder / PICTURE).unlink()
    said = diptych("sweep", folder / SCENARIO, "--out", folder, "--resume", "--json")
    assert said.code == 0
    assert contents(folder) == contents(run)
    assert said.out == (folder / RESULT).read_text()
    assert (folder / PICTURE).stat().st_size > 10_000


@pytest.mark.parametrize("trials", [1, 2, 3, 25])
def test_any_number_of_trials_is_run(tmp_path, trials):
    result = run_in(tmp_path / "run", trials)
    assert result["trials"] == trials * len(STUDIES) * len(FORMATS)
    lines = (tmp_path / "run" / TRIALS).read_text().splitlines()
    assert len(lines) == 1 + result["trials"]


# --- a folder that holds a run ---


@pytest.fixture
def held(run, tmp_path):
    folder = tmp_path / "held"
    shutil.copytree(run, folder)
    return folder


def test_a_run_is_not_replaced_unless_asked(diptych, held):
    before = contents(held)
    said = sweep(diptych, held)
    assert said.code == 2
    assert "holds a run already" in said.err
    assert "--resume" in said.err
    assert "--overwrite" in said.err
    assert contents(held) == before


@pytest.mark.parametrize(("option", "names"), [("--seed", "seed"), ("--trials", "trials")])
def test_a_run_is_not_resumed_with_another_scenario(diptych, held, option, names):
    before = contents(held)
    said = diptych("sweep", held / SCENARIO, "--out", held, "--resume", option, 41)
    assert said.code == 2
    assert f"was made with another {names}; resume with the scenario.toml beside it" in said.err
    assert contents(held) == before


def test_a_run_is_replaced_when_asked(diptych, held):
    said = sweep(diptych, held, "--overwrite", trials=1)
    assert said.code == 0
    assert said.json["trials"] == len(STUDIES) * len(FORMATS)
    assert "trials = 1  " in (held / SCENARIO).read_text()


def test_a_scenario_that_is_not_a_runs_is_not_replaced(diptych, scenario_file, tmp_path):
    path = scenario_file(name="scenario.toml")
    before = path.read_bytes()
    said = diptych("sweep", path, "--trials", 1, "--out", tmp_path)
    assert said.code == 2
    assert "scenario.toml" in said.err
    assert path.read_bytes() == before


def test_a_model_file_that_changed_is_another_scenario(diptych, scenario_file, tmp_path):
    config = tmp_path / "config.json"
    text = (
        '{"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 16, "vocab_size": 32000,'
        ' "num_attention_heads": 16, "intermediate_size": 4096}'
    )
    config.write_text(text)
    path = scenario_file(serving__model=f'"{config}"', trials=1)
    assert diptych("sweep", path, "--out", tmp_path / "run", "--json").code == 0
    config.write_text(text.replace("4096", "4000"))
    said = diptych("sweep", path, "--out", tmp_path / "run", "--resume")
    assert said.code == 2
    assert "made with another serving model" in said.err


# --- real signals ---

LONG = 60


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals") / "whole"
    run_in(folder, LONG)
    return folder


@pytest.mark.parametrize(("sent", "batches"), [(signal.SIGINT, 3), (signal.SIGKILL, 6)])
def test_a_signal_in_the_middle(uninterrupted, tmp_path, sent, batches):
    folder = tmp_path / "run"
    log = folder / TRIALS
    command = [sys.executable, "-m", "dse", "sweep", "--trials", str(LONG), "--out", str(folder)]
    with subprocess.Popen(
        [*command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts its jobs in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        deadline = time.monotonic() + 60
        while not log.exists() or log.read_bytes().count(b"\n") < batches * POPULATION:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, sent)
        out, err = process.communicate()
    assert "Traceback" not in err
    assert out == ""
    assert not (folder / RESULT).exists()
    whole = (uninterrupted / TRIALS).read_bytes()
    left = log.read_bytes()
    assert whole.startswith(left)
    assert len(left) < len(whole)
    if sent == signal.SIGINT:
        assert process.returncode == 130
        resume = f"diptych sweep {folder / SCENARIO} --out {folder} --resume"
        assert resume in err
        assert err.endswith("diptych: interrupted\n")
    else:
        assert process.returncode == -signal.SIGKILL
    again = subprocess.run(
        [sys.executable, "-m", "dse", "sweep", folder / SCENARIO, "--out", folder, "--resume"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr
    assert contents(folder) == contents(uninterrupted)


@pytest.mark.parametrize(
    "where", ["dse.scenario.load_scenario", "dse.sweep.write_result", "dse.picture.draw_run"]
)
def test_an_interruption_in_any_phase_ends_with_130(diptych, tmp_path, monkeypatch, where):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    said = sweep(diptych, tmp_path / "run", trials=1)
    assert said.code == 130
    assert said.err.endswith("diptych: interrupted\n")
    assert said.out == ""
    if where != "dse.scenario.load_scenario":
        assert "--resume" in said.err
        monkeypatch.undo()
        assert sweep(diptych, tmp_path / "run", "--resume", trials=1).code == 0


def test_places_to_stop_differ():
    places = list(places_to_stop().values())
    assert all(a < b for a, b in pairwise(places))
