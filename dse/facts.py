"""Designs as plain facts: the one description that result files, tables and pictures read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.objective import PER_UNIT
from models.arrays import FloatArray
from models.constraints import Constraint, violations
from models.economics import ChipCost, chip_cost
from models.evaluate import OBJECTIVES, Evaluation, Problem
from models.hardware.area import modelled_die_mm2, part_areas
from models.hardware.chip import MATMUL_FORMATS, PARTS, Chips
from models.hardware.power import peak_power_parts, tdp_w
from models.hardware.technology import (
    DATAPATHS,
    HBM_TYPES,
    LINK_TYPES,
    NODES,
    STYLES,
    Technology,
)
from models.results import PhaseResult
from models.workload.recipes import kind_for, recipe_named

__all__ = ["Facts", "chip_facts", "closure", "per_resource", "shares", "work_facts"]

Facts = dict[str, Any]
# A requirement used to this share of its limit holds the design.
BINDING_SHARE = 0.97
DAY_S = 86400


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Return parts as shares of their sum."""
    total = sum(parts.values())
    return {name: value / total if total > 0 else 0.0 for name, value in parts.items()}


def chip_facts(chips: Chips, problem: Problem) -> list[Facts]:
    """Return what each chip is: resources, area and peak power by part, cost."""
    tech = problem.tech
    areas, powers = part_areas(chips, tech), peak_power_parts(chips, tech)
    wiring_usd = problem.cluster.wiring_usd(chips.link_bytes_per_s, tech)
    cost = chip_cost(chips, tech, problem.volume, wiring_usd)
    return [_chip(chips, i, areas[i], powers[i], cost) for i in range(len(chips))]


def _chip(chips: Chips, i: int, area: FloatArray, power: FloatArray, cost: ChipCost) -> Facts:
    def number(values: FloatArray) -> float:
        return float(values[i])

    area_mm2, peak_w = _parts(area), _parts(power)
    return {
        "node": NODES[chips.node[i]],
        "style": STYLES[chips.style[i]],
        "datapath": DATAPATHS[chips.datapath[i]],
        "die_mm2": number(chips.die_mm2),
        "power_w": number(chips.power_w),
        "rows": int(chips.rows[i]),
        "cols": int(chips.cols[i]),
        "arrays": int(chips.arrays[i]),
        "spare_arrays": int(chips.fabricated[i] - chips.arrays[i]),
        "volts": number(chips.volts),
        "clock_ghz": number(chips.clock_hz) / 1e9,
        "tflops": {
            name: float(chips.peak_flops[i, f]) / 1e12 for f, name in enumerate(MATMUL_FORMATS)
        },
        "sram_mb": number(chips.sram_bytes) / 1e6,
        "hbm": {
            "type": HBM_TYPES[chips.hbm_type[i]],
            "stacks": int(chips.stacks[i]),
            "gb": number(chips.hbm_bytes) / 1e9,
            "tb_per_s": number(chips.hbm_bytes_per_s) / 1e12,
        },
        "links": {
            "type": LINK_TYPES[chips.link_type[i]],
            "gb_per_s_per_direction": number(chips.link_bytes_per_s) / 1e9,
        },
        "area_mm2": area_mm2,
        "area_share": shares(area_mm2),
        "peak_power_w": peak_w,
        "peak_power_share": shares(peak_w),
        "usd": {
            **{name: number(getattr(cost, name)) for name in vars(cost)},
            "bill_of_materials": number(cost.bill_of_materials),
            "capital": number(cost.capital),
        },
    }


def closure(chips: Chips, tech: Technology) -> list[Facts]:
    """Return modelled over actual area and TDP of real chips."""
    area = modelled_die_mm2(chips, tech) / chips.die_mm2
    power = tdp_w(chips, tech) / chips.power_w
    return [{"area": float(a), "tdp": float(p)} for a, p in zip(area, power)]


def work_facts(
    chips: Chips,
    problem: Problem,
    evaluation: Evaluation,
    compare: Evaluation,
    silicon: Sequence[Constraint] = (),
) -> list[Facts]:
    """Return what each chip makes of each work: time, dollars, joules, mapping, what binds.

    Parameters
    ----------
    chips : Chips
    problem : Problem
    evaluation : Evaluation
        Of these chips on this problem.
    compare : Evaluation
        The same with a fleet of a fixed number of chips.
    silicon : sequence of Constraint
        What the budget requires of a design; real chips have none.
    """
    return [
        {
            objective: _work(objective, i, chips, problem, evaluation, compare, silicon)
            for objective in OBJECTIVES
        }
        for i in range(len(chips))
    ]


