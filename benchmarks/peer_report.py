"""The table and the summary of benchmarks/peers.py, computed from rows of results."""

from collections.abc import Iterable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peer_contestants import Contestant
from benchmarks.peer_results import Row, compare, geometric_mean
from benchmarks.peer_streams import STREAMS

Results = dict[tuple[str, str], Row]  # by stream and contestant
REFERENCE = "avm"  # the method whose errors in the base file are 1
NEW = ("auto", "krls")  # not among those that auto is compared with
NEAR, FAR = 1.03, 1.15  # times the error of the best
CALIBRATED = ("a9a", "ijcnn1", "covtype-shuffled")
IMPROVED = {"avm": 0.75, "spa": 0.90, "dualsvrg": 0.65, "polk": 0.95}  # relative to the same method in the base file
FOREST = "river-arf"
QUALITY = "AUC (of two classes), log-loss, calibration error"


def of_task(task: str) -> list[str]:
    return [name for name, stream in STREAMS.items() if stream.task == task]


def ratios(results: Results, name: str, base: Results, other: str, task: str) -> dict[str, float]:
    """Return the ratios of errors to those of another contestant, by stream, on common rows."""
    pairs = {stream: (results.get((stream, name)), base.get((stream, other))) for stream in of_task(task)}
    return {s: compare(a, b).ratio for s, (a, b) in pairs.items() if a and b and "failure" not in a and "failure" not in b}


def mean_ratio(results: Results, name: str, base: Results, other: str, task: str) -> float | None:
    """Return the geometric mean of these ratios; a stream without mistakes counts as 0.0001."""
    found = ratios(results, name, base, other, task)
    return geometric_mean(max(ratio, 1e-4) for ratio in found.values()) if found else None


def table(results: Results, base: Results, contestants: list[Contestant]) -> Table:
    """Return the table of errors, a line per stream, with the smallest in bold, and summaries."""
    shown = [one for one in contestants if any(name == one.name for _, name in results)]
    made = Table(
        title="mistake rate; RMSE over the standard deviation of the target",
        caption="* fewer rows, because of the time limit",
    )
    made.add_column("stream")
    for one in shown:
        made.add_column(one.title.replace(" ", "\n"), justify="right")
    for stream in STREAMS:
        errors = {name: row["error"] for (of, name), row in results.items() if of == stream and "failure" not in row}
        if errors:
            least = min(errors.values())
            made.add_row(stream, *(cell(results.get((stream, one.name)), least) for one in shown))
    made.add_section()
    for task in ("classification", "regression"):
        for label, means in (
            ("relative to base AVM", (mean_ratio(results, one.name, base, REFERENCE, task) for one in shown)),
            ("relative to Auto", (mean_ratio(results, one.name, results, "auto", task) for one in shown)),
        ):
            made.add_row(f"{task}, {label}", *("" if mean is None else f"{mean:.2f}" for mean in means))
    for label, name, scale, whole in (
        ("µs per event, median", "microseconds", 1.0, np.median),
        ("kB, largest", "bytes", 1e-3, max),
    ):
        values = ([row[name] for (_, n), row in results.items() if n == one.name and row.get(name)] for one in shown)
        made.add_row(label, *(f"{scale * whole(found):,.0f}" if found else "" for found in values))
    return made


def cell(row: Row | None, least: float) -> str:
    if row is None:
        return ""
    if "failure" in row:
        return "fails"
    error = row["error"]
    text = f"{error:.4f}" if error < 0.01 else f"{error:.3f}" if error < 10.0 else ">10"
    text = f"[bold]{text}[/]" if error <= least else text
    return text + "*" * (row["rows"] < row["of"])


