"""Models as plain data: everything that prediction needs, and nothing else.

A description consists of the NamedTuples below, which contain numbers, strings, arrays and each other.  Every export format is
written from it, so the formats do not depend on the methods.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.expansion import Expansion
from ..core.fourier import Linear
from ..core.kernels import ISOTROPIC, KINDS, Kernel
from ..estimators.base import OnlineEstimator
from ..pipeline import StreamPipeline
from ..streams import schema
from ..streams.encode import Encode
from ..streams.parts import MinMax, Scale, Standardise

KERNELS = {kind: name for name, kind in KINDS.items()}


# ---------------------------------------------------------------------- rows


class Affine(NamedTuple):
    """The map of x to low + factor (x - shift), clipped to [-reach, reach] unless reach is None."""

    shift: Any  # a number, or an array with one for each column
    factor: Any
    low: float = 0.0
    reach: float | None = None


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


# ---------------------------------------------------------------------- functions of rows


class KernelFunction(NamedTuple):
    """A kernel; :func:`kernling.kernel` documents the formulas."""

    name: str
    gamma: float
    degree: int
    coef0: float

    @property
    def is_isotropic(self) -> bool:
        """Whether it is a function of the distance, so that k(x, x) is 1."""
        return self.name in ISOTROPIC


class KernelSum(NamedTuple):
    """The sum of the kernel values of a row and each point, times coefficients."""

    kernel: KernelFunction
    centre: np.ndarray  # (columns,) subtracted from rows; the points are relative to it
    points: np.ndarray  # (points, columns)
    coefficients: np.ndarray  # (outputs, points)


class FourierSum(NamedTuple):
    """The sum of cosines_i cos(angle_i) + sines_i sin(angle_i), with angle_i = <frequencies_i, x - centre> + phase_i."""

    centre: np.ndarray  # (columns,)
    frequencies: np.ndarray  # (frequencies, columns)
    phase: np.ndarray  # (frequencies,)
    cosines: np.ndarray  # (outputs, frequencies)
    sines: np.ndarray  # (outputs, frequencies); all 0 for a single output, where cosines are enough


class LinearSum(NamedTuple):
    """The sum of the columns times coefficients."""

    coefficients: np.ndarray  # (outputs, columns)


# ---------------------------------------------------------------------- interpretation of scores


class Labels(NamedTuple):
    """Two classes: the second one if the score is at least 0.  Others: the one with the largest score, the first on ties."""

    classes: np.ndarray
    probability: str | None  # "sigmoid" of the score for the second of two classes, "softmax" of all scores, or none


class Value(NamedTuple):
    """The score itself, on the scale of the target."""


class Ball(NamedTuple):
    """A ball in feature space: the score is radius - sqrt(max(0, squared_norm - 2 f + k(x, x))), f the sum of all parts."""

    radius: float
    squared_norm: float  # of the centre
    kernel: KernelFunction


class Inside(NamedTuple):
    """1 if the score is at least 0, else -1; with a ball, the score is the depth inside of it."""

    ball: Ball | None


class Description(NamedTuple):
    """Everything that prediction needs: columns, then steps, then the sum of parts and offset, then its interpretation."""

    estimator: str
    dtype: str  # of the scores
    input_dtype: str  # of rows
    width: int  # number of columns of the rows, after encoding if there are columns of tables
    columns: tuple[Column, ...] | None  # None: rows of numbers
    steps: tuple[Affine, ...]
    parts: tuple[KernelSum | FourierSum | LinearSum, ...]
    offset: np.ndarray  # (outputs,)
    output: Labels | Value | Inside | None  # None: the output is the rows after the last step


def describe(model: Any) -> Description:
    """Describe a fitted model or pipeline; raise TypeError for one that cannot be exported.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling.export import describe
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), ["a", "b", "a", "b"])
    >>> found = describe(model)
    >>> found.output.classes.tolist(), found.parts[0].kernel.name, found.parts[0].points.shape
    (['a', 'b'], 'rbf', (4, 4))
    """
    if not isinstance(model, StreamPipeline):
        return _described(model, *_last(model))
    check_is_fitted(model)
    steps = [part for _, part in model.steps_[:-1]]
    columns = None
    if steps and isinstance(steps[0], Encode):
        columns = _columns(steps.pop(0))
    found = _described(model.model_, *_last(model.model_))
    width = found.width if columns is not None else model.n_features_in_
    return found._replace(
        input_dtype="float64", width=width, columns=columns, steps=(*(_step(part) for part in steps), *found.steps)
    )


def _described(model: Any, steps: tuple[Affine, ...], parts: tuple, offset: np.ndarray, output: Any) -> Description:
    dtype = np.dtype(model.dtype).name
    return Description(type(model).__name__, dtype, dtype, model.n_features_in_, None, steps, parts, offset, output)


# ---------------------------------------------------------------------- steps


def _step(part: Any) -> Affine:
    """Return the description of a step before the model."""
    if isinstance(part, (Standardise, MinMax)):
        return _affine(part.scale_now())
    if getattr(part, "task", None) == "metric":
        return Affine(np.zeros(part.n_features_in_), np.sqrt(part.weights_))
    cure = "use kernling's own steps (kernling.streams.Standardise, MinMax, Encode)"
    raise TypeError(f"a {type(part).__name__} in a pipeline cannot be exported: {cure}")


def _affine(scale: Scale) -> Affine:
    """Convert a scale to factors, 0 for columns that have not varied so far."""
    factor = np.divide(scale.height, scale.width, out=np.zeros(np.shape(scale.width)), where=scale.width > 0.0)
    return Affine(np.where(factor > 0.0, scale.shift, 0.0), factor, scale.low, None if math.isinf(scale.reach) else scale.reach)


def _columns(encode: Encode) -> tuple[Column, ...]:
    if encode.hash is not None:
        raise TypeError(f"Encode(hash={encode.hash}) cannot be exported: leave hash out, so that categories have columns")
    measured = encode.measured()
    return tuple(_column(column, *measured.get(column.name, (None, None))) for column in encode.schema_ if column.width)


def _column(column: schema.Column, fill: float | None, scale: Scale | None) -> Column:
    return Column(
        name=column.name,
        treatment=column.treatment,
        gaps=column.gaps,
        fill=fill,
        scale=None if scale is None else _affine(scale),
        categories=column.categories,
        others=column.others,
        clock=column.clock,
        origin=column.origin,
    )


# ---------------------------------------------------------------------- the model


def _last(model: Any) -> tuple[tuple[Affine, ...], tuple, np.ndarray, Any]:
    """Return the steps, parts, offset and output of a model; scores are in the units of the target."""
    if getattr(model, "task", None) == "metric":
        return (_step(model),), (), np.zeros(0), None
    if not isinstance(model, OnlineEstimator) or model.task not in _OUTPUTS:
        raise TypeError(f"a {type(model).__name__} cannot be exported: only kernling's own models can")
    function = model.function()
    shift, width = getattr(model, "target_mean_", 0.0), getattr(model, "target_spread_", 1.0)
    parts, offset = [], shift + width * function.offset
    for held in function.parts:
        part, constant = _part(function.kernel, held._replace(coef=width * held.coef))
        parts += [part] if part is not None else []
        offset = offset + constant
    nothing = LinearSum(np.zeros((len(offset), model.n_features_in_)))  # an empty model has scores, too
    output, shift = _OUTPUTS[model.task](model)
    return (), tuple(parts) or (nothing,), offset + shift, output


def _part(kernel: Kernel, part: Expansion | Linear) -> tuple[Any, Any]:
    """Return the description of a part, None if all its coefficients are 0, and the constant that it adds to each output."""
    coef = part.coef[0]
    if isinstance(part, Expansion):
        used = coef.any(axis=0)
        if not used.any():
            return None, 0.0
        return KernelSum(_kernel(kernel), part.centre, part.points[used], coef[:, used]), 0.0
    count = len(part.frequencies)
    if not count:
        return (LinearSum(coef) if coef.any() else None), -coef @ part.centre.astype(np.float64)
    cosines, sines = coef[:, :count] / math.sqrt(count), coef[:, count:] / math.sqrt(count)
    waves = part.frequencies.any(axis=1)  # frequency 0 is a constant
    constant = cosines[:, ~waves] @ np.cos(part.phase[~waves]) + sines[:, ~waves] @ np.sin(part.phase[~waves])
    if not coef[:, np.tile(waves, 2)].any():
        return None, constant
    phase, cosines, sines = part.phase[waves], cosines[:, waves], sines[:, waves]
    if len(coef) == 1:  # a cos t + b sin t = r cos(t - s) saves half of the work
        phase, cosines, sines = phase - np.arctan2(sines, cosines)[0], np.hypot(cosines, sines), np.zeros_like(sines)
    return FourierSum(part.centre, part.frequencies[waves], phase, cosines, sines), constant


def _labels(model: Any) -> tuple[Labels, float]:
    two = len(model.classes_) == 2
    probability = ("sigmoid" if two else "softmax") if hasattr(model, "predict_proba") else None
    return Labels(model.classes_, probability), 0.0


def _value(model: Any) -> tuple[Value, float]:
    return Value(), 0.0


def _inside(model: Any) -> tuple[Inside, float]:
    if model.ball_ is None:
        return Inside(None), -model.offset_
    radius, squared_norm = model.ball_
    return Inside(Ball(radius, squared_norm, _kernel(model.function().kernel))), 0.0


def _kernel(kernel: Kernel) -> KernelFunction:
    return KernelFunction(KERNELS[kernel.kind], *kernel[1:])


# the interpretation of the scores of a task, and a constant that is added to them
_OUTPUTS: dict[str, Any] = {"classification": _labels, "regression": _value, "oneclass": _inside}