def _work(
    objective: str,
    i: int,
    chips: Chips,
    problem: Problem,
    evaluation: Evaluation,
    compare: Evaluation,
    silicon: Sequence[Constraint],
) -> Facts:
    scale, unit = PER_UNIT[objective]
    possible = bool(np.isfinite(evaluation.usd(objective)[i]))
    lacking = "" if possible else _lacking_formats(objective, i, chips, evaluation)
    # Arrays without the formats explain why work never ends; what else it breaks follows from that.
    broken = [lacking] if lacking else []
    asked = silicon if lacking else [*silicon, *evaluation.constraints(objective)]
    broken += [str(violation) for violation in violations(asked, i)]
    facts: Facts = {"feasible": possible and not broken, "violations": broken, "unit": unit}
    if not facts["feasible"]:
        return facts
    facts["usd"] = float(evaluation.usd(objective)[i]) * scale
    facts["joules"] = float(evaluation.joules(objective)[i])
    if objective == "mixed":
        facts["tokens_per_s_per_chip"] = _mixed_rate(evaluation, i)
        return facts
    phase: PhaseResult = getattr(evaluation, objective)
    facts.update(_phase(phase, i))
    if objective == "training":
        run = problem.training.steps / DAY_S
        facts["days"] = facts["seconds"] * run
        fixed = compare.training
        # The fixed fleet may be too small for the model.
        facts["at_fixed_chips"] = {
            "chips": int(fixed.chips[i]),
            "days": float(fixed.seconds[i]) * run if fixed.feasible[i] else None,
            "tokens_per_s_per_chip": float(fixed.tokens_per_s[i]) if fixed.feasible[i] else None,
        }
        # All of the fleet is paid for, what the mapping leaves idle included.
        tokens_per_s = problem.training.global_batch_tokens / facts["seconds"]
        facts["fleet_chips"] = round(tokens_per_s / facts["tokens_per_s_per_chip"])
    return facts


def _lacking_formats(objective: str, i: int, chips: Chips, evaluation: Evaluation) -> str:
    """Say so where no recipe finds all its formats in a chip's arrays; otherwise nothing."""
    names = next(iter(evaluation.phases(objective).values())).recipes
    recipes = [recipe_named(kind_for(objective), name) for name in names]
    has = [name for f, name in enumerate(MATMUL_FORMATS) if chips.rates[i, f] > 0]
    if any({r.matmul_format, r.attention_format} <= set(has) for r in recipes):
        return ""
    return (
        f"formats: arrays multiply in {', '.join(has)}, which {', '.join(names)} can't do with; "
        f"allow another datapath, or another recipe for {kind_for(objective)}"
    )


def _phase(phase: PhaseResult, i: int) -> Facts:
    power = _parts(phase.power_w[i])
    bounds = {name: float(values[i]) for name, values in phase.bound_s.items()}
    return {
        "seconds": float(phase.seconds[i]),
        "tokens_per_s_per_chip": float(phase.tokens_per_s[i]),
        "chips": int(phase.chips[i]),
        "recipe": phase.recipes[phase.recipe[i]],
        "mapping": {name: int(values[i]) for name, values in phase.mapping.items()},
        "binds": phase.binding(i),
        "bound_s": bounds,
        "bound_share": shares(bounds),
        "at_limit": [
            *(c.name for c in phase.constraints if c.demand[i] >= BINDING_SHARE * c.limit[i]),
            # TP ends with the domain, a fact of the scenario; the others with what was tried.
            *(
                f"most {name} tried"
                for name, largest in phase.largest.items()
                if name not in ("tp", "recompute") and phase.mapping[name][i] >= largest
            ),
        ],
        "power_w": power,
        "power_share": shares(power),
        "clock_ghz": float(phase.clock_hz[i]) / 1e9,
        "memory_gb": float(phase.memory_bytes[i]) / 1e9,
        "mappings_feasible": int(phase.mappings_feasible[i]),
        "mappings_tried": int(phase.mappings_tried[i]),
    }


def _mixed_rate(evaluation: Evaluation, i: int) -> float:
    """Return output tokens per chip-second when prefill and decode share the chips."""
    prefill_s = evaluation.prompt_per_output / evaluation.prefill.tokens_per_s[i]
    return float(1 / (prefill_s + 1 / evaluation.decode.tokens_per_s[i]))


def per_resource(chip: Facts, work: Facts) -> dict[str, dict[str, float]]:
    """Return throughput per chip, mm², watt and dollar of capital, by feasible work.

    Training counts at the fixed number of chips, where the fleet can be of that size: a fleet of
    fixed megawatts leaves some of the chips idle, how many depends on its size by accident.
    """
    result = {}
    for objective, facts in work.items():
        if not facts["feasible"]:
            continue
        fixed = facts.get("at_fixed_chips", {}).get("tokens_per_s_per_chip")
        rate = fixed or facts["tokens_per_s_per_chip"]
        result[objective] = {
            "chip": rate,
            "mm2": rate / chip["die_mm2"],
            "watt": rate / chip["power_w"],
            "usd": rate / chip["usd"]["capital"],
        }
    return result


def _parts(values: FloatArray) -> dict[str, float]:
    return dict(zip(PARTS, (float(v) for v in values)))
