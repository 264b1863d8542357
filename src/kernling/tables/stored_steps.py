"""Steps of pipelines as plain data."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .. import registry
from ..estimators.contents import Contents, entry, plain, unplain
from ..estimators.stored import take_names
from .encode import part_from_state
from .steps import Steps


class StoredSteps(Steps):
    """Steps that can be stored: the last one as a model, the others by their state."""

    def plain_params(self) -> dict[str, Any]:
        """Return the steps and their parameters as JSON-compatible data."""
        steps = [*self.steps[:-1], (self.steps[-1][0], self.given_model)]
        return {"steps": [[name, plain_step(step)] for name, step in steps]}

    @classmethod
    def from_plain_params(cls, params: dict[str, Any]) -> Self:
        """Create an unfitted pipeline from the result of ``plain_params``."""
        return cls([(name, step_from_plain(step)) for name, step in params["steps"]])

    def to_contents(self) -> Contents:
        """Return the pipeline as plain data, if all its steps are kernling's."""
        self._learned()
        steps: list[Any] = []
        arrays: dict[str, np.ndarray] = {}
        for place, (name, step) in enumerate(self.steps_):
            if hasattr(step, "to_state"):
                steps.append([name, step.to_state()])
                if hasattr(step, "to_arrays"):
                    arrays |= {f"{place}.{key}": array for key, array in step.to_arrays().items()}
                continue
            check_own(step, name)
            contents = step.to_contents()
            steps.append([name, {"estimator": type(step).__name__, "learner": step.learner.name, **contents.header}])
            arrays |= {f"{place}.{key}": array for key, array in contents.arrays.items()}
        header = {"steps": steps, "columns": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            header["names"] = self.feature_names_in_.tolist()
        return Contents(header, arrays)

    @classmethod
    def from_contents(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Restore a pipeline from the result of ``to_contents``."""
        steps: list[tuple[str, Any]] = []
        for place, (name, held) in enumerate(described_steps(header)):
            own = {key.removeprefix(f"{place}."): array for key, array in arrays.items() if key.startswith(f"{place}.")}
            if "part" in held:
                steps.append((name, restored_part(name, held, own)))
            else:
                given = watched_columns(steps[0][1]) if steps else None
                steps.append((name, estimator_class(held).from_contents(held, own, given)))
        pipeline = cls([(name, clone(step)) for name, step in steps])
        pipeline._check()
        check_chain(steps)
        pipeline.steps_ = steps
        columns = entry(header, "columns", int)
        if columns != steps[0][1].n_features_in_:
            raise ValueError("the columns do not match those of the first step")
        pipeline.n_features_in_ = columns
        take_names(pipeline, header)
        return pipeline


def check_own(step: Any, name: str) -> None:
    """Raise for a step that cannot be stored in a model file."""
    if not hasattr(step, "to_contents") or hasattr(step, "steps"):
        cure = "use kernling's own steps (kernling.tables.Standardise, MinMax, Encode), or pickle the pipeline"
        raise TypeError(f"step {name!r} is a {type(step).__name__}, which cannot be stored in a model file: {cure}")


def described_steps(header: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and descriptions of the steps of a model file."""
    steps = entry(header, "steps", list)
    for pair in steps:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not dict:
            raise ValueError(f"a step is {pair!r:.60}, but must be a name and a description")
    return [(name, held) for name, held in steps]


def restored_part(name: str, held: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Restore a step that scales or encodes from its description in a model file."""
    try:
        return part_from_state(held, arrays)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"step {name!r} has an entry that is missing or of another type") from error


def watched_columns(first: Any) -> int:
    """Return how many of the columns that a pipeline is given its last step may watch, by its first step."""
    return len(first.watched_names) if hasattr(first, "watched") else first.n_features_in_


def check_chain(steps: list[tuple[str, Any]]) -> None:
    """Raise unless each of these steps, from a model file, takes the columns that the one before it gives."""
    for name, step in steps:
        if not hasattr(step, "n_features_in_"):
            raise ValueError(f"step {name!r} has learned nothing")
    for (name, step), (following, after) in pairwise(steps):
        given = getattr(step, "columns_out", step.n_features_in_)
        if given != after.n_features_in_:
            raise ValueError(f"step {name!r} gives {given} columns, but step {following!r} takes {after.n_features_in_}")


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
    return registry.estimator(entry(held, "learner", str), entry(held, "estimator", str))
