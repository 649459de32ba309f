"""Single chips on single workloads: what `evaluate` and `compare` show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dse.answer import with_fleet
from dse.chip_source import resolve_chip
from dse.facts import Facts, chip_facts, closure, per_resource, work_facts
from dse.scenario import Scenario, load_scenario, parse_scenario
from models.evaluate import Evaluation, Problem, evaluate
from models.hardware.chip import Chips
from models.hardware.technology import Technology
from models.performance.breakdown import OperatorRow, operator_rows
from models.performance.inference import sram_room_bytes
from models.performance.machine import Machine, machine
from models.performance.training import Fleet
from models.results import PhaseResult
from models.workload.inference import decode_operators, prefill_operators
from models.workload.operators import Operators
from models.workload.recipes import Recipe, kind_for, recipe_named
from models.workload.training import backward_operators, forward_operators

__all__ = ["compare_chips", "evaluate_chip"]

Overrides = Mapping[str, Mapping[str, Any]]


def evaluate_chip(
    chip: str,
    phase: str,
    scenario: Path | None,
    overrides: Overrides,
    fleet_chips: int | None,
) -> Facts:
    """Return one chip's best way to do one phase, with its operators.

    Parameters
    ----------
    chip : str
        See `dse.chip_source.resolve_chip`.
    phase : str
        training, prefill or decode.
    scenario : Path, optional
        Where everything else comes from; None is the built-in one.
    overrides : mapping
        Scenario settings by section.
    fleet_chips : int, optional
        Training fleet in place of the scenario's megawatts.
    """
    tech = Technology.default()
    given = resolve_chip(chip, tech)
    asked, problem = _problem(scenario, overrides, fleet_chips, tech)
    evaluation, work = _work(given.chips, problem, asked.cluster.compare_chips)
    result: PhaseResult = getattr(evaluation, phase)
    what, ops = _operators(phase, problem, result)
    recipe = recipe_named(kind_for(phase), result.recipes[result.recipe[0]])
    one = machine(given.chips, problem.cluster, tech, problem.volume)
    return {
        "chip": given.label,
        "model": problem.task(phase).model.name,
        "phase": phase,
        "work": work[0][phase],
        "operators_of": what,
        "operators": [asdict(row) for row in _rows(phase, one, ops, recipe, result)]
        if work[0][phase]["feasible"]
        else [],
    }


def compare_chips(
    chips: Sequence[str], scenario: Path | None, overrides: Overrides, fleet_chips: int | None
) -> Facts:
    """Return several chips on every objective, with what they are and what they cost."""
    tech = Technology.default()
    asked, problem = _problem(scenario, overrides, fleet_chips, tech)
    answers = []
    for text in chips:
        given = resolve_chip(text, tech)
        _, work = _work(given.chips, problem, asked.cluster.compare_chips)
        facts = chip_facts(given.chips, problem)[0]
        answers.append(
            {
                "label": given.label,
                "chip": facts,
                "work": work[0],
                "per": per_resource(facts, work[0]),
                "closure": closure(given.chips, tech)[0] if given.real else None,
            }
        )
    return {
        "training_model": problem.training.model.name,
        "serving_model": problem.serving.model.name,
        "chips": answers,
    }


def _problem(
    path: Path | None, overrides: Overrides, fleet_chips: int | None, tech: Technology
) -> tuple[Scenario, Problem]:
    asked, _ = load_scenario(path)
    table = asked.model_dump()
    for section, settings in overrides.items():
        table[section].update(settings)
    # One sequence is the least that a batch can be.
    training = table["training"]
    if "global_batch_tokens" not in overrides.get("training", {}):
        whole = max(1, round(training["global_batch_tokens"] / training["seq_len"]))
        training["global_batch_tokens"] = whole * training["seq_len"]
    asked = parse_scenario(table)
    fleet = Fleet(chips=fleet_chips) if fleet_chips else None
    return asked, asked.problem("free", tech, fleet)


def _work(chips: Chips, problem: Problem, fixed_chips: int) -> tuple[Evaluation, list[Facts]]:
    evaluation = evaluate(chips, problem)
    fixed = evaluate(chips, with_fleet(problem, fixed_chips))
    return evaluation, work_facts(chips, problem, evaluation, fixed)


def _rows(
    phase: str, one: Machine, ops: Operators, recipe: Recipe, result: PhaseResult
) -> list[OperatorRow]:
    """Return an operator table row by row; HBM is not asked by a shard that lives in SRAM."""
    if phase == "training" or result.memory_bytes[0] > sram_room_bytes(one)[0]:
        return operator_rows(one, ops, recipe)
    at_once = replace(one, hbm_bytes_per_s=np.full(1, np.inf))
    return [replace(row, hbm_bytes=0.0) for row in operator_rows(at_once, ops, recipe)]


def _operators(phase: str, problem: Problem, result: PhaseResult) -> tuple[str, Operators]:
    """Return the operator table at the winning mapping, and what it is a table of."""
    mapping = {name: int(values[0]) for name, values in result.mapping.items()}
    tp = mapping["tp"]
    if phase == "training":
        task = problem.training
        arguments = (task.model, mapping["micro_batch"], task.seq_len, tp)
        tables = [forward_operators(*arguments), backward_operators(*arguments)]
        return "one micro-batch through all layers, forward and backward", Operators.concatenate(
            tables
        )
    task_ = problem.serving
    if phase == "prefill":
        ops = prefill_operators(task_.model, mapping["batch"], task_.prompt_tokens, tp)
        return "one batch of prompts through all layers", ops
    ops = decode_operators(task_.model, mapping["batch"], task_.mean_context, tp)
    return "one decode step through all layers", ops
