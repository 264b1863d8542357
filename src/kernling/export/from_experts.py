"""Descriptions of mixtures of experts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..components import combination, least_squares, mixture, scaling, window
from ..components.experts import Experts
from ..components.least_squares import LeastSquares
from ..components.line import Line
from ..components.mixture import Mixture
from ..components.scaling import Scales
from ..components.whitened import coefficients
from ..components.window import Window
from ..core.kernels import Kernel
from .description import Average, Blend, KernelFunction, KernelSum, KernelValues, LinearSum, Nearest, Running, Sum, Vote

Expert = Sum | Average | Nearest


def mixture_of(kernel: Kernel, state: Any) -> tuple[tuple[KernelValues, ...], Vote | Blend]:
    """Return the kernels and the function of a mixture with this state, which has no spare room."""
    experts: Experts = state.experts
    function, centre = KernelFunction.of(kernel), experts.model.centre
    sets = [points for points in (experts.model.points, experts.window.points) if len(points)]
    kernels = tuple(KernelValues(function, centre, points) for points in sets)
    squares = (_smooth(experts, kernel.gamma), _line(experts.straight, centre), _line(experts.lately, centre))
    near = len(kernels) - 1  # the window's kernel
    if isinstance(state.mixture, Mixture):
        return kernels, _vote(state.mixture, (*squares, *_window_of_classes(experts.window, near)))
    return kernels, _blend(state.mixture, state.target, (*squares, *_window_of_values(experts.window, near)))


def running(scales: Scales) -> Running:
    """Describe scales that rows themselves contribute to."""
    n = float(scales.count[0])
    return Running(n / (n + 1.0), scales.mean, scales.squares / max(n, 1.0), scales.kind)


# ---------------------------------------------------------------------- experts


def _sum(parts: list[Any], offset: np.ndarray, d: int) -> Sum:
    """Return a sum, of columns times 0 if it has no other part."""
    return Sum(tuple(parts) or (LinearSum(np.zeros((len(offset), d))),), offset)


def _smooth(experts: Experts, gamma: float) -> Sum:
    """Describe least squares on a constant, columns and whitened kernel values, by coefficients of the points."""
    model, squares = experts.model, experts.smooth
    fixed = int(squares.size[least_squares.FIXED])
    weights = np.zeros((len(squares.weights), fixed + model.stored))
    weights[:, : squares.count] = squares.weights[:, : squares.count]
    parts: list[Any] = [KernelSum(0, 1, coefficients(experts.whitening.factor, weights[:, fixed:]))] if model.stored else []
    if fixed > 1:
        parts.append(LinearSum(math.sqrt(gamma) * weights[:, 1:fixed]))
    return _sum(parts, weights[:, 0], model.points.shape[1])


def _line(line: Line, centre: np.ndarray) -> Sum:
    """Describe a linear expert."""
    weights = np.zeros((len(line.weights), 1 + len(centre)))
    weights[:, : line.weights.shape[1]] = line.weights
    return Sum((LinearSum(weights[:, 1:]),), weights[:, 0])


def _sums(held: Window, kernel: int, column: slice) -> list[Sum]:
    """Describe the window's experts that are kernel expansions, one for each power of the kernel."""
    coef = held.coef[:, column]
    offset, d = np.zeros(coef.shape[1]), held.points.shape[1]
    powers = [window.POWER**place for place in range(len(coef))]
    return [_sum([KernelSum(kernel, *part)] if held.stored else [], offset, d) for part in zip(powers, coef, strict=True)]


def _window_of_classes(held: Window, kernel: int) -> list[Sum]:
    return _sums(held, kernel, slice(None))


def _window_of_values(held: Window, kernel: int) -> list[Expert]:
    """Describe least mean squares and weighted neighbours, one each for each power of the kernel, and the nearest few."""
    steps = _sums(held, kernel, slice(window.LMS, window.LMS + 1))
    if not held.stored:
        return [*steps, *steps, steps[0]]  # all predict 0
    sums, weights = held.coef[:, window.SUM], held.coef[:, window.WEIGHT]
    around = [
        Average(kernel, window.POWER**place, sums[place], weights[place], window.LITTLE) for place in range(len(held.coef))
    ]
    count = min(window.NEIGHBOURS, held.stored)
    return [*steps, *around, Nearest(kernel, count, window.FAR, held.tie, sums[0], weights[0])]


# ---------------------------------------------------------------------- combinations


def _vote(held: Mixture, experts: tuple[Sum, ...]) -> Vote:
    two = len(experts[0].offset) == 1
    return Vote(
        experts=experts,
        scale=np.sqrt(held.scale),
        reach=mixture.REACH,
        pull=held.pull,
        bias=held.bias[::-1] if two else held.bias,
        votes=held.votes,
        ahead=mixture.AHEAD,
        tie=mixture.TIE,
        right=held.calibration(),
        barely=mixture.BARELY,
    )


def _blend(held: LeastSquares, target: Scales, experts: tuple[Expert, ...]) -> Blend:
    return Blend(experts, combination.expert_weights(held), combination.REACH, *scaling.target_scale(target))
