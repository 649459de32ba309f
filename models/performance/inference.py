"""Prefill and decode: every mapping of every design in one factored broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from models.arrays import FloatArray, positive_difference, transfer_time
from models.performance.collectives import domain_all_reduce_s
from models.performance.machine import Machine
from models.performance.mapping import Grid, Requirement, axis, expand, powers_of_two
from models.performance.operator import BOUNDS, pass_time
from models.performance.pipeline import (
    PhaseTotals,
    hop_s,
    operator_bounds,
    phase_result,
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

__all__ = ["decode", "prefill"]

# Mapping axes, in order.
TP, PP, BATCH = range(3)
AXES = 3
PIPELINES = powers_of_two(64)
DECODE_BATCHES = np.array(
    [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024], dtype=np.float64
)
PREFILL_BATCHES = powers_of_two(16)
# Weights and KV cache may fill this much of the SRAM of a chip that serves from it alone.
SRAM_RESIDENT_SHARE = 0.75


def decode(machine: Machine, task: ServingTask, recipe: Recipe) -> PhaseResult:
    """Return each design's cheapest way to decode, in dollars per output token.

    The pool decodes only. A step runs at the mean context, prompt plus half of the output; memory
    holds the full one, so that no request is ever preempted. TPOT is one step through all stages.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : ServingTask
    recipe : Recipe
    """
    context = task.prompt_tokens + task.output_tokens / 2

    def operators(batch: FloatArray, tp: FloatArray) -> Operators:
        return decode_operators(task.model, batch, context, tp)

    return _serve(
        machine,
        task,
        recipe,
        operators,
        batches=DECODE_BATCHES,
        tokens_per_sequence=1,
        context=task.prompt_tokens + task.output_tokens,
        latency="tpot",
        limit_s=task.tpot_s,
    )


def prefill(machine: Machine, task: ServingTask, recipe: Recipe) -> PhaseResult:
    """Return each design's cheapest way to prefill, in dollars per prompt token.

    The pool prefills only. TTFT is one pass of the batch through all stages, without queueing.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : ServingTask
    recipe : Recipe
    """

    def operators(batch: FloatArray, tp: FloatArray) -> Operators:
        return prefill_operators(task.model, batch, task.prompt_tokens, tp)

    return _serve(
        machine,
        task,
        recipe,
        operators,
        batches=PREFILL_BATCHES,
        tokens_per_sequence=task.prompt_tokens,
        context=task.prompt_tokens,
        latency="ttft",
        limit_s=task.ttft_s,
    )


def _serve(
    machine: Machine,
    task: ServingTask,
    recipe: Recipe,
    operators: Callable[[FloatArray, FloatArray], Operators],
    *,
    batches: FloatArray,
    tokens_per_sequence: float,
    context: float,
    latency: str,
    limit_s: float,
) -> PhaseResult:
    """Evaluate TP × PP × batch for one kind of pass.

    Every pipeline stage holds its own batch, so PP batches are in flight. Tensor-parallel
    all-reduces and hand-overs between stages are exposed. A shard whose weights and KV cache fit in
    three quarters of the SRAM is served from there, without HBM.
    """
    model = task.model
    layers = model.layers
    tp_values = powers_of_two(machine.domain)
    tp, pp, batch = (
        axis(values, position, AXES)
        for position, values in enumerate((tp_values, PIPELINES, batches))
    )
    passing = pass_time(machine, operators(batch, tp), recipe)
    stage_layers = np.ceil(layers / pp)

    # --- memory ---
    embedding = model.embedding_parameters
    ends = np.where(pp > 1, embedding / (1 if model.tied_embeddings else 2), embedding)
    parameters = ((model.parameters - embedding) * stage_layers / layers + ends) / tp
    # Each of PP stages holds its layers' cache of PP batches.
    cache_bytes = batch * kv_bytes(model, context, recipe, tp) * stage_layers * pp / layers
    memory_bytes = parameters * recipe.weight_bytes + cache_bytes
    sram = expand(machine.chips.sram_bytes * SRAM_RESIDENT_SHARE, AXES)
    on_chip = memory_bytes <= sram

    # --- one pass of one batch through one stage ---
    from_hbm_s = stage_s(passing.layers_s, passing.total_s, layers, pp)
    from_sram_s = stage_s(passing.on_chip_s, passing.on_chip_s, layers, pp)
    operators_s = np.where(on_chip, from_sram_s, from_hbm_s)
    activation_bytes = batch * tokens_per_sequence * model.hidden * recipe.activation_bytes
    all_reduce = domain_all_reduce_s(
        activation_bytes, tp, expand(machine.link_bytes_per_s, AXES), machine.domain_latency_s
    )
    links_s = ALL_REDUCES_PER_LAYER * stage_layers * all_reduce
    hop = hop_s(machine, activation_bytes / tp, tp, pp)
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
    # Each pass of PP stages completes one batch on each of the TP × PP chips' pipeline.
    tokens = batch * tokens_per_sequence
    usd = chips * (usd_per_s * pass_s + machine.usd_per_j * dynamic_j) / tokens

    grid = Grid(
        axes={"tp": tp_values, "pp": PIPELINES, "batch": batches},
        usd=usd,
        requirements=(
            Requirement(
                "memory",
                memory_bytes,
                np.maximum(machine.capacity_bytes, machine.chips.sram_bytes * SRAM_RESIDENT_SHARE),
                "bytes",
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
    parts = np.stack([won.pick(passing.bound_s[i]) for i in range(len(BOUNDS))])
    # From SRAM there is no HBM bound: what was bound by it is bound by the arrays.
    resident = won.pick(on_chip.astype(np.float64)) > 0
    parts[0] = np.where(resident, parts.sum(axis=0), parts[0])
    parts[1:] = np.where(resident, 0.0, parts[1:])
    finite = np.isfinite(won.pick(latency_s))
    bounds = operator_bounds(parts, won.pick(operators_s) * stages)
    bounds["links"] = np.where(finite, won.pick(links_s) * stages, 0.0)
    bounds["network"] = np.where(finite, won.pick(hop) * stages, 0.0)
    bounds["power"] = positive_difference(won.pick(pass_s) * stages, won.pick(roof_s) * stages)
    return phase_result(
        machine,
        recipe.name,
        won,
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
