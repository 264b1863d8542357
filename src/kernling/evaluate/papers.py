"""The papers' tables as data: what to run with which parameters, and what was printed.

A table is a TOML file, ``papers/<paper>/<table>.toml``: the protocol and the metric; for each data set its name, part and
parameters; for each method its learner, parameters, and what was printed (value, standard deviation, seconds) by data set.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import registry
from ..streams import dataset
from .protocols import batch, online
from .rows import Row, summary


class Table(NamedTuple):
    """One table of a paper."""

    name: str  # "avm/table4"
    path: Path
    facts: dict[str, Any]


def folder() -> Path:
    """Where the tables are: in the package, or in the project that it is run from."""
    here = Path(__file__).parents[1]
    return next((one for one in (here / "papers", here.parents[1] / "papers") if one.is_dir()), here / "papers")


def tables() -> list[Table]:
    """All tables."""
    found = sorted(folder().glob("*/*.toml"))
    return [Table(f"{path.parent.name}/{path.stem}", path, tomllib.loads(path.read_text("utf-8"))) for path in found]


def table(name: str) -> Table:
    """The table of this name, such as "avm/table4"."""
    known = {one.name: one for one in tables()}
    if name not in known:
        raise ValueError(f"no table is called {name!r}; there are {', '.join(known) or 'none, since papers/ is not here'}")
    return known[name]


def reproduce(
    chosen: Table,
    *,
    permutations: int = 1,
    only: Iterable[str] | None = None,
    on_cell: Callable[[str, str], None] = lambda method, data: None,
) -> list[Row]:
    """Run the cells of a table; one row each, with ours beside what was printed, or with the reason why it cannot be run.

    Parameters
    ----------
    chosen : Table
    permutations : int
    only : iterable of str, optional
        The data sets to run; all if not given.
    on_cell : callable, optional
        Called with the method and the data set before each cell.
    """
    facts = chosen.facts
    wanted = list(facts["data"]) if only is None else list(only)
    unknown = [name for name in wanted if name not in facts["data"]]
    if unknown:
        raise ValueError(f"{chosen.name} has no data set {unknown[0]!r}; it has {', '.join(facts['data'])}")
    rows = []
    for name in wanted:
        about = facts["data"][name]
        data: Any = None
        for method in facts["methods"]:
            printed = method["printed"].get(name)
            if printed is None and "learner" not in method:
                continue
            row = _beside(name, about, method["name"], printed)
            if "learner" not in method:
                row["why"] = "printed only"
            elif "params" not in about:
                row["why"] = about.get("note", "no parameters are known")
            else:
                on_cell(method["name"], name)
                try:
                    data = data or _loaded(about)
                    row |= _run(facts, about, method, data, permutations)
                except (ValueError, OSError, ImportError) as error:
                    row["why"] = str(error).split("; ")[0].split(": get ")[0]
            rows.append(row)
    return rows


def _beside(name: str, about: Row, method: str, printed: list[float] | None) -> Row:
    value, spread, seconds = [*(printed or []), None, None, None][:3]
    return {
        "data": name,
        "method": method,
        "printed": value,
        "printed_std": spread,
        "printed_seconds": seconds,
        "printed_size": about.get("size") if method.startswith("AVM") else None,
        "note": about.get("note"),
    }


def _loaded(about: Row) -> Any:
    named = dataset(about["dataset"])
    train = named.load(about["part"])
    return train, named.load(about["test"]) if "test" in about else None


def _run(facts: Row, about: Row, method: Row, data: Any, permutations: int) -> Row:
    kind = "regression" if facts["metric"] == "rmse" else "classification"
    classes: list[Any] = [cls for cls in registry.find(method["learner"]).classes() if cls.task == kind]  # type: ignore[attr-defined]
    if not classes:
        raise ValueError(f"{method['learner']} has no estimator for {kind}")
    params = about["params"] | about.get(method["name"], {}) | method.get("params", {})
    model = classes[0](**params)
    (X, y), test = data
    measured: dict[str, Any] = {"permutations": permutations, "metrics": [facts["metric"]]}
    made = batch(model, (X, y), test=test, **measured) if facts["protocol"] == "batch" else online(model, (X, y), **measured)
    ours = summary(made)[0]
    scale = facts["scale"]
    majority = ours.get("majority")
    if majority is not None and facts["metric"] == "mistakes":
        majority = 1.0 - majority
    return {
        "ours": scale * ours[facts["metric"]],
        "ours_std": scale * ours[f"{facts['metric']}_std"],
        "always_commonest": scale * majority if majority is not None else float(scale * np.std(y)),
        "size": ours["n_stored"],
        "seconds": ours["seconds"],
        "permutations": permutations,
        "params": json.dumps(params),
    }


def recorded(chosen: Table) -> list[Row]:
    """The rows that were kept when the table was last run, if it was."""
    path = chosen.path.with_suffix(".json")
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def record(chosen: Table, rows: list[Row]) -> None:
    """Keep rows beside the table, in place of those for the same cells."""
    fresh = {(row["data"], row["method"]): row for row in rows}
    kept = [fresh.pop((row["data"], row["method"]), row) for row in recorded(chosen)]
    chosen.path.with_suffix(".json").write_text(json.dumps([*kept, *fresh.values()], indent=1) + "\n", encoding="utf-8")
