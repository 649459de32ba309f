"""A small run that many tests read, and the command line called in-process."""

import json
from dataclasses import dataclass

import pytest

from dse.cli import main
from dse.scenario import default_scenario
from models.hardware.technology import Technology

# Two rounds of 20 in each study: less than a generation, then one that is cut by the round.
TRIALS = 40


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on standard output; NaN and infinities are not JSON."""

        def refuse(constant):
            raise AssertionError(f"{constant} in JSON")

        answer = json.loads(self.out, parse_constant=refuse)
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
def diptych(capsys):
    """Run a command in this process."""

    def call(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Said(exit_.value.code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def tech():
    return Technology.default()


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a finished run of the built-in scenario."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    with pytest.raises(SystemExit) as exit_:
        main(["sweep", "--trials", str(TRIALS), "--out", str(folder), "--json"])
    assert exit_.value.code == 0
    return folder


@pytest.fixture
def result(run):
    return json.loads((run / "result.json").read_text())


@pytest.fixture
def scenario_file(tmp_path):
    """Write the built-in scenario with lines replaced, by the setting that they set."""

    def write(*, name="asked.toml", **settings):
        lines = default_scenario().splitlines()
        for setting, value in settings.items():
            # "recipes" stands twice: "serving__recipes" is the one below [serving].
            section, _, key = setting.rpartition("__")
            start = lines.index(f"[{section}]") if section else 0
            at = next(
                i for i, line in enumerate(lines) if i >= start and line.startswith(f"{key} = ")
            )
            lines[at] = f"{key} = {value}" if value is not None else ""
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
