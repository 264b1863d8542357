"""Figures of benchmarks/peers.py: error against time, a panel per stream, and one for all; for light and dark pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from benchmarks.peer_contestants import Contestant
from benchmarks.peer_report import REFERENCE, Results, mean_ratio, of_task
from benchmarks.peer_streams import STREAMS

INKS = {"": "#000000", "_dark": "#cfd0d0"}  # suffix of the file name, colour of text and axes
FAMILIES = {  # colour, on dark pages where it differs, and marker; Okabe and Ito's palette
    "ours": ("#0072B2", "#4aa3df", "o"),
    "baselines": ("#56B4E9", "#56B4E9", "v"),
    "river": ("#D55E00", "#D55E00", "s"),
    "sklearn": ("#009E73", "#009E73", "^"),
    "neighbours": ("#E69F00", "#E69F00", "P"),
    "moa": ("#CC79A7", "#CC79A7", "D"),
}
NAMES = {
    "ours": "kernling",
    "baselines": "kernling, baselines",
    "river": "River",
    "sklearn": "scikit-learn",
    "neighbours": "neighbours",
    "moa": "MOA",
}
COLUMNS = 5  # panels in a row
RESOLUTION = 160  # dots per inch
HEADROOM = 1.25  # times the error of the constant prediction; worse ones are drawn at the upper border
WORST = 6.0  # times the error of base AVM; worse ones are drawn at the upper border
WIDE = 8.0  # ratio of errors above which ticks are logarithmic
GAP = 4.0  # points between a marker and its name


class Mark(NamedTuple):
    name: str
    family: str
    time: float
    error: float
    whole: bool  # on all rows
    named: bool


def draw(results: Results, base: Results, contestants: list[Contestant], folder: Path) -> None:
    """Write peers_streams.png and peers_all.png, each with a dark version."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending, ink in INKS.items():
        names = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
        with matplotlib.rc_context(dict.fromkeys(names, ink) | {"font.size": 9}):
            for name, made in (
                ("streams", of_streams(results, contestants, ending)),
                ("all", of_all(results, base, contestants, ending)),
            ):
                made.savefig(folder / f"peers_{name}{ending}.png", dpi=RESOLUTION, transparent=True)


