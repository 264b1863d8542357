"""Classes of about one per cent: do the probabilities rank them, and is the log-loss below a constant's?

    python -m benchmarks.rare [--streams 2,4,6] [--contestants auto,krls]

Test-then-train with defaults: the area under the ROC curve and the log-loss over that of the constant which knows the share of
positives, both without the first tenth.  Logistic regression is fitted again on all rows so far at every twentieth of the
stream.  Trials looked at streams with odd numbers; those with even ones report.  See README.md in this folder.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernling as kl
from benchmarks.peer_streams import Table, data_file, named, shuffled, standardise_running

SHARE = 0.01  # of positives
PARTS = 20  # of a stream, after each of which logistic regression is fitted again


def drawn(rng: np.random.Generator, X: np.ndarray, f: np.ndarray, share: float, flipped: float = 0.0) -> Table:
    """Draw labels with log odds f plus the constant that makes positives this share, and turn some of either class."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if np.mean(1.0 / (1.0 + np.exp(-f - middle))) > share else (middle, high)
    y = rng.random(len(f)) < 1.0 / (1.0 + np.exp(-f - low))
    return X, (y ^ (rng.random(len(y)) < flipped)).astype(int)


def curved(share: float, seed: int, rows: int = 60_000) -> Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8))
    return drawn(rng, X, X[:, 0] + 0.8 * X[:, 1] ** 2 + 0.7 * X[:, 2] * X[:, 3] - 0.6 * X[:, 4], share)


def straight(columns: int, slope: float, seed: int, rows: int = 100_000) -> Table:
    """A table of unlike columns, of which each matters a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 1::3] = np.exp(X[:, 1::3])
    X[:, 2::3] = rng.integers(0, 5, X[:, 2::3].shape)
    pull = rng.normal(size=columns) * slope / np.sqrt(columns)
    return drawn(rng, X, (X - X.mean(axis=0)) / X.std(axis=0) @ pull, SHARE)


def product(flipped: float, seed: int, rows: int = 60_000) -> Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 10))
    return drawn(rng, X, 3.0 * X[:, 0] * X[:, 1] - 2.0 * np.abs(X[:, 2]), SHARE, flipped)


def rings(flipped: float, seed: int, rows: int = 60_000) -> Table:
    """Few small places in which nearly all are positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    centres = rng.normal(size=(6, 4))
    near = np.min(np.square(X[:, np.newaxis] - centres).sum(axis=2), axis=1)
    return drawn(rng, X, -6.0 * near, SHARE, flipped)


def thinned(table: Table, is_positive: Callable[[np.ndarray], np.ndarray], rows: int = 50_000, mix: bool = True) -> Table:
    """Return the first rows of a table, in random order unless the order matters, with SHARE of positives at most."""
    X, y = shuffled(*table) if mix else table
    y = is_positive(y)
    few = SHARE * np.sum(~y) / (1.0 - SHARE) / max(np.sum(y), 1)
    kept = ~y | (np.random.default_rng(0).random(len(y)) < few)
    return X[kept][:rows], y[kept][:rows].astype(int)


def of_file(name: str, **options) -> Table:
    table = pd.read_csv(data_file(name), **options)
    return table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy()


def covtype() -> Table:
    return of_file("covtype.data", header=None)


def catalogued(name: str) -> Table:
    X, y = named(name)
    return X.toarray() if sparse.issparse(X) else X, y


STREAMS: dict[int, tuple[str, Callable[[], Table]]] = {
    1: ("curved, 0.55 %", lambda: curved(0.0055, 1)),
    2: ("curved, 1.2 %", lambda: curved(0.012, 2)),
    3: ("straight", lambda: straight(12, 0.7, 3)),
    4: ("straight, wide", lambda: straight(30, 0.8, 4)),
    5: ("product", lambda: product(0.0, 5)),
    6: ("product, noisy", lambda: product(0.003, 6)),
    7: ("places, noisy", lambda: rings(0.003, 7)),
    8: ("places", lambda: rings(0.0, 8)),
    9: ("covtype, kind 4", lambda: thinned(covtype(), lambda y: y == 4)),
    10: ("covtype, kind 5", lambda: thinned(covtype(), lambda y: y == 5)),
    11: ("nomao", lambda: thinned(of_file("streams/nomao.csv"), lambda y: y == y.min())),
    12: ("kddcup, warezclient", lambda: thinned(catalogued("kddcup99"), lambda y: y == "warezclient.")),
    13: ("poker, straights", lambda: thinned(of_file("streams/poker.csv"), lambda y: y == 4)),
    14: ("poker, two pairs", lambda: thinned(of_file("streams/poker.csv"), lambda y: y == 2)),
    15: ("a9a", lambda: thinned(catalogued("a9a"), lambda y: y == y.max())),
    16: ("cod-rna", lambda: thinned(catalogued("cod-rna"), lambda y: y == y.max())),
    17: ("electricity, in order", lambda: thinned(of_file("streams/electricity.csv"), lambda y: y == y.max(), mix=False)),
    18: ("weather, in order", lambda: thinned(of_file("streams/weather.csv"), lambda y: y == y.max(), mix=False)),
}


def probabilities(model) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda X, y: model.predict_then_learn(X, y, method="predict_proba", classes=[0, 1])[:, 1]


def scores(model) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda X, y: model.predict_then_learn(standardise_running(X).scaled, y, method="decision_function", classes=[0, 1])


def refitted(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probabilities of logistic regression, fitted on all parts of the stream before the row's own."""
    parts = np.array_split(np.arange(len(y)), PARTS)
    said = np.full(len(y), SHARE)
    for part in parts[1:]:
        if y[: part[0]].any():
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
            said[part] = model.fit(X[: part[0]], y[: part[0]]).predict_proba(X[part])[:, 1]
    return said


CONTESTANTS: dict[str, Callable[[], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "auto": lambda: probabilities(kl.AutoClassifier()),
    "krls": lambda: scores(kl.KRLSClassifier()),
    "spa": lambda: scores(kl.SPAClassifier(random_state=0)),
    "aogd": lambda: scores(kl.AOGDClassifier(random_state=0)),
    "logistic": lambda: refitted,
}


def measure(said: np.ndarray, y: np.ndarray) -> tuple[float, float | None]:
    """Return the area under the ROC curve, and the log-loss of probabilities over the constant's."""
    said, y = said[len(y) // 10 :], y[len(y) // 10 :]
    known = log_loss(y, np.full(len(y), y.mean()))
    return roc_auc_score(y, said), log_loss(y, said) / known if said.min() >= 0.0 and said.max() <= 1.0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default=",".join(map(str, STREAMS)), help="their numbers")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # about uneven columns and steps that did not converge
    for number in map(int, given.streams.split(",")):
        name, load = STREAMS[number]
        X, y = load()
        cells = []
        for contestant in given.contestants.split(","):
            area, loss = measure(CONTESTANTS[contestant]()(X, y), y)
            cells.append(f"{contestant} {area:.3f}" + (f" ({loss:.3f})" if loss is not None else ""))
        print(f"{number:2d} {name:22s} {len(y):7,d} rows, {y.mean():.2%}  {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
