"""The papers' tables and figures as data: what to run with which parameters, and what was printed.

Each is a TOML file, ``papers/<paper>/<name>.toml``; papers/README.md says what it holds.  What was measured is kept beside it
in ``<name>.jsonl``, a line per cell, written as cells are finished: a run that was stopped goes on where it was.
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


class Table(NamedTuple):
    """One table or figure of a paper."""

    name: str  # "avm/table4"
    path: Path
    facts: dict[str, Any]

    @property
    def is_figure(self) -> bool:
        """Whether it is drawn, rather than printed."""
        return "draw" in self.facts

    @property
    def scale(self) -> float:
        """Factor between the metric and the printed numbers."""
        return self.facts.get("scale", 100.0)

    def cells(self) -> Iterator[Cell]:
        """All cells, those that cannot be run too."""
        for data in self.facts.get("data", {}):
            for method in self.facts["methods"]:
                if data not in method.get("data", [data]):  # what is printed is shown all the same
                    method = {name: value for name, value in method.items() if name != "learner"}
                if "learner" in method or data in method.get("printed", {}):
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
    """Where the tables are: in the package, or in the project that it is run from."""
    here = Path(__file__).parent
    return next((one for one in (here, here.parents[2] / "papers") if any(one.glob("*/*.toml"))), here)


def tables() -> list[Table]:
    """All tables and figures, by paper, tables first."""
    found = sorted(folder().glob("*/*.toml"), key=_place)
    return [Table(f"{path.parent.name}/{path.stem}", path, tomllib.loads(path.read_text("utf-8"))) for path in found]


def _place(path: Path) -> tuple[str, bool, list[int], str]:
    numbers = [int(number) for number in re.findall("[0-9]+", path.stem)]
    return path.parent.name, "figure" in path.stem, numbers, path.stem


def named(name: str) -> list[Table]:
    """The table or figure of this name, such as "avm/table4"; those of a paper, such as "avm"; or "all"."""
    known = tables()
    found = [one for one in known if name in (one.name, one.path.parent.name, "all")]
    if not found:
        there = ", ".join(one.name for one in known)
        raise ValueError(f"no table is called {name!r}; there are {there or 'none, since papers/ is not here'}")
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
) -> list[Row]:
    """Run cells; one row each, with ours beside what was printed, or with the reason why it cannot be run.

    Parameters
    ----------
    chosen : Table
    permutations : int, optional
        Instead of the number that the table names.
    only, methods : iterable of str, optional
        The data sets and methods to run; all if not given.
    record : bool
        Whether to keep rows beside the table, and to take from there the cells that were run before as they are now described.
    again : bool
        Whether to run those, too, and to search for their parameters again.
    on_cell : callable, optional
        Called with the method and the data set before each cell.
    """
    wanted = _known(chosen, "data set", list(chosen.facts.get("data", {})), only)
    asked = _known(chosen, "method", [method["name"] for method in chosen.facts.get("methods", [])], methods)
    held = recorded(chosen)
    rows = []
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
            row = _ran(one, chosen, at_hand, kept.get("found") if kept and same else None)
            if record:
                with open(records(chosen), "a", encoding="utf-8") as file:
                    file.write(json.dumps(one.names | {"asked": one.asked} | row) + "\n")
        rows.append(one.beside | row)
    return rows


def _search(row: Row) -> dict[str, Any]:
    """Return the settings that decide which parameters are found."""
    return {name: value for name, value in row.get("asked", {}).items() if name != "orders"}


def _ran(one: Cell, chosen: Table, at_hand: PaperData, found: Any) -> Row:
    try:
        return cells.run(one, at_hand, chosen.scale, found)
    except FileNotFoundError as error:  # "NAME needs FILE, but downloading it failed ..."
        return {"why": re.split(", (?:but|which) ", str(error))[0] + ", which is not at hand"}
    except (ValueError, OSError, ImportError) as error:
        return {"why": str(error).split("; ")[0]}


def _known(chosen: Table, what: str, known: list[str], asked: Iterable[str] | None) -> list[str]:
    asked = known if asked is None else list(asked)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"{chosen.name} has no {what} {unknown[0]!r}; it has {', '.join(known)}")
    return asked


def records(chosen: Table) -> Path:
    """Where rows are kept."""
    return chosen.path.with_suffix(".jsonl")


def recorded(chosen: Table) -> dict[str, Row]:
    """The rows that were kept, by cell; of several the last."""
    path = records(chosen)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {cells.key_of(row): row for row in rows}


def results(chosen: Table) -> list[Row]:
    """Return the recorded results beside the printed ones, in the order of the table; cells that were not run say why."""
    held = recorded(chosen)
    rows = []
    for one in chosen.cells():
        if one.why:
            rows.append(one.beside | {"why": one.why})
        else:
            kept = held.get(one.key, {"why": "not run yet"})
            stale = "why" not in kept and _search(kept) != _search({"asked": one.asked})
            rows.append(one.beside | ({"why": "its description was changed after it was run"} if stale else kept))
    return rows


def tidy(chosen: Table) -> None:
    """Drop what later rows have replaced, and cells that are no more, and put rows in the order of the table."""
    held = recorded(chosen)
    kept = [held[one.key] for one in chosen.cells() if one.key in held]
    if held:
        records(chosen).write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
