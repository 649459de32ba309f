"""A training step: every mapping of every design in one factored broadcast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import FloatArray, positive_difference, transfer_time
from models.performance.collectives import domain_all_reduce_s, hierarchical_s
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
from models.workload.recipes import Recipe
from models.workload.tasks import TrainingTask
from models.workload.training import (
    activation_elements_stored,
    backward_operators,
    forward_operators,
)
from rtl.errors import InputError

__all__ = ["Fleet", "train"]

# Mapping axes, in order: TP, PP, micro-batch, virtual stages per pipeline rank, recomputation.
TP, PP, MICRO, VIRTUAL, RECOMPUTE = range(5)
AXES = 5
PIPELINES = powers_of_two(64)
MICRO_BATCHES = powers_of_two(4)
VIRTUAL_STAGES = powers_of_two(8)
# All-reduces of a layer's activations: two forward, two backward, two more to recompute.
LAYER_ALL_REDUCES = 4
RECOMPUTED_ALL_REDUCES = 2


@dataclass(frozen=True)
class Fleet:
    """How many chips train together: what a power feed carries, or a fixed number.

    Attributes
    ----------
    megawatts : float
        Facility power, PUE included; used when `chips` is 0.
    chips : int
        A fixed number, or 0.
    """

    megawatts: float = 0.0
    chips: int = 0

    def __post_init__(self) -> None:
        if (self.megawatts > 0) == (self.chips > 0) or self.megawatts < 0 or self.chips < 0:
            raise InputError(
                f"fleet of {self.megawatts:g} MW and {self.chips} chips: give one of them, above 0"
            )

    def size(self, machine: Machine) -> FloatArray:
        """Return the chips of each design's fleet, shape (D,)."""
        if self.chips:
            return np.full(len(machine), float(self.chips))
        return np.floor(self.megawatts * 1e6 / (machine.pue * machine.provisioned_w))


