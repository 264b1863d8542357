"""Synthetic streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .base import CHUNK, Chunk, Stream

_BLOCK = 4096  # rows drawn at a time, independent of the chunk size, so that a seed determines the stream

Draw = Callable[[int, int], Chunk]  # (rows, place of the first) -> (X, y)


def _multidist(rng: np.random.Generator) -> Draw:
    """Five classes of three Gaussians each, as in POLK.

    A. Koppel, G. Warnell, E. Stump, A. Ribeiro, Parsimonious online learning with kernels, JMLR 20 (2019), section 5.2: class
    centres are spaced evenly around the unit circle, the means of a class's three components are normal around its centre with
    standard deviation 1, labels and components are uniform.  The paper calls 0.2 the components' variance, but then nothing
    reaches its 4 % error (the Bayes error is 15 to 39 % over draws of the means); as a standard deviation it fits.
    """
    angles = 2.0 * np.pi * np.arange(5) / 5
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    means = centres[:, None, :] + rng.standard_normal((5, 3, 2))

    def draw(n: int, _: int) -> Chunk:
        y = rng.integers(5, size=n)
        return means[y, rng.integers(3, size=n)] + 0.2 * rng.standard_normal((n, 2)), y

    return draw


def _gaussian(rng: np.random.Generator) -> Draw:
    """Two Gaussians, as in SPA: N((0, 0), I) with probability 0.4, class -1; N((2, 0), 4 I) otherwise, class +1.

    J. Lu, P. Zhao, S. Hoi, Online sparse passive aggressive learning with kernels, SDM 2016, section 4.1.
    """

    def draw(n: int, _: int) -> Chunk:
        y = np.where(rng.random(n) < 0.4, -1, 1)
        X = rng.standard_normal((n, 2))
        X[y == 1] = 2.0 * X[y == 1] + (2.0, 0.0)
        return X, y

    return draw


def _moving(rng: np.random.Generator) -> Draw:
    """Two Gaussians on opposite sides of the unit circle that rotate once every 20,000 rows: constant drift."""

    def draw(n: int, first: int) -> Chunk:
        y = np.where(rng.random(n) < 0.5, -1, 1)
        angle = 2.0 * np.pi * np.arange(first, first + n) / 20_000
        return y[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.5 * rng.standard_normal((n, 2)), y

    return draw


def _checkerboard(rng: np.random.Generator) -> Draw:
    """Uniform points on a 4 by 4 checkerboard with squares of side 1; the class is the colour."""

    def draw(n: int, _: int) -> Chunk:
        X = 4.0 * rng.random((n, 2))
        return X, np.where(np.floor(X).sum(axis=1) % 2 == 0, -1, 1)

    return draw


def _spirals(rng: np.random.Generator) -> Draw:
    """Two spirals of one and a half turns in the unit disc, mirror images of each other, with Gaussian noise (0.02)."""

    def draw(n: int, _: int) -> Chunk:
        y = np.where(rng.random(n) < 0.5, -1, 1)
        radius = np.sqrt(rng.random(n))
        angle = 3.0 * np.pi * radius
        X = y[:, None] * radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        return X + 0.02 * rng.standard_normal((n, 2)), y

    return draw


STREAMS: dict[str, Callable[[np.random.Generator], Draw]] = {
    "multidist": _multidist,
    "gaussian": _gaussian,
    "moving": _moving,
    "checkerboard": _checkerboard,
    "spirals": _spirals,
}


def synthetic(name: str, rows: int, seed: int = 0, chunk: int = CHUNK) -> Stream:
    """Generate a synthetic stream with two features, determined by name and seed.

    Parameters
    ----------
    name : {"multidist", "gaussian", "moving", "checkerboard", "spirals"}
        multidist: 5 classes of 3 Gaussians each (POLK); gaussian: two overlapping Gaussians (SPA); moving: two classes that
        rotate around the unit circle (drift); checkerboard: 4 by 4 squares; spirals: two intertwined spirals.
    rows : int
        Number of rows.
    seed : int
    chunk : int
        Number of rows per chunk.

    Examples
    --------
    >>> from kernling.io import synthetic
    >>> X, y = synthetic("gaussian", 1000, seed=1).load()
    >>> print(X.shape, (y == -1).mean().round(1))
    (1000, 2) 0.4
    """
    if name not in STREAMS:
        raise ValueError(f"name must be one of {', '.join(map(repr, STREAMS))}, not {name!r}")
    if rows < 0:
        raise ValueError(f"rows must not be negative, but is {rows}")

    def pieces(_: Stream) -> Iterator[Chunk]:
        draw = STREAMS[name](np.random.default_rng(seed))
        for first in range(0, rows, _BLOCK):
            X, y = draw(_BLOCK, first)  # whole blocks: a longer stream begins with the rows of a shorter one
            yield X[: rows - first], y[: rows - first]

    return Stream(pieces, chunk=chunk, names=("x1", "x2"), info={"source": name, "seed": seed, "rows": rows})
