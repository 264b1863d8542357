"""The papers' tables, listed and run again."""

# No "from __future__ import annotations" here: typer looks at the types themselves.
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..report.tables import Cells

COLUMNS = {
    "data": "data",
    "method": "method",
    "ours": "ours",
    "printed": "paper",
    "always_commonest": "constant answer",
    "size": "points",
    "printed_size": "paper's points",
    "seconds": "seconds",
    "printed_seconds": "paper's seconds",
    "permutations": "orders",
}


def papers() -> None:
    """List the papers' tables that 'kernling reproduce' can run."""
    from rich.console import Console
    from rich.table import Table

    from ..evaluate.papers import tables

    shown = Table("name", "table", "methods run", "data sets")
    for one in tables():
        methods = [method["name"] for method in one.facts["methods"] if "learner" in method]
        shown.add_row(one.name, one.facts["title"], ", ".join(methods), ", ".join(one.facts["data"]))
    Console().print(shown)


def reproduce(
    name: Annotated[str, typer.Argument(metavar="TABLE", help="A table, such as avm/table4; see 'kernling papers'.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder with the data; KERNLING_DATA if not given.", exists=True, file_okay=False)
    ] = None,
    permutations: Annotated[int, typer.Option(min=1, help="Random orders of the rows.")] = 3,
    only: Annotated[str | None, typer.Option(help="Data sets to run, separated by commas.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep the rows beside the table and write papers/RESULTS.md.")
    ] = False,
) -> None:
    """Run a paper's table again: our number, the paper's, the constant answer's, model size and time."""
    from rich.console import Console

    from ..evaluate import papers as tables
    from ..report import terminal
    from .settings import names_of

    if data:
        os.environ["KERNLING_DATA"] = str(data)
    chosen = tables.table(name)
    told: Any = lambda method, where: typer.echo(f"{method} on {where}", err=True)  # noqa: E731
    rows = tables.reproduce(chosen, permutations=permutations, only=names_of(only), on_cell=told)
    Console().print(terminal(_cells(rows), chosen.facts["title"]))
    for line in _notes(rows):
        typer.echo(line)
    if record:
        tables.record(chosen, rows)
        (tables.folder() / "RESULTS.md").write_text(_results(), encoding="utf-8")


def _cells(rows: list[dict[str, Any]]) -> "Cells":
    from ..report.tables import Cells

    used = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    body = [[_text(name, row) for name in used] for row in rows]
    return Cells([COLUMNS[name] for name in used], body, [name not in ("data", "method") for name in used])


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    """What has to be known about data sets, and why methods were not run on them."""
    notes = [f"{where}: {note}" for where, note in {row["data"]: row["note"] for row in rows if row["note"]}.items()]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if "why" in row and row["why"] != row["note"]:
            reasons.setdefault((row["data"], row["why"]), []).append(row["method"])
    return notes + [f"{where}, {', '.join(methods)}: {why}" for (where, why), methods in reasons.items()]


def _text(name: str, row: dict[str, Any]) -> str:
    value, spread = row.get(name), row.get(f"{name}_std")
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if name in ("size", "printed_size", "permutations"):
        return f"{value:,.0f}"
    digits = 2 if name.endswith("seconds") or abs(row.get("printed") or value) > 2 else 4
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")


def _results() -> str:
    """All that was recorded, as one page."""
    from ..evaluate import papers as tables
    from ..report import markdown

    parts = ["# Results", "Made by `kernling reproduce TABLE --record`; not to be edited by hand."]
    for one in tables.tables():
        rows = tables.recorded(one)
        if rows:
            parts += [f"## {one.name}", one.facts["title"] + ". " + one.facts["paper"] + ".", markdown(_cells(rows))]
            parts += ["\n".join(f"- {line}" for line in _notes(rows))]
            ran = {f"{row['data']}, {row['method']}": row["params"] for row in rows if row.get("params")}
            parts += ["Parameters:\n\n" + "\n".join(f"- {where}: `{params}`" for where, params in ran.items())] if ran else []
    return "\n\n".join(parts) + "\n"
