"""The tables and the figure of benchmarks/arena.py, computed from rows of results and from printed ones."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from benchmarks.arena_results import POINTS
from benchmarks.arena_streams import STREAMS, ArenaStream
from benchmarks.peer_contestants import Contestant
from benchmarks.peer_figures import FAMILIES, INKS, RESOLUTION
from benchmarks.peer_report import QUALITY, Results, of_lines, probabilities, show_table
from benchmarks.peer_results import Row

PRINTED = Path(__file__).with_name("arena_printed.toml")
TITLES = {"classification": "accuracy in per cent, log-loss", "regression": "RMSE"}
LINES = {"auto": "-", "capymoa-arf": "--", "capymoa-srp": ":", "river-arf": "--", "hgb-refitted": "-", "spa": ":"}


def printed(results: Results, stream: str) -> dict[str, Row]:
    """Return the printed results of a stream, with accuracies as shares of mistakes."""
    found = tomllib.loads(PRINTED.read_text()).get(stream, {})
    repeated = results.get((stream, "no-change"), {}).get("error")
    for row in found.values():
        if "kappa_t" in row and repeated is not None:
            row["error"] = repeated * (1.0 - row["kappa_t"] / 100.0)
    return found


def best_printed(results: Results, stream: str) -> str:
    """Return the best printed result and whose it is."""
    loss = "error" if STREAMS[stream].classes else "rmse"
    found = {name: row for name, row in printed(results, stream).items() if loss in row}
    if not found:
        return ""
    name = min(found, key=lambda one: found[one][loss])
    return f"{cell(found[name])} {name}"


def cell(row: Row | None) -> str:
    """Return accuracy and log-loss, or the RMSE; a star for fewer rows than the stream has."""
    if row is None:
        return ""
    if "failure" in row:
        return "fails"
    if "rmse" in row:
        text = f"{row['rmse']:,.0f}" if row["rmse"] >= 1_000 else f"{row['rmse']:.3g}"
    else:
        text = f"{100.0 * (1.0 - row['error']):.2f}"
        text += f", {row['log_loss']:.3f}" if row.get("log_loss") is not None else ""
    return text + "*" * (row.get("rows", 0) < row.get("of", 0))


def lines(results: Results, contestants: list[Contestant], task: str) -> Iterator[list[str]]:
    """Yield the lines of a table: contestants, then a line per stream, then time and memory."""
    streams = [name for name, stream in STREAMS.items() if stream.task == task and any(of == name for of, _ in results)]
    shown = [one for one in contestants if any((stream, one.name) in results for stream in streams)]
    yield ["stream", *(one.title for one in shown), "best printed"]
    for stream in streams:
        yield [stream, *(cell(results.get((stream, one.name))) for one in shown), best_printed(results, stream)]
    for label, name, scale in (("µs per event, median", "microseconds", 1.0), ("MB, largest", "bytes", 1e-6)):
        whole = np.median if name == "microseconds" else max
        rows = ([results.get((stream, one.name), {}) for stream in streams] for one in shown)
        values = ([row[name] for row in found if row.get(name)] for found in rows)
        yield [label, *(f"{scale * whole(found):,.3g}" if found else "" for found in values), ""]


def unfinished(results: Results, contestants: list[Contestant]) -> Iterator[list[str]]:
    """Yield the lines of a table of runs that the time limit ended: how far they came, and what Auto did on the same rows."""
    yield ["stream", "contestant", "rows", "in per cent", "accuracy or RMSE", "Auto, same rows"]
    for stream, facts in STREAMS.items():
        for one in contestants:
            row = results.get((stream, one.name), {})
            if row.get("rows", facts.rows) < facts.rows:
                own = early(results.get((stream, "auto"), {}), row["rows"], facts)
                share = f"{100.0 * row['rows'] / facts.rows:.2g}"
                yield [stream, one.title, f"{row['rows']:,}", share, cell(row | {"log_loss": None, "of": 0}), cell(own)]


def early(row: Row, rows: int, stream: ArenaStream) -> Row | None:
    """Return the error of the first rows, by the learning curve, whose last part counts by how much of it was reached.

    Of less than its first part, the curve says nothing.
    """
    if not row.get("curve") or rows < stream.rows // POINTS:
        return None
    power = 1.0 if stream.classes else 2.0
    curve = np.array(row["curve"]) ** power
    weights = np.clip(rows / (stream.rows // POINTS) - np.arange(len(curve)), 0.0, 1.0)
    return {"error" if stream.classes else "rmse": float(weights @ curve / weights.sum()) ** (1.0 / power)}


def tables(results: Results, contestants: list[Contestant]) -> dict[str, Iterator[list[str]]]:
    """Return the lines of all tables, by title."""
    found = {f"{task.capitalize()}: {title}": lines(results, contestants, task) for task, title in TITLES.items()}
    found["Ended by the time limit"] = unfinished(results, contestants)
    return found | {f"Probabilities: {QUALITY}": probabilities(results, contestants, STREAMS)}


def show(results: Results, contestants: list[Contestant]) -> None:
    """Print all tables, and why what failed has failed."""
    for title, found in tables(results, contestants).items():
        show_table(of_lines(found, title))
    for (stream, name), row in results.items():
        if "failure" in row:
            print(f"{name} fails on {stream}: {row['failure']}")


def write_page(results: Results, contestants: list[Contestant], path: Path) -> None:
    """Write all tables as Markdown."""
    text = [
        "# Arena: results\n",
        "Written by `python -m benchmarks.arena --page`; what was measured is described in README.md.\n",
    ]
    for title, (head, *rest) in tables(results, contestants).items():
        text += [f"## {title}\n", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        text += [*(f"| {' | '.join(line)} |" for line in rest), ""]
    text.append("\\* fewer rows, because of the time limit. What Auto did on the same rows follows from its")
    text.append("learning curve, which has a point for each fiftieth of the stream.\n")
    path.write_text("\n".join(text))


def draw(results: Results, contestants: list[Contestant], folder: Path) -> None:
    """Write arena.png, a panel per stream with the error along the stream, and a version for dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending, ink in INKS.items():
        names = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
        with matplotlib.rc_context(dict.fromkeys(names, ink) | {"font.size": 9}):
            made = curves(results, contestants, ending)
            made.savefig(folder / f"arena{ending}.png", dpi=RESOLUTION, transparent=True)


