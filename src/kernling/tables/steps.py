"""Steps of pipelines: learning a chunk, and conversion to plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from ..estimators.available import there_if
from .schema import names_of


def last_has(name: str) -> there_if:
    """Return a decorator of a method that is there if the last step has one of that name."""
    return there_if(lambda pipeline: getattr((pipeline.__dict__.get("steps_") or pipeline.steps)[-1][1], name))


class Steps(_BaseComposition):
    """Named steps, accessed and displayed as in scikit-learn's pipelines; the fitted ones if the pipeline is fitted."""

    steps: list[tuple[str, Any]]
    steps_: list[tuple[str, Any]]

    def __init__(self, steps: list[tuple[str, Any]]):
        self.steps = steps

    @property
    def _now(self) -> list[tuple[str, Any]]:
        return getattr(self, "steps_", self.steps)

    @property
    def named_steps(self) -> Bunch:
        """The steps by name."""
        return Bunch(**dict(self._now))

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, place: int | str | slice) -> Any:
        """Return a step by index or name, or a pipeline of some of the steps: ``pipeline[:-1]``."""
        if not isinstance(place, slice):
            return self.named_steps[place] if isinstance(place, str) else self._now[place][1]
        part = type(self)(self.steps[place])
        if hasattr(self, "steps_"):
            part.steps_ = self.steps_[place]
            for name in ("n_features_in_", "feature_names_in_") if not place.start else ():
                if hasattr(self, name):
                    setattr(part, name, getattr(self, name))
        return part

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns of the last step, a transformer; with a model, use ``pipeline[:-1]``."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None) if input_features is None else np.asarray(input_features, dtype=object)
        names = np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object) if names is None else names
        for name, part in self._now:
            if not hasattr(part, "get_feature_names_out"):
                raise AttributeError(f"step {name!r}, {part!r}, has no output columns: use pipeline[:-1]")
            names = part.get_feature_names_out() if getattr(part, "takes_tables", False) else part.get_feature_names_out(names)
        return names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of the steps if deep."""
        return self._get_params("steps", deep=deep)

    def set_params(self, **params: Any) -> Steps:
        """Set parameters; those of a step are named step__parameter."""
        self._set_params("steps", **params)
        return self

    def _sk_visual_block_(self) -> Any:
        """Return the diagram of notebooks: the steps one below the other."""
        from sklearn.pipeline import Pipeline

        return Pipeline(self._now)._sk_visual_block_()


def learned_and_transformed(part: Any, X: Any, y: Any, task: str | None) -> Any:
    """Train a step on a chunk, whose targets are of this task, and return the transformed rows."""
    if getattr(part, "takes_tables", False):
        return part.learn_transform(X, y, task)
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
    """Return the options of :func:`kernling.io.stream` for reading the columns of a fitted estimator or pipeline."""
    names = getattr(model, "feature_names_in_", None)
    first: Any = getattr(model, "steps_", model.steps)[0][1] if hasattr(model, "steps") else None
    if names is None or not hasattr(first, "schema_"):
        return {"features": None if names is None else names.tolist(), "categorical": list(getattr(first, "categorical", ()))}
    ignored = names_of(first.schema_, "ignore")
    return {
        "features": None if first.free else [name for name in names.tolist() if name not in ignored],  # None: keys may be new
        "categorical": names_of(first.schema_, "category", "date", "text"),  # as written: "007" is not 7
    }


def dense(X: Any) -> np.ndarray:
    """Return rows as an array."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def present(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
