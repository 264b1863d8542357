"""The papers' tables and figures as data: methods, parameters and printed results.

Each is a TOML file, ``papers/<paper>/<name>.toml``; see papers/README.md.  Measured results are stored next to it
in ``<name>.jsonl``, one line per cell, written as cells are finished, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..evaluate.metrics import metric_class
from ..evaluate.rows import Row
from ..evaluate.selection import points_of
from . import cells
from .cells import Cell
from .paper_data import PaperData

ABSENT = ", which is not available"  # ends the reason of cells whose data are not there
PENDING = "not run yet", "its description was changed after it was run"


class Table(NamedTuple):
    """A table or figure of a paper."""

    name: str  # "avm/table4"
    path: Path
    facts: dict[str, Any]

    @property
    def is_figure(self) -> bool:
        """Whether it is a figure."""
        return "draw" in self.facts

    @property
    def scale(self) -> float:
        """Factor between the metric and the printed numbers."""
        return self.facts.get("scale", 100.0)

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, including those that cannot be run."""
        for data, about in self.facts.get("data", {}).items():
            like = about.get("like", data)
            for method in self.facts["methods"]:
                if like not in method.get("data", [like]):  # printed results are shown anyway
                    method = {name: value for name, value in method.items() if name != "learner"}
                if "learner" in method or (data == like and data in method.get("printed", {})):
                    for at in points_of(self._varied(method)):
                        yield cells.cell(self.facts, data, method, at)

    def _varied(self, method: Row) -> dict[str, list[Any]]:
        """Return the parameters of the method that the figure varies."""
        vary = self.facts.get("vary", {})
        known = (
            cells.parameters_of(method["learner"], metric_class(self.facts["metric"]).task)
            if vary and "learner" in method
            else []
        )
        return {name: values for name, values in vary.items() if name in known}


def folder() -> Path:
    """Return the folder of the tables: in the package, or in the source tree."""
    here = Path(__file__).parent
    return next((one for one in (here, here.parents[2] / "papers") if any(one.glob("*/*.toml"))), here)


def tables() -> list[Table]:
    """Return all tables and figures, sorted by paper, tables first."""
    found = sorted(folder().glob("*/*.toml"), key=_place)
    return [Table(f"{path.parent.name}/{path.stem}", path, tomllib.loads(path.read_text("utf-8"))) for path in found]


def _place(path: Path) -> tuple[str, bool, list[int], str]:
    numbers = [int(number) for number in re.findall("[0-9]+", path.stem)]
    return path.parent.name, "figure" in path.stem, numbers, path.stem


def named(name: str) -> list[Table]:
    """Return the table or figure of this name, such as "avm/table4"; those of a paper, such as "avm"; or "all"."""
    known = tables()
    found = [one for one in known if name in (one.name, one.path.parent.name, "all")]
    if not found:
        there = ", ".join(one.name for one in known)
        raise ValueError(f"there is no table {name!r}; the tables are {there or 'not available, since papers/ is missing'}")
    return found


def reproduce(
    chosen: Table,
    *,
    permutations: int | None = None,
    only: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    record: bool = False,
    again: bool = False,
    on_cell: Callable[[str, str], None] = lambda method, data: None,
    on_progress: Callable[[str], None] = lambda words: None,
) -> Iterator[Row]:
    """Run the cells of a table; yield a row for each, with our and the printed results, or the reason why it cannot be run.

    Parameters
    ----------
    chosen : Table
    permutations : int, optional
        Number of orders; by default that of the table.
    only, methods : iterable of str, optional
        Data sets and methods to run; by default all.
    record : bool
        Whether to store rows next to the table, and to reuse stored rows whose cells are unchanged.
    again : bool
        Whether to rerun stored cells too, and repeat their parameter search.
    on_cell : callable, optional
        Called with the method and the data set before each cell.
    on_progress : callable, optional
        Called with the progress within a cell.
    """
    wanted = _known(chosen, "data set", list(chosen.facts.get("data", {})), only)
    asked = _known(chosen, "method", [method["name"] for method in chosen.facts.get("methods", [])], methods)
    held = recorded(chosen)
    at_hand = PaperData()
    for one in chosen.cells():
        if one.data not in wanted or one.method not in asked:
            continue
        if permutations:
            one = one._replace(asked=one.asked | {"orders": permutations})
        kept = held.get(one.key)
        if one.why:
            row: Row = {"why": one.why}
        elif record and not again and kept and kept.get("asked") == one.asked and "why" not in kept:
            row = kept
        else:
            on_cell(one.label, one.data)
            same = kept and not again and _search(kept) == _search({"asked": one.asked})
            row = _ran(one, chosen, at_hand, kept.get("found") if kept and same else None, on_progress)
            if record:
                with open(records(chosen), "a", encoding="utf-8") as file:
                    file.write(json.dumps(one.names | {"asked": one.asked} | row) + "\n")
        yield one.beside | row


def _search(row: Row) -> dict[str, Any]:
    """Return the settings that determine the result of the parameter search."""
    return {name: value for name, value in row.get("asked", {}).items() if name not in ("orders", "risk")}


def _ran(one: Cell, chosen: Table, at_hand: PaperData, found: Any, on_progress: Callable[[str], None]) -> Row:
    try:
        return cells.run(one, at_hand, chosen.scale, found, on_progress)
    except FileNotFoundError as error:  # "NAME needs FILE, but downloading it failed ..."
        return {"why": re.split(", (?:but|which) ", str(error))[0] + ABSENT}
    except (ValueError, OSError, ImportError) as error:
        return {"why": str(error).split("; ")[0]}


def _known(chosen: Table, what: str, known: list[str], asked: Iterable[str] | None) -> list[str]:
    asked = known if asked is None else list(asked)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"{chosen.name} has no {what} {unknown[0]!r}; it has {', '.join(known)}")
    return asked


def records(chosen: Table) -> Path:
    """Return the path of stored rows."""
    return chosen.path.with_suffix(".jsonl")


def recorded(chosen: Table) -> dict[str, Row]:
    """Return the stored rows by cell; the last one if there are several."""
    path = records(chosen)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {cells.key_of(row): row for row in rows}


def results(chosen: Table) -> list[Row]:
    """Return recorded and printed results in the order of the table, or the reason why a cell was not run."""
    held = recorded(chosen)
    rows = []
    for one in chosen.cells():
        if one.why:
            rows.append(one.beside | {"why": one.why})
        else:
            kept = held.get(one.key, {"why": PENDING[0]})
            stale = "why" not in kept and _search(kept) != _search({"asked": one.asked})
            rows.append(one.beside | ({"why": PENDING[1]} if stale else kept))
    return rows


def tidy(chosen: Table) -> None:
    """Remove replaced rows and rows of removed cells, and sort rows in the order of the table."""
    held = recorded(chosen)
    kept = [held[one.key] for one in chosen.cells() if one.key in held]
    if held:
        records(chosen).write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
