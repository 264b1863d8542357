"""The memory that a model may take, estimated from its parameters before it is created."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from ..components.columns import new_columns
from ..core import state as states
from .base import OnlineEstimator
from .constraints import Whole
from .mixed import Mixed

SMALL = 64  # the largest of the parameters in the first trial
STEP = math.sqrt(2.0)  # from one trial to the next, so that none takes much more than twice the limit
LIMITS = ("budget", "points")  # parameters that are the maximum number of points


def bytes_in_use(model: OnlineEstimator) -> int:
    """Return the size of a fitted model's arrays, with spare capacity."""
    return states.nbytes(model._fitted()) + model.bytes_beside


def most_points(model: OnlineEstimator) -> int | None:
    """Return the maximum number of points; None if it is not a parameter, and the stream determines it."""
    options = model.get_params(deep=False)
    return next((options[name] for name in LIMITS if options.get(name) is not None), None)


def size_within(model: OnlineEstimator, columns: int, outputs: int, points: int, limit: int) -> int | None:
    """Return the bytes of a model of this shape with so many stored points; None if they are more than the limit.

    It is created with smaller parameters first.  Its size is a polynomial of degree 2 in all of them, so the size of a smaller
    one times the square of the factor is an upper limit, and nothing that is much larger than the limit is ever created.

    Parameters
    ----------
    model : estimator
        Fitted or not; it is not changed.
    columns, outputs, points : int
        The shape of the rows, the number of outputs, and of points.
    limit : int
        Bytes.

    Examples
    --------
    >>> import kernling as kl
    >>> from kernling.estimators.sizes import size_within
    >>> print(size_within(kl.KRLSClassifier(points=15_000), columns=5, outputs=1, points=15_000, limit=2**28))
    None
    """
    options = model.get_params(deep=False)
    large = {name: value for name, value in options.items() if value is not None and _is_size(model, name) and value > SMALL}
    factor = min(1.0, SMALL / max([points, SMALL, *large.values()]))
    while True:
        smaller = {name: math.ceil(factor * value) for name, value in large.items()}
        size = _size(clone(model).set_params(**smaller), columns, outputs, math.ceil(factor * points))
        if size > limit:
            return None
        if factor == 1.0:
            return size
        factor = 1.0 if size / factor**2 <= limit else min(1.0, factor * STEP)


def _is_size(model: OnlineEstimator, name: str) -> bool:
    """Return whether a parameter is a number without an upper limit, which may determine the size."""
    rules: Any = model.parameters[name].allowed
    rules = rules if isinstance(rules, tuple) and not isinstance(rules, Whole) else (rules,)
    is_number = isinstance(model.get_params(deep=False)[name], (int, np.integer))
    return name != "random_state" and is_number and any(isinstance(rule, Whole) and rule == Whole(rule.low) for rule in rules)


def _size(model: OnlineEstimator, columns: int, outputs: int, points: int) -> int:
    options = model.get_params(deep=False)
    found = {name: 1.0 if isinstance(options[name], str) else options[name] for name in model._resolvable()}
    model._begin(options | found, columns, states.room_for_outputs(outputs))  # as if the last class had come late
    if isinstance(model, Mixed):
        model._state.successor.early.begun[0] = 0.0  # there may be one
    elif options.get("restart"):
        model._state.successor.begin(1.0)  # likewise
    watched = new_columns(columns) if model._watch is not None else ()
    return states.nbytes(states.grown(model._state, points)) + model.bytes_beside + states.nbytes(watched)
