"""Streams of four widths: clusters of unequal size and random class, away from the origin, with 10 % label noise."""

from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    events: int
    columns: int
    clusters: int
    variance: float  # within a cluster


SHAPES = {
    "A": Shape(200_000, 8, 320, 0.05),
    "B": Shape(100_000, 54, 320, 0.08),
    "C": Shape(50_000, 123, 120, 0.1),
    "D": Shape(20_000, 784, 800, 0.2),
}


def stream(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels, -1 or 1."""
    shape = SHAPES[name]
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((shape.clusters, shape.columns))
    share = 1.0 / np.sqrt(np.arange(1, shape.clusters + 1))
    cluster = rng.choice(shape.clusters, size=shape.events, p=share / share.sum())
    X = 1.0 + centres[cluster] + np.sqrt(shape.variance) * rng.standard_normal((shape.events, shape.columns))
    sign = np.where(rng.random(shape.clusters) < 0.5, -1, 1)[cluster]
    return X, np.where(rng.random(shape.events) < 0.1, -sign, sign)
