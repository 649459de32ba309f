import json

import pytest

from dse.trials import Record, TrialLog
from rtl.errors import InputError

PRINT = {"seed": "a", "budget": "b"}


def record(number, study="equal/training"):
    return Record(
        study=study,
        number=number,
        params={"rows": 8, "volts": 0.7512345678901234},
        values=[float(number)],
        constraints={"area": -0.5},
        usd={"training": 1e30},
        feasible=["training"],
        system_attrs={"NSGAIISampler:generation": 0},
    )


@pytest.fixture
def log(tmp_path):
    log = TrialLog(tmp_path / "trials.jsonl", PRINT)
    log.extend([record(0), record(1)])
    log.extend([record(0, "equal/decode")])
    return log


def test_reading_gives_what_was_written(log):
    again = TrialLog(log.path, PRINT)
    assert again.records == log.records
    assert again.records["equal/training"] == [record(0), record(1)]


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_torn_last_line_is_cut_off(log, cut):
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-cut])
    again = TrialLog(log.path, PRINT)
    assert again.records["equal/training"] == [record(0), record(1)]
    assert again.records["equal/decode"] == []
    again.extend([record(0, "equal/decode")])
    assert log.path.read_bytes() == whole


@pytest.mark.parametrize("left", [0, 1, 20])
def test_a_torn_header_begins_anew(log, left):
    log.path.write_bytes(log.path.read_bytes()[:left])
    again = TrialLog(log.path, PRINT)
    assert not any(again.records.values())
    assert json.loads(log.path.read_text()) == {"fingerprint": PRINT}


def test_a_foreign_fingerprint_is_named_and_the_file_left_alone(log):
    torn = log.path.read_bytes()[:-3]
    log.path.write_bytes(torn)
    with pytest.raises(InputError, match=r"made with another seed, technology; .*--overwrite"):
        TrialLog(log.path, {"seed": "z", "budget": "b", "technology": "c"})
    assert log.path.read_bytes() == torn


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        "[]\n",
        '{"fingerprint": 3}\n',
        '{"print": {}}\n',
        json.dumps({"fingerprint": PRINT}) + '\n{"study": "equal/training"}\n',
        json.dumps({"fingerprint": PRINT}) + '\n{"study": "a", "other": 1}\n',
        json.dumps({"fingerprint": PRINT}) + "\n3\n",
        "\x00\x00\x00\n",
    ],
)
def test_what_is_not_a_log_of_this_version_is_refused(tmp_path, text):
    path = tmp_path / "trials.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="not a trial log of this version"):
        TrialLog(path, PRINT)
    assert path.read_text() == text


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="not a trial log"):
        TrialLog(path, PRINT)
