"""Prefill and decode: every mapping of every design in one factored broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import numpy as np

from models.arrays import GB, FloatArray, positive_difference, transfer_time
from models.performance.machine import Machine
from models.performance.mapping import (
    NOTHING_PINNED,
    Grid,
    Requirement,
    axis,
    expand,
    pinned_axes,
    powers_of_two,
)
from models.performance.operator import pass_time
from models.performance.pipeline import (
    PhaseTotals,
    all_reduce_latency_s,
    hop_s,
    inside_domain,
    layer_all_reduce_s,
    operator_bounds,
    phase_result,
    stage_parameters,
    stage_s,
)
from models.results import PhaseResult
from models.workload.inference import (
    ALL_REDUCES_PER_LAYER,
    decode_operators,
    kv_bytes,
    prefill_operators,
)
from models.workload.operators import Operators
from models.workload.recipes import Recipe
from models.workload.tasks import ServingTask
from models.workload.transformer import Transformer

__all__ = ["decode", "prefill", "sram_room_bytes"]

Phase = Literal["prefill", "decode"]

# Mapping axes, in order: TP, PP, batch.
TP, BATCH, AXES = 0, 2, 3
PIPELINES = powers_of_two(64)
# Five batches per octave: a coarser axis would favour designs that happen to meet their TPOT
# at one of its values over real chips, which can't be tuned to it.
DECODE_BATCHES = np.union1d(
    np.arange(1.0, 8.0), np.outer(np.exp2(np.arange(9)), [8.0, 9.0, 10.0, 12.0, 14.0, 16.0])
)
PREFILL_BATCHES = np.union1d(np.arange(1.0, 8.0), np.outer([1.0, 2.0], np.arange(8.0, 17.0, 2)))
# Weights, KV cache and activations may fill this much of the SRAM of a chip that serves from it.
SRAM_RESIDENT_SHARE = 0.75


def sram_room_bytes(machine: Machine) -> FloatArray:
    """Return what a shard may take to be served from SRAM alone, shape (D,)."""
    return machine.chips.sram_bytes * SRAM_RESIDENT_SHARE


def decode(
    machine: Machine,
    task: ServingTask,
    recipe: Recipe,
    pinned: Mapping[str, float] = NOTHING_PINNED,
) -> PhaseResult:
    """Return each design's cheapest way to decode, in dollars per output token.

    The pool decodes only. A step runs at the mean context, prompt plus half of the output; memory
    holds the full one, so that no request is ever preempted. TPOT is one step through all stages.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : ServingTask
    recipe : Recipe
    pinned : mapping of str to float
        Axes of the mapping that are given rather than chosen: tp, pp, batch.
    """
    return _serve(
        machine,
        task,
        recipe,
        "decode",
        pinned,
        batches=DECODE_BATCHES,
        attended=task.mean_context,
        tokens_per_sequence=1,
        context=task.full_context,
        latency="tpot",
        limit_s=task.tpot_s,
    )


def prefill(
    machine: Machine,
    task: ServingTask,
    recipe: Recipe,
    pinned: Mapping[str, float] = NOTHING_PINNED,
) -> PhaseResult:
    """Return each design's cheapest way to prefill, in dollars per prompt token.

    The pool prefills only. TTFT is one pass of the batch through all stages, without queueing.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : ServingTask
    recipe : Recipe
    pinned : mapping of str to float
        Axes of the mapping that are given rather than chosen: tp, pp, batch.
    """
    return _serve(
        machine,
        task,
        recipe,
        "prefill",
        pinned,
        batches=PREFILL_BATCHES,
        attended=task.prompt_tokens,
        tokens_per_sequence=task.prompt_tokens,
        context=task.prompt_tokens,
        latency="ttft",
        limit_s=task.ttft_s,
    )


@lru_cache(maxsize=16)
def _operators(
    phase: Phase,
    model: Transformer,
    tokens: float,
    tps: tuple[float, ...],
    batches: tuple[float, ...],
) -> Operators:
    """Return a phase's operators over TP × batch; they depend on no chip."""
    operators = decode_operators if phase == "decode" else prefill_operators
    tp, batch = axis(np.array(tps), TP, AXES), axis(np.array(batches), BATCH, AXES)
    return operators(model, batch, tokens, tp)


