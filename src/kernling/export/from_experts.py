"""Descriptions of mixtures of experts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..components import combination, least_squares, scaling, window
from ..components.bins import NEVER, Bins
from ..components.experts import MEMORY, SQUARES, Experts
from ..components.least_squares import LeastSquares
from ..components.logistic import Logistic
from ..components.mixture import Mixture
from ..components.scaling import Scales
from ..components.whitened import coefficients
from ..components.window import Window
from ..core.kernels import Kernel
from ..warned import warn
from .description import (
    LAPLACIAN,
    Average,
    Blend,
    KernelFunction,
    KernelSum,
    KernelValues,
    LinearSum,
    Nearest,
    Running,
    Stacks,
    StepSum,
    Sum,
)

Expert = Sum | Average | Nearest
LEFT_OUT = (
    "the export leaves out the memory of past events, whose weight goes to the kernel expert: predictions differ from the "
    "model's, and are worse where the memory is good (memory=0 makes a model that is exported as it is)"
)


def mixture_of(kernel: Kernel, experts: Experts) -> tuple[tuple[KernelValues, ...], Stacks | Blend]:
    """Return the kernels and the function of experts, which have no spare room."""
    own, centre = KernelFunction.of(kernel), experts.model.centre
    city = KernelFunction(LAPLACIAN, window.city_rate(kernel), own.degree, own.coef0)
    latest = np.ascontiguousarray(experts.window.columns.T)
    seen = [(own, experts.model.points), (own, latest), (city, latest)]
    stretch = experts.early.stretch
    kernels = [KernelValues(function, centre, points, stretch) for function, points in seen if len(points)]
    lines = (_line(line.weights, len(centre)) for line in (experts.linear, experts.linear_recent))
    squares = (_on_points(experts, experts.kernel_squares.weights, kernel.gamma), *lines, _bins(experts.bins, len(centre)))
    views = _views(experts.window, len(kernels) - window.KINDS)
    if experts.archive.stored:
        warn(LEFT_OUT)
    if isinstance(experts.mixture, Mixture):
        silent = [_sum([], np.zeros(experts.model.outputs), len(centre)) for _ in MEMORY]
        held = _without_memory(experts.mixture) if experts.archive.stored else experts.mixture
        assert isinstance(experts.logistic, Logistic)
        rare = _on_points(experts, experts.logistic.weights, kernel.gamma)
        return tuple(kernels), _stacks(held, (*squares, rare, *_sums(experts.window, views, slice(None)), *silent))
    corrected = [squares[SQUARES.index("kernel")] for _ in MEMORY]  # by what the memory says, which is left out
    blend = _blend(experts.mixture, experts.target, (*squares, *_of_values(experts.window, views, len(kernels)), *corrected))
    if experts.window.stored:
        kernels.append(KernelValues(city, centre, experts.window.columns.T / stretch))
    return tuple(kernels), blend


def running(scales: Scales) -> Running:
    """Describe scales that rows themselves contribute to."""
    n = float(scales.count[0])
    return Running(n / (n + 1.0), scales.mean, scales.squares / max(n, 1.0), scales.kind, scaling.REACH)


# ---------------------------------------------------------------------- experts


def _sum(parts: list[Any], offset: np.ndarray, d: int) -> Sum:
    """Return a sum, of columns times 0 if it has no other part."""
    return Sum(tuple(parts) or (LinearSum(np.zeros((len(offset), d))),), offset)


def _on_points(experts: Experts, weights: np.ndarray, gamma: float) -> Sum:
    """Describe weights of a constant, columns and whitened kernel values, by coefficients of the points."""
    model, fixed = experts.model, int(experts.kernel_squares.size[least_squares.FIXED])
    weights = _padded(weights, fixed + model.stored)
    parts: list[Any] = [KernelSum(0, 1, coefficients(experts.whitening.factor, weights[:, fixed:]))] if model.stored else []
    if fixed > 1:
        parts.append(LinearSum(math.sqrt(gamma) * weights[:, 1:fixed]))
    return _sum(parts, weights[:, 0], model.points.shape[1])


def _padded(weights: np.ndarray, width: int) -> np.ndarray:
    """Return weights with zeros for features that are not known yet."""
    return np.hstack([weights, np.zeros((len(weights), width - weights.shape[1]))])


def _line(weights: np.ndarray, d: int) -> Sum:
    """Describe a linear expert, by the weights of a constant and the columns."""
    weights = _padded(weights, 1 + d)
    return Sum((LinearSum(weights[:, 1:]),), weights[:, 0])


def _bins(bins: Bins, d: int) -> Sum:
    """Describe least squares on a constant and steps."""
    weights = _padded(bins.sums.weights, 1 + len(bins.edges))
    used = bins.edges < NEVER
    parts = [StepSum(bins.columns[used], bins.edges[used], weights[:, 1:][:, used])] if used.any() else []
    return _sum(parts, weights[:, 0], d)


def _views(held: Window, first: int) -> list[tuple[int, int]]:
    """Return the kernel, and its power, of each view of the window; ``first`` is the first of its kernels."""
    powers = len(held.coef) // window.KINDS
    return [(first + kind, window.POWER**place) for kind in range(window.KINDS) for place in range(powers)]


def _sums(held: Window, views: list[tuple[int, int]], columns: slice) -> list[Sum]:
    """Describe the window's experts that are kernel expansions, one for each view."""
    coef = held.coef[:, columns]
    offset, d = np.zeros(coef.shape[1]), len(held.columns)
    found = zip(views, coef, strict=True)
    return [_sum([KernelSum(*view, own)] if held.stored else [], offset, d) for view, own in found]


def _of_values(held: Window, views: list[tuple[int, int]], plain: int) -> list[Expert]:
    """Describe least mean squares and weighted neighbours, one each for each view, and the nearest few by another kernel."""
    steps = _sums(held, views, slice(window.LMS, window.LMS + 1))
    if not held.stored:
        return [*steps, *steps, steps[0]]  # all predict 0
    sums, weights = held.coef[:, window.SUM], held.coef[:, window.WEIGHT]
    around = [Average(*view, values, own, window.LITTLE) for view, values, own in zip(views, sums, weights, strict=True)]
    count = min(window.NEIGHBOURS, held.stored)
    return [*steps, *around, Nearest(plain, count, window.NEAR, window.FAR, held.tie, sums[0], weights[0])]


# ---------------------------------------------------------------------- combinations


def _stacks(held: Mixture, experts: tuple[Sum, ...]) -> Stacks:
    noise = held.trust * held.noise
    floor = noise.sum() * held.frequency
    shift = np.zeros(held.mean.shape[1])
    return Stacks(experts, *held.units(), held.pull, held.bias, held.trust - noise, floor, shift)


def _without_memory(held: Mixture) -> Mixture:
    """Return weights with which the experts of the memory count nothing, and their part is that of the kernel expert."""
    own, first, pull = SQUARES.index("kernel"), held.pull.shape[1] - len(MEMORY), held.pull.copy()
    pull[:, own] += pull[:, first:].sum(axis=1)
    pull[:, first:] = 0.0
    return held._replace(pull=pull)


def _blend(held: LeastSquares, target: Scales, experts: tuple[Expert, ...]) -> Blend:
    return Blend(experts, combination.expert_weights(held), combination.REACH, *scaling.target_scale(target))