def of_streams(results: Results, contestants: list[Contestant], ending: str) -> Figure:
    """Draw a panel per stream; our methods and the best of the others are labelled."""
    streams = [stream for stream in STREAMS if any(of == stream for of, _ in results)]
    lines = -(-len(streams) // COLUMNS)
    figure = Figure(figsize=(3.0 * COLUMNS, 2.5 * lines + 0.5), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
    drawn = {}
    for axes, stream in zip(panels, streams, strict=False):
        marks = list(marks_of(results, contestants, stream))
        constant = results.get((stream, "constant"), {}).get("error")
        top = HEADROOM * constant if constant else 1.1 * max(mark.error for mark in marks)
        axes.set_title(stream, fontsize="medium")
        scale_errors(axes, min(mark.error for mark in marks), top)
        if constant:
            axes.axhline(constant, color="#767676", linewidth=0.8, linestyle=":")
        drawn[axes] = [mark._replace(error=min(mark.error, top)) for mark in marks]
        plot(axes, drawn[axes], ending)
    for axes in panels[len(streams) :]:
        axes.set_visible(False)
    figure.supxlabel("microseconds per event")
    figure.supylabel("share of mistakes; RMSE over the target's standard deviation (dotted: the constant answer)")
    finish(figure, drawn, ending)
    return figure


def marks_of(results: Results, contestants: list[Contestant], stream: str) -> Iterator[Mark]:
    rows = {one: results.get((stream, one.name), {}) for one in contestants if one.family in FAMILIES}
    rows = {one: row for one, row in rows.items() if "error" in row}
    best = min((one for one in rows if one.family != "ours"), key=lambda one: rows[one]["error"], default=None)
    for one, row in rows.items():
        named = one.family == "ours" or one is best
        yield Mark(one.title, one.family, row["microseconds"], row["error"], row["rows"] == row["of"], named)


def of_all(results: Results, base: Results, contestants: list[Contestant], ending: str) -> Figure:
    """Draw geometric means of errors relative to base AVM against the median time, a panel per task."""
    figure = Figure(figsize=(10.0, 5.5), layout="constrained")
    drawn = {}
    for axes, task in zip(figure.subplots(1, 2), ("classification", "regression"), strict=True):
        marks = []
        for one in contestants:
            mean = mean_ratio(results, one.name, base, REFERENCE, task) if one.family in FAMILIES else None
            if mean is not None:
                found = [row for (of, name), row in results.items() if name == one.name and STREAMS[of].task == task]
                times = [row["microseconds"] for row in found if "microseconds" in row]
                whole = [row.get("rows") == row["of"] for row in found].count(True) == len(of_task(task))
                marks.append(Mark(one.title, one.family, float(np.median(times)), mean, whole, True))
        axes.set_title(task)
        top = min(1.1 * max(mark.error for mark in marks), WORST)
        scale_errors(axes, min(mark.error for mark in marks), top)
        drawn[axes] = [mark._replace(error=min(mark.error, top)) for mark in marks]
        plot(axes, drawn[axes], ending)
        axes.set_xlabel("microseconds per event, median over streams")
    figure.axes[0].set_ylabel("error relative to base AVM, geometric mean")
    finish(figure, drawn, ending)
    return figure


def scale_errors(axes: Any, least: float, top: float) -> None:
    """Set a logarithmic axis with ticks at round numbers, even if its range is small."""
    low = 0.8 * max(least, 1e-4)
    axes.set_yscale("log")
    axes.set_ylim(low, top)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if top > WIDE * low else MaxNLocator(5))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def plot(axes: Any, marks: list[Mark], ending: str) -> None:
    """Draw markers, hollow if there were fewer rows."""
    axes.set_xscale("log")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    for mark in marks:
        colour = colour_of(mark.family, ending)
        face = colour if mark.whole else "none"
        axes.plot(
            mark.time, mark.error, FAMILIES[mark.family][2], color=colour, markerfacecolor=face, markersize=5, clip_on=False
        )
    low, high = min(mark.time for mark in marks), max(mark.time for mark in marks)
    axes.set_xlim(low / 3.0, high * 6.0)  # room for labels
    axes.xaxis.set_major_formatter("{x:g}")


def colour_of(family: str, ending: str) -> str:
    return FAMILIES[family][1 if ending else 0]


def finish(figure: Figure, drawn: dict[Any, list[Mark]], ending: str) -> None:
    """Add the legend, compute the layout, then place the labels."""
    shown = {mark.family for marks in drawn.values() for mark in marks}
    handles = [
        Line2D([], [], linestyle="", marker=marker, color=colour_of(family, ending), label=NAMES[family])
        for family, (_, _, marker) in FAMILIES.items()
        if family in shown
    ]
    hollow = Line2D([], [], linestyle="", marker="o", color="#767676", markerfacecolor="none", label="fewer rows or streams")
    figure.legend(handles=[*handles, hollow], loc="outside upper center", ncols=len(handles) + 1, frameon=False)
    figure.draw_without_rendering()
    for axes, marks in drawn.items():
        place_names(axes, [mark for mark in marks if mark.named], ending)


def place_names(axes: Any, marks: list[Mark], ending: str) -> None:
    """Place each label next to its marker, at the first position where it covers neither a label nor a marker."""
    pixels = axes.figure.dpi / 72.0
    markers = [axes.transData.transform(line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1]
    taken = [Bbox.from_bounds(*(at - 3.0 * pixels), 6.0 * pixels, 6.0 * pixels) for at in markers]
    for mark in sorted(marks, key=lambda mark: mark.error):
        text = axes.annotate(mark.name, (mark.time, mark.error), (0, 0), textcoords="offset points", fontsize="x-small")
        text.set_color(colour_of(mark.family, ending))
        text.set_in_layout(False)
        for distance in (1.0, 3.0, 5.0, 7.0):
            places = [
                (1, 0, "left", "center"),
                (0, 1, "center", "bottom"),
                (0, -1, "center", "top"),
                (-1, 0, "right", "center"),
            ]
            places += [(x, y, side, "bottom" if y > 0 else "top") for x, side in ((1, "left"), (-1, "right")) for y in (1, -1)]
            if any(settles(text, place, distance, taken) for place in places):
                break
        taken.append(text.get_window_extent())


def settles(text: Any, place: tuple[int, int, str, str], distance: float, taken: list[Any]) -> bool:
    across, up, horizontal, vertical = place
    text.set_position((GAP * distance * across, GAP * distance * up))
    text.set_horizontalalignment(horizontal)
    text.set_verticalalignment(vertical)
    box = text.get_window_extent()
    inside = text.axes.get_window_extent().padded(2.0)
    within = inside.contains(*box.min) and inside.contains(*box.max)
    return within and not any(box.overlaps(other) for other in taken)
