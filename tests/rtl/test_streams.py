"""The stream rules, cycle by cycle, and the helpers that drive streams."""

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator
from array_catalogue import operands
from hypothesis import given
from hypothesis import strategies as st

from rtl.config import MatmulConfig
from rtl.simulation.streams import Stalls, pack, send, unpack
from rtl.tiling import cut


def run(config, tiles, watch, *, stalls=0.0):
    """Feed tiles to an array while the testbench `watch` takes the results."""
    array = config.create()

    async def weights(ctx):
        words = [pack(beat) for tile in tiles for beat in tile.beats]
        await send(ctx, array.weights, words, Stalls(stalls, 1))

    async def activations(ctx):
        for tile in tiles:
            words = [pack(vector) for vector in tile.activations]
            words[-1] |= 1 << 8 * config.rows
            await send(ctx, array.activations, words, Stalls(stalls, 2))

    simulator = Simulator(array)
    simulator.add_clock(1e-8)
    simulator.add_testbench(weights, background=True)
    simulator.add_testbench(activations, background=True)

    async def watching(ctx):
        await watch(ctx, array)

    simulator.add_testbench(watching)
    simulator.run()


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_results_hold_until_taken(stalls):
    config = MatmulConfig(3, 2)
    a, b = operands(5, 6, 4)
    tiles = list(cut(a, b, 3, 2))
    pause = Stalls(0.6, 3)
    taken = []

    async def watch(ctx, array):
        held = None
        while len(taken) < 5 * len(tiles):
            ready = not pause()
            ctx.set(array.results.ready, ready)
            _, _, valid, word = await ctx.tick().sample(
                array.results.valid, array.results.payload.as_value()
            )
            if held is not None:
                assert (valid, word) == (1, held), "a result that was not taken changed or went"
            held = word if valid and not ready else None
            if valid and ready:
                taken.append(word)

    run(config, tiles, watch, stalls=stalls)
    last_bits = [word >> 64 for word in taken]
    assert last_bits == [0, 0, 0, 0, 1] * len(tiles)
    expected = [
        pack(row) for tile in tiles for row in config.reference(tile.activations, tile.weights)
    ]
    assert [word & (1 << 64) - 1 for word in taken] == expected


def test_valid_does_not_wait_for_ready_and_a_stall_freezes_both_inputs():
    config = MatmulConfig(2, 2)
    tiles = list(cut(*operands(20, 4, 2), 2, 2))

    async def watch(ctx, array):
        ctx.set(array.results.ready, 0)
        for _ in range(20):
            await ctx.tick()
        for _ in range(10):
            await ctx.tick()
            assert ctx.get(array.results.valid) == 1
            assert ctx.get(array.weights.ready) == 0
            assert ctx.get(array.activations.ready) == 0
        # It goes on in the very cycle in which the result is taken.
        ctx.set(array.results.ready, 1)
        assert ctx.get(array.activations.ready) == 1

    run(config, tiles, watch)


def test_the_first_vector_waits_for_all_weights():
    array = MatmulConfig(3, 1).create()

    async def watch(ctx):
        ctx.set(array.activations.valid, 1)
        ctx.set(array.weights.valid, 1)
        ready = []
        for _ in range(5):
            ready.append((ctx.get(array.weights.ready), ctx.get(array.activations.ready)))
            await ctx.tick()
        # Weights go on with the first vector, for the next tile, until its rows are full.
        assert ready == [(1, 0)] * 3 + [(1, 1)] * 2
        await ctx.tick()
        assert (ctx.get(array.weights.ready), ctx.get(array.activations.ready)) == (0, 1)

    simulator = Simulator(array)
    simulator.add_clock(1e-8)
    simulator.add_testbench(watch)
    simulator.run()


def test_reset_in_the_middle_forgets_the_tile():
    config = MatmulConfig(3, 3)
    array, reset = config.create(), Signal()
    a, b = operands(4, 3, 3)
    (tile,) = cut(a, b, 3, 3)
    got = []

    async def drive(ctx):
        # Half of another tile, then a reset, then the real one.
        ctx.set(array.results.ready, 1)
        ctx.set(array.activations.valid, 1)
        ctx.set(array.weights.valid, 1)
        await ctx.tick().repeat(6)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(array.activations.valid, 0)
        assert ctx.get(array.results.valid) == 0
        await send(ctx, array.weights, [pack(beat) for beat in tile.beats], Stalls(0, 0))
        words = [pack(vector) for vector in tile.activations]
        words[-1] |= 1 << 24
        await send(ctx, array.activations, words, Stalls(0, 0))
        await ctx.tick().repeat(10)

    async def take(ctx):
        async for _, _, valid, word in ctx.tick().sample(
            array.results.valid, array.results.payload.data.as_value()
        ):
            if valid and not ctx.get(reset):
                got.append(unpack(word, 3, np.int32))

    simulator = Simulator(ResetInserter(reset)(array))
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.add_testbench(take, background=True)
    simulator.run()
    assert np.array_equal(got, config.reference(a, b))


@given(st.lists(st.integers(-128, 127), min_size=1), st.sampled_from(["int8", "int32"]))
def test_pack_and_unpack(values, dtype):
    word = pack(np.array(values, dtype))
    assert unpack(word, len(values), dtype).tolist() == values
    # Element 0 is in the lowest bits.
    assert word & 0xFF == values[0] & 0xFF


def test_stalls_repeat_with_their_seed():
    first, again, other = (Stalls(0.5, seed) for seed in (1, 1, 2))
    draws = [[stalls() for _ in range(64)] for stalls in (first, again, other)]
    assert draws[0] == draws[1] != draws[2]
    assert not any(Stalls(0, 1)() for _ in range(64))
