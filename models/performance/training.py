"""A training step: every mapping of every design in one factored broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.arrays import GB, FloatArray, positive_difference, transfer_time
from models.performance.collectives import hierarchical_s
from models.performance.machine import Machine
from models.performance.mapping import (
    NEVER_S,
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
from models.workload.operators import Operators
from models.workload.recipes import Recipe
from models.workload.tasks import TrainingTask
from models.workload.training import (
    ALL_REDUCES_PER_LAYER,
    activation_elements_stored,
    backward_operators,
    forward_operators,
)
from models.workload.transformer import Transformer
from rtl.errors import InputError

__all__ = ["Fleet", "train"]

# Mapping axes, in order: TP, PP, micro-batch, virtual stages per pipeline rank, recomputation.
TP, MICRO, AXES = 0, 2, 5
CHOICES = {
    "pp": powers_of_two(64),
    "micro_batch": powers_of_two(4),
    "virtual_stages": powers_of_two(8),
    "recompute": np.array([0.0, 1.0]),
}
# Logits are kept as activations and their gradients in fp32.
LOGIT_GRADIENT_BYTES = 4


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


@lru_cache(maxsize=16)
def _operators(
    model: Transformer, seq_len: int, tps: tuple[float, ...], micro_batches: tuple[float, ...]
) -> tuple[Operators, Operators]:
    """Return forward and backward pass over TP × micro-batch; they depend on no chip."""
    tp = axis(np.array(tps), TP, AXES)
    micro = axis(np.array(micro_batches), MICRO, AXES)
    return (
        forward_operators(model, micro, seq_len, tp),
        backward_operators(model, micro, seq_len, tp),
    )


def train(
    machine: Machine,
    task: TrainingTask,
    fleet: Fleet,
    recipe: Recipe,
    pinned: Mapping[str, float] = NOTHING_PINNED,
) -> PhaseResult:
    """Return each design's cheapest way to train, in dollars per run.

    Parameters
    ----------
    machine : Machine
        D designs in a cluster.
    task : TrainingTask
    fleet : Fleet
    recipe : Recipe
    pinned : mapping of str to float
        Axes of the mapping that are given rather than chosen, such as ``{"tp": 8, "pp": 16}``: tp,
        pp, micro_batch, virtual_stages, recompute.

    Notes
    -----
    *Overlap.* Tensor-parallel all-reduces are exposed, two of a layer forward and two backward.
    Hand-over between pipeline stages hides behind other micro-batches unless it is slower than they
    are. Reduction of gradients and gathering of weights (ZeRO-1) hide behind one micro-batch's
    backward pass; the rest is exposed.

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
    axes = pinned_axes({"tp": powers_of_two(machine.domain), **CHOICES}, pinned, machine.domain)
    tp, pp, micro, virtual, recompute = (
        axis(values, position, AXES) for position, values in enumerate(axes.values())
    )
    tables = _operators(model, task.seq_len, tuple(axes["tp"]), tuple(axes["micro_batch"]))
    forward, backward = (pass_time(machine, ops, recipe) for ops in tables)

    # --- one micro-batch on the slowest stage ---
    tokens = micro * task.seq_len
    forward_s = stage_s(forward.layers_s, forward.head_s, layers, pp)
    backward_s = stage_s(backward.layers_s, backward.head_s, layers, pp)
    operators_s = forward_s * (1 + recompute) + backward_s
    exchanges = ALL_REDUCES_PER_LAYER * (2 + recompute) * np.ceil(layers / pp)
    links_s = exchanges * layer_all_reduce_s(machine, model, tokens, tp, recipe)
    boundary_bytes = tokens * model.hidden * recipe.activation_bytes / tp
    hop = 2 * virtual * hop_s(machine, boundary_bytes, tp, pp)
    micro_batch_s = np.maximum(operators_s + links_s, hop)

    # --- the fleet's data-parallel replicas and the pipeline ---
    fleet_chips = expand(fleet.size(machine), AXES)
    sequences = task.sequences
    replicas = np.maximum(np.floor(fleet_chips / (tp * pp)), 1.0)
    micro_batches = np.ceil(sequences / (replicas * micro))
    # Interleaving goes round the pipeline with at least PP micro-batches.
    micro_batches = np.where(virtual > 1, np.maximum(micro_batches, pp), micro_batches)
    # The fewest replicas that need as many micro-batches each: the rest would idle.
    dp = np.ceil(sequences / (micro_batches * micro))
    chips = tp * pp * dp
    pipeline_s = (micro_batches + (pp - 1) / virtual) * micro_batch_s

    # --- gradients and optimizer ---
    parameters = stage_parameters(model, tp, pp)
    within_s, between_s = hierarchical_s(
        parameters * (recipe.gradient_bytes + recipe.weight_bytes) / 2,
        dp,
        np.maximum(np.floor(machine.domain / (tp * pp)), 1.0),
        expand(machine.link_bytes_per_s, AXES),
        machine.domain_latency_s,
        machine.network_bytes_per_s,
        machine.network_latency_s,
    )
    exposed_s = np.maximum(within_s + between_s - backward_s, 0.0)
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
    # At least the chips in use: an empty fleet fails its own requirement, not the arithmetic.
    paid_chips = np.maximum(fleet_chips, chips)
    usd_step = paid_chips * usd_per_s * step_s + chips * machine.usd_per_j * dynamic_j
    steps = task.steps

    in_flight = np.minimum(micro_batches, pp)
    in_flight = in_flight * np.where(virtual > 1, 1 + (pp - 1) / (pp * virtual), 1.0)
    memory_bytes = (
        parameters * (recipe.weight_bytes + recipe.gradient_bytes)
        + state_bytes
        + _activation_bytes(task, recipe, tp, pp, micro, recompute, in_flight)
    )

    grid = Grid(
        axes=axes,
        usd=usd_step * steps,
        requirements=(
            Requirement(
                "memory",
                memory_bytes / GB,
                machine.capacity_bytes / GB,
                "GB",
                "take more or larger HBM stacks, or a smaller model",
            ),
            Requirement(
                "fleet",
                chips,
                fleet.size(machine),
                "chips",
                "give the fleet more megawatts or chips, or the chip a lower power limit",
            ),
            Requirement(
                "time",
                step_s,
                np.full(len(machine), NEVER_S),
                "s",
                "give the chip arrays for the recipe's format, HBM, and a power limit above its "
                "static power",
            ),
        ),
        allowed=(pp <= layers) & ((virtual == 1) | ((pp > 1) & (virtual * pp <= layers))),
    )
    won = grid.winners()
    count = won.pick(micro_batches)
    passes = [
        won.pick(ahead) * (1 + won.mapping["recompute"]) + won.pick(back)
        for ahead, back in zip(forward.bound_s, backward.bound_s)
    ]
    finite = np.isfinite(won.pick(step_s))
    bounds = operator_bounds(np.stack(passes), won.pick(operators_s) * count)
    bounds["hbm"] = bounds["hbm"] + np.where(finite, won.pick(update_s), 0.0)
    # What hand-over adds to a micro-batch, and reduction to the step, is charged to the wires used.
    links = won.pick(links_s) * count
    hops = positive_difference(
        won.pick(micro_batch_s) * count, won.pick(operators_s) * count + links
    )
    hops_on_links = won.pick(inside_domain(machine, tp, pp))
    reduced_on_links = won.pick(between_s) == 0
    exposed = won.pick(exposed_s)
    on_links = np.where(hops_on_links, hops, 0.0) + np.where(reduced_on_links, exposed, 0.0)
    waiting_s = won.pick(exchanges) * count * all_reduce_latency_s(machine, won.pick(tp))
    bounds["links"] = np.where(finite, links + on_links - waiting_s, 0.0)
    bounds["latency"] = np.where(finite, waiting_s, 0.0)
    bounds["network"] = np.where(finite, hops + exposed - on_links, 0.0)
    bounds["pipeline"] = positive_difference(won.pick(pipeline_s), won.pick(micro_batch_s) * count)
    bounds["power"] = positive_difference(won.pick(step_s), won.pick(roof_s))
    ones = np.ones(len(machine))
    return phase_result(
        machine,
        recipe.name,
        won,
        won.mapping | {"dp": won.pick(dp), "micro_batches": count},
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


def _activation_bytes(
    task: TrainingTask,
    recipe: Recipe,
    tp: FloatArray,
    pp: FloatArray,
    micro: FloatArray,
    recompute: FloatArray,
    in_flight: FloatArray,
) -> FloatArray:
    """Return the activations that the first stage keeps, and one micro-batch's logits.

    Full recomputation keeps the inputs of layers, and all of one layer while it is recomputed.
    """
    everything, inputs = (
        activation_elements_stored(task.model, micro, task.seq_len, tp, how)
        for how in ("none", "full")
    )
    stage_layers = np.ceil(task.model.layers / pp)
    kept = np.where(
        recompute > 0,
        inputs * stage_layers * in_flight + everything,
        everything * stage_layers * in_flight,
    )
    logits = micro * task.seq_len * task.model.vocab / tp
    return kept * recipe.activation_bytes + logits * (
        recipe.activation_bytes + LOGIT_GRADIENT_BYTES
    )