def probabilities(results: Results, contestants: list[Contestant], streams: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of a table of AUC (of two classes), log-loss and calibration error, for whoever gives probabilities."""
    lines = {stream: {one.name: quality(results.get((stream, one.name), {})) for one in contestants} for stream in streams}
    shown = [one for one in contestants if any(line[one.name] for line in lines.values())]
    yield ["stream", *(one.title for one in shown)]
    yield from ([stream, *(line[one.name] for one in shown)] for stream, line in lines.items() if any(line.values()))


def quality(row: Row) -> str:
    if row.get("log_loss") is None:
        return ""
    area = "" if row.get("auc") is None else f"{row['auc']:.3f}, "
    return f"{area}{row['log_loss']:.3f}, {row['ece']:.3f}"


def of_lines(lines: Iterable[list[str]], title: str) -> Table:
    """Return a table for the terminal."""
    head, *rest = lines
    made = Table(title=title, caption="* fewer rows, because of the time limit")
    for name in head:
        made.add_column(name.replace(" ", "\n"), justify="right")
    for line in rest:
        made.add_row(*line)
    return made


def show_table(made: Table) -> None:
    """Print a table, as wide as it is if the output is a file."""
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, console.measure(made, options=console.options.update(max_width=10_000)).maximum)
    console.print(made)


def summary(results: Results, base: Results) -> Iterator[str]:
    """Yield a line for each goal of the defaults and of the mixture, and whether it is met."""
    yield from of_mixture(results, base) if any(name == "auto" for _, name in results) else ["auto: not run"]
    for name, goal in IMPROVED.items():
        mean = mean_ratio(results, name, base, name, "classification")
        yield goal_line(f"{name}, classification, relative to its base", mean, goal)
    points = [row["points"] for (_, name), row in results.items() if name == "spa" and row.get("points") is not None]
    yield goal_line("spa, most points", max(points, default=None), 1_500, "{:,.0f}")
    worse = [
        f"{name} on {stream}"
        for stream in of_task("regression")
        for name in ("avm", "polk", "spa", "dualsvrg")
        if (row := results.get((stream, name))) and (mean := results.get((stream, "constant"))) and not better(row, mean)
    ]
    yield f"regressors worse than the running mean: {', '.join(worse) or 'none'} (goal: none)"
    areas = [
        (results[s, "aogd"]["auc"], results[s, "spa"]["auc"])
        for s in of_task("classification")
        if STREAMS[s].classes == 2 and all("auc" in results.get((s, name), {}) for name in ("aogd", "spa"))
    ]
    if areas:
        below = sum(aogd < spa for aogd, spa in areas)
        yield goal_line(f"share of {len(areas)} streams where aogd's AUC is below spa's", below / len(areas), 0.25)


def better(one: Row, other: Row) -> bool:
    return "failure" not in one and compare(one, other).ratio <= 1.0


def of_mixture(results: Results, base: Results) -> Iterator[str]:
    """Compare auto with the best of the others, on common rows."""
    yield goal_line(
        "auto, classification, relative to base AVM", mean_ratio(results, "auto", base, REFERENCE, "classification"), 0.54
    )
    behind: dict[str, float] = {}
    for task, goal in (("classification", 18), ("regression", 5)):
        near = tried = 0
        for stream in of_task(task):
            auto = results.get((stream, "auto"))
            others = [row for (of, name), row in results.items() if of == stream and name not in NEW and "failure" not in row]
            if auto is None or "failure" in auto or not others:
                continue
            compared = [compare(auto, other) for other in others]
            tried += 1
            near += all(c.ratio <= NEAR or c.behind <= c.error for c in compared)
            behind[stream] = max(c.ratio for c in compared)
        yield f"auto, {task}, best or near it on {near} of {tried} streams (goal: {goal} of {len(of_task(task))})"
    if behind:
        worst = max(behind, key=lambda stream: behind[stream])
        yield goal_line(f"auto, most over the best of the others, on {worst}", behind[worst], FAR)
    for stream in CALIBRATED:
        yield goal_line(f"auto, calibration error on {stream}", results.get((stream, "auto"), {}).get("ece"), 0.03)
    times = [
        results[s, "auto"]["microseconds"] / forest["microseconds"]
        for s in STREAMS
        if "microseconds" in results.get((s, "auto"), {}) and "microseconds" in (forest := results.get((s, FOREST), {}))
    ]
    yield goal_line("auto, time over that of River's forest, most", max(times, default=None), 1 / 25)


def goal_line(label: str, value: float | None, goal: float, form: str = "{:.3g}") -> str:
    if value is None:
        return f"{label}: not run (goal: at most {form.format(goal)})"
    return f"{label}: {form.format(value)} (goal: at most {form.format(goal)}{'' if value <= goal else ', missed'})"


def show(results: Results, base: Results, contestants: list[Contestant]) -> None:
    """Print the table and the summary."""
    show_table(table(results, base, contestants))
    show_table(of_lines(probabilities(results, contestants, of_task("classification")), QUALITY))
    failures = sorted({(name, row["failure"]) for (_, name), row in results.items() if "failure" in row})
    for name, failure in failures:
        print(f"{name} fails: {failure}")
    for line in summary(results, base):
        print(line)
