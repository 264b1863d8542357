"""Steps of pipelines: learning a chunk, and conversion to plain data."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.utils import get_tags

from .. import registry
from ..estimators.contents import plain, unplain
from .encode import part_from_state
from .schema import names_of


def learned_and_transformed(part: Any, X: Any, y: Any) -> Any:
    """Train a step on a chunk and return the transformed rows."""
    if hasattr(part, "learn_transform"):
        return part.learn_transform(X)
    if not hasattr(part, "partial_fit"):
        return part.fit_transform(X)
    if not get_tags(part).target_tags.required:
        part.partial_fit(X, y)
        return part.transform(X)
    if not hasattr(part, "t_"):
        part.partial_fit(X[:1], y[:1], sample_weight=[0.0])  # initialised, without learning anything
    rows = part.transform(X)
    part.partial_fit(X, y)
    return rows


def columns_of(model: Any) -> dict[str, Any]:
    """Return the options of :func:`kernling.streams.stream` for reading the columns of a fitted estimator or pipeline."""
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
    """Raise for a step that cannot be stored in a model file."""
    if not hasattr(step, "to_contents") or hasattr(step, "steps"):
        cure = "use kernling's own steps (kernling.streams.Standardise, MinMax, Encode), or pickle the pipeline"
        raise TypeError(f"step {name!r} is a {type(step).__name__}, which cannot be stored in a model file: {cure}")


def plain_step(step: Any) -> dict[str, Any]:
    """Return an unfitted step as JSON-compatible data."""
    if hasattr(step, "to_state"):
        return clone(step).to_state()
    check_own(step, type(step).__name__)
    params = {name: plain(value, name) for name, value in step.get_params(deep=False).items()}
    return {"estimator": type(step).__name__, "learner": step.learner.name, "params": params}


def step_from_plain(held: dict[str, Any]) -> Any:
    """Create a step from the result of ``plain_step``."""
    if "part" in held:
        return part_from_state(held)
    return estimator_class(held)(**{name: unplain(value) for name, value in held["params"].items()})


def estimator_class(held: dict[str, Any]) -> Any:
    """Return the class named in a description."""
    return registry.estimator(held["learner"], held["estimator"])
