"""A model after a change of the stream, next to one that starts fresh at the change.

    python -m benchmarks.changes [--estimator KRLS] [--kinds curve_to_product,units] [--seeds 1,2] [--before 10000]

A table of errors (shares of mistakes, or mean squared errors over the variance of the target) in three spans of events after
the change, of both models, and alarms.  Odd seeds were used to choose constants; others report.

Auto scales columns itself.  KRLS, with ``restart``, is given them in units of their deviation over the first events of the
stream, from which it takes gamma.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.base import is_regressor

import kernling as kl

SPANS = ((2000, 4000), (8000, 10_000), (16_000, 20_000))  # events after the change
GOALS = (1.3, 1.25, 1.2)  # of the fresh model's error, plus MORE
MORE = 0.005
COLUMNS = 10
FIRST = 1000  # events that are given in a call of their own

Stream = tuple[np.ndarray, np.ndarray, int]  # rows, targets, and the event from which a fresh model starts
Rule = Callable[[np.ndarray], np.ndarray]


def curve(X):
    return X[:, 0] + X[:, 1] ** 2 > 1.0


def line(X):
    return X[:, 0] + X[:, 1] > 0.0


def product(X):
    return X[:, 2] * X[:, 3] > 0.0


def other_product(X):
    return X[:, 4] * X[:, 5] > 0.0


def ball(X):
    return np.square(X[:, :4]).sum(axis=1) > 3.4


def boxes(X):
    return (X[:, 6] > 0.5) ^ (X[:, 7] > -0.3)


def stripes(X):
    return np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] > 0.0


def opposite(rule: Rule) -> Rule:
    return lambda X: ~rule(X)


def thirds(first: int, second: int) -> Rule:
    return lambda X: np.digitize(X[:, first] * X[:, second] + 0.5 * X[:, first], [-0.4, 0.4])


def waves(first: int, second: int) -> Rule:
    return lambda X: np.sin(2.0 * X[:, first]) + X[:, first] * X[:, second] + 0.1 * X[:, -1]


def slope(X):
    return X[:, 0] - 2.0 * X[:, 1] + 0.5 * X[:, 2]


def rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))


def abrupt(*rules: Rule, d: int = COLUMNS, noise: float = 0.0, each: int | None = None):
    """One rule after another: the last change is the one that counts, the others come after ``each`` events."""

    def made(rng: np.random.Generator, before: int) -> Stream:
        cuts = [before] + [each or before] * (len(rules) - 2)
        start = sum(cuts)
        X = rows(rng, start + SPANS[-1][1], d)
        parts = np.split(X, np.cumsum(cuts))
        y = np.concatenate([rule(part).astype(float) for rule, part in zip(rules, parts, strict=True)])
        flipped = rng.random(len(y)) < noise
        return X, np.where(flipped, 1.0 - y, y), start

    return made


def gradual(first: Rule, second: Rule, length: int):
    """The second rule becomes more and more likely; a fresh model starts when it is certain."""

    def made(rng: np.random.Generator, before: int) -> Stream:
        X = rows(rng, before + length + SPANS[-1][1], COLUMNS)
        new = rng.random(len(X)) < (np.arange(len(X)) - before) / length
        return X, np.where(new, second(X), first(X)).astype(float), before + length

    return made


def rescaled(rule: Rule, factors: float, shift: float):
    """The same rule, after columns came in other units."""

    def made(rng: np.random.Generator, before: int) -> Stream:
        X = rows(rng, before + SPANS[-1][1], COLUMNS)
        y = rule(X).astype(float)
        X[before:] = X[before:] * factors ** rng.uniform(-1.0, 1.0, COLUMNS) + shift * rng.normal(size=COLUMNS)
        return X, y, before

    return made


def moved_rows(rule: Rule, by: float):
    """The same rule in another place."""

    def made(rng: np.random.Generator, before: int) -> Stream:
        X = rows(rng, before + SPANS[-1][1], COLUMNS)
        y = rule(X).astype(float)
        X[before:] += by
        return X, y, before

    return made


CLASSES = {
    "curve_to_product": abrupt(curve, product),
    "line_to_product": abrupt(line, product),
    "product_to_product": abrupt(product, other_product),
    "wide": abrupt(curve, product, d=25),
    "opposite": abrupt(curve, opposite(curve)),
    "product_to_line": abrupt(product, line),
    "ball_to_boxes": abrupt(ball, boxes),
    "stripes_to_curve": abrupt(stripes, curve),
    "noisy": abrupt(curve, product, noise=0.1),
    "three_classes": abrupt(thirds(0, 1), thirds(2, 3)),
    "several": abrupt(curve, product, line, ball, other_product, each=5000),
    "soon_again": abrupt(curve, product, boxes, each=1500),
    "returns": abrupt(curve, product, curve),
    "returns_soon": abrupt(curve, product, curve, each=700),
    "gradual": gradual(curve, product, 4000),
    "slow": gradual(line, other_product, 12_000),
    "units": rescaled(curve, 30.0, 5.0),
    "moved": moved_rows(product, 3.0),
    "none": abrupt(curve, curve),
    "none_noisy": abrupt(product, product, noise=0.2),
}
VALUES = {
    "values": abrupt(waves(0, 1), waves(2, 3)),
    "values_from_line": abrupt(slope, waves(4, 5)),
    "values_larger": abrupt(waves(0, 1), lambda X: 50.0 * waves(2, 3)(X) + 100.0),
    "values_units": rescaled(waves(0, 1), 30.0, 5.0),
    "values_none": abrupt(waves(0, 1), waves(0, 1)),
}


ESTIMATORS = {
    "Auto": (kl.AutoClassifier, kl.AutoRegressor),
    "KRLS": (partial(kl.KRLSClassifier, restart=True), partial(kl.KRLSRegressor, restart=True)),
}


def losses(model, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the mistake, or the squared error, of each event before it was learned."""
    said = np.concatenate([model.predict_then_learn(X[part], y[part]) for part in (slice(FIRST), slice(FIRST, None))])
    return np.square(said - y) if is_regressor(model) else (said != y).astype(float)


