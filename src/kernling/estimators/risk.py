"""The objective that a method minimises, on some rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler import by_address
from ..core.expansion import Expansion
from ..core.losses import write_values
from ..core.matrices import function_products
from . import labels
from .base import OnlineEstimator
from .learner import loss_of
from .tasks import BaseOnlineClassifier


def regularised_risk(model: Any, X: Any, y: Any) -> float:
    """Return the mean loss of a classifier on rows plus lam / 2 ||f||^2, with its own loss and lam, 0 if it has none."""
    if hasattr(model, "regularised_risk"):  # a batch method that knows its own
        return model.regularised_risk(X, y)
    own = isinstance(model, BaseOnlineClassifier) and type(model)._scores is OnlineEstimator._scores
    if not own or getattr(model, "pairwise", False):
        raise TypeError(f"risk is that of a classifier with a loss of its scores, which a {type(model).__name__} is not")
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(f"risk needs rows of the classes that the model knows, but y has the label {unknown[0]!r}")
    scores = np.ascontiguousarray(model._scores(X))
    values = np.empty(len(scores))
    loss = getattr(model._params, "loss", None) or loss_of(model._problem)
    write_values(by_address(loss), scores, labels.encode(model.classes_, np.asarray(y)).astype(np.float64), values)
    return float(values.mean() + 0.5 * getattr(model, "lam", 0.0) * squared_norm(model))


def squared_norm(model: OnlineEstimator) -> float:
    """Return the squared norm of the function that predicts, over all outputs and both parts if there are two."""
    kernel, parts, _ = model.function()
    total = 0.0
    for part in parts:
        coef = part.coef[0]
        if isinstance(part, Expansion):
            coef = coef[:, : part.stored]
            total += float(function_products(kernel, part.points[: part.stored], coef, coef).sum())
        else:
            total += float(np.square(coef).sum())
    return total
