"""evaluate(): many chips at once are each alone; no NaN; energy, power and bounds add up."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.economics import chip_cost
from models.evaluate import OBJECTIVES, PHASES, evaluate
from models.hardware.catalog import chip_names, chips_named
from models.hardware.power import tdp_w
from models.performance.machine import machine
from models.results import cheapest


def arrays_of(value, path=""):
    """Yield every array of a result with its path."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays_of(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from arrays_of(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from arrays_of(item, f"{path}[{position}]")


@pytest.fixture(scope="module")
def sample(random_chips):
    return random_chips(400, seed=11)


@pytest.fixture(scope="module")
def evaluation(sample, problem):
    return evaluate(sample, problem)


def test_ten_thousand_chips_are_each_what_they_are_alone(random_chips, problem):
    one_recipe = replace(
        problem,
        training=replace(problem.training, recipes=("bf16",)),
        serving=replace(problem.serving, recipes=("bf16",)),
    )
    chips = random_chips(10_000, seed=5)
    together = dict(arrays_of(evaluate(chips, one_recipe)))
    assert together[".training.usd"].shape == (10_000,)
    for row in range(0, 10_000, 401):
        alone = evaluate(chips[row : row + 1], one_recipe)
        for path, values in arrays_of(alone):
            np.testing.assert_allclose(
                together[path][row], values[0], rtol=1e-12, err_msg=f"{path} of row {row}"
            )


@pytest.mark.parametrize("seed", range(3))
def test_no_nan_and_no_hidden_warning_for_any_chip(random_chips, problem, seed):
    chips = random_chips(150, seed=seed, zeros=0.3)
    with np.errstate(all="raise", under="ignore"):
        found = evaluate(chips, problem)
        machine(chips, problem.cluster, problem.tech, problem.volume)
        tdp_w(chips, problem.tech)
        wiring_usd = problem.cluster.wiring_usd(chips.link_bytes_per_s, problem.tech)
        chip_cost(chips, problem.tech, problem.volume, wiring_usd)
    for path, values in arrays_of(found):
        assert not np.isnan(values).any(), path
    for objective in OBJECTIVES:
        assert not np.isnan(found.usd(objective)).any()
        assert not np.isnan(found.joules(objective)).any()


@settings(max_examples=15, deadline=None)
@given(
    st.sets(
        st.sampled_from(
            [
                "hbm_bytes",
                "hbm_bytes_per_s",
                "link_bytes_per_s",
                "sram_bytes",
                "arrays",
                "stacks",
                "clock_hz",
            ]
        ),
        min_size=1,
    )
)
def test_any_part_may_be_missing(make_chip, problem, missing):
    with np.errstate(all="raise", under="ignore"):
        found = evaluate(make_chip(**dict.fromkeys(missing, 0.0)), problem)
    assert not any(np.isnan(values).any() for _, values in arrays_of(found))
    for phase in PHASES:
        result = getattr(found, phase)
        assert result.feasible[0] == np.isfinite(result.usd[0])


@pytest.mark.parametrize("phase", PHASES)
def test_bounds_add_up_to_the_time(evaluation, phase):
    result = getattr(evaluation, phase)
    able = result.feasible
    assert 20 < able.sum() < len(able)
    bounds = np.stack(list(result.bound_s.values()))
    assert (bounds >= 0).all()
    np.testing.assert_allclose(bounds.sum(axis=0)[able], result.seconds[able])


@pytest.mark.parametrize("phase", PHASES)
def test_mean_power_stays_in_the_package(evaluation, sample, phase):
    result = getattr(evaluation, phase)
    able = result.feasible
    power = result.power_w[able].sum(axis=1)
    assert (power <= sample.power_w[able] * (1 + 1e-9)).all()
    assert (power > 0).all()
    throttled = result.bound_s["power"][able] > 0
    assert throttled.any()
    np.testing.assert_allclose(power[throttled], sample.power_w[able][throttled])
    assert (result.clock_hz[able] <= sample.clock_hz[able]).all()


@pytest.mark.parametrize("phase", PHASES)
def test_what_is_infeasible_says_why_and_gives_no_number(evaluation, phase):
    result = getattr(evaluation, phase)
    for i in np.flatnonzero(~result.feasible):
        assert any(not c.met[i] for c in result.constraints)
        assert result.usd[i] == np.inf
        assert result.mappings_feasible[i] == 0
    assert (result.mappings_feasible <= result.mappings_tried).all()


def test_a_mixed_chip_adds_both_phases(evaluation):
    prefill, decode = evaluation.prefill, evaluation.decode
    np.testing.assert_allclose(evaluation.usd("mixed"), prefill.usd * 4 + decode.usd)
    np.testing.assert_allclose(evaluation.joules("mixed"), prefill.joules * 4 + decode.joules)
    assert [c.name for c in evaluation.constraints("mixed")] == [
        "prefill.memory",
        "prefill.ttft",
        "decode.memory",
        "decode.tpot",
    ]


def test_the_cheapest_recipe_wins(sample, problem):
    chips = sample[:100]

    def with_recipes(*names):
        return evaluate(
            chips, replace(problem, serving=replace(problem.serving, recipes=names))
        ).decode

    both, bf16, fp8 = with_recipes("bf16", "fp8"), with_recipes("bf16"), with_recipes("fp8")
    np.testing.assert_array_equal(both.usd, np.minimum(bf16.usd, fp8.usd))
    won_fp8 = both.recipe == 1
    assert won_fp8.any()
    np.testing.assert_array_equal(both.seconds[won_fp8], fp8.seconds[won_fp8])
    np.testing.assert_array_equal(both.mappings_tried, bf16.mappings_tried + fp8.mappings_tried)
    assert cheapest([bf16]) is bf16


def test_no_chips_are_no_results(sample, problem):
    nothing = evaluate(sample[:0], problem)
    assert nothing.training.usd.shape == (0,)


def test_catalogue_chips_do_all_the_work(tech, problem):
    """Every part serves an 8B model, TPU v4i's 8 GB over several chips; all GPUs train it."""
    found = evaluate(chips_named(chip_names(), tech), problem)
    assert found.prefill.feasible.all()
    assert found.decode.feasible.all()
    assert found.training.feasible[:5].all()
