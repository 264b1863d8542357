"""Auto: the time per event relative to that of the matrix products that it cannot avoid.

    python -m benchmarks.auto

The products are P Z', a symmetric update of P, the triangular solve, and the points and the window times the rows, as bare
calls of BLAS on blocks of the same size.  Both take turns in one run, in processor time; see README.md in this folder.
"""

from benchmarks.timing import best  # first: it sets the number of threads  # isort: skip

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

import kernling as kl
from kernling.core.blas import one_thread
from kernling.methods.auto import BLOCK

EVENTS = 4096  # a multiple of the block
WINDOW = 1000
SINGLES = 200
ROUNDS = 3
GOAL = 2.0  # of a pass over the products at d = 54 and 512 points


def rows(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a nonlinear boundary that use all points."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * EVENTS, d))
    return X, (np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(len(X)) > 0.0).astype(int)


def products(d: int, points: int) -> Callable[[], None]:
    """Return a function that computes the matrix products of all events."""
    rng = np.random.default_rng(0)
    n = points + (1 + d if d <= 512 else 1)
    P = np.asfortranarray(np.eye(n))
    factor = np.asfortranarray(np.tril(rng.standard_normal((points, points))) + 100.0 * np.eye(points))
    stored, window, X = (rng.standard_normal((length, d)) for length in (points, WINDOW, BLOCK))
    Z, V = rng.standard_normal((n, BLOCK)), np.asfortranarray(1e-6 * rng.standard_normal((BLOCK, n)))
    values = np.asfortranarray(rng.standard_normal((points, BLOCK)))

    @one_thread
    def run() -> None:
        for _ in range(EVENTS // BLOCK):
            blas.dsymm(1.0, P, Z.T, side=1)
            blas.dsyrk(-1.0, V, beta=1.0, trans=1, c=P, overwrite_c=1)
            blas.dtrsm(1.0, factor, values, lower=1)
            stored @ X.T
            window @ X.T

    return run


def line(d: int, points: int) -> None:
    """Print a line of the table."""
    X, y = rows(d)
    model = kl.AutoClassifier(points=points, window=WINDOW).fit(X[:EVENTS], y[:EVENTS])
    single = kl.AutoClassifier(points=points, window=WINDOW).fit(X[:EVENTS], y[:EVENTS])
    seconds = best(
        {
            "pass": lambda: model.partial_fit(X[EVENTS:], y[EVENTS:]),
            "products": products(d, points),
            "predict": lambda: model.predict(X[EVENTS:]),
            "one": lambda: [single.learn_one(X[i], y[i]) for i in range(SINGLES)],
        },
        ROUNDS,
    )
    learn, bare, predict = (1e6 * seconds[what] / EVENTS for what in ("pass", "products", "predict"))
    one = 1e6 * seconds["one"] / SINGLES
    goal = f"{GOAL}" if (d, points) == (54, 512) else ""
    print(
        f"| {d} | {points} | {learn:.0f} | {bare:.0f} | {learn / bare:.1f} | {goal} | {predict:.0f} | {one:.0f} |", flush=True
    )


def main() -> None:
    print("Microseconds per event.\n")
    print("| d | points | learn | products | learn / products | goal | predict | learn_one |")
    print("|---|---|---|---|---|---|---|---|")
    for d in (8, 54, 784):
        for points in (64, 256, 512):
            line(d, points)


if __name__ == "__main__":
    main()
