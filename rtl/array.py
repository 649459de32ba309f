"""The weight-stationary systolic array."""

from itertools import pairwise

from amaranth.hdl import Cat, EnableInserter, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from rtl.arithmetic import accumulate, multiply, operand_shape, sum_shape
from rtl.config import MatmulConfig
from rtl.cycles import result_latency

__all__ = ["ArrayRow", "RowLink", "Skew", "SystolicArray"]


class SystolicArray(wiring.Component):
    """Weight-stationary systolic array with double-buffered weights.

    Computes activations (M, rows) times weights (rows, cols) for one weight tile after another.
    Each activation vector gives one result vector; sums over several tiles along K are added by
    whoever takes the results (an accumulator memory is not part of the array).

    All streams carry backpressure. A result that is not taken freezes the whole array, so
    nothing is lost and nothing is reordered. Weights for the next tile are taken while the current
    one computes: in steady state a tile takes ``max(M, rows)`` cycles.

    Parameters
    ----------
    config : MatmulConfig
        Sides and formats of the array.

    Members
    -------
    weights : In(stream of ``cols`` operands)
        One row of a tile a beat, `rows` beats a tile, **the bottom row (the last along K) first**.
        The first beat of the next tile is taken with the first vector of this one at the earliest.
    activations : In(stream of ``{data: rows operands, last: 1 bit}``)
        One vector along K a beat. `last` marks the last vector of a tile; the next vector belongs
        to the next tile. The first vector of a tile waits for all of the tile's weights.
    results : Out(stream of ``{data: cols accumulators, last: 1 bit}``)
        One vector along N for each activation vector, in order; `last` as it came.

    Notes
    -----
    The ready of either input depends combinationally on ``results.ready``, and ``weights.ready``
    also on ``activations.valid``; no valid depends on a ready.

    Element (r, c) works r + c cycles after a vector is accepted: its activation comes from the
    left, its partial sum from above. A vector that starts a tile carries the `swap` flag, which
    makes each element it visits take up the weight in its shadow register. Shadow registers of a
    column are a shift chain. Beat j of a tile shifts rows 0 to j alone, so that row r keeps the
    current tile's weight until beat r, and beat r cannot come before the swap has passed row r.
    """

    def __init__(self, config):
        if not isinstance(config, MatmulConfig):
            raise TypeError(f"SystolicArray takes a MatmulConfig, not {config!r}")
        self._config = config
        operand = operand_shape(config.operand)
        accumulator = operand_shape(config.accumulator)
        super().__init__(
            {
                "weights": In(stream.Signature(data.ArrayLayout(operand, config.cols))),
                "activations": In(stream.Signature(_vector(operand, config.rows))),
                "results": Out(stream.Signature(_vector(accumulator, config.cols))),
            }
        )

    @property
    def config(self):
        """The parameters of this array."""
        return self._config

    def elaborate(self, platform):
        """Build the circuit."""
        m = Module()
        rows, cols = self.config.rows, self.config.cols
        operand = operand_shape(self.config.operand)

        # One enable for every register of the datapath: a result that is not taken stops them all.
        running = Signal()
        m.d.comb += running.eq(~self.results.valid | self.results.ready)
        frozen_unless_running = EnableInserter(running)

        # Control: which weights are loaded, and which vector starts a tile.
        loaded = Signal(range(rows + 1))  # beats of the next tile in the shadow registers
        at_start = Signal(init=1)  # the next vector is the first of its tile
        full = Signal()
        vector = Signal()  # a vector is accepted
        swap = Signal()  # ... and it starts a tile
        beat = Signal()  # a row of weights is accepted
        beat_index = Signal.like(loaded)
        m.d.comb += [
            full.eq(loaded == rows),
            self.activations.ready.eq(running & (full | ~at_start)),
            vector.eq(self.activations.valid & self.activations.ready),
            swap.eq(vector & at_start),
            self.weights.ready.eq(running & (~full | swap)),
            beat.eq(self.weights.valid & self.weights.ready),
        ]
        with m.If(~swap):
            m.d.comb += beat_index.eq(loaded)
        m.d.sync += loaded.eq(beat_index + beat)
        with m.If(vector):
            m.d.sync += at_start.eq(self.activations.p.last)

        # Skew: row r works r cycles after row 0, column c works c cycles after column 0.
        skew_activations = Skew(operand, range(rows))
        skew_weights = Skew(operand, range(cols))
        deskew_results = Skew(sum_shape(self.config.operand, rows), reversed(range(cols)))
        m.submodules.skew_activations = frozen_unless_running(skew_activations)
        m.submodules.skew_weights = frozen_unless_running(skew_weights)
        m.submodules.deskew_results = frozen_unless_running(deskew_results)

        swap_wave = Signal(rows)  # bit r: the swap is at row r, column 0
        m.d.comb += swap_wave[0].eq(swap)
        swap_delay = Signal(rows - 1)
        m.d.comb += swap_wave[1:].eq(swap_delay)
        with m.If(running):
            m.d.sync += swap_delay.eq(swap_wave)

        array_rows = [ArrayRow(self.config, r) for r in range(rows)]
        for r, row in enumerate(array_rows):
            m.submodules[f"row_{r}"] = frozen_unless_running(row)
            m.d.comb += [
                skew_activations.i[r].eq(self.activations.p.data[r]),
                row.activation.eq(skew_activations.o[r]),
                row.swap.eq(swap_wave[r]),
                row.shift.eq(beat & (beat_index >= r)),
            ]
        for upper, lower in pairwise(array_rows):
            connect(m, upper.below, lower.above)
        for c in range(cols):
            m.d.comb += [
                skew_weights.i[c].eq(self.weights.p[c]),
                array_rows[0].above.weights[c].eq(skew_weights.o[c]),
                array_rows[0].above.partials[c].eq(0),
                deskew_results.i[c].eq(array_rows[-1].below.partials[c]),
                self.results.p.data[c].eq(deskew_results.o[c]),
            ]

        # What a result vector is, in step with the datapath; a bubble is a vector without valid.
        latency = result_latency(rows, cols)
        valid = Signal(latency)
        last = Signal(latency)
        with m.If(running):
            m.d.sync += [
                valid.eq(Cat(vector, valid)),
                last.eq(Cat(self.activations.p.last, last)),
            ]
        m.d.comb += [
            self.results.valid.eq(valid[-1]),
            self.results.p.last.eq(last[-1]),
        ]
        return m


