"""The papers' tables with our results next to the printed ones, and their figures redrawn."""

from __future__ import annotations

import json
from typing import Any

from ..evaluate.record import Row
from ..report.figures import curve, surface, sweep
from ..report.tables import Cells, markdown
from .catalogue import CATALOGUE, File
from .cells import fitted
from .paper_data import PaperData
from .tables import Table, folder, results, tables
from .verdicts import FAR, counts, far_worse

COLUMNS = {
    "data": "data",
    "method": "method",
    "ours": "ours",
    "printed": "paper",
    "constant": "constant answer",
    "risk": "risk",
    "printed_risk": "paper's risk",
    "size": "points",
    "printed_size": "paper's points",
    "features": "features",
    "seconds": "seconds",
    "printed_seconds": "paper's seconds",
    "test_seconds": "seconds of testing",
    "printed_test_seconds": "paper's seconds of testing",
    "events": "rows",
    "rate": "rows per second",
    "permutations": "orders",
}
SUMMARY = """A cell is a method on a data set, for one value of what a figure varies. "Reproduced": ours differs from the
printed number by at most the printed deviation, or, where none is printed, by at most ours over the orders. "Ours only":
nothing is printed, as in all figures. "Not run yet": the cell can be run, and was not since its description changed. "No
data": a file is missing, see the end of this page. "Not run": for the reason in the notes below the table."""
FILES = """Put files that cannot be downloaded automatically, compressed or not, into the folder that KERNLING_DATA names. The
checksum is of the uncompressed file; "a copy" has the same numbers, but may be formatted otherwise, and another checksum is
no error."""
COUNTS = ("size", "printed_size", "features", "events", "rate", "permutations")


def cells(rows: list[Row]) -> Cells:
    """Return the table of measured and printed results."""
    rows = [row | {"rate": row["events"] / row["seconds"]} if row.get("seconds") else row for row in rows]
    varied = list(dict.fromkeys(name for row in rows for name in row["at"]))
    used = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    heads = [*used[:2], *varied, *used[2:]]
    body = [[f"{row['at'].get(name, '')}" if name in varied else _text(name, row) for name in heads] for row in rows]
    return Cells([COLUMNS.get(name, name) for name in heads], body, [name not in ("data", "method") for name in heads])


def _text(name: str, row: Row) -> str:
    value, spread = row.get(name), row.get(f"{name}_std")
    if value is None or (name == "size" and not value):
        return ""
    if isinstance(value, str):
        return value
    if name in COUNTS:
        return f"{value:,.0f}"
    if name.endswith("risk"):
        return f"{value:.3g}" + (f" ± {spread:.2g}" if spread is not None else "")
    digits = 2 if name.endswith("seconds") or abs(row.get("printed") or row.get("ours") or value) > 2 else 4
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")


def notes(chosen: Table, rows: list[Row]) -> list[str]:
    """Return notes on the table and its data sets, and reasons why methods were not run."""
    said = [*chosen.facts.get("notes", [])]
    said += [f"not run: {chosen.facts['why']}"] if "why" in chosen.facts else []
    said += [f"{where}: {note}" for where, note in {row["data"]: row["note"] for row in rows if row["note"]}.items()]
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.get("why") and row["why"] != chosen.facts.get("why"):
            methods = reasons.setdefault(row["why"], {}).setdefault(row["data"], [])
            methods += [row["method"]] if row["method"] not in methods else []
    for why, places in reasons.items():
        where = "; ".join(f"{data} ({', '.join(methods)})" for data, methods in places.items())
        said.append(f"not run: {where}: {why}")
    return said


def draw(chosen: Table, rows: list[Row]) -> None:
    """Draw the figure of a table: a plot for each data set and each pair of axes that were measured."""
    for data in chosen.facts.get("data", {}):
        ran = [row for row in rows if row["data"] == data and "ours" in row]
        for x, y in chosen.facts["draw"] if ran and chosen.is_figure else ():
            varied = x in chosen.facts.get("vary", {})
            points = [point for row in ran for point in (_points(row, chosen, x) if varied else _moments(row, chosen))]
            points = [point for point in points if y in point]
            if points:
                plot = sweep if varied else curve
                _save(plot(points, x, y, log=x in chosen.facts.get("log", ())), chosen, data, y, x)
        for row in ran if "surface" in chosen.facts else ():
            _save(surface(*fitted(row["asked"], row["found"], PaperData())), chosen, data, row["method"], "surface")


