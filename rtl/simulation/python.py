"""Run a matrix product on the gateware, in Amaranth's Python simulator."""

from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from amaranth.sim import Simulator

from rtl.config import MatmulConfig
from rtl.errors import InputError
from rtl.simulation.streams import Stalls, pack, send, unpack
from rtl.tiling import assemble, cut

__all__ = ["SimulationHang", "SimulationResult", "simulate"]


class SimulationHang(RuntimeError):
    """No stream has moved for so long that the array must be stuck: a defect in the gateware."""


@dataclass(frozen=True)
class SimulationResult:
    """What the gateware answered, and how long it took.

    Attributes
    ----------
    config : MatmulConfig
        The array that ran.
    product : ndarray of int32, (M, N)
        The product, summed over the tiles of K.
    cycles : int
        Cycles from the first weight beat accepted to the last result transferred, both included.
    predicted_cycles : int
        The same by the closed form, which holds when no stream stalls.
    correct : bool
        Whether the product equals NumPy's, bit for bit.
    utilization : float
        M·N·K / (rows·cols·cycles).
    activity : float
        Share of the cycles in which an element multiplies, zero padding included: vectors
        accepted / cycles. What switching power goes with.
    macs : int
        Multiply-accumulates of the product, M·N·K.
    """

    config: MatmulConfig
    product: np.ndarray = field(repr=False)
    cycles: int
    predicted_cycles: int
    correct: bool
    utilization: float
    activity: float
    macs: int


def simulate(config, a, b, *, stalls=0.0, seed=0, vcd=None):
    """Multiply two matrices on the simulated array and compare with NumPy.

    Parameters
    ----------
    config : MatmulConfig
        The array.
    a : array-like of integers, (M, K)
        Activations.
    b : array-like of integers, (K, N)
        Weights.
    stalls : float or tuple of three floats
        Chance that the sender or the receiver of a stream pauses in a cycle, from 0 to below 1:
        one for all, or one each for weights, activations and results.
    seed : int
        Seed of the pauses.
    vcd : path, optional
        Where to write the waveforms, for a viewer such as GTKWave or Surfer.

    Returns
    -------
    SimulationResult
        With an empty product or K = 0 the answer needs no hardware and takes 0 cycles.

    Raises
    ------
    InputError
        For operands that `MatmulConfig.reference` refuses, or a stall probability out of range.
    SimulationHang
        When the array stops answering.
    """
    expected = config.reference(a, b)
    a, b = (np.asarray(operand, config.operand_format) for operand in (a, b))
    (m, k), n = a.shape, b.shape[1]
    chances = _checked_stalls(stalls)
    if 0 in (m, k, n):
        product, cycles, vectors = np.zeros((m, n), np.int32), 0, 0
    else:
        tiles = list(cut(a, b, config.rows, config.cols))
        run = _Run(config, tiles, chances, seed)
        results, cycles, vectors = run.execute(vcd), run.cycles, m * len(tiles)
        product = assemble(m, n, tiles, results)
    return SimulationResult(
        config=config,
        product=product,
        cycles=cycles,
        predicted_cycles=config.cycles(m, k, n),
        correct=bool(np.array_equal(product, expected)),
        utilization=config.utilization(m, k, n, cycles),
        activity=vectors / cycles if cycles else 0.0,
        macs=m * n * k,
    )


class _Run:
    """One simulation of a list of tiles: the testbenches and what they count."""

    def __init__(self, config, tiles, chances, seed):
        self.cycles = 0
        self._array = config.create()
        self._tiles = tiles
        self._stalls = [Stalls(chance, (seed, i)) for i, chance in enumerate(chances)]
        # Far beyond the pipeline's depth and any run of random pauses.
        self._patience = 4 * (config.rows + config.cols) + int(200 / (1 - max(chances)))
        self._results = []

    def execute(self, vcd):
        """Simulate until every result is there; give them tile by tile."""
        simulator = Simulator(self._array)
        simulator.add_clock(10e-9)
        simulator.add_testbench(self._send_weights, background=True)
        simulator.add_testbench(self._send_activations, background=True)
        simulator.add_testbench(self._take_results)
        with nullcontext() if vcd is None else simulator.write_vcd(str(vcd)):
            simulator.run()
        return self._results

    async def _send_weights(self, ctx):
        words = (pack(beat) for tile in self._tiles for beat in tile.beats)
        await send(ctx, self._array.weights, words, self._stalls[0])

    async def _send_activations(self, ctx):
        await send(ctx, self._array.activations, self._activation_words(), self._stalls[1])

    def _activation_words(self):
        last_bit = 1 << (self._array.config.rows * self._array.config.operand.storage_bits)
        for tile in self._tiles:
            *body, end = (pack(vector) for vector in tile.activations)
            yield from body
            yield end | last_bit

    async def _take_results(self, ctx):
        array, stalls = self._array, self._stalls[2]
        cols = array.config.cols
        payload = array.results.payload.as_value()
        waiting, idle, taken = len(self._tiles), 0, []
        ctx.set(array.results.ready, not stalls())
        sampled = (
            array.weights.valid & array.weights.ready,
            array.activations.valid & array.activations.ready,
            array.results.valid & array.results.ready,
            payload,
        )
        async for _, _, beat, vector, result, word in ctx.tick().sample(*sampled):
            # The first beat accepted starts the count.
            self.cycles += self.cycles > 0 or beat
            if result:
                taken.append(unpack(word & ~(1 << len(payload) - 1), cols, np.int32))
                if word >> (len(payload) - 1):
                    self._results.append(np.stack(taken))
                    taken = []
                    waiting -= 1
                    if not waiting:
                        return
            idle = 0 if beat or vector or result else idle + 1
            if idle > self._patience:
                raise SimulationHang(
                    f"{array.config} has not moved for {idle} cycles, "
                    f"with results of {waiting} of {len(self._tiles)} tiles to come"
                )
            ctx.set(array.results.ready, not stalls())


def _checked_stalls(stalls):
    chances = tuple(np.broadcast_to(np.asarray(stalls, float), 3).tolist())
    if not all(0 <= chance < 1 for chance in chances):
        raise InputError(
            f"a stall probability must be from 0 to below 1, not {stalls}; at 1 nothing ever moves"
        )
    return chances
