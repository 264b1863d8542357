"""Estimators whose output is a mixture of experts: it is computed by the method itself and is not a kernel expansion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..components.answering import Answering
from ..components.experts import folded
from ..components.explaining import Asked, explain_experts
from ..core import state as states
from ..core.blas import one_thread
from ..core.kernels import Kernel
from ..core.limits import Diverged, largest_of_products
from ..core.rows import as_rows, row_count
from .checking import canonical, checked
from .constraints import SWITCH
from .explained import some_of
from .options import IsotropicKernel
from .parameters import parameter
from .tasks import OnlineClassifier
from .turns import thread_count

BLOCK = 512  # rows predicted at once
LEAST = 1e-300  # weight of a class, so that its logarithm is finite


class Mixed(IsotropicKernel):
    """Base class: columns are standardised online, gamma is determined by the first events, and the method itself predicts."""

    gamma: float | str = parameter(
        default="scale",
        resolve=lambda X, options: 0.0,  # determined by the first events
        doc='Kernel coefficient; "scale" is 1 / (columns * variance), computed from the first 1,024 events.',
    )
    standardise: bool = parameter(
        default=True,
        allowed=SWITCH,
        doc="Whether columns are standardised online. Columns that contain only 0 and 1 are not scaled, nor are any "
        "columns while all numbers are in [0, 1]. Others are clipped at five deviations from the mean. Use False after a "
        "step that scales.",
    )

    @property
    def gamma_(self) -> float:
        """Current coefficient of the kernel."""
        return float(self._fitted().answering.early.gamma[0])

    @gamma_.setter
    def gamma_(self, first: float) -> None:
        """Ignore the initial value: the state contains the current one."""

    @property
    def clipped_(self) -> int:
        """Number of learned rows in which a number was clipped; after a change of the stream, of those since then."""
        return int(self._fitted().answering.scales.clipped[0]) if self.standardise else 0

    @property
    def has_succeeded(self) -> bool:
        """Whether the mixture that predicts began after a change of the stream, and knows nothing of the events before."""
        return bool(self._fitted().answering.early.begun[0] > 0.0)

    @property
    def _setup(self) -> Any:
        """Return the settings with the current kernel."""
        settings = self.__dict__.get("_settings")
        if settings is None:  # dir() asks for every attribute
            raise AttributeError("there are no settings before the first event")
        return settings._replace(kernel=settings.kernel._replace(gamma=self.gamma_))

    @_setup.setter
    def _setup(self, settings: Any) -> None:
        self._settings = settings

    def _settle_on(self, X) -> None:
        if not self.standardise:
            super()._settle_on(X)

    def _largest_entry(self) -> float:
        found = super()._largest_entry()
        return (
            found if self.standardise else min(found, largest_of_products(self._problem.d, np.dtype(self._problem.dtype).name))
        )

    @one_thread
    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = canonical(checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False))
        rows, cuts = as_rows(X), range(0, X.shape[0], BLOCK)
        if (threads := min(thread_count(self.n_jobs), len(cuts))) <= 1:
            return np.concatenate([self._outputs(rows, slice(start, start + BLOCK)) for start in cuts], axis=1).T
        with ThreadPoolExecutor(threads) as pool:
            parts = pool.map(one_thread(lambda start: self._outputs(rows, slice(start, start + BLOCK))), cuts)
            return np.concatenate(list(parts), axis=1).T

    def _of_few(self, X, read) -> None:
        """Return None: a few rows are predicted as any others."""

    def _outputs(self, rows, part: slice) -> np.ndarray:
        outputs = self._answers().outputs(rows, range(row_count(rows))[part])
        if not np.isfinite(outputs).all():  # learning never leads there, but the numbers of a file may
            raise Diverged
        return outputs

    def _answers(self) -> Answering:
        """Return what answers for the state as it is now."""
        held: list[Answering] = self.__dict__.setdefault("_answering", [])
        found = held[0] if held else None
        if found is None or not found.is_of(self._state):
            found = Answering(self._state, self._problem.kernel, self._params.standardise)
            held[:] = [found]
        found.follow()
        return found

    def _drop_buffers(self) -> None:
        super()._drop_buffers()
        self._answering: list[Answering] = []  # so that predicting adds no attribute

    def frozen(self) -> tuple[Kernel, Any]:
        """Return the current kernel, and the state without spare room."""
        check_is_fitted(self)
        return self._setup.kernel, states.trimmed(folded(self._state.answering))

    def _score_event(self, x):
        scores = self._outputs_of_event(x)
        if not np.isfinite(scores).all():
            raise Diverged
        return scores.item() if len(scores) == 1 else scores

    def _outputs_of_event(self, x) -> np.ndarray:
        return self._known(self._answers().of_event(x, self._largest))

    def _expansion(self) -> tuple[np.ndarray, np.ndarray]:
        raise AttributeError(f"the output of a {type(self).__name__} is a mixture, not one expansion")

    @property
    def n_support_(self) -> int:
        """Points stored: all of them count."""
        return self.n_stored_

    # ------------------------------------------------------------------ explaining

    def _kept_rows(self, most: int) -> np.ndarray | None:
        return some_of(self._fitted().answering.latest.held, most)

    def _terms(self) -> int:
        said = self._fitted().answering
        return max(said.model.stored, said.window.stored)

    def _shares(self, game, sampling):
        found, answers = self._state.answering, self._answers()
        kernel, kept = found.kernel(self._problem.kernel), answers.kept_for(game.background, game.players)
        settings = found, kernel, self._params.standardise, answers.answers
        return explain_experts(*settings, Asked(game, self._expert_scores, sampling, kept))

    def _expert_scores(self, X: np.ndarray) -> np.ndarray:
        """Return what each expert says of rows, (rows, experts, outputs)."""
        rows, answers = as_rows(np.ascontiguousarray(X, self._problem.dtype)), self._answers()
        parts = (range(len(X))[start : start + BLOCK] for start in range(0, len(X), BLOCK))
        return np.concatenate([answers.expert_scores(rows, part) for part in parts], axis=2).transpose(2, 0, 1)


class MixedClassifier(Mixed, OnlineClassifier):
    """A classifier that gives log probabilities, to which those of the class weights are added.

    Experts that learn heavy events of a rare class follow each of them, and rank worse; a weight of the output costs nothing.
    """

    class_weight: dict | str | None = parameter(
        default=None,
        doc="Weights of the classes, by which probabilities are multiplied (and divided by their sum); learning does not "
        'depend on them. "balanced" divides by the counts seen so far.',
    )

    def _class_weights(self, y, weights, whole):
        super()._class_weights(y, weights, whole)  # counts
        return np.ones(len(y))

    def _learn_segment(self, learn, X, y, weights, record, part: slice):
        counts = self._counts
        if record and self.class_weight == "balanced":
            with_each = self._counts_with(np.searchsorted(self.classes_, y[part]), weights[part])
            counts = np.vstack([counts, with_each[:-1]])  # before each event
        outputs = super()._learn_segment(learn, X, y, weights, record, part)
        return outputs + self._log_weights(counts) if record else outputs

    def _outputs(self, rows, part: slice) -> np.ndarray:
        return super()._outputs(rows, part) + self.output_shift[:, np.newaxis]

    def _outputs_of_event(self, x) -> np.ndarray:
        outputs = super()._outputs_of_event(x)
        return outputs if self.class_weight is None else outputs + self.output_shift

    def _as_predicted(self, scores):
        return scores + self.output_shift

    def _reader(self, x):
        read = super()._reader(x)
        if self.class_weight is None:
            return read
        shift = self.output_shift
        return lambda: read() + (shift.item() if len(shift) == 1 else shift)

    def _shares(self, game, sampling):
        return super()._shares(game, sampling).times(1.0, self.output_shift)

    @property
    def output_shift(self) -> np.ndarray:
        """The class weights as they are added to log probabilities, or to log odds."""
        return self._log_weights(self._counts)

    def _log_weights(self, counts: np.ndarray) -> np.ndarray:
        """Return what is added to outputs after so many events of each class, (..., outputs)."""
        if self.class_weight == "balanced":
            logs = -np.log(np.maximum(counts, 1.0))
        else:
            named: Any = self.class_weight or {}
            logs = np.log([max(float(named.get(label, 1.0)), LEAST) for label in self.classes_.tolist()])
        return logs if self._problem.outputs > 1 else logs[..., -1:] - logs[..., :1]