class RowLink(wiring.Signature):
    """What goes down from one row of the array to the next.

    Parameters
    ----------
    config : MatmulConfig
        Parameters of the array.
    terms : int
        Products in the partial sums: as many as rows lie above. A partial sum is only as wide as
        they need.

    Members
    -------
    weights : Out(operand), one a column
        The shift chain of shadow registers.
    partials : Out(sum of products), one a column
        Partial sums.
    """

    def __init__(self, config, terms):
        # Above the first row there is nothing to add; one product's width carries the zero.
        super().__init__(
            {
                "weights": Out(operand_shape(config.operand)).array(config.cols),
                "partials": Out(sum_shape(config.operand, max(terms, 1))).array(config.cols),
            }
        )


class ArrayRow(wiring.Component):
    """One row of the array: `cols` elements that share activations, left to right.

    An element has three pipeline stages: it registers the activation (and takes up its shadow
    weight on a swap), multiplies, and adds the product to the partial sum from above.

    Parameters
    ----------
    config : MatmulConfig
        Parameters of the array.
    index : int
        Position from the top, which sets the width of the partial sums.

    Members
    -------
    activation : In(operand)
        The activation for column 0.
    swap : In(1)
        The activation is the first of a tile: its weights become the active ones.
    shift : In(1)
        The shadow weight of column 0 takes the one from above.
    above : In(RowLink)
        From the row above.
    below : Out(RowLink)
        To the row below.
    """

    def __init__(self, config, index):
        self._config = config
        super().__init__(
            {
                "activation": In(operand_shape(config.operand)),
                "swap": In(1),
                "shift": In(1),
                "above": In(RowLink(config, index)),
                "below": Out(RowLink(config, index + 1)),
            }
        )

    def elaborate(self, platform):
        """Build the circuit."""
        m = Module()
        operand = operand_shape(self._config.operand)
        from_left = (self.activation, self.swap, self.shift)
        for c in range(self._config.cols):
            activation_in, swap_in, shift_in = from_left
            # Data needs no reset: it counts only where the array's `valid` says so.
            activation = Signal(operand, name=f"activation_{c}", reset_less=True)
            shadow = Signal(operand, name=f"shadow_{c}", reset_less=True)
            weight = Signal(operand, name=f"weight_{c}", reset_less=True)
            product = Signal(
                sum_shape(self._config.operand, 1), name=f"product_{c}", reset_less=True
            )
            partial = Signal.like(self.below.partials[c], name=f"partial_{c}", reset_less=True)
            swap = Signal(name=f"swap_{c}")
            shift = Signal(name=f"shift_{c}")

            m.d.sync += [activation.eq(activation_in), swap.eq(swap_in), shift.eq(shift_in)]
            with m.If(shift_in):
                m.d.sync += shadow.eq(self.above.weights[c])
            with m.If(swap_in):
                m.d.sync += weight.eq(shadow)
            m.d.sync += [
                product.eq(multiply(activation, weight)),
                partial.eq(accumulate(self.above.partials[c], product)),
            ]
            m.d.comb += [self.below.weights[c].eq(shadow), self.below.partials[c].eq(partial)]
            from_left = (activation, swap, shift)
        return m


class Skew(wiring.Component):
    """Delay lines, one a lane, each of its own depth.

    Parameters
    ----------
    shape : ShapeLike
        Shape of a lane.
    depths : iterable of int
        Cycles by which each lane is delayed; 0 is a wire.

    Members
    -------
    i : In(shape), one a lane
        Lanes before the delay.
    o : Out(shape), one a lane
        Lanes after the delay.
    """

    def __init__(self, shape, depths):
        self._shape = shape
        self._depths = tuple(depths)
        lanes = len(self._depths)
        super().__init__({"i": In(shape).array(lanes), "o": Out(shape).array(lanes)})

    def elaborate(self, platform):
        """Build the circuit."""
        m = Module()
        for lane, depth in enumerate(self._depths):
            value = self.i[lane]
            for stage in range(depth):
                delayed = Signal(self._shape, name=f"lane_{lane}_{stage}", reset_less=True)
                m.d.sync += delayed.eq(value)
                value = delayed
            m.d.comb += self.o[lane].eq(value)
        return m


def _vector(shape, length):
    """Payload of a stream of vectors in packets."""
    return data.StructLayout({"data": data.ArrayLayout(shape, length), "last": 1})
