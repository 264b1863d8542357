"""Sets of labels: how many labels they contain, overall, in every 2,000 events and of the rarest label, and how large they are.

    python -m benchmarks.sets [--streams electricity,weather] [--rows 20000] [--coverage 0.9]

Of ``AutoClassifier(calibrate=True)``, each just before its event is learned.  Compared on the same probabilities are sets
that may be empty, and two other scores, both by the same adaptive thresholds: APS, the probability of the label and of all
likelier ones (Romano, Sesia and Candès 2020), and APS with a random part of the label's own probability.  "Rarest" is the
share of the rarest label that was inside, of those with at least 300 events.
"""

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np

import kernling as kl
from benchmarks import changes
from benchmarks.arena_streams import STREAMS as ARENA
from benchmarks.intervals import FIRST, SPAN, pieces
from kernling.components.conformal import LEVELS, follow, levels, new_errors
from kernling.estimators.calibrated import likeliest, losses_of

CHUNK = 1000
ENOUGH = 300  # events of a label
NAMES = ("electricity", "weather", "powersupply", "covtype", "noisy:3", "three_classes:3", "soon_again:3", "none_noisy:3")


def read(name: str, rows: int) -> tuple[Any, np.ndarray]:
    """Return a table, and labels."""
    if name in ARENA:
        X, y, *_ = ARENA[name].read(name, rows)
    else:
        kind, _, seed = name.partition(":")
        X, y, _ = changes.CLASSES[kind](np.random.default_rng(int(seed)), rows // 2)
    return X[:rows], np.asarray(y[:rows])


class Events(NamedTuple):
    """Losses of all labels before each event was learned, infinite where unknown, its own label, and whether that was new."""

    losses: np.ndarray  # (events, labels)
    own: np.ndarray
    is_new: np.ndarray

    def with_sets(self, scores: np.ndarray, level: int) -> np.ndarray:
        """Return the sets of labels whose scores are below the adaptive thresholds."""
        thresholds, found = np.empty((len(self.own), len(LEVELS))), scores[np.arange(len(self.own)), self.own]
        follow(new_errors(of_values=False), levels(), np.zeros(len(found)), np.where(self.is_new, np.inf, found), thresholds)
        return (scores <= thresholds[:, [level]]) & np.isfinite(scores)

    def inside(self, sets: np.ndarray) -> np.ndarray:
        """Return whether each label is in its set; a new one could be in none."""
        return sets[np.arange(len(self.own)), self.own] & ~self.is_new

    def told(self, sets: np.ndarray) -> str:
        """Return coverage overall, the lowest and highest in a span, that of the rarest label, mean size, and empty sets."""
        inside, own, sizes = self.inside(sets)[FIRST:], self.own[FIRST:], sets[FIRST:].sum(axis=1)
        spans = [inside[start : start + SPAN].mean() for start in range(0, len(inside) - SPAN + 1, SPAN)]
        counts = np.bincount(own).astype(float)
        rarest = np.where(counts >= ENOUGH, counts, np.inf).argmin()
        shares = inside.mean(), min(spans, default=np.nan), max(spans, default=np.nan), inside[own == rarest].mean()
        return "".join(f"{100 * share:6.1f}" for share in shares) + f"{sizes.mean():7.2f}{100 * np.mean(sizes == 0):6.1f}"


def predicted(X: Any, y: np.ndarray) -> tuple[Events, Any]:
    """Return what a model said about events before it learned them, and its own account of its sets."""
    model = kl.StreamPipeline.auto(calibrate=True, task="classification")
    labels, own = np.unique(y, return_inverse=True)
    losses, place = np.full((len(y), len(labels)), np.inf), 0
    for rows in pieces(len(y), CHUNK):
        for known, scores in model.predict_then_learn(X[rows], y[rows], method="segments"):
            found = losses_of(scores, len(known))
            losses[place : place + len(found), np.searchsorted(labels, known)] = found
            place += len(found)
    is_new = np.zeros(len(y), dtype=bool)
    is_new[np.unique(own, return_index=True)[1]] = True
    is_new[0] = False  # it is not counted
    return Events(losses, own, is_new), model.calibration_


def cumulative(losses: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return APS: the probability of all likelier labels and of this part of a label's own; infinite where it is unknown."""
    p = np.exp(-losses)
    order = np.argsort(losses, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(p, order, 1), axis=1) - np.take_along_axis(p, order, 1)
    found = np.empty_like(p)
    np.put_along_axis(found, order, before, 1)
    return np.where(np.isfinite(losses), found + parts[:, np.newaxis] * p, np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default=",".join(NAMES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--coverage", type=float, default=0.9)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    level = LEVELS.index(given.coverage)
    print(f"{'stream':16s} {'sets':18s}   all   low  high rarest  size empty")
    for name in given.streams.split(","):
        events, calibration = predicted(*read(name, given.rows))
        may_be_empty, everyone = events.with_sets(events.losses, level), np.arange(len(events.own))
        built = may_be_empty.copy()
        built[everyone, likeliest(events.losses)] = True
        found = events.inside(built)[1:].mean(), built[1:].sum(axis=1).mean()
        if not np.allclose(found, calibration[given.coverage]):
            raise RuntimeError(f"the model has followed other sets: {found}, {calibration[given.coverage]}")
        parts = np.random.default_rng(0).random(len(everyone))
        kinds = {
            "predict_set": built,
            "may be empty": may_be_empty,
            "APS": events.with_sets(cumulative(events.losses, np.ones(len(everyone))), level),
            "APS, random part": events.with_sets(cumulative(events.losses, parts), level),
        }
        for kind, sets in kinds.items():
            print(f"{name:16s} {kind:18s}{events.told(sets)}", flush=True)


if __name__ == "__main__":
    main()
