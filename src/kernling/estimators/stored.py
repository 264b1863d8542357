"""Estimators as the contents of model files, and back: what comes from a file is verified before compiled code sees it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import state as states
from ..core.blas import one_thread
from ..core.expansion import room
from ..core.shapes import verify
from .contents import Contents, entry, fill, flatten, plain, unplain
from .learner import Learner, Needs, Problem

SMALL = 10_000  # numbers that may be allocated whatever the size of the model file
FOREVER = 2**62  # events
WORD = 2**128  # numbers of the random generator are below


class Stored:
    """Mixin of estimators that can be stored in model files."""

    learner: ClassVar[Learner]
    n_features_in_: int
    get_params: Callable[..., dict[str, Any]]
    check_parameters: Callable[[dict[str, Any]], None]
    _resolvable: Callable[[], list[str]]
    _begin: Callable[[dict[str, Any], int, int], None]
    _largest_entry: Callable[[], float]
    _params: Any
    _needs: Needs
    _problem: Problem
    _state: Any
    _rng: np.random.Generator
    _counts: np.ndarray
    _target_scale: Any
    _errors: Any
    _watch: Any
    _merged: tuple[float, int]

    def to_contents(self) -> Contents:
        """Return the estimator as plain data, from which ``from_contents`` restores it exactly."""
        check_is_fitted(self)
        params = self.get_params(deep=False)
        if not isinstance(params["random_state"], (int, type(None))):
            params["random_state"] = None  # the state of its generator is saved instead
        if not isinstance(self._rng.bit_generator, np.random.PCG64):
            kind = type(self._rng.bit_generator).__name__
            raise TypeError(f"random_state is a {kind} generator, which cannot be saved; use numpy.random.default_rng")
        header = {
            "params": {name: plain(value, name) for name, value in params.items()},
            "resolved": {name: plain(value, name) for name, value in self._problem.options.items() if name != "random_state"},
            "columns": self.n_features_in_,
            "outputs": self._problem.outputs,
            "random": self._rng.bit_generator.state,
            "merged": list(self._merged),
        }
        if hasattr(self, "feature_names_in_"):
            header["names"] = self.feature_names_in_.tolist()
        arrays = flatten(states.trimmed(self._state), packed=True)
        if self._errors is not None:
            arrays |= flatten(self._errors, "errors")
        if self._watch is not None:
            arrays |= flatten(self._watch, "watch")
        if hasattr(self, "classes_"):
            arrays["counts"] = self._counts
            header["classes"] = [plain(label, "a label") for label in self.classes_.tolist()]
            header["class_type"] = self.classes_.dtype.str
        if self._target_scale is not None:
            header["target_scale"] = list(self._target_scale)
        return Contents(header, arrays)

    @classmethod
    @one_thread
    def from_contents(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], given: int | None = None) -> Any:
        """Restore an estimator from its contents; raise before much memory is allocated if they are inconsistent.

        ``given`` is the number of columns that it may watch, if it is part of a pipeline: those that the pipeline is given.
        """
        model: Any = cls(**{name: unplain(value) for name, value in entry(header, "params", dict).items()})
        cls.check_parameters(model.get_params(deep=False))
        columns, outputs = entry(header, "columns", int), entry(header, "outputs", int)
        if columns < 1:
            raise ValueError(f"columns={columns} must be at least 1")
        expected = model._take_classes(header, arrays)
        if outputs != expected:
            raise ValueError(f"outputs={outputs}, but the classes need {expected}")
        model.n_features_in_ = columns
        take_names(model, header)
        options = cls._options(model, header)
        allowed = room.set(sum(array.size for array in arrays.values()) + SMALL)
        try:
            model._begin(options, columns, outputs)
        finally:
            room.reset(allowed)
        empty, model._state = model._state, fill(model._state, arrays)
        model.verify_state(empty)
        if model._errors is not None:
            unknown, model._errors = model._errors, fill(model._errors, arrays, "errors")
            verify(model._errors, unknown, {}, "errors")
        if model._watch is not None:
            unseen, model._watch = model._watch, fill(model._watch, arrays, "watch")
            dimensions = {"classes": len(getattr(model, "classes_", ())), "given": columns if given is None else given}
            verify(model._watch, unseen, dimensions, "watch")
        model._largest = model._largest_entry()
        model._rng.bit_generator.state = _generator_state(entry(header, "random", dict))
        model._merged = _merge_record(entry(header, "merged", list))
        return model

    @classmethod
    def _options(cls, model: Any, header: dict[str, Any]) -> dict[str, Any]:
        """Return the resolved parameters of a file."""
        resolved = {name: unplain(value) for name, value in entry(header, "resolved", dict).items()}
        options = model.get_params(deep=False) | resolved
        for name in cls._resolvable():
            value = options[name]
            if type(value) not in (int, float) or not 0.0 <= value < math.inf:
                raise ValueError(f"{name}={value!r} must be a number of at least 0")
        asked = {name: getattr(model, name) for name in cls._resolvable()}
        cls.check_parameters(options | asked)
        return options

    def verify_state(self, empty: Any = None) -> None:
        """Raise unless the state fits the parameters, and all its parts each other.

        ``empty`` is the state before the first event, if it is known, and then there is no spare room.
        """
        state = self._state
        if empty is None:
            empty = self.learner.start(self._params, self._needs, self._problem, np.random.default_rng(0))
            state = states.trimmed(state)
        stored = state.model.size.tolist() if hasattr(state.model, "size") else [0]
        most = self.learner.bound(self._params, FOREVER)
        if len(stored) != 1 or not 0 <= stored[0] <= most:
            raise ValueError(f"state.model.size is {stored}, but the parameters allow from 0 to {most:g} points")
        classes = len(getattr(self, "classes_", ()))
        dimensions = {"columns": self._problem.d, "outputs": self._problem.outputs, "classes": classes, "stored": stored[0]}
        verify(state, empty, dimensions)

    def _take_classes(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> int:
        """Restore the classes from a file; return the number of outputs."""
        return 1


def take_names(model: Any, header: dict[str, Any]) -> None:
    """Restore the names of the columns, if there are any, from a file."""
    if "names" in header:
        names = entry(header, "names", list)
        if not all(isinstance(name, str) for name in names):
            raise ValueError("the names of the columns must be a list of text")
        if len(names) != model.n_features_in_:
            raise ValueError(f"there are {len(names)} names for {model.n_features_in_} columns")
        model.feature_names_in_ = np.array(names, dtype=object)


def _generator_state(held: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a random generator from a file."""
    inner = entry(held, "state", dict)
    limits = {"state": WORD, "inc": WORD, "has_uint32": 2, "uinteger": 2**32}
    whole = all(0 <= entry(inner if name in inner else held, name, int) < most for name, most in limits.items())
    if entry(held, "bit_generator", str) != "PCG64" or not whole or not entry(inner, "inc", int) % 2:
        raise ValueError("the state of the random generator is not one of PCG64")
    return held


def _merge_record(held: list[Any]) -> tuple[float, int]:
    """Return the error of the last merge and the number of events learned then, from a file."""
    error, event = [*held, None, None][:2]
    if len(held) != 2 or type(error) not in (int, float) or type(event) is not int or not 0.0 <= error < math.inf or event < -1:
        raise ValueError(f"merged={held!r} must be an error of at least 0 and a number of events")
    return float(error), event
