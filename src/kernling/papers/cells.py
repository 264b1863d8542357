"""A cell of a paper's table, and how to run it."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import registry
from ..evaluate.holdout import batch, folds, held_out
from ..evaluate.measuring import orders
from ..evaluate.metrics import metric_class
from ..evaluate.protocols import online
from ..evaluate.rows import Row
from ..evaluate.selection import Choice, choose
from . import batch as batch_methods
from .paper_data import PaperData

SEARCH_SEED = 1000  # of the order whose first rows are used for the search; evaluated orders have 0, 1, ...
DATA = ("dataset", "synthetic", "rows", "seed", "part", "test", "positive", "norm", "rare")
PRINTED = ("std", "seconds", "test_seconds", "size", "risk")  # beside the value
BATCH = "batch."  # prefix of batch methods


class Cell(NamedTuple):
    """A method on a data set, for one value of the parameters that a figure varies."""

    data: str
    method: str
    at: dict[str, Any]
    asked: dict[str, Any]  # everything that determines the results
    printed: Row
    note: str | None
    why: str | None  # why it cannot be run

    @property
    def names(self) -> Row:
        """The key that identifies the cell."""
        return {"data": self.data, "method": self.method, "at": self.at}

    @property
    def key(self) -> str:
        """The key as text."""
        return key_of(self.names)

    @property
    def label(self) -> str:
        """The method, with the varied parameters if there are several."""
        return ", ".join([self.method, *(f"{name} {value:g}" for name, value in self.at.items())])

    @property
    def beside(self) -> Row:
        """Return the columns of a row other than the measurements."""
        return self.names | self.printed | {"note": self.note}


def key_of(row: Row) -> str:
    """Return the key of a row's cell as text."""
    return json.dumps([row["data"], row["method"], row.get("at", {})], sort_keys=True)


def cell(facts: Row, data: str, method: Row, at: dict[str, Any]) -> Cell:
    """Return a cell of a table, with parameters collected from the parts of the table.

    Parameters of the data set are overridden by those of the method, and these by those for the combination.  A data set that
    is ``like`` another has its parameters and printed results, and those of the methods on it.
    """
    about = facts["data"][data]
    like = about.get("like", data)
    if like != data:  # the same on other rows
        about = {name: value for name, value in facts["data"][like].items() if name != "note"} | about
    own = method.get("on", {}).get(data, method.get("on", {}).get(like, {}))
    theirs = method.get("printed", {}).get(like, {})
    printed = {"printed": theirs.get("value")} | {f"printed_{name}": theirs.get(name) for name in PRINTED}
    why = own.get("why") or method.get("why") or about.get("why") or facts.get("why")
    if "learner" not in method:
        why = why or "printed only"
        return Cell(data, method["name"], at, {}, printed, about.get("note"), why)
    task = metric_class(facts["metric"]).task
    known = [name for name in parameters_of(method["learner"], task) if name not in method.get("without", [])]
    params = {name: given for name, given in about.get("params", {}).items() if name in known}
    params |= method.get("params", {}) | own.get("params", {}) | at
    params = {name: None if given == "none" else given for name, given in params.items()}  # TOML has no null
    grid = {name: values for name, values in about.get("grid", {}).items() if name in known}
    grid |= method.get("grid", {}) | own.get("grid", {})
    asked = {
        "protocol": facts["protocol"],
        "metric": facts["metric"],
        "learner": method["learner"],
        "params": params,
        "grid": {name: values for name, values in grid.items() if name not in params},
        "data": {name: about[name] for name in DATA if name in about},
        "search_rows": own.get("search_rows", about.get("search_rows", facts.get("search_rows", 0))),
        "search": facts.get("search", "online" if facts["protocol"] == "online" else "split"),
        "moments": facts.get("moments"),
        "spread": facts.get("spread", "deviation"),
        "orders": own.get("orders", method.get("orders", about.get("orders", facts["orders"]))),
    }
    asked |= {"risk": True} if method.get("risk") else {}
    return Cell(data, method["name"], at, asked, printed, about.get("note"), why)


def parameters_of(learner: str, task: str) -> list[str]:
    """Return the names of a method's parameters."""
    return list(inspect.signature(_maker(learner, task)).parameters)


def _maker(learner: str, task: str) -> Any:
    if learner.startswith(BATCH):
        return getattr(batch_methods, learner.removeprefix(BATCH))
    return registry.estimator_for(learner, task)


