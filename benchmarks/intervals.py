"""Intervals of regressors: how many targets they contain, overall and in every 2,000 events, and how wide they are.

    python -m benchmarks.intervals [--streams casp,bike] [--rows 20000] [--coverage 0.9] [--mapie]

Of Auto's and KRLS's own intervals (``calibrate=True``), each just before its event is learned, and of two others: KRLS's
Gaussian intervals, and split-conformal intervals of scikit-learn's boosted trees, refitted every 1,000 events on the latest
5,000, a quarter of which calibrates; with ``--mapie``, of the package MAPIE as well, around the same trees: split-conformal
ones, and conformalised quantile regression.  All of these times the factor that gives the same coverage in hindsight.  Widths
are means over standard deviations of the target.  Streams are those of regression in benchmarks.peers and the arena with at
least 2,000 rows, and changes of benchmarks.changes with noise.  The constants of components/conformal.py were chosen on the
first of these at odd places, 1 to 7, and on changes with seed 1.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import kernling as kl
from benchmarks import changes
from benchmarks.arena_streams import STREAMS as ARENA
from benchmarks.peer_streams import STREAMS as PEERS
from kernling.components.conformal import LEVELS, follow, levels, new_errors

PIECE = 64  # events whose deviations are predicted at once
SPAN = 2000
REFIT, LATEST, HELD = 1000, 5000, 0.25
FIRST = 1000  # events that are not counted: the boosted trees have not begun
NOISE = 0.2  # of the deviation of the target before a change
CHANGES = (
    "values:3",
    "values:4",
    "values_from_line:3",
    "values_from_line:4",
    "values_larger:3",
    "values_larger:4",
    "values_units:3",
)
NAMES = (
    "casp",
    "flights-minutes",
    "friedman-drift",
    "bike",
    "MetroTraffic",
    "california_housing",
    "fried",
    *CHANGES,
)


class Intervals(NamedTuple):
    """Limits for the targets of a stream, which were predicted before their events were learned."""

    low: np.ndarray
    high: np.ndarray

    def stretched(self, y: np.ndarray, coverage: float) -> "Intervals":
        """Return the intervals times the factor with which they have this coverage."""
        middle, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        half = half * np.quantile((np.abs(y - middle) / half)[FIRST:], coverage)
        return Intervals(middle - half, middle + half)

    def told(self, y: np.ndarray) -> str:
        """Return coverage overall, the lowest and the highest in a span, and the mean width."""
        inside = ((self.low <= y) & (y <= self.high))[FIRST:]
        spans = [inside[start : start + SPAN].mean() for start in range(0, len(inside) - SPAN + 1, SPAN)]
        width = np.mean((self.high - self.low)[FIRST:]) / y.std()
        return f"{100 * inside.mean():5.1f} {100 * min(spans):5.1f} {100 * max(spans):5.1f} {width:6.3f}"


def read(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return encoded and scaled rows, and targets."""
    X: Any
    if name in PEERS:
        X, y = PEERS[name].load()
    elif name in ARENA:
        X, y, *_ = ARENA[name].read(name)
    else:
        kind, _, seed = name.partition(":")
        rng = np.random.default_rng(int(seed))
        X, y, start = changes.VALUES[kind](rng, rows // 2)
        y = y + NOISE * y[:start].std() * rng.normal(size=len(y))
    X, y = X[:rows], np.asarray(y[:rows], dtype=np.float64)
    encode = kl.StreamPipeline.auto(kl.AVMRegressor())
    table = X if hasattr(X, "columns") else {f"x{place}": column for place, column in enumerate(np.asarray(X, np.float64).T)}
    return np.asarray(encode.predict_then_learn(table, y, return_rows=True)[1]), y


def pieces(n: int, length: int) -> Iterator[slice]:
    return (slice(first, min(first + length, n)) for first in range(0, n, length))


def of_model(model: Any, X: np.ndarray, y: np.ndarray, coverage: float) -> tuple[Intervals, np.ndarray]:
    """Return a model's own intervals, and its predictions: what it follows while it learns is followed here once more."""
    said = model.predict_then_learn(X, y)
    errors, thresholds = new_errors(of_values=True), np.empty((len(y), len(LEVELS)))
    follow(errors, levels(), said, np.abs(y - said), thresholds)
    half, own = thresholds[:, LEVELS.index(coverage)], model.calibration_[coverage]
    if not np.isclose(np.mean((np.abs(y - said) <= half)[1:]), own.inside) or not np.isclose(2.0 * half[1:].mean(), own.size):
        raise RuntimeError("the model has followed other errors than those of its predictions")
    return Intervals(said - half, said + half), said


def deviations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the standard deviations of KRLS's predictions, of each piece before it is learned."""
    model, found = kl.KRLSRegressor(), np.full(len(y), y.std())
    for rows in pieces(len(y), PIECE):
        if rows.start:
            found[rows] = model.predict(X[rows], return_std=True)[1]
        model.partial_fit(X[rows], y[rows])
    return found


def of_trees(fitted, held, rows: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the split-conformal limits of rows, given rows and targets that are fitted, and those that calibrate."""
    model = HistGradientBoostingRegressor(random_state=0).fit(*fitted)
    errors = np.sort(np.abs(held[1] - model.predict(held[0])))
    half = errors[min(int(np.ceil(coverage * (len(errors) + 1))), len(errors)) - 1]
    said = model.predict(rows)
    return said - half, said + half


def of_mapie(fitted, held, rows: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the same limits as MAPIE computes them."""
    from mapie.regression import SplitConformalRegressor

    model = SplitConformalRegressor(HistGradientBoostingRegressor(random_state=0), coverage, prefit=False)
    limits = model.fit(*fitted).conformalize(*held).predict_interval(rows)[1]
    return limits[:, 0, 0], limits[:, 1, 0]


def of_quantiles(fitted, held, rows: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of MAPIE's conformalised quantile regression."""
    from mapie.regression import ConformalizedQuantileRegressor

    trees = HistGradientBoostingRegressor(loss="quantile", quantile=0.5, random_state=0)
    model = ConformalizedQuantileRegressor(trees, coverage).fit(*fitted).conformalize(*held)
    limits = model.predict_interval(rows)[1]
    return limits[:, 0, 0], limits[:, 1, 0]


def refitted(limits: Callable, X: np.ndarray, y: np.ndarray, coverage: float) -> Intervals:
    """Return intervals that are fitted again on the latest events, a part of which calibrates."""
    low, high, rng = np.full(len(y), -1.0), np.full(len(y), 1.0), np.random.default_rng(0)
    for rows in pieces(len(y), REFIT):
        if rows.start:
            known = rng.permutation(np.arange(max(0, rows.start - LATEST), rows.start))
            held, fitted = np.split(known, [int(HELD * len(known))])
            low[rows], high[rows] = limits((X[fitted], y[fitted]), (X[held], y[held]), X[rows], coverage)
    return Intervals(low, high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default=",".join(NAMES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--mapie", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    others = {"boosted trees, split": of_trees} | (
        {"MAPIE, split": of_mapie, "MAPIE, quantiles": of_quantiles} if given.mapie else {}
    )
    heads = ["Auto", "KRLS", "KRLS, Gaussian", *others]
    print(
        " " * 21
        + "".join(f"{title:27s}" for title in heads)
        + f"\n{'stream':20s} "
        + len(heads) * "  all   low  high  width   "
    )
    for name in given.streams.split(","):
        X, y = read(name, given.rows)
        auto = of_model(kl.AutoRegressor(standardise=False, calibrate=True), X, y, given.coverage)[0]
        krls, said = of_model(kl.KRLSRegressor(calibrate=True), X, y, given.coverage)
        spread = deviations(X, y)
        found = [Intervals(said - spread, said + spread), *(refitted(one, X, y, given.coverage) for one in others.values())]
        found = [auto, krls, *(one.stretched(y, given.coverage) for one in found)]
        place = NAMES.index(name) + 1 if name in NAMES else 0
        print(f"{place:2d} {name:18s}" + "".join(f"{one.told(y)}   " for one in found), flush=True)


if __name__ == "__main__":
    main()
