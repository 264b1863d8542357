"""Base class for one-class learning."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
from scipy import sparse
from sklearn.base import OutlierMixin

from ..components.ball import CENTRE, MEAN
from ..components.recent_scores import RecentScores, border, latest_count, new_scores
from ..components.shapley import sampled
from ..core.kernels import ISOTROPIC, self_value
from ..core.limits import GAMMA
from .base import OnlineEstimator
from .constraints import NOTHING, POSITIVE, OneOf, Real
from .explained import Explains
from .parameters import parameter
from .resolve import local_gamma
from .turns import predicting


class OnlineOneClass(OutlierMixin, Explains, OnlineEstimator):
    """A one-class learner for anomaly detection: ``predict`` returns 1 for inliers and -1 for outliers.

    Targets are ignored.  ``decision_function(X)`` is ``score_samples(X) - offset_``.  In "ball" mode the score is minus the
    distance from the centre, in "halfspace" mode it is f(x).
    """

    task = "oneclass"
    single_methods = {"predict": ("predict_one", "_side"), "decision_function": ("score_one", "_score_itself")}
    kernel: str = parameter(default="cauchy")
    gamma: float | str = parameter(
        default="local",
        allowed=(OneOf(("local", "scale")), Real(0.0, strict=True, extreme=GAMMA)),
        resolve=local_gamma,
        doc='Kernel coefficient; "scale" is 1 / (columns * variance of the first rows), "local" 32 times that.',
    )
    contamination: float | None = parameter(
        default=0.05,
        allowed=(NOTHING, Real(0.0, 0.5, strict=True)),
        doc="Expected share of flagged normal events: the boundary is this quantile of the scores of the last fifth of "
        "the events, at most 1,000, each computed before its event was learned. None: the boundary that the method is trained "
        "with, the ball's radius or 1.",
    )
    mode: str = parameter(
        default="ball",
        allowed=OneOf(("ball", "halfspace")),
        doc="A ball around normal events in feature space, or a half-space that contains them.",
    )
    radius: float = parameter(
        default=0.5, allowed=POSITIVE, doc="Radius of the ball; less than 1 for kernels that are functions of the distance."
    )

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model to the rows, discarding earlier state."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the model with the rows."""
        if not self._learn_plain(X, y, sample_weight):
            self._stream(X, y, sample_weight)
        return self

    def learn_one(self, x, y=None, sample_weight=1.0):
        """Learn one event, a 1-D array."""
        return super().learn_one(x, 1.0, sample_weight)

    def predict_then_learn(self, X, y=None, method="predict", sample_weight=None):
        """Learn the rows; return the output of ``method`` for each row just before it was learned."""
        if method not in ("predict", "decision_function", "score_samples"):
            raise ValueError(f"method must be 'predict', 'decision_function' or 'score_samples', not {method!r}")
        before = self._state.recent if self.__sklearn_is_fitted__() else new_scores(kept=True)
        before = RecentScores(*(part.copy() for part in before))
        recorded = self._stream(X, y, sample_weight, record=True)[0][1]
        norms = recorded[:, 1] if self._radius else 0.0
        scores = self._similarity(recorded[:, 0], norms, X)
        if method == "score_samples":
            return scores
        learned = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight)
        decision = scores - self._offsets(before, scores, learned > 0.0)
        return self._labels(decision) if method == "predict" else decision

    @predicting
    def score_samples(self, X):
        """Return how similar each row is to the learned events; higher is more similar."""
        scores = self._scores(X)[:, 0]
        return self._similarity(scores, self._squared_norm(), X)

    @predicting
    def decision_function(self, X):
        """Return positive values for inliers, negative for outliers."""
        return self.score_samples(X) - self.offset_

    @predicting
    def predict(self, X):
        """Return 1 for inliers, -1 for outliers."""
        return self._labels(self.decision_function(X))

    def _score_event(self, x):
        score = np.array([super()._score_event(x)])
        return float(self._similarity(score, self._squared_norm(), x[np.newaxis])[0] - self.offset_)

    def predict_one(self, x):
        """Return 1 or -1 for one event, a 1-D array; None before any learning."""
        with self._turns.lock:
            if not (self._one or self._make_ready()):
                return None
            return self._side(self._score_event(self._event(x)))

    def predict_then_learn_one(self, x, y=None, method="predict", sample_weight=1.0):
        """Learn one event, a 1-D array; return 1 or -1, or with "decision_function" its score, as it was just before."""
        return super().predict_then_learn_one(x, 1.0, method, sample_weight)

    def _reader(self, x):
        read, offset, norm = super()._reader(x), self.offset_, self._squared_norm() if self._radius else 0.0
        return lambda: float(self._similarity(np.atleast_1d(read())[:1], norm, x[np.newaxis])[0] - offset)

    def _side(self, score: float) -> int:
        return 1 if score >= 0.0 else -1

    @property
    def offset_(self) -> float:
        """Score at the boundary."""
        scores = self.recent_scores_
        if self.contamination is None or not len(scores):
            return self._learned_offset
        return border(np.sort(scores).tolist(), self.contamination)

    @property
    def recent_scores_(self) -> np.ndarray:
        """Scores of the last fifth of the events, at most 1,000, each computed before its event was learned."""
        return self._fitted().recent.latest()

    @property
    def _learned_offset(self) -> float:
        """Score at the boundary that the method is trained with."""
        return -self._radius if self._radius else 1.0

    def _offsets(self, before: RecentScores, scores: np.ndarray, learned: np.ndarray) -> np.ndarray:
        """Return ``offset_`` as it was before each event, given the scores before the first one."""
        if self.contamination is None:
            return np.full(len(scores), self._learned_offset)
        count = int(before.count[0])
        window = before.latest().tolist()
        ordered = sorted(window)
        offsets = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            offsets[i] = border(ordered, self.contamination) if ordered else self._learned_offset
            if learned[i]:
                insort(ordered, score)
                window.append(score)
                count += 1
                if len(window) > latest_count(count):
                    del ordered[bisect_left(ordered, window.pop(0))]
        return offsets

    @property
    def ball_(self) -> tuple[float, float] | None:
        """Distance of the boundary from the ball's centre, and the squared norm of the centre; None for a half-space."""
        return (-self.offset_, self._squared_norm()) if self._radius else None

    def _shares(self, game, sampling):
        if not self._radius:
            return super()._shares(game, sampling).times(1.0, -self.offset_)
        return sampled(game, lambda rows: self.decision_function(rows)[:, np.newaxis], *sampling)

    def _labels(self, decision):
        return np.where(decision >= 0.0, 1, -1)

    def _squared_norm(self) -> float:
        return float(self._state.ball[MEAN if self._needs.output == "average" else CENTRE])

    @property
    def _radius(self) -> float:
        """Radius of the ball, 0 for a half-space."""
        return self._params.task.radius

    def _similarity(self, scores, squared_norm, X):
        if not self._radius:
            return scores
        k_xx: float | np.ndarray = 1.0
        if self.kernel not in ISOTROPIC:
            squares = X.multiply(X) if sparse.issparse(X) else np.asarray(X, np.float64) ** 2
            k_xx = np.array([self_value(self._problem.kernel, q) for q in np.asarray(squares.sum(axis=1)).ravel()])
        return -np.sqrt(np.maximum(0.0, squared_norm - 2.0 * scores + k_xx))
