"""The one picture of a run: who gets the area and the watts, and the front between the two jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.facts import Facts
from models.hardware.chip import PARTS
from rtl.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_comparison", "draw_run", "front_data", "share_bars"]

# Okabe and Ito's colours, told apart by colour-blind readers.
_COLOURS = {
    "compute": "#0072B2",
    "sram": "#56B4E9",
    "hbm": "#E69F00",
    "links": "#009E73",
    "uncore": "#BBBBBB",
}
_MODE_STYLE = {"equal": ("#0072B2", "o"), "free": ("#D55E00", "s")}


def share_bars(result: Facts, measure: str) -> list[tuple[str, dict[str, float]]]:
    """Return (label, share by part) of every design and real chip, in drawing order."""
    bars = []
    for mode, answer in result["formats"].items():
        for objective, facts in answer["designs"].items():
            bars.append((f"{objective}, {mode}", facts["chip"][measure]))
    for chip in result["chips"].values():
        bars.append((chip["label"], chip["chip"][measure]))
    return bars


def front_data(result: Facts, mode: str) -> dict[str, Any]:
    """Return the Pareto front and the real chips of a mode, in million US$ and US$/M tokens."""
    front = result["formats"][mode]["pareto"]
    chips = [
        (
            chip["label"],
            chip["work"][mode]["training"]["usd"] / 1e6,
            chip["work"][mode]["mixed"]["usd"],
        )
        for chip in result["chips"].values()
        if all(chip["work"][mode][objective]["feasible"] for objective in ("training", "mixed"))
    ]
    return {
        "training": [point["training_usd"] / 1e6 for point in front],
        "serving": [point["mixed_usd"] for point in front],
        "chips": chips,
    }


def draw_run(result: Facts, path: Path) -> None:
    """Draw the picture of a run.

    Parameters
    ----------
    result : dict
        What ``result.json`` holds.
    path : Path
        Where to write it; the suffix chooses the format.
    """
    figure = _figure(13, 5.4)
    area, power, front = figure.subplots(1, 3, width_ratios=(1.25, 0.95, 1.2))
    _draw_bars(area, share_bars(result, "area_share"), "share of die area")
    _draw_bars(power, share_bars(result, "peak_power_share"), "share of power, all busy")
    power.set_yticklabels([])
    area.legend(
        ncols=len(PARTS),
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        frameon=False,
        fontsize=8,
        handlelength=1.0,
        columnspacing=1.0,
    )
    _draw_front(front, result)
    scenario = result["scenario"]
    figure.suptitle(
        f"{result['name']}: {scenario['budget']['die_mm2']:g} mm², "
        f"{scenario['budget']['power_w']:g} W, {scenario['budget']['node']}; training "
        f"{scenario['training']['model']}, serving {scenario['serving']['model']}",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)


def draw_comparison(answer: Facts, path: Path) -> None:
    """Draw chips side by side: throughput on each work, relative to the first that can do it.

    Parameters
    ----------
    answer : dict
        What `dse.evaluations.compare_chips` returns.
    path : Path
        Where to write it; the suffix chooses the format.

    Raises
    ------
    InputError
        If the suffix is no picture format.
    """
    figure = _figure(11, 2.2 + 0.5 * len(answer["chips"]))
    if path.suffix.lstrip(".") not in figure.canvas.get_supported_filetypes():
        raise InputError(f"can't draw {path.suffix or 'without a suffix'}; use .png, .svg or .pdf")
    axes = figure.subplots(1, 4, sharey=True)
    labels = [facts["label"] for facts in answer["chips"]]
    positions = list(range(len(labels)))[::-1]
    objectives = list(answer["chips"][0]["work"])
    height = 0.8 / len(objectives)
    for panel, (measure, title) in zip(
        axes, (("chip", "per chip"), ("mm2", "per mm²"), ("watt", "per W"), ("usd", "per US$"))
    ):
        for i, objective in enumerate(objectives):
            rates = [facts["per"].get(objective, {}).get(measure, 0.0) for facts in answer["chips"]]
            base = next((rate for rate in rates if rate > 0), 1.0)
            panel.barh(
                [position + (1.5 - i) * height for position in positions],
                [rate / base for rate in rates],
                height=height,
                label=objective,
            )
        panel.set_title(f"throughput {title}", fontsize=9)
        panel.tick_params(labelsize=8)
    axes[0].set_yticks(positions, labels)
    axes[0].legend(fontsize=7, frameon=False)
    figure.supxlabel("relative to the first chip that can do the work", fontsize=8)
    figure.savefig(path, dpi=110)


def _figure(width: float, height: float) -> Figure:
    # A file is all that is drawn: no window system, no global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw_bars(axes: Axes, bars: Sequence[tuple[str, dict[str, float]]], title: str) -> None:
    labels = [label for label, _ in bars]
    positions = list(range(len(bars)))[::-1]
    left = [0.0] * len(bars)
    for part in PARTS:
        widths = [share[part] for _, share in bars]
        axes.barh(positions, widths, left=left, color=_COLOURS[part], label=part, height=0.8)
        for position, start, width in zip(positions, left, widths):
            if width >= 0.06:
                axes.text(
                    start + width / 2,
                    position,
                    f"{100 * width:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if part == "compute" else "black",
                )
        left = [a + b for a, b in zip(left, widths)]
    axes.set_yticks(positions, labels, fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.set_xlabel(title + ", %", fontsize=9)
    axes.tick_params(left=False)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)


def _draw_front(axes: Axes, result: Facts) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    fronts = {mode: front_data(result, mode) for mode in result["formats"]}
    if not any(data["training"] or data["chips"] for data in fronts.values()):
        axes.text(0.5, 0.5, "no design or chip both trains and serves", ha="center", va="center")
        axes.set_axis_off()
        return
    # The modes' chips stand near each other: their names go to opposite sides.
    sides = {"equal": ((0, 6), "center", "bottom"), "free": ((0, -6), "center", "top")}
    for mode, data in fronts.items():
        colour, marker = _MODE_STYLE[mode]
        axes.step(
            data["training"],
            data["serving"],
            where="post",
            color=colour,
            marker=marker,
            markersize=4,
            label=f"front, formats {mode}",
        )
        offset, horizontal, vertical = sides[mode]
        for label, training, serving in data["chips"]:
            axes.plot(training, serving, marker, color=colour, fillstyle="none")
            axes.annotate(
                label,
                (training, serving),
                xytext=offset,
                textcoords="offset points",
                ha=horizontal,
                va=vertical,
                fontsize=7,
                color=colour,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.12)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("training, million US$ per run", fontsize=9)
    axes.set_ylabel("serving (mixed), US$ per million output tokens", fontsize=9)
    axes.tick_params(labelsize=8, which="both")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", frameon=False)
    axes.set_title("hollow: real chips, modelled the same way", fontsize=8)