def run(one: Cell, at_hand: PaperData, scale: float, found: Any, on_progress: Callable[[str], None]) -> Row:
    """Run a cell; ``found`` are parameters from an earlier search, or None."""
    asked = one.asked

    def on_row(row: Row) -> None:
        on_progress(f"order {row['permutation'] + 1} of {asked['orders']}, {row['events']:,} events")

    on_progress("reading")
    (X, y), test = at_hand.of(asked["data"])
    on_progress("searching parameters" if asked["grid"] and found is None else "training")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the columns' ranges differ")
        if asked["protocol"] == "folds":
            options: dict[str, Any] = {"n_folds": asked["orders"], "metrics": [asked["metric"]], "on_row": on_row}
            rows = folds(lambda X, y, fold: _choice(asked, X, y, fold), (X, y), **options)
            found = [row["chosen"] for row in rows] if asked["grid"] else None
        else:
            order = np.random.default_rng(SEARCH_SEED).permutation(len(y))
            apart = asked["protocol"] != "online" and not test  # a test part does not contain rows of the search
            rest = order[asked["search_rows"] if apart else 0 :]
            if asked["grid"] and found is None:
                found = _choice(asked, X[order], y[order], SEARCH_SEED).params
            rows = _measured(_made(asked, found or {}), asked, X[rest], y[rest], test, on_row)
    return _summed(asked, rows, scale, y) | {"found": found}


def fitted(asked: Row, found: Row | None, at_hand: PaperData) -> tuple[Any, Any, np.ndarray]:
    """Return the model of a cell trained on its first order, and the rows."""
    (X, y), _ = at_hand.of(asked["data"])
    order = next(orders(len(y), 1, 0))[1]
    return _made(asked, found or {}).fit(X[order], y[order]), X, y


def _choice(asked: Row, X: Any, y: np.ndarray, seed: int) -> Choice:
    """Return the best point of the grid on the first rows."""
    part = slice(asked["search_rows"] or None)
    make = partial(_made, asked)
    return choose(make, asked["grid"], X[part], y[part], metric=asked["metric"], how=asked["search"], seed=seed)


def _made(asked: Row, found: Row) -> Any:
    return _maker(asked["learner"], metric_class(asked["metric"]).task)(**asked["params"] | found)


def _measured(model: Any, asked: Row, X: Any, y: np.ndarray, test: Any, on_row: Callable[[Row], None]) -> list[Row]:
    metrics = [asked["metric"], *(["risk"] if asked.get("risk") else [])]
    options: dict[str, Any] = {"permutations": asked["orders"], "metrics": metrics, "on_row": on_row}
    moments = asked["moments"]
    if asked["protocol"] == "online":
        return online(model, (X, y), every=max(1, len(y) // moments) if moments else None, **options)
    if asked["protocol"] == "held":
        shares = np.linspace(*moments).tolist() if moments else [1.0]
        return held_out(model, (X, y), test, moments=shares, **options)
    return batch(model, (X, y), test=test, **options)


def _summed(asked: Row, rows: list[Row], scale: float, y: np.ndarray) -> Row:
    """Average over orders and, for held-out evaluation, over its moments; with several moments, add a curve of means."""
    metric = asked["metric"]
    by_order: dict[int, list[Row]] = {}
    for row in rows:
        by_order.setdefault(row["permutation"], []).append(row)
    runs = list(by_order.values())
    late = runs if asked["protocol"] == "held" else [run[-1:] for run in runs]
    values = [float(np.mean([row[metric] for row in run])) for run in late]
    last = rows[-1]
    out = {
        "ours": scale * float(np.mean(values)),
        "ours_std": scale * _spread(values, asked["spread"]) if len(values) > 1 else None,
        "values": values,
        "constant": scale * _constant(metric, [run[-1] for run in runs], y),
        "size": float(np.mean([row["n_stored"] for run in late for row in run])),
        "features": _features(last),
        "seconds": float(np.mean([run[-1]["seconds"] for run in runs])),
        "events": last["events"],
        "permutations": len(runs),
    }
    if "risk" in last:
        risks = [float(np.mean([row["risk"] for row in run])) for run in late]
        out |= {"risk": float(np.mean(risks)), "risk_std": _spread(risks, asked["spread"]) if len(risks) > 1 else None}
    if "test_seconds" in last:
        out["test_seconds"] = float(np.mean([run[-1]["test_seconds"] for run in runs]))
    if asked["moments"] and len(runs[0]) > 1:
        names = ["events", "seconds", metric, "n_stored", *(name for name in ("majority", "risk") if name in last)]
        moments = list(zip(*runs, strict=True))
        out["curve"] = {name: [float(np.mean([row[name] for row in moment])) for moment in moments] for name in names}
    return out


def _spread(values: list[float], kind: str) -> float:
    deviation = float(np.std(values, ddof=1))
    return deviation / np.sqrt(len(values)) if kind == "error" else deviation


def _constant(metric: str, rows: list[Row], y: np.ndarray) -> float:
    """Return the score of the best constant prediction."""
    if metric == "auc":
        return 0.5
    if metric_class(metric).task == "regression":
        return float(np.std(y))
    share = float(np.mean([row["majority"] for row in rows]))
    return 1.0 - share if metric == "mistakes" else share


def _features(row: Row) -> int | None:
    """Return the number of random features, if the method has any."""
    params = json.loads(row["params"])
    return params.get("n_components") if params.get("features", "fourier") == "fourier" else None
