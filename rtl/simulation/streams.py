"""Testbench ends of a stream: send words, take words, with random stalls."""

import numpy as np

__all__ = ["Stalls", "pack", "send", "unpack"]


class Stalls:
    """Decide cycle by cycle whether one side of a stream pauses.

    Parameters
    ----------
    probability : float
        Chance of a pause in each cycle, from 0 to below 1.
    seed : int or sequence of int
        Seed of the random choices, so that a failing run can be repeated.
    """

    def __init__(self, probability, seed):
        self._probability = probability
        self._random = np.random.default_rng(seed)

    def __call__(self):
        """Say whether to pause in the coming cycle."""
        return self._probability > 0 and self._random.random() < self._probability


async def send(ctx, stream, words, stalls):
    """Send words over a stream, each held until it is accepted.

    Parameters
    ----------
    ctx : TestbenchContext
        Amaranth's simulator context.
    stream : stream.Interface
        The stream to drive.
    words : iterable of int
        Payloads as plain bits.
    stalls : Stalls
        Pauses before each word.
    """
    payload = stream.payload.as_value()
    for word in words:
        if stalls():
            ctx.set(stream.valid, 0)
            # Nonsense on the wires of an idle stream must not matter.
            ctx.set(payload, ~word)
            await ctx.tick()
            while stalls():
                await ctx.tick()
        ctx.set(payload, word)
        ctx.set(stream.valid, 1)
        # Not `tick().until()`, which complains when the simulation ends before a word is accepted.
        accepted = False
        while not accepted:
            *_, accepted = await ctx.tick().sample(stream.ready)
    ctx.set(stream.valid, 0)


def pack(values):
    """Pack a vector of integers into one word, element 0 in the lowest bits.

    The elements' dtype gives their width: one byte an element for int8.
    """
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return int.from_bytes(little_endian.tobytes(), "little")


def unpack(word, length, dtype):
    """Unpack a word into a vector of integers; the inverse of `pack`."""
    dtype = np.dtype(dtype)
    raw = word.to_bytes(length * dtype.itemsize, "little")
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype)