def curves(results: Results, contestants: list[Contestant], ending: str) -> Figure:
    streams = [stream for stream in STREAMS if any(of == stream for of, _ in results)]
    figure = Figure(figsize=(12.0, 2.4 * -(-len(streams) // 4) + 0.5), layout="constrained")
    panels = figure.subplots(-(-len(streams) // 4), 4, squeeze=False).ravel()
    handles = {}
    for axes, stream in zip(panels, streams, strict=False):
        drawn = []
        for one in contestants:
            found = results.get((stream, one.name), {}).get("curve")
            if one.name not in LINES or not found:
                continue
            events = (np.arange(len(found)) + 0.5) * STREAMS[stream].rows / POINTS
            colour = FAMILIES[one.family][1 if ending else 0]
            width = 1.8 if one.name == "auto" else 0.9
            (handles[one.title],) = axes.plot(events, found, LINES[one.name], color=colour, linewidth=width, label=one.title)
            drawn.append(found)
        if drawn:
            own = max(results.get((stream, "auto"), {}).get("curve", [0.0]))  # Auto is never cut, others may be
            axes.set_ylim(0.0, min(max(map(max, drawn)), max(own, 3.0 * float(np.median(np.concatenate(drawn))))) * 1.05)
        axes.set_title(stream, fontsize="medium")
        axes.set_xlim(0, STREAMS[stream].rows)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g}k")
        axes.locator_params(axis="x", nbins=4)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    for axes in panels[len(streams) :]:
        axes.set_visible(False)
    figure.supxlabel("events")
    figure.supylabel("share of mistakes, or RMSE, in each fiftieth of the stream")
    figure.legend(handles=list(handles.values()), loc="outside upper center", ncols=len(handles), frameon=False)
    return figure
