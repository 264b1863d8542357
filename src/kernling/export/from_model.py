"""Descriptions of fitted models and pipelines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.expansion import Expansion
from ..core.fourier import Linear
from ..estimators.base import OnlineEstimator
from ..estimators.mixed import Mixed
from ..pipeline import StreamPipeline
from ..tables import schema
from ..tables.encode import Encode
from ..tables.scalers import MinMax, Scale, Standardise
from .description import (
    Affine,
    Ball,
    Column,
    Description,
    FourierSum,
    Inside,
    KernelFunction,
    KernelSum,
    KernelValues,
    Labels,
    LinearSum,
    Stacks,
    Sum,
    Value,
)
from .from_experts import mixture_of, running


def describe(model: Any) -> Description:
    """Describe a fitted model or pipeline; raise TypeError for one that cannot be exported.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling.export import describe
    >>> model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.eye(4), ["a", "b", "a", "b"])
    >>> found = describe(model)
    >>> found.output.classes.tolist(), found.kernels[0].function.name, found.kernels[0].points.shape
    (['a', 'b'], 'rbf', (4, 4))
    """
    if not isinstance(model, StreamPipeline):
        return _described(model)
    check_is_fitted(model)
    steps = [part for _, part in model.steps_[:-1]]
    columns = None
    if steps and isinstance(steps[0], Encode):
        columns = _columns(steps.pop(0))
    found = _described(model.model_)
    width = found.width if columns is not None else model.n_features_in_
    return found._replace(
        input_dtype="float64", width=width, columns=columns, steps=(*(_step(part) for part in steps), *found.steps)
    )


def _described(model: Any) -> Description:
    """Describe a model; scores are in the units of the target."""
    is_metric = getattr(model, "task", None) == "metric"
    if not is_metric and (not isinstance(model, OnlineEstimator) or model.task not in _OUTPUTS):
        raise TypeError(f"a {type(model).__name__} cannot be exported: only kernling's own models can")
    check_is_fitted(model)
    dtype = np.dtype(model.dtype).name
    found = Description(type(model).__name__, dtype, dtype, model.n_features_in_, columns=None, steps=())
    if is_metric:
        return found._replace(steps=(_step(model),))
    if isinstance(model, Mixed):
        kernel, state = model.frozen()
        kernels, mixture = mixture_of(kernel, state)
        if isinstance(mixture, Stacks):
            mixture = mixture._replace(shift=model.output_shift)
        scale = running(state.scales) if model.standardise else None
        return found._replace(scale=scale, kernels=kernels, function=mixture, output=_OUTPUTS[model.task](model)[0])
    output, shift = _OUTPUTS[model.task](model)
    kernels, function = _sum(model)
    return found._replace(kernels=kernels, function=function._replace(offset=function.offset + shift), output=output)


# ---------------------------------------------------------------------- steps


def _step(part: Any) -> Affine:
    """Return the description of a step before the model."""
    if isinstance(part, (Standardise, MinMax)):
        return _affine(part.scale_now())
    if getattr(part, "task", None) == "metric":
        if part.features != "linear":
            raise TypeError(f"AOGDMetric(features={part.features!r}) cannot be exported: use features='linear'")
        return Affine(np.zeros(part.n_features_in_), np.sqrt(part.weights_))
    cure = "use kernling's own steps (kernling.tables.Standardise, MinMax, Encode)"
    raise TypeError(f"a {type(part).__name__} in a pipeline cannot be exported: {cure}")


def _affine(scale: Scale) -> Affine:
    """Convert a scale to factors, 0 for columns that have not varied so far."""
    factor = np.divide(scale.height, scale.width, out=np.zeros(np.shape(scale.width)), where=scale.width > 0.0)
    return Affine(np.where(factor > 0.0, scale.shift, 0.0), factor, scale.low, None if math.isinf(scale.reach) else scale.reach)


def _columns(encode: Encode) -> tuple[Column, ...]:
    if encode.hash is not None:
        raise TypeError(f"Encode(hash={encode.hash}) cannot be exported: leave hash out, so that categories have columns")
    late = next((column for column in encode.schema_ if column.late and column.treatment not in ("number", "boolean")), None)
    if late is not None:
        raise TypeError(f"column {late.name!r} came after the first rows and holds no numbers, which cannot be exported")
    text = next((column for column in encode.schema_ if column.treatment == "text"), None)
    if text is not None:
        raise TypeError(f"column {text.name!r} holds prose, which cannot be exported: train a model that ignores it")
    if encode.lags or encode.windows:
        raise TypeError("lags and windows, which depend on the rows before, cannot be exported")
    measured = encode.measured()
    return tuple(_column(column, *measured.get(column.name, (None, None))) for column in encode.schema_ if column.width)


def _column(column: schema.Column, fill: float | None, scale: Scale | None) -> Column:
    return Column(
        name=column.name,
        treatment="number" if column.late else column.treatment,
        gaps=column.gaps,
        fill=fill,
        scale=None if scale is None else _affine(scale),
        categories=column.categories,
        others=column.others,
        clock=column.clock,
        origin=column.origin,
    )


# ---------------------------------------------------------------------- sums of kernel values and features


def _sum(model: OnlineEstimator) -> tuple[tuple[KernelValues, ...], Sum]:
    """Return the kernels and the function of a model whose scores are one sum."""
    function = model.function()
    shift, width = getattr(model, "target_mean_", 0.0), getattr(model, "target_spread_", 1.0)
    kernels: list[KernelValues] = []
    parts: list[Any] = []
    offset = shift + width * function.offset
    for held in function.parts:
        coef = width * held.coef[0]
        if isinstance(held, Expansion):
            used = coef.any(axis=0)
            if used.any():
                parts.append(KernelSum(len(kernels), 1, coef[:, used]))
                kernels.append(KernelValues(KernelFunction.of(function.kernel), held.centre, held.points[used]))
        else:
            waves, constant = _waves(held, coef) if len(held.frequencies) else _line(held, coef)
            parts += waves
            offset = offset + constant
    nothing = LinearSum(np.zeros((len(offset), model.n_features_in_)))  # an empty model has scores as well
    return tuple(kernels), Sum(tuple(parts) or (nothing,), offset)


def _line(part: Linear, coef: np.ndarray) -> tuple[list[LinearSum], np.ndarray]:
    """Return the description of a part, nothing if all its coefficients are 0, and the constant that it adds."""
    return ([LinearSum(coef)] if coef.any() else []), -coef @ part.centre.astype(np.float64)


def _waves(part: Linear, coef: np.ndarray) -> tuple[list[FourierSum], np.ndarray]:
    """Return the description of a part, nothing if it is constant, and the constant that it adds: that of frequency 0."""
    count = len(part.frequencies)
    cosines, sines = coef[:, :count] / math.sqrt(count), coef[:, count:] / math.sqrt(count)
    waves = part.frequencies.any(axis=1)
    constant = cosines[:, ~waves] @ np.cos(part.phase[~waves]) + sines[:, ~waves] @ np.sin(part.phase[~waves])
    if not coef[:, np.tile(waves, 2)].any():
        return [], constant
    phase, cosines, sines = part.phase[waves], cosines[:, waves], sines[:, waves]
    if len(coef) == 1:  # a cos t + b sin t = r cos(t - s) saves half of the work
        phase, cosines, sines = phase - np.arctan2(sines, cosines)[0], np.hypot(cosines, sines), np.zeros_like(sines)
    return [FourierSum(part.centre, part.frequencies[waves], phase, cosines, sines)], constant


# ---------------------------------------------------------------------- interpretation of scores


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
    return Inside(Ball(radius, squared_norm, KernelFunction.of(model.function().kernel))), 0.0


# the interpretation of the scores of a task, and a constant that is added to them
_OUTPUTS: dict[str, Any] = {"classification": _labels, "regression": _value, "oneclass": _inside}