def _save(figure: Any, chosen: Table, *parts: str) -> None:
    name = "-".join([*chosen.name.split("/"), *parts]).translate(str.maketrans(" ", "-", "(),;"))
    figures = folder() / "figures"
    figures.mkdir(exist_ok=True)
    figure.savefig(figures / f"{name}.png", dpi=80)


def _label(row: Row, x: str | None = None) -> str:
    return ", ".join([row["method"], *(f"{name} {value:g}" for name, value in row["at"].items() if name != x)])


def _moments(row: Row, chosen: Table) -> list[Row]:
    """Return the moments of a curve; a method that is fitted in one piece has only the last."""
    last = {"events": row["events"], "seconds": row["seconds"], chosen.facts["metric"]: row["ours"] / chosen.scale}
    held = dict(row.get("curve", {name: [value] for name, value in last.items()}))
    if "majority" in held:  # the constant answer
        held |= {"mistakes_constant": [1.0 - share for share in held["majority"]], "accuracy_constant": held["majority"]}
    return [{"method": _label(row)} | dict(zip(held, values, strict=True)) for values in zip(*held.values(), strict=True)]


def _points(row: Row, chosen: Table, x: str) -> list[Row]:
    """Return the rows of a point; a method without this parameter has one at each value."""
    metric, at = chosen.facts["metric"], row["at"]
    values = [at[x]] if x in at else chosen.facts["vary"][x]
    measured = {metric: row["ours"], f"{metric}_std": row["ours_std"] or 0.0}
    found = {"method": _label(row, x), "n_stored": row["size"], "seconds": row["seconds"]}
    found |= {name: value / chosen.scale for name, value in measured.items()}
    return [found | {"params": json.dumps({x: value})} for value in values]


def page() -> str:
    """Return all recorded results as one page."""
    parts = [
        "# Results",
        "Made by `kernling reproduce TABLE --record`; not to be edited by hand. `papers/README.md` says how to read it.",
        *_summary(),
    ]
    for one in tables():
        rows = results(one)
        parts += [f"## {one.name}", one.facts["title"] + ". " + one.facts["paper"] + "."]
        pictures = sorted((folder() / "figures").glob("-".join([*one.name.split("/"), "*.png"])))
        parts += [f"![{path.stem}](figures/{path.name})" for path in pictures]
        if any("ours" in row or row["printed"] is not None for row in rows):
            shown = [row for row in rows if "ours" in row or row["printed"] is not None]
            parts += [markdown(cells(shown))]
        said = notes(one, rows)
        parts += ["\n".join(f"- {line}" for line in said)] if said else []
        ran = [f"- {_where(row)}: {_params(row)}" for row in rows if "ours" in row]
        parts += ["<details><summary>Parameters</summary>\n\n" + "\n".join(ran) + "\n\n</details>"] if ran else []
    return "\n\n".join([*parts, "## Files", FILES, markdown(_files())]) + "\n"


def _summary() -> list[str]:
    """Return how many cells are reproduced, and the causes of differences."""
    found = [one for one in tables() if one.facts.get("methods")]
    causes = "\n".join(f"- {line}" for line in far_worse(found))
    title = f"Worse by more than {FAR:g} printed deviations, and why:"
    return ["## Summary", SUMMARY, markdown(counts(found)), *([title, causes] if causes else [])]


def _files() -> Cells:
    """Return the files of all data sets, where they come from, and their checksums."""
    body = [
        [name, part, f"{rows:,}", file.name, file.url or entry.home, _checksum(file)]
        for name, entry in CATALOGUE.items()
        for part, (rows, files) in entry.parts.items()
        for file in files
    ]
    return Cells(["data set", "part", "rows", "file", "from", "SHA-256"], body, [False, False, True, False, False, False])


def _checksum(file: File) -> str:
    return "" if file.sha256 is None else file.sha256 if file.exact else f"{file.sha256} (a copy)"


def _where(row: Row) -> str:
    return f"{row['data']}, {_label(row)}"


def _params(row: Row) -> str:
    """Return the parameters that were given and those that were found."""
    given = ", ".join(f"{name} {_short(value)}" for name, value in row["asked"]["params"].items())
    found = row.get("found")
    if not found:
        return given or "none"
    several = found if isinstance(found, list) else [found]
    texts = [", ".join(f"{name} {_short(value)}" for name, value in one.items()) for one in several]
    counted = {text: texts.count(text) for text in texts}
    shown = "; ".join(f"{text}" + (f" ({times} times)" if len(texts) > 1 else "") for text, times in counted.items())
    return f"{given}; found: {shown}" if given else f"found: {shown}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