def _serve(
    machine: Machine,
    task: ServingTask,
    recipe: Recipe,
    phase: Phase,
    pinned: Mapping[str, float],
    *,
    batches: FloatArray,
    attended: float,
    tokens_per_sequence: float,
    context: float,
    latency: str,
    limit_s: float,
) -> PhaseResult:
    """Evaluate TP × PP × batch for one kind of pass.

    Every pipeline stage holds its own batch, so PP batches are in flight. Tensor-parallel
    all-reduces and hand-overs between stages are exposed. A shard whose weights, KV cache and
    activations fit in three quarters of the SRAM is served from there, without HBM.
    """
    model = task.model
    layers = model.layers
    axes = pinned_axes(
        {"tp": powers_of_two(machine.domain), "pp": PIPELINES, "batch": batches},
        pinned,
        machine.domain,
    )
    tp, pp, batch = (axis(values, position, AXES) for position, values in enumerate(axes.values()))
    operators = _operators(phase, model, attended, tuple(axes["tp"]), tuple(axes["batch"]))
    passing = pass_time(machine, operators, recipe)
    stage_layers = np.ceil(layers / pp)

    # --- memory ---
    # Each of PP stages holds its layers' cache of PP batches.
    cache_bytes = batch * kv_bytes(model, context, recipe, tp) * stage_layers * pp / layers
    memory_bytes = stage_parameters(model, tp, pp) * recipe.weight_bytes + cache_bytes
    memory_bytes = memory_bytes + passing.working_bytes
    sram_bytes = sram_room_bytes(machine)
    on_chip = memory_bytes <= expand(sram_bytes, AXES)

    # --- one pass of one batch through one stage ---
    from_hbm_s = stage_s(passing.layers_s, passing.head_s, layers, pp)
    from_sram_s = stage_s(passing.on_chip_layers_s, passing.on_chip_head_s, layers, pp)
    operators_s = np.where(on_chip, from_sram_s, from_hbm_s)
    tokens = batch * tokens_per_sequence
    all_reduce_s = layer_all_reduce_s(machine, model, tokens, tp, recipe)
    links_s = ALL_REDUCES_PER_LAYER * stage_layers * all_reduce_s
    hop = hop_s(machine, tokens * model.hidden * recipe.activation_bytes / tp, tp, pp)
    roof_s = operators_s + links_s + hop

    # --- energy, power limit, dollars ---
    mac_j, feed_j, vector_j = (passing.mac_j / pp, passing.feed_j / pp, passing.vector_j / pp)
    hbm_bytes = np.where(on_chip, 0.0, passing.hbm_bytes / pp)
    hbm_j = hbm_bytes * expand(machine.energy.hbm_j_per_byte, AXES)
    dynamic_j = mac_j + feed_j + vector_j + hbm_j
    pass_s = np.maximum(roof_s, transfer_time(dynamic_j, expand(machine.headroom_w, AXES)))
    latency_s = pp * pass_s
    always_w = expand(machine.energy.total_static_w + machine.overhead_w, AXES)
    usd_per_s = expand(machine.usd_per_s, AXES) + machine.usd_per_j * always_w
    chips = tp * pp
    # With all stages busy, one batch leaves the pipeline of TP × PP chips every pass.
    usd = chips * (usd_per_s * pass_s + machine.usd_per_j * dynamic_j) / tokens

    grid = Grid(
        axes=axes,
        usd=usd,
        requirements=(
            Requirement(
                "memory",
                memory_bytes / GB,
                np.maximum(machine.capacity_bytes, sram_bytes) / GB,
                "GB",
                "take more or larger HBM stacks, narrower weights, or a smaller model",
            ),
            Requirement(
                latency,
                latency_s,
                np.full(len(machine), limit_s),
                "s",
                f"allow a longer {latency.upper()}, or give the chip more bandwidth and compute",
            ),
        ),
        allowed=pp <= layers,
    )
    won = grid.winners()
    stages = won.pick(pp)
    resident = won.pick(on_chip)
    parts = [
        np.where(resident, won.pick(from_sram), won.pick(from_hbm))
        for from_sram, from_hbm in zip(passing.on_chip_bound_s, passing.bound_s)
    ]
    finite = np.isfinite(won.pick(latency_s))
    bounds = operator_bounds(np.stack(parts), won.pick(operators_s) * stages)
    hops_s = won.pick(hop) * stages
    on_links = won.pick(inside_domain(machine, tp, pp))
    all_reduces = ALL_REDUCES_PER_LAYER * won.pick(stage_layers) * stages
    waiting_s = all_reduces * all_reduce_latency_s(machine, won.pick(tp))
    links = won.pick(links_s) * stages + np.where(on_links, hops_s, 0.0)
    bounds["links"] = np.where(finite, links - waiting_s, 0.0)
    bounds["latency"] = np.where(finite, waiting_s, 0.0)
    bounds["network"] = np.where(finite & ~on_links, hops_s, 0.0)
    bounds["power"] = positive_difference(won.pick(pass_s) * stages, won.pick(roof_s) * stages)
    return phase_result(
        machine,
        recipe.name,
        won,
        won.mapping,
        PhaseTotals(
            seconds=won.pick(pass_s),
            roof_s=won.pick(roof_s),
            chips=won.pick(chips),
            paid_chips=won.pick(chips),
            units=won.pick(tokens),
            tokens=won.pick(tokens),
            mac_j=won.pick(mac_j),
            feed_j=won.pick(feed_j),
            vector_j=won.pick(vector_j),
            hbm_bytes=won.pick(hbm_bytes),
            memory_bytes=won.pick(memory_bytes),
        ),
        bounds,
        won.pick(latency_s),
    )
