"""Export an array as Verilog, with the documents that a user of the file needs."""

import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import amaranth
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.config import MatmulConfig
from rtl.cycles import FORMULA, result_latency
from rtl.errors import InputError

__all__ = ["Export", "FlatArray", "Port", "export", "ports"]


@dataclass(frozen=True)
class Port:
    """One port of the exported module.

    Attributes
    ----------
    name : str
        Name in Verilog.
    direction : "input" or "output"
        As the module sees it.
    width : int
        Bits.
    description : str
        What it carries.
    elements, element_bits : int
        How many two's complement elements are packed in the port and how wide each is, element i
        at bits ``i*element_bits`` and up; 0 for a single bit that is not an element.
    """

    name: str
    direction: str
    width: int
    description: str
    elements: int = 0
    element_bits: int = 0


@dataclass(frozen=True)
class Export:
    """What an export wrote.

    Attributes
    ----------
    verilog, ports, manifest, readme : Path
        The four files of the bundle.
    facts : dict
        What the manifest says.
    """

    verilog: Path
    ports: Path
    manifest: Path
    readme: Path
    facts: dict


def ports(config):
    """Describe the exported module's ports, stream by stream.

    Parameters
    ----------
    config : MatmulConfig
        The array.

    Returns
    -------
    tuple of Port
    """
    operand_bits = config.operand.value_bits
    result_bits = config.accumulator.value_bits

    def data(name, direction, elements, bits, description):
        return Port(name, direction, elements * bits, description, elements, bits)

    def bit(name, direction, description):
        return Port(name, direction, 1, description)

    return (
        bit("clk", "input", "clock; every register takes its rising edge"),
        bit("rst", "input", "reset, synchronous, active high"),
        data(
            "s_axis_weights_tdata",
            "input",
            config.cols,
            operand_bits,
            "one row of a weight tile, element i for column i; the bottom row first",
        ),
        bit("s_axis_weights_tvalid", "input", "a row of weights is offered"),
        bit("s_axis_weights_tready", "output", "a row of weights is accepted"),
        data(
            "s_axis_activations_tdata",
            "input",
            config.rows,
            operand_bits,
            "one activation vector, element i for row i",
        ),
        bit("s_axis_activations_tlast", "input", "last vector of the tile"),
        bit("s_axis_activations_tvalid", "input", "a vector is offered"),
        bit("s_axis_activations_tready", "output", "a vector is accepted"),
        data(
            "m_axis_results_tdata",
            "output",
            config.cols,
            result_bits,
            "one result vector, element i of column i",
        ),
        bit("m_axis_results_tlast", "output", "last result vector of the tile"),
        bit("m_axis_results_tvalid", "output", "a result vector is offered"),
        bit("m_axis_results_tready", "input", "a result vector is accepted"),
    )


class FlatArray(wiring.Component):
    """A systolic array with one plain port a wire, named as AXI4-Stream names them.

    Amaranth joins nested members with two underscores, which Verilator mangles and which no tool
    recognizes as a bus; ``s_axis_weights_tdata`` is what block diagram editors look for.

    Parameters
    ----------
    config : MatmulConfig
        The array.
    """

    def __init__(self, config):
        self._config = config
        directions = {"input": In, "output": Out}
        super().__init__(
            {
                port.name: directions[port.direction](port.width)
                for port in ports(config)
                if port.name not in ("clk", "rst")
            }
        )

    def elaborate(self, platform):
        """Build the circuit."""
        m = Module()
        m.submodules.array = array = self._config.create()
        m.d.comb += [
            array.weights.p.as_value().eq(self.s_axis_weights_tdata),
            array.weights.valid.eq(self.s_axis_weights_tvalid),
            self.s_axis_weights_tready.eq(array.weights.ready),
            array.activations.p.data.as_value().eq(self.s_axis_activations_tdata),
            array.activations.p.last.eq(self.s_axis_activations_tlast),
            array.activations.valid.eq(self.s_axis_activations_tvalid),
            self.s_axis_activations_tready.eq(array.activations.ready),
            self.m_axis_results_tdata.eq(array.results.p.data.as_value()),
            self.m_axis_results_tlast.eq(array.results.p.last),
            self.m_axis_results_tvalid.eq(array.results.valid),
            array.results.ready.eq(self.m_axis_results_tready),
        ]
        return m


