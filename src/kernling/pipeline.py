"""A pipeline that learns from a stream: scaling and encoding are learned together with the model."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from .components.scaling import REACH
from .driver.events import Interrupted, events_of
from .estimators.available import there_if
from .estimators.base import OnlineEstimator
from .estimators.facts import ShowsFacts
from .estimators.snapshot import Snapshot, StepsSnapshot
from .estimators.task_choice import TaskDeferred, scales_itself, without_own_scales
from .estimators.turns import TakesTurns, learning
from .tables.encode import Encode
from .tables.explained_steps import ExplainsColumns
from .tables.frames import named_row, one_row
from .tables.predicting_steps import PredictsRows
from .tables.scalers import Standardise
from .tables.steps import dense, last_has, learned_and_transformed, present
from .tables.stored_steps import StoredSteps
from .tables.table import Table


class StreamPipeline(TakesTurns, PredictsRows, ExplainsColumns, ShowsFacts, StoredSteps):
    """Pipeline for streams: preprocessing steps and a final model (or transformer) that learn together.

    All methods of the last step are available: ``fit``, ``partial_fit``, ``predict_then_learn``, ``learn_one``, ``predict``,
    ``predict_one`` and so on.  The given steps are left unchanged; fitted copies are in ``steps_``.

    How rows are transformed:

    - On a stream (``partial_fit``, ``predict_then_learn``, ``learn_one``), kernling's own steps scale row t with the
      statistics of rows 1 to t, whatever the size of the chunks.  The row is predicted and learned on
      this scale.  Other transformers with ``partial_fit`` learn a chunk and then transform it, so a row is also affected by
      later rows of its chunk; those without it (stateless ones) only transform.
    - A step that learns from targets (:class:`AOGDMetric`) transforms a chunk with its previous state, then learns it.
    - ``predict`` and similar methods use the current state and learn nothing.
    - ``fit`` resets the pipeline, fits each step to all rows and then transforms them, like scikit-learn's Pipeline.

    A call that raises an error, or that Ctrl-C stops, leaves all steps unchanged; if all rows have been learned by then, Ctrl-C
    is raised after the call.  Sample weights only affect the last step.

    Rows are arrays; with ``Encode`` as the first step they are tables, whose columns are matched by name: frames, dictionaries
    of columns, lists of dictionaries, or the :class:`~kernling.tables.Table` read from a file.  See ``auto``.

    Parameters
    ----------
    steps : list of (str, estimator)
        Encode (first), Standardise and MinMax of :mod:`kernling.tables` or transformers of scikit-learn, and finally an
        estimator with ``partial_fit``.

    Examples
    --------
    >>> import numpy as np, kernling as kl
    >>> from kernling.tables import Standardise
    >>> X = np.random.default_rng(0).normal(50.0, [1.0, 20.0], size=(2000, 2))
    >>> y = (X[:, 0] > 50.0) == (X[:, 1] > 50.0)
    >>> model = kl.StreamPipeline([("scale", Standardise()), ("model", kl.AVMClassifier(gamma=1.0, delta=0.5))])
    >>> before = model.predict_then_learn(X, y)
    >>> print(f"{np.mean(before[1000:] == y[1000:]):.2f} right; the first column's mean is {model.steps_[0][1].mean_[0]:.1f}")
    0.98 right; the first column's mean is 50.0
    >>> kl.save(model, "pipeline.kern")
    >>> kl.load("pipeline.kern").t_
    2000
    """

    @classmethod
    def auto(cls, model=None, *, task=None, calibrate=None, watch=None, **columns) -> StreamPipeline:
        """Return a pipeline for any table: columns are encoded by type, missing values imputed, numbers scaled.

        Numbers are scaled once, and outliers clipped, by ``Encode``, which knows the columns of numbers.  If the model scales
        by itself (``standardise``, as Auto does), ``Encode`` scales in the same way; with ``scale=None``, the model does it.

        Parameters
        ----------
        model : estimator, optional
            The last step; by default AutoClassifier or AutoRegressor.
        task : {"classification", "regression"}, optional
            By default inferred from the first targets: text, booleans and integers with at most 20 distinct values are labels.
            Give it if events are learned one by one from the start.
        calibrate, watch : bool, optional
            Parameters of the model: whether it keeps track of its errors, for intervals and sets, and whether it watches for
            changes, for alarms.  By default those of the given model, or False.
        **columns
            Parameters of :class:`~kernling.tables.Encode`, such as ``categorical``, ``ignore`` and ``missing``.  With a
            ``scale``, the model itself does not scale.

        Examples
        --------
        >>> import kernling as kl
        >>> model = kl.StreamPipeline.auto()
        >>> rows = 100 * [{"hour": 8, "city": "Oslo"}, {"hour": 17, "city": "Rome"}]
        >>> model = model.partial_fit(rows, 100 * ["late", "on time"]).learn_one({"hour": 9, "city": "Oslo"}, "late")
        >>> print(model.predict_one(rows[1]))
        on time
        >>> print(model.steps_[0][1].schema_)
        hour  number               1 column
        city  category (2 values)  3 columns
        """
        if model is None:
            model = TaskDeferred() if task is None else TaskDeferred().model_of(task)
        trust = present(calibrate=calibrate, watch=watch)
        if trust:
            model = clone(model).set_params(**trust)
        scale = columns.pop("scale", Standardise(clip=REACH, keep_units=scales_itself(model)))
        encode = Encode(**{"scale": scale, "missing": "impute"} | columns)
        return cls([("encode", encode), ("model", model if scale is None else without_own_scales(model))])

    # ------------------------------------------------------------------ learning

    @learning
    def fit(self, X, y=None, sample_weight=None):
        """Fit all steps to the rows, discarding earlier state; each step learns all rows before it transforms them."""
        with self._telling(), StepsSnapshot(self):
            self._new()
            self._choose(y)
            given = X = self._rows(X, reset=True)
            for _, part in self.steps_[:-1]:
                is_table = getattr(part, "takes_tables", False)
                X = part.fit_transform(X, y, self._task) if is_table else part.fit(X, y).transform(X)
            self._remember_columns()
            with self._watching(given):
                self.steps_[-1][1].fit(X, y, **present(sample_weight=sample_weight))
        return self

    @learning
    def partial_fit(self, X, y=None, classes=None, sample_weight=None):
        """Update all steps with the rows."""
        options = present(classes=classes, sample_weight=sample_weight)
        self._learn(lambda last, X: last.partial_fit(X, y, **options), X, y)
        return self

    def learn_many(self, X, y=None):
        """Update all steps with the rows: River's name for ``partial_fit``."""
        return self.partial_fit(X, y)

    @last_has("predict_then_learn")
    @learning
    def predict_then_learn(self, X, y=None, method="predict", classes=None, sample_weight=None, return_rows=False):
        """Learn the rows; return the output of ``method`` for each row before the last step learned it.

        With ``return_rows``, the result is a pair: this output, and the rows as the last step received them.
        """
        options = present(method=method, classes=classes, sample_weight=sample_weight)
        found = self._learn(lambda last, X: last.predict_then_learn(X, y, **options), X, y)
        return found if return_rows else found[0]

    def _learn(self, act: Callable[[Any, Any], Any], X, y) -> tuple[Any, Any]:
        """Let all steps learn the rows, the last one by ``act(last, X)``; return its result, and the rows that it was given."""
        with self._telling(), StepsSnapshot(self) as before:
            given, X = X, self._prepared(X, y)
            last = self.steps_[-1][1]
            before.last = Snapshot(last) if isinstance(last, OnlineEstimator) else None
            try:
                with self._watching(given):
                    return act(last, X), X
            except Interrupted as stop:
                if before.last is None or stop.rows in (None, X.shape[0]):
                    raise Interrupted("stopped after this call, whose rows have been learned") from None
                before.last.restore()
                raise Interrupted("stopped; the pipeline is as it was before this call") from None

    @last_has("learn_one")
    def learn_one(self, x, y=None, sample_weight=1.0):
        """Learn one event: a 1-D array, or a dictionary of values if the first step takes tables."""
        self._learn_one("learn_one", x, y, sample_weight=sample_weight)
        return self

    @last_has("predict_then_learn_one")
    def predict_then_learn_one(self, x, y=None, method="predict", sample_weight=1.0):
        """Learn one event; return its prediction from just before: ``predict_then_learn`` for a single event.

        ``method`` is one of those of ``predict_then_learn``; the result has the form of ``predict_one`` (None before any
        learning), ``score_one`` or ``predict_proba_one``.  This is faster than calling one of these and ``learn_one``: the
        event is encoded and scored once, so it is predicted on the scale on which it is learned.
        """
        return self._learn_one("predict_then_learn_one", x, y, method=method, sample_weight=sample_weight)

    def _learn_one(self, how: str, x, y, **options) -> Any:
        """Let all steps learn an event, the last one by this method; return its result."""
        turns = self._turns
        if turns.predicting:
            turns.check()
        with turns.lock:
            if turns.predicting:
                turns.wait()
            encode, last = self._quick_steps()
            event = None if encode is None else encode.learned_numbers(x)
            if event is None:
                return self._learn_any(how, x, y, options)
            events = events_of(last._state)
            try:
                with self._telling(), last.watching(encode.given_numbers) if getattr(last, "watch", False) else _AS_IS:
                    found = getattr(last, how)(event, y, **options)
                encode.accept()
            except BaseException:  # a signal may arrive when the event has been learned
                if events_of(last._state) != events:
                    encode.accept()
                raise
            return found

    def _learn_any(self, how: str, x, y, options: dict[str, Any]) -> Any:
        """Same for an event of any kind."""
        if not hasattr(self, "steps_") or not self._is_quick:
            return self._learn_row(how, one_row(x), None if y is None else [y], **options)
        with self._telling(), StepsSnapshot(self) as before:
            self._choose([y])
            given = x = named_row(x)
            for _, part in self.steps_[:-1]:
                is_table = getattr(part, "takes_tables", False)
                x = part.learn_transform_one(x, y, self._task) if is_table else part.learn_transform_one(x)
            self._remember_columns()  # there may be a new one
            last = self.steps_[-1][1]
            before.last = Snapshot(last) if isinstance(last, OnlineEstimator) else None
            with self._watching(given, is_one=True):
                return getattr(last, how)(x, y, **options)

    def _watching(self, given: Any, is_one: bool = False) -> AbstractContextManager:
        """Return a context in which the last step, if it watches columns, watches those of these rows or of this event."""
        first, last = self.steps_[0][1], self.steps_[-1][1]
        if first is last or not getattr(last, "watch", False) or not isinstance(last, OnlineEstimator):
            return _AS_IS
        given = one_row(given) if is_one else given
        return last.watching(first.watched(given) if hasattr(first, "watched") else self._rows(given, reset=False))

    def _learn_row(self, how: str, X, y, sample_weight, method="predict") -> Any:
        """Same for an event as a table or array of one row, which the last step is given as such: it may be sparse."""

        def act(last, X):
            found = None if how == "learn_one" else last.said_of(dense(X)[0], method)
            last.partial_fit(X, y, sample_weight=[sample_weight])
            return found

        return self._learn(act, X, y)[0]

    @learning
    def begin(self, X, y=None):
        """Determine names, categories and parameters such as ``gamma="scale"`` from these rows, without learning them.

        Without this call, the first rows that are learned are used.  The last step is included only if targets are given.  If
        the same table is learned next, its rows are not encoded again.
        """
        if hasattr(self, "steps_"):
            return self
        with StepsSnapshot(self):
            self._new()
            self._choose(y)
            rows, twins = self._rows(X, reset=True), []
            for name, part in self.steps_[:-1]:
                if hasattr(part, "begin"):
                    part.begin(rows, self._task, y)
                twins.append((name, copy.deepcopy(part)))
                rows = learned_and_transformed(twins[-1][1], rows, y, self._task)
            self._remember_columns()
            if y is not None:
                self.steps_[-1][1].partial_fit(rows, np.full(len(y), y[0]), sample_weight=np.zeros(len(y)))
            self._begun = _Begun(X, y, twins, rows) if isinstance(X, Table) else None  # arrays may change until then
        return self

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_begun"}

    def preview(self, X, y=None) -> Any:
        """Return the rows as the last step would receive them if they were learned next, without learning them."""
        twin = copy.copy(self)
        if hasattr(self, "steps_"):
            twin.steps_ = copy.deepcopy(self.steps_[:-1]) + self.steps_[-1:]
        return twin._prepared(X, y)

    def _new(self) -> None:
        self._check()
        self.steps_ = [(name, clone(step)) for name, step in self.steps]

    def _choose(self, y) -> None:
        """Choose the model by the targets, if it is not given."""
        name, last = self.steps_[-1]
        if isinstance(last, TaskDeferred) and y is not None:
            self.steps_ = [*self.steps_[:-1], (name, last.model_for(y))]

    @property
    def _task(self) -> str | None:
        """The task of the last step; classification until the model is chosen."""
        if isinstance(self._last, TaskDeferred):
            return "classification"
        own = getattr(self._last, "task", None)
        kinds = {"classifier": "classification", "regressor": "regression"}
        return own if own is not None else kinds.get(str(get_tags(self._last).estimator_type))

    def _prepared(self, X, y) -> Any:
        """Fit all steps but the last, and choose the model by the targets; return the transformed rows."""
        begun = self.__dict__.pop("_begun", None)
        if begun and begun.X is X and begun.y is y:
            self.steps_ = [*begun.steps, self.steps_[-1]]
            return begun.rows
        fresh = not hasattr(self, "steps_")
        if fresh:
            self._new()
        self._choose(y)
        X = self._rows(X, reset=fresh)
        for _, part in self.steps_[:-1]:
            X = learned_and_transformed(part, X, y, self._task)
        self._remember_columns()
        return X

    # ------------------------------------------------------------------ what it is now

    @property
    def model_(self) -> Any:
        """The fitted last step."""
        return self._learned()

    @property
    def clipped_(self) -> int:
        """Number of learned rows with a number far from the others, which a step or the model has clipped."""
        steps = [getattr(step, "scale_", step) for _, step in getattr(self, "steps_", ())]
        return sum(int(getattr(step, "clipped_", 0)) for step in steps)

    @property
    def given_model(self) -> Any:
        """The last step as it was given, or as chosen by the first targets."""
        given = self.steps[-1][1]
        return self._last if isinstance(given, TaskDeferred) else given

    def with_model(self, model: Any) -> StreamPipeline:
        """Return a pipeline of copies of the steps, with another last step that was trained on their output."""
        self._learned()
        other = copy.copy(self)
        other.steps_ = [*copy.deepcopy(self.steps_[:-1]), (self.steps_[-1][0], model)]
        return other

    @property
    def is_running(self) -> bool:
        """Whether learning changes how rows are transformed, as running scaling does."""
        parts = [part for _, part in (self.steps_ if hasattr(self, "steps_") else self.steps)[:-1]]
        return any(getattr(part, "is_running", hasattr(part, "partial_fit")) for part in parts)

    def __getattr__(self, name: str) -> Any:
        """Delegate attributes to the last step: classes_, task, t_, n_stored_, nbytes_, certificate() and the like."""
        if name in _DELEGATED:
            return getattr(self._last, name)
        method = inspect.getattr_static(type(self), name, None)
        if isinstance(method, there_if):
            method.check(self)  # says why it is not there
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "steps_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        all_tags = [get_tags(step) for _, step in self.steps]
        for name in (
            "estimator_type",
            "target_tags",
            "classifier_tags",
            "regressor_tags",
            "transformer_tags",
            "non_deterministic",
        ):
            setattr(tags, name, getattr(all_tags[-1], name))
        tags.input_tags = copy.copy(all_tags[0].input_tags)
        tags.input_tags.allow_nan &= hasattr(self.steps[0][1], "takes_tables")  # other rows are checked before any step
        tags.input_tags.sparse = all(each.input_tags.sparse for each in all_tags)
        return tags

    # ------------------------------------------------------------------ input

    def _remember_columns(self) -> None:
        """Take the column names from the first step, which has validated them."""
        first = self.steps_[0][1]
        if getattr(first, "takes_tables", False):
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(first, name):
                    setattr(self, name, getattr(first, name))

    def _check(self) -> None:
        names, steps = zip(*self.steps, strict=True) if self.steps else ((), ())
        if not steps:
            raise ValueError("steps must be a list of (name, step) pairs with at least a model, not an empty list")
        self._validate_names(names)
        for name, step in self.steps[:-1]:
            if not hasattr(step, "transform"):
                raise TypeError(f"step {name!r} must be a transformer, not {step!r}: a model comes last")
            if not hasattr(step, "partial_fit") and get_tags(step).requires_fit:
                raise TypeError(f"step {name!r}, {step!r}, cannot learn from a stream: it has no partial_fit")
        if not hasattr(steps[-1], "partial_fit"):
            raise TypeError(f"the last step, {steps[-1]!r}, cannot learn from a stream: it has no partial_fit")


_AS_IS = nullcontext()  # what the last step is given is what it watches


class _Begun(NamedTuple):
    """Rows from which a pipeline has begun, and what encoding them gives."""

    X: Table
    y: Any
    steps: list[tuple[str, Any]]  # all but the last, once they have learned the rows
    rows: Any  # encoded


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline; any other model is returned itself."""
    return model._last if isinstance(model, StreamPipeline) else model


_DELEGATED = frozenset(
    (
        "task",
        "learner",
        "classes_",
        "t_",
        "n_stored_",
        "n_support_",
        "n_waiting_",
        "nbytes_",
        "offset_",
        "certificate",
        "alarms_",
        "alarm_count_",
        "calibration_",
        "interval_around",
        "set_among",
    )
)
