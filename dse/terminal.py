"""A run's story in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from dse.facts import Facts
from dse.objective import PER_UNIT
from dse.units import percent, quantity, significant
from models.evaluate import OBJECTIVES, PHASES
from models.hardware.chip import PARTS

__all__ = ["design_table", "held_by", "show_run", "work_table"]

_ABSENT = "–"
_TITLES = {
    "equal": "Formats equal: {recipe} for both jobs, the pure split",
    "free": "Formats free: each job takes the narrowest that it allows",
}
# What holds a design, by the variable and the end of its range at which it stands.
_BOUNDS = {
    ("die_mm2", "upper"): "die area",
    ("die_mm2", "lower"): "least die",
    ("power_w", "upper"): "package power",
    ("power_w", "lower"): "least power",
    ("rows", "upper"): "rows: gateware's most",
    ("rows", "lower"): "rows: least",
    ("cols", "upper"): "cols: gateware's most",
    ("cols", "lower"): "cols: least",
    ("stacks", "upper"): "HBM edge",
    ("stacks", "lower"): "no HBM",
    ("lanes", "upper"): "link edge",
    ("lanes", "lower"): "no links",
    ("volts", "upper"): "highest voltage",
    ("volts", "lower"): "lowest voltage",
    ("sram_share", "upper"): "most SRAM",
    ("sram_share", "lower"): "least SRAM",
    ("hbm_power_share", "upper"): "HBM uncapped",
    ("hbm_power_share", "lower"): "HBM power cap",
}
_EDGES = {"stacks": "HBM edge", "lanes": "link edge"}

Row = tuple[str, Callable[[Facts], str]]


def show_run(console: Console, result: Facts) -> None:
    """Print what a sweep found: designs, losses, real chips, gains and the thesis."""
    for mode, answer in result["formats"].items():
        recipe = result["scenario"]["formats"]["equal"]
        console.print()
        console.print(Text(_TITLES[mode].format(recipe=recipe), style="bold"))
        for objective, reasons in answer["infeasible"].items():
            console.print(f"[bold red]no design can do {objective}[/]:")
            for reason in reasons:
                console.print(f"  {reason}")
        if answer["designs"]:
            console.print(design_table(answer["designs"]))
            console.print(_loss_table(answer["designs"]))
        console.print(_chip_table(result, mode))
        console.print(_gain_table(answer["gains"], result["chips"]))
        for line in _thesis_lines(answer["thesis"]):
            console.print(line)


def design_table(designs: Mapping[str, Facts]) -> Table:
    """Return designs side by side, one column each."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("optimal for", no_wrap=True)
    for objective in designs:
        table.add_column(objective, justify="right")

    def section(title: str, rows: Iterable[Row]) -> None:
        table.add_row(Text(title, style="bold cyan"))
        for label, value in rows:
            table.add_row("  " + label, *(value(facts) for facts in designs.values()))

    section("buys", _CHIP_ROWS)
    section("area", [(part, _share("area_share", part)) for part in PARTS])
    section("power, all busy", [(part, _share("peak_power_share", part)) for part in PARTS])
    for phase in PHASES:
        if any(_does(facts, phase) for facts in designs.values()):
            section(
                f"power in {phase}",
                [
                    ("mean", _of_phase(phase, _mean_power)),
                    *((part, _of_phase(phase, partial(_power_share, part))) for part in PARTS),
                ],
            )
    for phase in PHASES:
        section(_PHASE_TITLES[phase], _work_rows(phase))
    section("mixed, both on a chip", _MIXED_ROWS)
    section("held by", [("bounds", _bounds_text)])
    return table