def export(config, directory, *, name="systolic_array", facts=None):
    """Write an array as Verilog with its port list, manifest and README.

    The same arguments give the same bytes on every machine: no path, time or user name is written.

    Parameters
    ----------
    config : MatmulConfig
        The array.
    directory : path
        Where to write; made when it does not exist. Files of an earlier export are replaced.
    name : str
        Name of the Verilog module and of its file.
    facts : mapping, optional
        Where the array comes from, for the manifest's `provenance`: the run and the design, the
        format that was asked for and the one that stands in for it, the scale. JSON values only.

    Returns
    -------
    Export

    Raises
    ------
    InputError
        For a name that is not a Verilog identifier, or facts that JSON cannot hold.
    """
    if not isinstance(config, MatmulConfig):
        raise TypeError(f"export takes a MatmulConfig, not {config!r}")
    _check_name(name)
    manifest = _manifest(config, name, dict(facts or {}))
    try:
        manifest_text = _json(manifest)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"facts must be JSON values, so that the manifest holds them: {error}"
        ) from error
    text = verilog.convert(FlatArray(config), name=name, emit_src=False, strip_internal_attrs=True)

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    written = Export(
        verilog=directory / f"{name}.v",
        ports=directory / "ports.json",
        manifest=directory / "manifest.json",
        readme=directory / "README.md",
        facts=manifest,
    )
    _write(written.verilog, _header(config, name) + text)
    _write(written.ports, _json([vars(port) for port in ports(config)]))
    _write(written.manifest, manifest_text)
    _write(written.readme, _readme(config, name))
    return written


def _check_name(name):
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or "__" in name:
        raise InputError(
            f"a module cannot be named {name!r}; use letters, digits and single underscores, "
            f"a letter first"
        )


def _manifest(config, name, provenance):
    return {
        "module": name,
        "files": {"verilog": f"{name}.v", "ports": "ports.json", "readme": "README.md"},
        "generator": {"diptych": version("diptych"), "amaranth": amaranth.__version__},
        "config": {
            "rows": config.rows,
            "cols": config.cols,
            "dataflow": config.dataflow,
            "operand_format": config.operand_format,
            "accumulator_format": config.accumulator_format,
        },
        "max_k": config.max_k,
        "cycles": {
            "formula": FORMULA,
            "counts": "first weight beat accepted to last result transferred, without stalls",
            "result_latency": result_latency(config.rows, config.cols),
        },
        "provenance": provenance,
    }


def _header(config, name):
    return (
        f"// {name}: {config.rows} x {config.cols} weight-stationary systolic array, "
        f"{config.operand_format} operands, {config.accumulator_format} results.\n"
        f"// Generated by Diptych {version('diptych')} with Amaranth {amaranth.__version__}; "
        f"change the configuration, not this file.\n"
    )


def _readme(config, name):
    table = "\n".join(
        f"| `{port.name}` | {port.direction} | {port.width} | {port.description} |"
        for port in ports(config)
    )
    rows, cols = config.rows, config.cols
    latency = result_latency(rows, cols)
    return f"""# {name}

A {rows} × {cols} weight-stationary systolic array: {config.operand_format} activations and
weights, {config.accumulator_format} results, {config.elements} multiply-accumulates a cycle.
Generated by Diptych {version("diptych")}. `ports.json` has the table below for programs,
`manifest.json` the configuration and where it comes from.

| port | direction | bits | what |
| --- | --- | ---: | --- |
{table}

## Handshake

A beat moves at a rising clock edge at which `tvalid` and `tready` are both high. Once `tvalid` is
high, it and the data stay until then, and a sender never waits for `tready` to raise `tvalid`. A
result that is not taken stops the whole array; nothing is lost. Within a cycle, both input
`tready` follow `m_axis_results_tready`, and `s_axis_weights_tready` also follows
`s_axis_activations_tvalid`: put a register slice there if timing needs it, and do not derive
`s_axis_activations_tvalid` from `s_axis_weights_tready`.

Elements are two's complement, element i at bits `i*w + w - 1` down to `i*w` for width w.

## A tile

1. Send the tile's {rows} rows of weights, **the bottom row (the last along K) first**. Pad what
   the matrix does not fill with zeros.
2. Send its activation vectors, as many as there are (at least one), `tlast` with the last. The
   first waits until all weights are in.
3. Take one result vector for each activation vector, in order, `tlast` with the last. It is the
   sum over this tile's {rows} products; add the results of tiles that share columns to sum over a
   longer K, up to {config.max_k:,} in {config.accumulator_format}.

Weights of the next tile are accepted from the moment the first vector of this one is, so send them
ahead.

## Cycles

From the first weight beat to the last result, both included, for `tiles` tiles of `m` vectors each
and without stalls:

    {FORMULA}

with rows = {rows} and cols = {cols}. A vector's result is offered {latency} cycles after the
vector is accepted.
"""


def _json(value):
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")
