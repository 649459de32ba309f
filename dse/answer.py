"""The answer of a sweep: the optima, what holds them, what each loses, and the real chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dse.facts import Facts, chip_facts, closure, per_resource, work_facts
from dse.objective import PER_UNIT, design
from dse.space import Space, Value
from dse.trials import Record
from models.evaluate import OBJECTIVES, Problem, evaluate
from models.hardware.budget import Budget, lanes_that_fit, stacks_that_fit
from models.hardware.catalog import chip_facts as published
from models.hardware.catalog import chips_named
from models.hardware.technology import LINK_TYPES, Technology
from models.performance.training import Fleet

__all__ = [
    "best_records",
    "chips_answer",
    "gains",
    "losses",
    "mode_answer",
    "nearest_record",
    "pareto_records",
    "thesis",
    "with_fleet",
]

# The best was chosen by dollars of six digits; what is below them is no loss.
LOSS_DIGITS = 5


def best_records(records: Sequence[Record]) -> dict[str, Record]:
    """Return the best feasible trial of each objective, whichever study found it.

    Objectives that no trial could meet are missing.
    """
    best: dict[str, Record] = {}
    for objective in OBJECTIVES:
        feasible = [r for r in records if objective in r.feasible]
        if feasible:
            best[objective] = min(feasible, key=lambda r: r.usd[objective])
    return best


def nearest_record(records: Sequence[Record], objective: str) -> Record:
    """Return the trial of an objective's own study that is nearest to feasible.

    Fewest broken constraints first, then the least excess: a design that cheats on its area to come
    nearer to a service level that nothing meets would only distract from that level.
    """

    def misses(record: Record) -> tuple[int, float]:
        broken = [excess for excess in record.constraints.values() if excess > 0]
        return len(broken), sum(broken)

    return min((r for r in records if r.study.endswith("/" + objective)), key=misses)


def pareto_records(records: Sequence[Record], first: str, second: str) -> list[Record]:
    """Return the trials on the front between two objectives, by the first one."""
    both = [r for r in records if first in r.feasible and second in r.feasible]
    front: list[Record] = []
    lowest = np.inf
    for record in sorted(both, key=lambda r: (r.usd[first], r.usd[second])):
        if record.usd[second] < lowest:
            front.append(record)
            lowest = record.usd[second]
    return front


def mode_answer(
    records: Sequence[Record], space: Space, budget: Budget, problem: Problem, fixed_chips: int
) -> Facts:
    """Return the answer with formats equal or free.

    Parameters
    ----------
    records : sequence of Record
        Every trial of the mode's studies.
    space : Space
    budget : Budget
    problem : Problem
    fixed_chips : int
        Fleet for times beside those of the fixed megawatts.

    Returns
    -------
    dict
        ``designs`` by objective, each with what it loses on the other work; ``infeasible`` with
        reasons by objective; ``pareto``, the front between training and mixed serving.
    """
    best = best_records(records)
    missing = [objective for objective in OBJECTIVES if objective not in best]
    chosen = {**best, **{o: nearest_record(records, o) for o in missing}}
    described = describe_trials(
        [chosen[o].params for o in OBJECTIVES], space, budget, problem, fixed_chips
    )
    designs = dict(zip(OBJECTIVES, described))
    for objective in best:
        designs[objective]["trial"] = [best[objective].study, best[objective].number]
    own = {objective: designs[objective]["work"][objective] for objective in best}
    for objective in best:
        designs[objective]["losses"] = losses(designs[objective]["work"], own)
    scale = {o: PER_UNIT[o][0] for o in OBJECTIVES}
    return {
        "designs": {o: designs[o] for o in OBJECTIVES if o in best},
        "infeasible": {o: designs[o]["work"][o]["violations"] for o in missing},
        "pareto": [
            {
                "training_usd": record.usd["training"] * scale["training"],
                "mixed_usd": record.usd["mixed"] * scale["mixed"],
                "trial": [record.study, record.number],
                "params": record.params,
            }
            for record in pareto_records(records, "training", "mixed")
        ],
        "trials": len(records),
    }


def describe_trials(
    trials: Sequence[Mapping[str, Value]],
    space: Space,
    budget: Budget,
    problem: Problem,
    fixed_chips: int,
) -> list[Facts]:
    """Return everything about designs given by their trials' parameters."""
    chips, silicon = design(trials, space, budget, problem)
    evaluation = evaluate(chips, problem)
    compare = evaluate(chips, with_fleet(problem, fixed_chips))
    works = work_facts(chips, problem, evaluation, compare, silicon)
    result = []
    for i, (chip, work) in enumerate(zip(chip_facts(chips, problem), works)):
        at_edge = {
            "stacks": chips.stacks[i] >= stacks_that_fit(chips.die_mm2[i : i + 1], problem.tech)[0],
            "lanes": trials[i]["lanes"]
            >= lanes_that_fit(
                chips.die_mm2[i : i + 1],
                np.array([LINK_TYPES.index(str(trials[i]["link_type"]))]),
                problem.tech,
            )[0],
        }
        result.append(
            {
                "params": dict(trials[i]),
                "chip": chip,
                "work": work,
                "per": per_resource(chip, work),
                "bounds": space.at_bounds(trials[i]),
                "edges_full": [name for name, full in at_edge.items() if full],
            }
        )
    return result


