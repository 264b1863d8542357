"""Descriptions of models as plain data: everything that prediction needs, and nothing else.

A description consists of the NamedTuples below, which contain numbers, strings, arrays and each other.  Every export format is
written from it, so the formats do not depend on the methods.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.kernels import ISOTROPIC, KINDS, Kernel

KERNELS = {kind: name for name, kind in KINDS.items()}
LAPLACIAN = "laplacian"

# ---------------------------------------------------------------------- rows


class Affine(NamedTuple):
    """The map of x to low + factor (x - shift), clipped to [-reach, reach] unless reach is None."""

    shift: Any  # a number, or an array with one for each column
    factor: Any
    low: float = 0.0
    reach: float | None = None


class Running(NamedTuple):
    """Standardisation of a row as if it were the next one learned, so its own values count in mean and variance.

    With z = x - mean, a column becomes z sqrt(share) / sqrt(variance + (1 - share) z^2), or 0 if that is 0 / 0, clipped to
    [-reach, reach].

    Columns of 0 and 1 are left as they are, and so are all columns while values are in [0, 1].  That is, the level of a value
    is 0 for 0 and 1, 1 for others in [0, 1], and 2 for all others; that of a column is the larger of its value's and
    ``level``.  A column is scaled if its level is 1 or 2 and that of any column is 2.
    """

    share: float  # n / (n + 1) after n rows
    mean: np.ndarray  # (columns,)
    variance: np.ndarray  # (columns,)
    level: np.ndarray  # (columns,) of the rows learned
    reach: float


class Column(NamedTuple):
    """A column of a table, which is encoded as one column or several; see ``schema.Column``."""

    name: str
    treatment: str  # "number", "boolean", "category" or "date"
    gaps: bool  # whether the last of its columns is 1 where a value is missing
    fill: float | None  # replaces a missing number, boolean or number of days; None if no value may be missing
    scale: Affine | None  # of numbers, and of the days of dates
    categories: tuple[str, ...]
    others: int  # columns for other categories, by their CRC-32
    clock: bool  # whether dates have a time of day
    origin: int  # the time from which days are counted, in seconds since 1970


# ---------------------------------------------------------------------- kernels


class KernelFunction(NamedTuple):
    """A kernel; :func:`kernling.kernel` documents the formulas.  Besides, "laplacian" is exp(-gamma |x - z|_1)."""

    name: str
    gamma: float
    degree: int
    coef0: float

    @classmethod
    def of(cls, kernel: Kernel) -> KernelFunction:
        """Return the description of a kernel."""
        return cls(KERNELS[kernel.kind], kernel.gamma, kernel.degree, kernel.coef0)

    @property
    def is_isotropic(self) -> bool:
        """Whether it is a function of the distance, so that k(x, x) is 1."""
        return self.name in ISOTROPIC

    @property
    def is_laplacian(self) -> bool:
        """Whether it is a function of the city-block distance."""
        return self.name == LAPLACIAN


class KernelValues(NamedTuple):
    """The kernel values of a row and each of some points."""

    function: KernelFunction
    centre: np.ndarray  # (columns,) subtracted from rows; the points are relative to it
    points: np.ndarray  # (points, columns)
    stretch: np.ndarray | None = None  # (columns,) by which rows are multiplied then, as the points are; None: by 1


# ---------------------------------------------------------------------- parts of sums


class KernelSum(NamedTuple):
    """The sum of powers of kernel values times coefficients."""

    kernel: int  # which of the description's kernels
    power: int
    coefficients: np.ndarray  # (outputs, points)


class FourierSum(NamedTuple):
    """The sum of cosines_i cos(angle_i) + sines_i sin(angle_i), with angle_i = <frequencies_i, x - centre> + phase_i."""

    centre: np.ndarray  # (columns,)
    frequencies: np.ndarray  # (frequencies, columns)
    phase: np.ndarray  # (frequencies,)
    cosines: np.ndarray  # (outputs, frequencies)
    sines: np.ndarray  # (outputs, frequencies); all 0 for a single output, where cosines are enough


class StepSum(NamedTuple):
    """The sum of the coefficients of all steps that a row is above: whether a column exceeds an edge, before ``scale``."""

    columns: np.ndarray  # (steps,) indices
    edges: np.ndarray  # (steps,)
    coefficients: np.ndarray  # (outputs, steps)


class LinearSum(NamedTuple):
    """The sum of the columns times coefficients."""

    coefficients: np.ndarray  # (outputs, columns)


# ---------------------------------------------------------------------- functions of rows


class Sum(NamedTuple):
    """The sum of parts and an offset."""

    parts: tuple[KernelSum | FourierSum | StepSum | LinearSum, ...]
    offset: np.ndarray  # (outputs,)


class Average(NamedTuple):
    """A mean weighted by powers of kernel values: the sum of k^power sums over little + the sum of k^power weights."""

    kernel: int  # which of the description's kernels
    power: int
    sums: np.ndarray  # (points,) weights times values
    weights: np.ndarray  # (points,)
    little: float


class Nearest(NamedTuple):
    """The mean of the points with the largest kernel values k, of which smaller ones than ``far`` count as ``far``.

    Of points whose value equals the last one's up to the factor 1 + tie, the first are taken.  The weight of a point is
    multiplied by 1 / (log(k)^2 + near^2).
    """

    kernel: int  # which of the description's kernels
    neighbours: int
    near: float
    far: float
    tie: float
    sums: np.ndarray  # (points,) weights times values
    weights: np.ndarray  # (points,)


class Stacks(NamedTuple):
    """Log probabilities: the logarithm of a mean of several softmaxes of weighted sums of the experts' scores.

    An expert with one output f for two classes has the scores -f and f, of the first class and the second; ``mean`` likewise.
    Scores count minus ``mean``, minus the mean of these differences over the classes, over ``scale``; each number z becomes
    z / sqrt(1 + curb |z|).  Stack s has the probabilities softmax(bias_s + the sum of pull_s times these); the result is the
    logarithm of ``floor`` + the sum of ``trust`` times the stacks' probabilities.  The output for two classes is that of the
    second minus that of the first.  ``shift``, of the class weights, is added to it.
    """

    experts: tuple[Sum, ...]
    mean: np.ndarray  # (experts, outputs)
    scale: np.ndarray  # (experts,)
    curb: np.ndarray  # (experts,) 1, or 0 for scores that are log odds
    pull: np.ndarray  # (stacks, experts)
    bias: np.ndarray  # (stacks, classes)
    trust: np.ndarray  # (stacks,)
    floor: np.ndarray  # (classes,)
    shift: np.ndarray  # (outputs,)


class Blend(NamedTuple):
    """A weighted sum of predictions: shift + width times the sum, each prediction and the sum clipped to [-reach, reach]."""

    experts: tuple[Sum | Average | Nearest, ...]
    weights: np.ndarray  # (experts,)
    reach: float
    shift: float
    width: float


# ---------------------------------------------------------------------- interpretation of scores


class Labels(NamedTuple):
    """Two classes: the second one if the score is at least 0.  Others: the one with the largest score, the first on ties."""

    classes: np.ndarray
    probability: str | None  # "sigmoid" of the score for the second of two classes, "softmax" of all scores, or none


class Value(NamedTuple):
    """The score itself, on the scale of the target."""


class Ball(NamedTuple):
    """A ball in feature space: the score is radius - sqrt(max(0, squared_norm - 2 f + k(x, x))), f the function's value."""

    radius: float
    squared_norm: float  # of the centre
    kernel: KernelFunction


class Inside(NamedTuple):
    """1 if the score is at least 0, else -1; with a ball, the score is the depth inside of it."""

    ball: Ball | None


class Description(NamedTuple):
    """Everything that prediction needs: columns, then steps, the model's own scale, its function, and what scores mean."""

    estimator: str
    dtype: str  # of points, kernel values and outputs; the rest is computed in float64
    input_dtype: str  # of rows
    width: int  # number of columns of the rows, after encoding if there are columns of tables
    columns: tuple[Column, ...] | None  # None: rows of numbers
    steps: tuple[Affine, ...]
    scale: Running | None = None
    kernels: tuple[KernelValues, ...] = ()
    function: Sum | Stacks | Blend | None = None  # None: the output is the rows after the last step
    output: Labels | Value | Inside | None = None  # None without function