def measure(estimator: str, kind: str, seed: int, before: int) -> str:
    """Return a line of the table."""
    made, cls = (CLASSES[kind], ESTIMATORS[estimator][0]) if kind in CLASSES else (VALUES[kind], ESTIMATORS[estimator][1])
    X, y, start = made(np.random.default_rng(seed), before)
    if estimator != "Auto":
        X = (X - X[:FIRST].mean(axis=0)) / X[:FIRST].std(axis=0)
    unit = y[start:].var() if kind in VALUES else 1.0
    model = cls()
    own, fresh = losses(model, X, y)[start:] / unit, losses(cls(), X[start:], y[start:]) / unit
    cells = []
    for (first, last), goal in zip(SPANS, GOALS, strict=True):
        errors = own[first:last].mean(), fresh[first:last].mean()
        sign = " " if errors[0] <= goal * errors[1] + MORE else "!"
        cells.append(f"{errors[0]:.4f} ({errors[1]:.4f}){sign}")
    alarms = ", ".join(f"{alarm.event - start:+d}" + ("*" if alarm.replaced else "") for alarm in model.rises_)
    return f"{kind:20s} {seed:4d}  {'  '.join(cells)}  {alarms}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="Auto")
    parser.add_argument("--kinds", default=",".join([*CLASSES, *VALUES]))
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--before", type=int, default=10_000, help="events before the first change")
    given = parser.parse_args()
    spans = "  ".join(f"{f'{first:,}-{last:,}':^17s}" for first, last in SPANS)
    print(f"{'change':20s} seed  {spans}  alarms, from the last change (*: a successor took over)")
    for kind in given.kinds.split(","):
        for seed in given.seeds.split(","):
            print(measure(given.estimator, kind, int(seed), given.before), flush=True)


if __name__ == "__main__":
    main()