def chips_answer(
    names: Sequence[str], problems: Mapping[str, Problem], fixed_chips: int
) -> dict[str, Facts]:
    """Return real chips modelled as the designs are, in each mode, with the model's closure."""
    tech: Technology = next(iter(problems.values())).tech
    if not names:
        return {}
    chips = chips_named(names, tech)
    answers: dict[str, Facts] = {
        name: {"label": published(name)["label"], "work": {}, "per": {}} for name in chips.names
    }
    for mode, problem in problems.items():
        evaluation = evaluate(chips, problem)
        fixed = evaluate(chips, with_fleet(problem, fixed_chips))
        works = work_facts(chips, problem, evaluation, fixed)
        for name, chip, work, error in zip(
            chips.names, chip_facts(chips, problem), works, closure(chips, tech)
        ):
            answers[name].update(chip=chip, closure=error)
            answers[name]["work"][mode] = work
            answers[name]["per"][mode] = per_resource(chip, work)
    return answers


def gains(designs: Mapping[str, Facts], chips: Mapping[str, Facts], mode: str) -> Facts:
    """Return each optimum's gain over each real chip on its own work, and whether to believe it.

    A gain per mm² or watt is claimed only where it is larger than the model's closure error on that
    chip's area or TDP; per chip and per dollar, than the larger of both. Both are factors, and
    compared as such: a die modelled at 0.58 of its area is off by 72%.
    """
    result: Facts = {}
    for objective, facts in designs.items():
        result[objective] = {}
        for name, chip in chips.items():
            theirs = chip["per"][mode].get(objective)
            if theirs is None:
                continue
            ours = facts["per"][objective]
            area, tdp = (_factor(chip["closure"][key]) for key in ("area", "tdp"))
            error = {"chip": max(area, tdp), "mm2": area, "watt": tdp, "usd": max(area, tdp)}
            result[objective][name] = {
                per: {
                    "gain": ours[per] / theirs[per] - 1,
                    "closure_error": error[per] - 1,
                    "claimed": _factor(ours[per] / theirs[per]) > error[per],
                }
                for per in error
            }
    return result


def _factor(ratio: float) -> float:
    """Return how far a ratio is from 1, in either direction, as a factor of at least 1."""
    return max(ratio, 1 / ratio)


def thesis(designs: Mapping[str, Facts]) -> list[dict[str, Any]]:
    """Check the expected split between training and decode, and say why where it fails.

    Training should give more of its area, and of the power that it draws at its own work, to
    compute and to links than decode does, decode more to HBM.
    """
    if not {"training", "decode"} <= designs.keys():
        return []
    train, serve = designs["training"], designs["decode"]
    checks = []
    for part, more, less in (
        ("compute", train, serve),
        ("links", train, serve),
        ("hbm", serve, train),
    ):
        who, other = ("training", "decode") if more is train else ("decode", "training")
        for label, a, b in (
            ("area", more["chip"]["area_share"][part], less["chip"]["area_share"][part]),
            (
                "its power",
                more["work"][who]["power_share"][part],
                less["work"][other]["power_share"][part],
            ),
        ):
            checks.append(
                {
                    "part": part,
                    "of": label,
                    "expected": f"{who} gives {part} a larger share of {label} than {other}",
                    who: a,
                    other: b,
                    "holds": a > b,
                    "why": "" if a > b else _why_not(part, train, serve),
                }
            )
    return checks


def _why_not(part: str, train: Facts, serve: Facts) -> str:
    """Say what each job pays for a part and gets from it, and what drives decode's share."""
    if train["trial"] == serve["trial"]:
        return "one design was the best found for both: run more trials"
    lines = []
    for name, facts in (("training", train), ("decode", serve)):
        chip, work = facts["chip"], facts["work"][name]
        lines.append(
            f"{name} takes {chip['area_mm2'][part]:.3g} mm2 and {work['power_w'][part]:.3g} W "
            f"of {part} on {chip['die_mm2']:.3g} mm2, and {part} binds "
            f"{work['bound_share'].get(part, 0.0):.0%} of its time"
        )
    if part == "links":
        mapping = serve["work"]["decode"]["mapping"]
        if mapping["tp"] > 1:
            lines.append(
                f"decode runs TP{mapping['tp']} to hold its weights and meet its TPOT, and every "
                f"layer of a step all-reduces {mapping['batch']} tokens over its links"
            )
    elif part == "compute" and "stacks" in serve["edges_full"]:
        stacks, volts = serve["chip"]["hbm"]["stacks"], serve["chip"]["volts"]
        lines.append(
            f"the die's edge holds no more than decode's {stacks} stacks, so the area that is left "
            f"goes to arrays, run at {volts:.2f} V"
        )
    return "; ".join(lines)


def losses(work: Mapping[str, Facts], best: Mapping[str, Facts]) -> dict[str, float | None]:
    """Return dollars over the best design's, less one, by work; None where it can't do it.

    Parameters
    ----------
    work : mapping
        What a design makes of each work.
    best : mapping
        What the optimum of each makes of it.
    """
    return {
        objective: round(max(work[objective]["usd"] / least["usd"] - 1, 0.0), LOSS_DIGITS)
        if work[objective]["feasible"]
        else None
        for objective, least in best.items()
    }


def with_fleet(problem: Problem, chips: int) -> Problem:
    """Return a problem whose training fleet is a fixed number of chips."""
    return replace(problem, fleet=Fleet(chips=chips))
