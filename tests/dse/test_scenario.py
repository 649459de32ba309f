import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.scenario import default_scenario, load_scenario, parse_scenario, with_settings
from rtl.errors import InputError


@pytest.fixture
def table():
    return tomllib.loads(default_scenario())


def test_the_built_in_scenario_is_the_file(table):
    scenario, text = load_scenario(None)
    assert text == default_scenario()
    dumped = scenario.model_dump()
    for section, settings in table.items():
        assert dumped[section] == settings


def test_a_scenario_survives_json(table):
    scenario = parse_scenario(table)
    assert parse_scenario(json.loads(json.dumps(scenario.model_dump()))) == scenario


def test_names_are_spelled_as_the_tables_do_and_stand_once(table):
    table["budget"] |= {"node": "N5", "styles": ["SIMT", "simt"], "hbm_types": ["HBM3E"]}
    table["cluster"]["network"] = "InfiniBand-NDR"
    table["serving"]["recipes"] = ["W4A8", "Bf16"]
    table["formats"] = {"equal": "INT8", "datapaths": ["FP8"]}
    table["compare"]["chips"] = ["H100", "TPU-v4", "h100"]
    scenario = parse_scenario(table)
    assert scenario.budget.node == "n5"
    assert scenario.budget.styles == ["simt"]
    assert scenario.budget.hbm_types == ["hbm3e"]
    assert scenario.cluster.network == "infiniband-ndr"
    assert scenario.serving.recipes == ["w4a8", "bf16"]
    assert scenario.formats.equal == "int8"
    assert scenario.formats.datapaths == ["fp8"]
    assert scenario.compare.chips == ["h100", "tpu-v4"]


def test_a_whole_float_is_a_count(table):
    table["training"]["global_batch_tokens"] = 16.777216e6
    assert parse_scenario(table).training.global_batch_tokens == 16_777_216


@pytest.mark.parametrize("value", [True, "8", 8.5, [8], float("nan"), float("inf"), None, -1, 0])
def test_a_count_is_a_whole_number_from_one(table, value):
    table["cluster"]["domain"] = value
    with pytest.raises(InputError, match=r"^cluster\.domain = "):
        parse_scenario(table)


@pytest.mark.parametrize(
    "value", [True, "8", [8], float("nan"), float("inf"), None, -1.0, 0, 1e300]
)
def test_a_figure_is_finite_and_positive(table, value):
    table["budget"]["power_w"] = value
    with pytest.raises(InputError, match=r"^budget\.power_w = "):
        parse_scenario(table)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", ".hidden", "x\n"])
def test_a_name_is_that_of_a_folder(table, name):
    with pytest.raises(InputError, match=r"^name = .*use letters, digits"):
        parse_scenario({**table, "name": name})


@pytest.mark.parametrize("given", [None, [], 3, "text"])
def test_a_scenario_is_a_table(given):
    with pytest.raises(InputError, match="must be a section of settings"):
        parse_scenario(given)


def test_everything_wrong_is_counted_and_the_file_is_named(table):
    table["budget"] |= {"power_w": -1, "die_mm2": "big"}
    with pytest.raises(InputError, match=r"^here: budget\.die_mm2 = 'big': .*\(and 1 more\)$"):
        parse_scenario(table, "here")


# --- settings from the command line ---


def settings(text, **given):
    table = tomllib.loads(text)
    return with_settings(parse_scenario(table), text, **given)


def test_settings_replace_values_and_nothing_else():
    before = default_scenario()
    scenario, text = settings(before, trials=7, seed=None)
    assert scenario.trials == 7
    assert scenario.seed == 1
    changed = [(old, new) for old, new in zip(before.splitlines(), text.splitlines()) if old != new]
    assert len(before.splitlines()) == len(text.splitlines())
    line = next(line for line in before.splitlines() if line.startswith("trials = "))
    assert changed == [(line, re.sub(r"= \d+", "= 7", line))]


def test_nothing_given_changes_nothing():
    scenario, text = settings(default_scenario(), trials=None, seed=None)
    assert text == default_scenario()
    assert scenario == load_scenario(None)[0]


@pytest.mark.parametrize(
    "line",
    ["seed = 1", "  seed=1", '"seed" = 1 # why', "'seed' = 0x01", "seed = 1_000", "# seed = 9", ""],
)
@pytest.mark.parametrize("indent", ["", "  "])
def test_settings_are_found_however_they_are_written(line, indent):
    text = default_scenario().replace("\nseed = 1\n", f"\n{line}\n")
    text = text.replace("[budget]", f"{indent}[budget]")
    scenario, edited = settings(text, seed=42)
    assert scenario.seed == 42
    assert tomllib.loads(edited) == {**tomllib.loads(text), "seed": 42}
    comments = [part.split("\n")[0] for part in text.split("#")[1:]]
    assert comments == [part.split("\n")[0] for part in edited.split("#")[1:]]


def test_a_setting_below_a_section_is_not_the_top_level_one():
    # An unknown setting of a section is refused before; the text alone is what matters here.
    text = default_scenario().replace("\nseed = 1\n", "\n")
    _, edited = settings(text, seed=5, trials=6)
    table = tomllib.loads(edited)
    assert (table["seed"], table["trials"]) == (5, 6)


def test_a_setting_that_cannot_be_edited_is_refused():
    text = default_scenario().replace("trials = 1200 ", "trials =\t+1200 ")
    assert settings(text, trials=3)[0].trials == 3
    dotted = 'name = """a"""\nseed = 1\n' + default_scenario().split("\n\n", 2)[2]
    assert settings(dotted, seed=3)[0].seed == 3
    # A line of a multi-line string that looks like the setting.
    fooled = (
        "name = '''\\\nseed = 1'''\n".replace("\\\n", "") + default_scenario().split("\n\n", 2)[2]
    )
    with pytest.raises(InputError):
        settings(fooled, seed=3)


@given(
    seed=st.none() | st.integers(0, 2**70),
    trials=st.none() | st.integers(1, 10**6),
    drop=st.sets(st.sampled_from(["seed", "trials"])),
)
def test_settings_read_back(seed, trials, drop):
    lines = default_scenario().splitlines(keepends=True)
    text = "".join(line for line in lines if line.split(" ")[0] not in drop)
    scenario, edited = settings(text, seed=seed, trials=trials)
    before = parse_scenario(tomllib.loads(text))
    assert parse_scenario(tomllib.loads(edited)) == scenario
    assert scenario.seed == (before.seed if seed is None else seed)
    assert scenario.trials == (before.trials if trials is None else trials)


@pytest.mark.parametrize("given", [{"seed": -1}, {"trials": 0}])
def test_settings_are_checked(given):
    with pytest.raises(InputError, match="input should be greater"):
        settings(default_scenario(), **given)
