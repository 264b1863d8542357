"""Base class of all estimators: validation, weights, new classes, and the Python side of learning."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..components.alarms import new_watch
from ..components.conformal import new_errors
from ..core import averages
from ..core import state as states
from ..core.blas import one_thread
from ..core.expansion import EVENTS, Expansion
from ..core.fourier import Linear
from ..core.kernels import ISOTROPIC, KINDS, Kernel
from ..core.limits import GAMMA as LARGEST_GAMMA
from ..core.limits import LARGEST, TARGET, Diverged, largest_of_angles, largest_of_products
from ..core.rows import as_rows, read_only
from ..core.setup import Setup
from ..driver import scoring
from ..driver.events import Events, Interrupted, deferred_interrupt, learn_events
from .certified import Certified
from .checking import canonical, check_entries, checked, checked_weights
from .constraints import NOTHING, SWITCH, InstanceOf, OneOf, Real, Whole
from .examples import Example
from .facts import ShowsFacts
from .learner import Learner, Problem, typed
from .parameters import Parameterised, parameter
from .progress import VerboseProgress
from .published import AsPublished
from .randomness import generator
from .ranges import GAMMA
from .resolve import scale_gamma, warn_if_uneven
from .single import BUFFERS, SingleEvents
from .snapshot import Snapshot
from .stored import Stored
from .turns import learning, thread_count


class OnlineEstimator(Stored, SingleEvents, ShowsFacts, AsPublished, Certified, Parameterised, BaseEstimator):
    """Base class of all estimators.  A subclass names its learner and declares its parameters."""

    learner: ClassVar[Learner]
    task: ClassVar[str]
    example: ClassVar[Example]

    @classmethod
    def _documented(cls, text: str) -> str:
        return super()._documented(text) + (cls.example.section(cls) if "example" in vars(cls) else "")

    kernel: str = parameter(
        default="rbf",
        allowed=OneOf(tuple(KINDS)),
        doc="A function of the Euclidean distance, or of the inner product (poly, linear); see :func:`kernling.kernel`.",
    )
    gamma: float | str = parameter(
        default="scale",
        allowed=(OneOf(("scale",)), Real(0.0, strict=True, extreme=LARGEST_GAMMA)),
        search=GAMMA,
        resolve=scale_gamma,
        doc='Kernel coefficient; "scale" is 1 / (columns * variance of the first rows).',
    )
    degree: int = parameter(
        default=3, allowed=Whole(1, 100), doc="Degree of the polynomial kernel, exponent of the rational quadratic one."
    )
    coef0: float = parameter(default=0.0, allowed=Real(), doc="Constant term of the polynomial kernel.")
    random_state: Any = parameter(
        default=None,
        allowed=(
            NOTHING,
            Whole(0),
            InstanceOf((np.random.Generator, np.random.RandomState), "a NumPy random generator", "Generator"),
        ),
        doc="Seed or generator of the method's random numbers and of ``shuffle``.",
    )
    dtype: str = parameter(
        default="float64",
        allowed=OneOf(("float64", "float32", np.float64, np.float32, np.dtype("float64"), np.dtype("float32"))),
        doc="Precision of points and kernel values.",
    )
    block_size: int = parameter(
        default=128, allowed=Whole(1, 8192), doc="Events whose kernel values are computed at once; affects only speed."
    )
    passes: int = parameter(default=1, allowed=Whole(1), doc="Number of passes over the rows in ``fit``.")
    shuffle: bool = parameter(default=False, allowed=SWITCH, doc="Whether ``fit`` shuffles the rows before each pass.")
    n_jobs: int | None = parameter(
        default=None, allowed=(NOTHING, Whole(-1, 1024)), doc="Number of threads for prediction; -1 uses all cores."
    )
    verbose: bool | int = parameter(default=False, allowed=(SWITCH, Whole(0)), doc="Whether to show the progress of learning.")

    # ------------------------------------------------------------------ learning

    @learning
    @one_thread
    def _fit(self, X, y, sample_weight):
        """Reset the model and learn all rows, ``passes`` times, in a new random order each time if ``shuffle``."""
        with self._telling(), Snapshot(self):
            X, y, weights = self._validated(X, y, sample_weight, fresh=True)
            source = X if self._source is None else self._source
            self._start(X, self._begin_targets(y))
            weights = weights * self._class_weights(y, weights, whole=True)
            if not weights.any():
                raise ValueError("all sample weights are zero: there is nothing to learn from")
            self._plan(self.passes * int(np.count_nonzero(weights)))
            targets = self._all_targets(y, weights)
            for number in range(self.passes):
                order = self._rng.permutation(len(weights)) if self.shuffle else slice(None)
                follows = self._follows and number == 0  # rows of later passes have been learned before
                told, rows = (y[order], source[order], weights[order]), (X[order], targets[order], weights[order], follows)
                self._followed_by(self._as_predicted if follows else None, told, False, self._learn, *rows)
            if self.learner.finish:
                self._state = self.learner.finish(self._setup, self._params, self._state)
            self._check_finite()
        return self

    @learning
    @one_thread
    def _stream(self, X, y, sample_weight, classes=None, record=False) -> list[tuple[Any, np.ndarray]]:
        """Learn more rows; if ``record``, return the outputs before each row was learned.

        They are grouped into segments with the same classes, each with its classes.
        """
        with self._telling(), Snapshot(self) as before:
            fresh = not self.__sklearn_is_fitted__()
            X, y, weights = self._validated(X, y, sample_weight, fresh)
            source = X if self._source is None else self._source
            if fresh:
                self._start(X, self._begin_targets(y[:1] if classes is None else y, classes))
            else:
                self._check_classes(classes)
            self._plan(None)
            record = record or self._follows
            cuts = self._first_of_new_classes(y)
            few = not (fresh or record or cuts) and self._takes_few(X)
            is_short = len(y) <= self._setup.block_size  # then Ctrl-C only stops it when all rows have been learned
            # small batches restore the state, and a single step on points checks before it changes anything
            is_one_step = is_short and self._steps(len(y), record) <= 1
            is_followed = self._follows and self.learner.loop.settle is None  # which another exception may prevent
            careful = not few and not (is_one_step and isinstance(self._state.model, Expansion) and not is_followed)
            if careful:
                self._state: Any = states.copied(self._state)  # restored if an error is raised
            before.learns_in_place = not careful
            learn = self._learn_few if few else self._learn
            parts = []
            with deferred_interrupt() if is_short else nullcontext():
                for first, last in pairwise(sorted({0, *cuts, len(y)})):
                    if first in cuts:
                        self._add_class(y[first])
                    known, part = getattr(self, "classes_", None), slice(first, last)
                    told, call = (y[part], source[part], weights[part]), (learn, X, y, weights, record, part)
                    scores = self._followed_by(self._as_said, told, first in cuts, self._learn_segment, *call)
                    parts.append((known, scores))
                if careful:
                    self._check_finite()
        return parts

    def _followed_by(self, read: Callable | None, told: tuple, is_new: bool, learn: Callable, *arguments: Any) -> Any:
        """Learn rows, and follow and watch them as far as Ctrl-C lets it; return the scores before.

        ``told`` are their targets, the rows as they were given, and their weights.  No context manager: Python would run what
        is left of one when nobody expects it.
        """
        try:
            scores = learn(*arguments)
        except Interrupted as stop:
            self._note_rows(read, stop.scores, told, is_new)
            raise
        self._note_rows(read, scores, told, is_new)
        return scores

    def _note_rows(self, read: Callable | None, scores, told: tuple, is_new: bool) -> None:
        if self._follows and read is not None:
            y, rows, weights = (part[: len(scores)] for part in told)
            self._note(read(scores), y, rows, weights, is_new)

    def _learn_segment(self, learn, X, y, weights, record, part: slice):
        """Learn rows without new classes; if Ctrl-C stops it, statistics of the targets are those of the rows learned."""
        before: dict[str, Any] = {name: vars(self)[name] for name in ("_counts", "_target_scale") if name in vars(self)}
        X, y, weights = X[part], y[part], weights[part]
        try:
            return learn(X, *self._encoded_rows(y, weights), record)
        except Interrupted as stop:
            self.__dict__.update(before)
            self._encoded_rows(y[: stop.rows], weights[: stop.rows])
            stop.rows = part.start + (len(y) if stop.rows is None else stop.rows)
            raise

    def _encoded_rows(self, y, weights) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded targets and their weights, and take them into the statistics."""
        weights = weights * self._class_weights(y, weights, whole=False)
        return self._targets(y, weights), weights

    def _check_finite(self) -> None:
        if not states.is_finite(self._state):
            raise Diverged

    def _learn(self, X, targets, weights, record=False):
        """Learn validated rows and what their targets are to the method."""
        progress = VerboseProgress(type(self).__name__, X.shape[0]) if self.verbose else None
        events = Events(as_rows(X), read_only(targets), read_only(weights))

        def done(state, n):
            self._state = state
            if progress:
                progress.advance(n, f"{self.n_stored_} points")

        loop, setup, params, state, rng = self._tools()
        kept = self._kept_run(X)
        try:
            self._state, scores = learn_events(loop, setup, params, state, events, rng, record=record, done=done, kept=kept)
        except Interrupted as stop:
            stop.scores = self._recorded(stop.scores)
            raise
        return self._recorded(scores)

    def _recorded(self, scores: np.ndarray) -> np.ndarray:
        """Return scores from what was recorded before each event was learned, (rows, outputs and notes)."""
        return scores

    def _plan(self, length: int | None) -> None:
        """Set the length of the stream for averages, if it is known."""
        model = averages.planned(self._state.model, self._needs.suffix, length)
        if model is not self._state.model:
            self._state = self._state._replace(model=model)

    def _start(self, X, outputs: int) -> None:
        """Resolve parameters from the data and create an empty model."""
        self._begin(self.get_params(deep=False) | self.resolved(X), X.shape[1], outputs)
        if self._largest < LARGEST[X.dtype.name]:  # otherwise the rows have been checked
            check_entries(X, self._largest)
        self._settle_on(X)

    def _settle_on(self, X) -> None:
        """Measure rows from the first one, where distances are all that counts."""
        if self.kernel in ISOTROPIC:
            warn_if_uneven(X)
            if not sparse.issparse(X):
                states.set_centre(self._state, X[0])

    def _begin(self, options: dict[str, Any], d: int, outputs: int) -> None:
        """Create an empty model from resolved parameters, those of the first event: attributes may have been changed since."""
        self._drop_buffers()
        gamma = float(options["gamma"])
        for name in self._resolvable():
            setattr(self, f"{name}_", float(options[name]))
        if gamma > LARGEST["float32"] and np.dtype(options["dtype"]) == np.float32:
            raise ValueError(f"gamma={gamma:g} is too large for dtype='float32'; scale the columns, or use 'float64'")
        kernel = typed(Kernel(KINDS[options["kernel"]], gamma, options["degree"], options["coef0"]))
        self._problem = Problem(options, self.task, d, outputs, np.dtype(options["dtype"]).type, kernel)
        params, needs = self.learner.configure(self._problem)
        self._params, self._needs = typed(params), needs
        self._setup = typed(
            Setup(
                kernel=kernel,
                block_size=options["block_size"],
                tolerance=needs.tolerance,
                dense=needs.dense,
                output=averages.KINDS[needs.output],
                fraction=needs.suffix,
                numeric=self.task == "regression",
                growth=averages.growth(needs.suffix),
                uniforms=needs.uniforms,
                room=needs.room,
                notes=needs.notes,
                decay=needs.decay,
            )
        )
        self._rng = generator(self.random_state)
        self._merged = (0.0, -1)
        self._errors = new_errors(self.task == "regression") if options.get("calibrate") else None
        self._watch = new_watch(len(getattr(self, "classes_", ()))) if options.get("watch") else None
        self._state = self.learner.start(self._params, needs, self._problem, self._rng)
        self._largest = self._largest_entry()

    def resolved(self, X) -> dict[str, float]:
        """Return the values of data-dependent parameters for these rows."""
        options = self.get_params(deep=False)
        for name in reversed(self._resolvable()):  # gamma, which the others depend on, is in the base class and thus last
            resolve = self.parameters[name].resolve
            if resolve is not None and isinstance(options[name], str):
                options[name] = resolve(X, options)
        return {name: float(options[name]) for name in self._resolvable()}

    @classmethod
    def _resolvable(cls) -> list[str]:
        """Return the names of data-dependent parameters."""
        return [name for name, declared in cls.parameters.items() if declared.resolve]

    def _largest_entry(self) -> float:
        """Return the largest number allowed in a row, which depends on the kernel and the features."""
        d, name, options = self._problem.d, np.dtype(self._problem.dtype).name, self._problem.options
        found = LARGEST[name]
        if options["kernel"] == "poly":
            found = largest_of_products(d, name, self.gamma_, options["degree"], options["coef0"])
        elif options["kernel"] == "linear":
            found = largest_of_products(d, name)
        for part in self._state:
            if isinstance(part, Linear):
                limit = largest_of_angles(part.frequencies, name) if len(part.phase) else largest_of_products(d, name)
                found = min(found, limit)
        return found

    # ------------------------------------------------------------------ predicting

    def _scores(self, X) -> np.ndarray:
        """Return the outputs of the model, (rows, outputs)."""
        few = self._of_few(X, scoring.FewScores.outputs)
        return self._many_scores(X) + self._offset() if few is None else few

    @one_thread
    def _many_scores(self, X) -> np.ndarray:
        """Return the outputs for any rows, without an offset."""
        check_is_fitted(self)
        X = checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False)
        return scoring.score(self._setup, self._state, as_rows(canonical(X)), thread_count(self.n_jobs))

    def _offset(self) -> np.ndarray:
        """Return the constant that is added to each output of the model, (outputs,)."""
        return np.zeros(self._problem.outputs)

    # ------------------------------------------------------------------ what it is now

    @property
    def t_(self) -> int:
        """Events learned."""
        return int(self._fitted().model.clock[EVENTS])

    @property
    def n_stored_(self) -> int:
        """Points stored."""
        return self._fitted().model.stored

    @property
    def n_support_(self) -> int:
        """Number of points with a nonzero coefficient."""
        return len(self.support_vectors_) if self.n_stored_ else 0

    @property
    def support_vectors_(self) -> np.ndarray:
        """The points of the output: ``decision_function(X)`` is ``kernel(X, support_vectors_) @ dual_coef_``.

        For methods that also use random features, the points of the kernel part.
        """
        points, coef = self._expansion()
        return points[coef.any(axis=1)]

    @property
    def dual_coef_(self) -> np.ndarray:
        """The coefficients of the output: (points,) for one output, else (points, outputs)."""
        coef = self._expansion()[1]
        coef = coef[coef.any(axis=1)]
        return coef[:, 0] if coef.shape[1] == 1 else coef

    @one_thread
    def _expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored points and their coefficients in the output."""
        for part in scoring.frozen_parts(self._setup, self._fitted()):
            if isinstance(part, Expansion):
                return part.points[: part.stored] + part.centre, part.coef[0, :, : part.stored].T
        raise AttributeError(f"a {type(self).__name__} stores no points")

    @one_thread
    def function(self) -> scoring.ScoreFunction:
        """Return the scores as a function of rows; raise for an estimator whose scores are not an expansion."""
        check_is_fitted(self)
        if type(self)._scores is not OnlineEstimator._scores:
            raise TypeError(
                f"{type(self).__name__} is no sum of kernel values and features: export another model, such as KRLS"
            )
        parts = scoring.frozen_parts(self._setup, states.trimmed(self._state))
        return scoring.ScoreFunction(self._problem.kernel, parts, self._offset())

    @property
    def state_(self) -> Any:
        """All that was learned: a NamedTuple of parts, whose arrays are read-only views, valid until the next event."""
        return states.viewed(self._fitted())

    @property
    def nbytes_(self) -> int:
        """Size of what was learned in bytes, without spare capacity."""
        return states.nbytes(states.trimmed(self._fitted())) + self.bytes_beside

    @property
    def bytes_beside(self) -> int:
        """Size of what follows errors and watches columns, in bytes."""
        return sum(states.nbytes(part) for part in (self._errors, self._watch) if part is not None)

    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():  # an AttributeError, so that hasattr is False before fitting
            raise AttributeError(f"this {type(self).__name__} has learned nothing yet")
        return self._state

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in BUFFERS}

    def __setstate__(self, state):
        super().__setstate__(state)
        for name in ("_state", "_errors", "_watch"):  # for example memory-mapped by joblib: learning needs writable copies
            if self.__dict__.get(name) is not None:
                self.__dict__[name] = states.writable(self.__dict__[name])

    # ------------------------------------------------------------------ input

    def _validated(self, X, y, sample_weight, fresh: bool):
        self.check_own_parameters()
        dtype = np.dtype(self.dtype).type if fresh else self._problem.dtype
        largest = LARGEST[np.dtype(dtype).name] if fresh else self._largest
        if self.task == "oneclass":
            X = checked(self, X, largest=largest, dtype=dtype, reset=fresh)
            return canonical(X), np.ones(X.shape[0]), checked_weights(sample_weight, X.shape[0])
        numeric = self.task == "regression"
        X, y = checked(self, X, y, largest=largest, dtype=dtype, reset=fresh, y_numeric=numeric)
        weights = checked_weights(sample_weight, len(y))
        if numeric:
            y = y.astype(np.float64)
            if not np.isfinite(y).all():  # None has become NaN
                raise ValueError("y must contain only numbers, not None")
            highest = TARGET[np.dtype(dtype).name]
            if np.abs(y).max() > highest:
                raise ValueError(f"y contains numbers above {highest:g}, too large for {np.dtype(dtype).name}: scale them")
        return canonical(X), y, weights

    # ------------------------------------------------------------------ overridden by classifiers

    def _begin_targets(self, y, classes=None) -> int:
        """Prepare for the first targets; return the number of outputs."""
        return 1

    def _check_classes(self, classes) -> None:
        """Raise if the given classes differ from the known ones."""

    def _first_of_new_classes(self, y) -> list[int]:
        """Return the rows in which labels appear for the first time."""
        return []

    def _add_class(self, label) -> None:
        """Add a label to the classes; the state from before knows nothing of it."""

    def _targets(self, y, weights) -> np.ndarray:
        """Return the encoded targets of a chunk of a stream."""
        return np.asarray(y, dtype=np.float64)

    def _all_targets(self, y, weights) -> np.ndarray:
        """Return the encoded targets of a complete data set."""
        return self._targets(y, weights)

    def _class_weights(self, y, weights, whole: bool) -> np.ndarray:
        return np.ones(len(y))

    def _as_said(self, scores: np.ndarray) -> np.ndarray:
        """Return scores before each row of a stream was learned, as predictions were then."""
        return scores

    def _as_predicted(self, scores: np.ndarray) -> np.ndarray:
        """Return scores as predictions are now."""
        return scores

    def _telling(self) -> AbstractContextManager:
        """Return a context that tells of the alarms which its block raises."""
        return nullcontext()

    def _note(self, said, y, rows, weights, is_new: bool = False, since: tuple[Any, Any] | None = None) -> None:
        """Follow and watch rows that have been learned; ``is_new``: the first one has a label that was not known.

        Both happen at once or not at all; what has happened ``since`` is not done again.
        """
        errors, watch = since or (self._errors, self._watch)
        if errors is not None and self._errors is errors:
            self._follow(said, y, weights, is_new)
        if watch is not None and self._watch is watch:
            self._watch_events(said, y, rows, weights, is_new)