def train(machine: Machine, task: TrainingTask, fleet: Fleet, recipe: Recipe) -> PhaseResult:
    """Return each design's cheapest way to train, in dollars per run.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : TrainingTask
    fleet : Fleet
    recipe : Recipe

    Notes
    -----
    *Overlap.* Tensor-parallel all-reduces are exposed. Hand-over between pipeline stages hides
    behind other micro-batches unless it is slower than they are. Reduction of gradients and
    gathering of weights (ZeRO-1) hide behind one micro-batch's backward pass; the rest is exposed.

    *Pipeline.* 1F1B with v virtual stages: bubble of (PP − 1)/v micro-batches, hand-over v times as
    often, and in flight PP·(1 + (PP − 1)/(PP·v)) micro-batches (Narayanan et al., SC'21;
    Korthikanti et al., 2022).

    *Dollars.* The whole fleet is paid for as long as the run takes, and draws static power; chips
    that the mapping leaves idle are not free.

    *Power.* The step takes at least its dynamic energy over what the package's limit leaves above
    static power: an average throttle of the clock.
    """
    model = task.model
    layers = model.layers
    tp_values = powers_of_two(machine.domain)
    tp = axis(tp_values, TP, AXES)
    pp = axis(PIPELINES, PP, AXES)
    micro = axis(MICRO_BATCHES, MICRO, AXES)
    virtual = axis(VIRTUAL_STAGES, VIRTUAL, AXES)
    recompute = axis(np.array([0.0, 1.0]), RECOMPUTE, AXES)

    forward = pass_time(machine, forward_operators(model, micro, task.seq_len, tp), recipe)
    backward = pass_time(machine, backward_operators(model, micro, task.seq_len, tp), recipe)

    # --- one micro-batch on the slowest stage ---
    tokens = micro * task.seq_len
    activation_bytes = tokens * model.hidden * recipe.activation_bytes
    all_reduce = domain_all_reduce_s(
        activation_bytes,
        tp,
        expand(machine.link_bytes_per_s, AXES),
        machine.domain_latency_s,
    )
    stage_layers = np.ceil(layers / pp)
    forward_s = stage_s(forward.layers_s, forward.total_s, layers, pp)
    backward_s = stage_s(backward.layers_s, backward.total_s, layers, pp)
    operators_s = forward_s * (1 + recompute) + backward_s
    exchanges = LAYER_ALL_REDUCES + RECOMPUTED_ALL_REDUCES * recompute
    links_s = exchanges * stage_layers * all_reduce
    hop = 2 * virtual * hop_s(machine, activation_bytes / tp, tp, pp)
    micro_batch_s = np.maximum(operators_s + links_s, hop)

    # --- the fleet's data-parallel replicas and the pipeline ---
    fleet_chips = expand(fleet.size(machine), AXES)
    sequences = task.sequences
    replicas = np.maximum(np.floor(fleet_chips / (tp * pp)), 1.0)
    micro_batches = np.ceil(sequences / (replicas * micro))
    # Interleaving goes round the pipeline in groups of PP micro-batches.
    groups = np.ceil(micro_batches / pp) * pp
    micro_batches = np.where(virtual > 1, groups, micro_batches)
    # The fewest replicas that need as many micro-batches each: the rest would idle.
    dp = np.ceil(sequences / (micro_batches * micro))
    chips = tp * pp * dp
    pipeline_s = (micro_batches + (pp - 1) / virtual) * micro_batch_s

    # --- gradients and optimizer ---
    embedding = model.embedding_parameters
    ends = np.where(pp > 1, max(embedding, 1) / (1 if model.tied_embeddings else 2), embedding)
    parameters = ((model.parameters - embedding) * stage_layers / layers + ends) / tp
    reduction_s = hierarchical_s(
        parameters * (recipe.gradient_bytes + recipe.weight_bytes) / 2,
        dp,
        np.maximum(np.floor(machine.domain / (tp * pp)), 1.0),
        expand(machine.link_bytes_per_s, AXES),
        machine.domain_latency_s,
        machine.network_bytes_per_s,
        machine.network_latency_s,
    )
    exposed_s = np.maximum(reduction_s - backward_s, 0.0)
    state_bytes = parameters / dp * recipe.optimizer_bytes
    update_bytes = 2 * state_bytes + parameters / dp * (recipe.gradient_bytes + recipe.weight_bytes)
    update_s = transfer_time(update_bytes, expand(machine.hbm_bytes_per_s, AXES))

    # --- energy, power limit, dollars ---
    per_stage = micro_batches / pp
    mac_j = per_stage * (forward.mac_j * (1 + recompute) + backward.mac_j)
    feed_j = per_stage * (forward.feed_j * (1 + recompute) + backward.feed_j)
    vector_j = per_stage * (forward.vector_j * (1 + recompute) + backward.vector_j)
    hbm_bytes = per_stage * (forward.hbm_bytes * (1 + recompute) + backward.hbm_bytes)
    hbm_bytes = hbm_bytes + update_bytes
    hbm_j = hbm_bytes * expand(machine.energy.hbm_j_per_byte, AXES)
    dynamic_j = mac_j + feed_j + vector_j + hbm_j
    roof_s = pipeline_s + exposed_s + update_s
    step_s = np.maximum(roof_s, transfer_time(dynamic_j, expand(machine.headroom_w, AXES)))
    always_w = expand(machine.energy.total_static_w + machine.overhead_w, AXES)
    usd_per_s = expand(machine.usd_per_s, AXES) + machine.usd_per_j * always_w
    usd_step = fleet_chips * usd_per_s * step_s + chips * machine.usd_per_j * dynamic_j
    steps = task.steps

    # --- memory ---
    in_flight = np.minimum(micro_batches, pp)
    in_flight = in_flight * np.where(virtual > 1, 1 + (pp - 1) / (pp * virtual), 1.0)
    stored = [
        activation_elements_stored(model, micro, task.seq_len, tp, how) for how in ("none", "full")
    ]
    # Full recomputation keeps layer inputs, and all of one layer while it is recomputed.
    kept = np.where(
        recompute > 0,
        stored[1] * stage_layers * in_flight + stored[0],
        stored[0] * stage_layers * in_flight,
    )
    logits = tokens * model.vocab / tp
    memory_bytes = (
        parameters * (recipe.weight_bytes + recipe.gradient_bytes)
        + state_bytes
        + kept * recipe.activation_bytes
        + logits * (recipe.activation_bytes + 4)
    )

    grid = Grid(
        axes={
            "tp": tp_values,
            "pp": PIPELINES,
            "micro_batch": MICRO_BATCHES,
            "virtual_stages": VIRTUAL_STAGES,
            "recompute": np.array([0.0, 1.0]),
        },
        usd=usd_step * steps,
        requirements=(
            Requirement(
                "memory",
                memory_bytes,
                machine.capacity_bytes,
                "bytes",
                "take more or larger HBM stacks, or a smaller model",
            ),
            Requirement(
                "fleet",
                chips,
                fleet.size(machine),
                "chips",
                "give the fleet more megawatts or chips, or the chip a lower power limit",
            ),
        ),
        allowed=(pp <= layers) & ((virtual == 1) | ((pp > 1) & (virtual * pp <= layers))),
    )
    won = grid.winners()
    count = won.pick(micro_batches)
    passes = [
        won.pick(forward.bound_s[i]) * (1 + won.mapping["recompute"])
        + won.pick(backward.bound_s[i])
        for i in range(len(BOUNDS))
    ]
    bounds = operator_bounds(np.stack(passes), won.pick(operators_s) * count)
    links = won.pick(links_s) * count
    finite = np.isfinite(won.pick(step_s))
    bounds["links"] = np.where(finite, links, 0.0)
    bounds["network"] = positive_difference(
        won.pick(micro_batch_s) * count + won.pick(exposed_s),
        won.pick(operators_s) * count + links,
    )
    bounds["pipeline"] = positive_difference(won.pick(pipeline_s), won.pick(micro_batch_s) * count)
    bounds["hbm"] = bounds["hbm"] + np.where(finite, won.pick(update_s), 0.0)
    bounds["power"] = positive_difference(won.pick(step_s), won.pick(roof_s))
    mapping = dict(won.mapping, dp=won.pick(dp), micro_batches=count)
    ones = np.ones(len(machine))
    result = phase_result(
        machine,
        recipe.name,
        won,
        PhaseTotals(
            seconds=won.pick(step_s),
            roof_s=won.pick(roof_s),
            chips=won.pick(chips),
            paid_chips=fleet.size(machine),
            units=ones / steps,
            tokens=ones * task.global_batch_tokens,
            mac_j=won.pick(mac_j),
            feed_j=won.pick(feed_j),
            vector_j=won.pick(vector_j),
            hbm_bytes=won.pick(hbm_bytes),
            memory_bytes=won.pick(memory_bytes),
        ),
        bounds,
        won.pick(step_s),
    )
    result.mapping.update(mapping)
    return result
