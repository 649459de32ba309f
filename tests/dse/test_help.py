import subprocess
import sys

import pytest

COMMANDS = (
    (),
    ("sweep",),
    ("show",),
    ("evaluate",),
    ("compare",),
    ("chips",),
    ("models",),
    ("technology",),
    ("rtl",),
    ("rtl", "simulate"),
    ("rtl", "export"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_fits_and_flows(diptych, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    said = diptych(*command, "--help")
    assert said.code == 0
    assert said.err == ""
    lines = said.out.splitlines()
    assert max(len(line) for line in lines) <= columns
    assert any(line.startswith(" ".join([" Usage: diptych", *command])) for line in lines)
    # Nothing is cut off, no markup is left over.
    assert "…" not in said.out.replace("n5 …", "")
    assert "[/" not in said.out
    assert "[dim]" not in said.out
    if command not in ((), ("rtl",)):
        assert "--json" in said.out
    # Paragraphs are filled: a line that is followed by another has no room for its first word.
    start = next(i for i, line in enumerate(lines) if "Usage" in line) + 2
    end = next(i for i, line in enumerate(lines) if line.startswith("╭"))
    for line, following in zip(lines[start:end], lines[start + 1 : end]):
        if line.strip() and following.strip():
            assert len(line.rstrip()) + 1 + len(following.split()[0]) > columns - 1


def test_every_command_is_in_the_help(diptych):
    said = diptych("--help").out
    assert all(command[0] in said for command in COMMANDS if command)


@pytest.mark.parametrize("command", [(), ("rtl",)])
def test_without_a_command_help_is_shown(diptych, command):
    said = diptych(*command)
    assert said.code == 2
    assert "Usage: diptych" in said.out
    assert said.err == ""


def test_help_loads_no_search_and_no_plots():
    # What makes a command line slow to start is what it imports.
    code = (
        "import sys\n"
        "sys.argv = ['diptych', '--help']\n"
        "from dse.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'optuna', 'matplotlib', 'amaranth', 'models.evaluate'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
