"""Steps of pipelines: how any of them learns a chunk, and what it is as plain data."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from .. import registry
from ..estimators.contents import plain, unplain
from .encode import part_from_state
from .schema import names_of


def learned_and_transformed(part: Any, X: Any, y: Any) -> Any:
    """Let a step learn a chunk; returns its rows as the next step gets them."""
    if hasattr(part, "learn_transform"):
        return part.learn_transform(X)
    if not hasattr(part, "partial_fit"):
        return part.fit_transform(X)
    if not get_tags(part).target_tags.required:
        part.partial_fit(X, y)
        return part.transform(X)
    if not hasattr(part, "t_"):
        part.partial_fit(X[:1], y[:1], sample_weight=[0.0])  # ready, but has learned nothing
    rows = part.transform(X)
    part.partial_fit(X, y)
    return rows


def columns_of(model: Any) -> dict[str, Any]:
    """The options of :func:`kernling.streams.stream` that read the columns of an estimator or pipeline from tables."""
    names = getattr(model, "feature_names_in_", None)
    first: Any = getattr(model, "steps_", model.steps)[0][1] if hasattr(model, "steps") else None
    if names is None or not hasattr(first, "schema_"):
        return {"features": None if names is None else names.tolist(), "categorical": list(getattr(first, "categorical", ()))}
    ignored = names_of(first.schema_, "ignore")
    return {
        "features": [name for name in names.tolist() if name not in ignored],
        "categorical": names_of(first.schema_, "category", "date"),  # as written: "007" is not 7
    }


def check_own(step: Any, name: str) -> None:
    """Raise for a step that a model file cannot hold."""
    if not hasattr(step, "to_contents") or hasattr(step, "steps"):
        cure = "use kernling's own steps (kernling.streams.Standardise, MinMax, Encode), or pickle the pipeline"
        raise TypeError(f"step {name!r} is a {type(step).__name__}, which a model file cannot hold: {cure}")


def plain_step(step: Any) -> dict[str, Any]:
    """A step that has learned nothing as JSON."""
    if hasattr(step, "to_state"):
        return clone(step).to_state()
    check_own(step, type(step).__name__)
    params = {name: plain(value, name) for name, value in step.get_params(deep=False).items()}
    return {"estimator": type(step).__name__, "learner": step.learner.name, "params": params}


def step_from_plain(held: dict[str, Any]) -> Any:
    """The step of ``plain_step``."""
    if "part" in held:
        return part_from_state(held)
    return estimator_class(held)(**{name: unplain(value) for name, value in held["params"].items()})


def estimator_class(held: dict[str, Any]) -> Any:
    """The class that a description names."""
    return registry.estimator(held["learner"], held["estimator"])