def work_table(phase: str, work: Facts) -> Table:
    """Return one chip's figures in one phase."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    facts = {"work": {phase: work}}
    for label, value in _work_rows(phase):
        table.add_row("  " + label, value(facts))
    watts = ", ".join(f"{part} {percent(share)}" for part, share in work["power_share"].items())
    table.add_row("  power", f"{significant(sum(work['power_w'].values()))} W: {watts}")
    table.add_row(
        "  mappings", f"{work['mappings_feasible']:,} feasible of {work['mappings_tried']:,}"
    )
    if work["at_limit"]:
        table.add_row("  at its limit", ", ".join(work["at_limit"]))
    return table


def _share(measure: str, part: str) -> Callable[[Facts], str]:
    return lambda facts: percent(facts["chip"][measure][part])


def _does(facts: Facts, phase: str) -> bool:
    return bool(facts["work"][phase]["feasible"])


def _of_phase(phase: str, value: Callable[[Facts], str]) -> Callable[[Facts], str]:
    return lambda facts: value(facts["work"][phase]) if _does(facts, phase) else _ABSENT


_CHIP_ROWS: tuple[Row, ...] = (
    ("arrays", lambda f: f"{f['chip']['arrays']} × {f['chip']['rows']}×{f['chip']['cols']}"),
    (
        "clock, volts",
        lambda f: f"{significant(f['chip']['clock_ghz'])} GHz, {f['chip']['volts']:.2f} V",
    ),
    ("bf16", lambda f: _tflops(f, "bf16")),
    ("fp8", lambda f: _tflops(f, "fp8_e4m3")),
    ("int8", lambda f: _tflops(f, "int8")),
    ("SRAM", lambda f: f"{significant(f['chip']['sram_mb'])} MB"),
    ("HBM", lambda f: f"{f['chip']['hbm']['stacks']} × {f['chip']['hbm']['type']}"),
    ("", lambda f: _hbm_size(f["chip"]["hbm"])),
    (
        "links, each way",
        lambda f: f"{significant(f['chip']['links']['gb_per_s_per_direction'])} GB/s",
    ),
    ("die", lambda f: f"{significant(f['chip']['die_mm2'])} mm²"),
    ("package power", lambda f: f"{significant(f['chip']['power_w'])} W"),
    ("bill of materials", lambda f: f"{significant(f['chip']['usd']['bill_of_materials'])} US$"),
    ("with its system", lambda f: f"{significant(f['chip']['usd']['capital'])} US$"),
)

_PHASE_TITLES = {"training": "training", "prefill": "prefill", "decode": "decode"}
_TIME_LABELS = {"training": "step", "prefill": "TTFT", "decode": "TPOT"}


def _hbm_size(hbm: Facts) -> str:
    return f"{significant(hbm['gb'])} GB, {significant(hbm['tb_per_s'])} TB/s"


def _mean_power(work: Facts) -> str:
    return f"{significant(sum(work['power_w'].values()))} W"


def _power_share(part: str, work: Facts) -> str:
    return percent(work["power_share"][part])


def _tflops(facts: Facts, name: str) -> str:
    value = facts["chip"]["tflops"][name]
    return f"{significant(value)} TFLOP/s" if value else _ABSENT


def _work_rows(phase: str) -> list[Row]:
    unit = PER_UNIT[phase][1].removeprefix("US$/")
    rows: list[tuple[str, Callable[[Facts], str]]] = [
        (f"US$ per {unit}", lambda w: significant(w["usd"])),
        (_TIME_LABELS[phase], lambda w: quantity(w["seconds"], "s")),
    ]
    if phase == "training":
        rows += [
            ("run in the fleet", lambda w: f"{significant(w['days'])} days"),
            ("chips used, paid", lambda w: f"{w['chips']:,} of {w['fleet_chips']:,}"),
            ("at fixed chips", lambda w: f"{significant(w['at_fixed_chips']['days'])} days"),
            ("energy per run", lambda w: quantity(w["joules"] / 3600, "Wh")),
        ]
    else:
        rows.append(("energy per token", lambda w: quantity(w["joules"], "J")))
    rows += [
        ("tokens/s per chip", lambda w: significant(w["tokens_per_s_per_chip"])),
        ("recipe", lambda w: str(w["recipe"])),
        ("mapping", lambda w: _mapping(w["mapping"])),
        ("mean clock", lambda w: f"{significant(w['clock_ghz'])} GHz"),
        ("memory", lambda w: f"{significant(w['memory_gb'])} GB"),
        ("bound by", lambda w: _shares_text(w["bound_share"])),
    ]
    return [(label, _of_phase(phase, value)) for label, value in rows]


_MIXED_ROWS: tuple[Row, ...] = (
    ("US$ per M tokens out", _of_phase("mixed", lambda w: significant(w["usd"]))),
    ("energy per token", _of_phase("mixed", lambda w: quantity(w["joules"], "J"))),
    ("tokens/s per chip", _of_phase("mixed", lambda w: significant(w["tokens_per_s_per_chip"]))),
)


def _mapping(mapping: Mapping[str, int]) -> str:
    text = f"TP{mapping['tp']} PP{mapping['pp']}"
    if "batch" in mapping:
        return f"{text} B{mapping['batch']}"
    text += f" DP{mapping['dp']}"
    text += f"\nmicro {mapping['micro_batch']}×{mapping['micro_batches']}"
    if mapping["virtual_stages"] > 1:
        text += f" v{mapping['virtual_stages']}"
    return text + ("\nrecompute" if mapping["recompute"] else "")


def _shares_text(bounds: Mapping[str, float]) -> str:
    largest = sorted(bounds.items(), key=lambda item: -item[1])[:3]
    return "\n".join(f"{name} {percent(share)}" for name, share in largest if share >= 0.01)


def _bounds_text(facts: Facts) -> str:
    return "\n".join(held_by(facts)) or _ABSENT


def held_by(facts: Facts) -> list[str]:
    """Return what holds a design: variables at their ends, edges that are full, service levels."""
    held = [_BOUNDS[name, end] for name, end in facts["bounds"].items()]
    held += [_EDGES[name] for name in facts["edges_full"] if name not in facts["bounds"]]
    for phase in PHASES:
        if _does(facts, phase):
            held += [
                f"{phase} {name.upper() if name in ('ttft', 'tpot') else name}"
                for name in facts["work"][phase]["at_limit"]
                if name != "fleet"
            ]
    return held


def _loss_table(designs: Mapping[str, Facts]) -> Group:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("dollars lost on the other's work")
    for objective in designs:
        table.add_column(objective, justify="right")
    for objective in designs:
        cells = []
        for facts in designs.values():
            loss = facts["losses"].get(objective)
            cells.append("can't" if loss is None else percent(loss, signed=True))
        table.add_row(f"  doing {objective}", *cells)
    reasons = [
        Text(f"  the {name} chip can't do {objective}: {facts['work'][objective]['violations'][0]}")
        for name, facts in designs.items()
        for objective in designs
        if not facts["work"][objective]["feasible"] and facts["work"][objective]["violations"]
    ]
    return Group(Text(""), table, *reasons)


def _chip_table(result: Facts, mode: str) -> Group:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("beside them")
    table.add_column("area", justify="right")
    table.add_column("TDP", justify="right")
    for objective in OBJECTIVES:
        table.add_column(objective, justify="right")
    rows: Sequence[tuple[str, Facts, Facts | None]] = [
        *((f"{o}-optimal", d["work"], None) for o, d in result["formats"][mode]["designs"].items()),
        *(
            (chip["label"], chip["work"][mode], chip["closure"])
            for chip in result["chips"].values()
        ),
    ]
    for label, work, error in rows:
        table.add_row(
            "  " + label,
            f"{error['area']:.2f}" if error else "",
            f"{error['tdp']:.2f}" if error else "",
            *(significant(work[o]["usd"]) if work[o]["feasible"] else "can't" for o in OBJECTIVES),
        )
    note = Text(
        "  area, TDP: modelled over actual. US$ per "
        + ", ".join(PER_UNIT[o][1].removeprefix("US$/") for o in OBJECTIVES),
        style="dim",
    )
    return Group(Text(""), table, note)


def _gain_table(gains: Facts, chips: Mapping[str, Facts]) -> Group:
    """Return each optimum's gain in throughput over real chips; in brackets where not claimed."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("throughput over them, own work")
    measures = (("chip", "per chip"), ("mm2", "per mm²"), ("watt", "per W"), ("usd", "per US$"))
    for _, label in measures:
        table.add_column(label, justify="right")
    for objective, by_chip in gains.items():
        for name, by_measure in by_chip.items():
            cells = []
            for measure, _ in measures:
                gain = by_measure[measure]
                text = percent(gain["gain"], signed=True)
                cells.append(Text(text) if gain["claimed"] else Text(f"({text})", style="dim"))
            table.add_row(f"  {objective} over {chips[name]['label']}", *cells)
    note = Text(
        "  (…): not claimed, no larger than the model's own closure error on that chip", style="dim"
    )
    return Group(Text(""), table, note)


def _thesis_lines(checks: Sequence[Facts]) -> list[Text]:
    if not checks:
        return []
    lines = [Text(""), Text("is the split what one would expect?", style="bold")]
    for check in checks:
        numbers = f"training {percent(check['training'])}, decode {percent(check['decode'])}"
        mark = "yes" if check["holds"] else "no"
        lines.append(Text(f"  {mark}: {check['expected']} ({numbers})"))
        if check["why"]:
            lines.append(Text(f"      why not: {check['why']}"))
    return lines
