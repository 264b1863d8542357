"""Explanations: what each column contributes to the scores of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..components import shapley
from ..components.shapley import Game, Products, Shares
from ..core.blas import one_thread
from ..core.expansion import Expansion
from ..core.fourier import Linear
from ..core.kernels import LINEAR, RBF, Kernel
from ..core.rows import as_rows
from ..driver.outputs import add_scores
from .checking import canonical, checked
from .constraints import short
from .turns import predicting

BACKGROUND = 64  # rows of the model that absent columns are taken from, at most
RECENT = 32  # rows whose contributions are averaged
SAMPLES = 16  # orders of columns that are sampled where there is no formula, at least
SCORES = 512  # rows that are scored for these, about: more orders of few columns
MOST = 2**25  # numbers for each of the tables that a row needs


class Explanation(NamedTuple):
    """Contributions to scores: ``values`` of a row sum to its ``score`` minus ``base``, up to rounding."""

    values: np.ndarray  # (rows, columns), or (rows, columns, classes) of more than two classes
    base: Any  # a number, or one for each class
    score: np.ndarray  # (rows,) or (rows, classes)
    error: np.ndarray  # the standard error of each value, given the base; 0 where it is exact
    columns: tuple[str, ...]
    labels: tuple[Any, ...] = ()  # that each score speaks for: the second of two classes; none of a regressor

    def row(self, place: int) -> dict[str, Any]:
        """Return the explanation of a row as JSON-compatible data, the largest contributions first.

        Of several scores, it is that of the largest one.  ``error`` has the columns whose contributions are not exact.
        """
        values, error, score, base, best = self.values[place], self.error[place], self.score[place], self.base, 0
        if values.ndim == 2:
            best = int(score.argmax())
            values, error, score, base = values[:, best], error[:, best], score[best], base[best]
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        return {
            **({"score_of": self.labels[best]} if self.labels else {}),
            "score": float(score),
            "base": float(base),
            "contributions": {self.columns[one]: float(values[one]) for one in order},
            "error": {self.columns[one]: float(error[one]) for one in order if error[one] > 0.0},
        }


class Explains:
    """Mixin of estimators that have a score."""

    n_features_in_: int
    dtype: Any
    predict: Callable
    function: Callable
    _setup: Any
    _state: Any
    _problem: Any
    _largest: float
    _fitted: Callable[[], Any]

    @predicting
    @one_thread
    def explain(self, X, background=None, *, samples: int | None = None, groups: Sequence[str] | None = None) -> Explanation:
        """Return what each column contributes to the score of each row: Shapley values, which sum to score minus base.

        The score is that of ``decision_function``, or of ``predict`` for a regressor.  A column is absent if its value comes
        from another row, drawn for each column on its own; the base is the mean score of rows whose columns are all drawn.
        Values are exact for Gaussian and linear kernels and for linear features.  Other kernels, random features, balls, and
        the neighbours among Auto's experts are sampled, by the same orders of columns for all rows; ``error`` says how well.
        Auto's mixture is explained with its weights held fixed.

        Parameters
        ----------
        X : (rows, columns)
            The rows to explain.
        background : (rows, columns), optional
            Rows that the values of absent columns are drawn from.  By default up to 64 that the model holds: of about the
            latest 1,000 events of Auto, or stored points of other methods.
        samples : int, optional
            Number of sampled orders of the columns where there is no formula; by default 16, and more of few columns.  The
            error falls with its square root.
        groups : sequence of str, optional
            For each column the name of what it belongs to, such as the category that several columns encode.  Columns of the
            same name are absent together, and have one value.

        Examples
        --------
        >>> import numpy as np, kernling as kl
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = kl.KRLSRegressor().fit(X, 2.0 * X[:, 0] - X[:, 1])
        >>> found = model.explain(np.array([[1.0, 1.0, 1.0]]))
        >>> print(found.values.round(1), round(float(found.score[0] - found.base), 1))
        [[ 2.4 -1.  -0. ]] 1.3
        """
        X = self._dense_rows(X)
        names = self._column_names() if groups is None else [str(name) for name in groups]
        if len(names) != self.n_features_in_:
            raise ValueError(f"groups has {len(names)} names, but there are {self.n_features_in_} columns")
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        samples = max(SAMPLES, SCORES // len(places)) if samples is None else samples
        if not isinstance(samples, (int, np.integer)) or samples < 4:
            raise ValueError(f"samples must be a whole number of at least 4, not {short(samples)}")
        rows = self._kept_rows(BACKGROUND) if background is None else self._dense_rows(background)
        if rows is None:
            raise ValueError(f"this {type(self).__name__} holds no rows to compare with: give some as background")
        game = Game(X.astype(np.float64), rows.astype(np.float64), np.array([places[name] for name in names]))
        if game.size * self._terms() > MOST:
            raise ValueError(f"{game.size} columns are too many to explain with {self._terms()} points: give groups of them")
        shares = self._shares(game, (int(samples), np.random.default_rng(0)))
        score = (self.decision_function if hasattr(self, "decision_function") else self.predict)(X)
        values, error = shares.values, shares.error
        base: Any = shares.base
        labels = tuple(getattr(self, "classes_", np.empty(0)).tolist())
        if values.shape[2] == 1:
            values, base, error, labels = values[..., 0], float(base[0]), error[..., 0], labels[-1:]
        return Explanation(values, base, score, error, tuple(places), labels)

    @property
    def importances_(self) -> dict[str, float]:
        """Mean size of the contribution of each column to the scores of up to 32 rows that the model holds, in their units.

        These are of about the latest 1,000 events of Auto, or stored points.  They are explained when this is asked for.
        """
        return self._importances()

    def _importances(self, groups: Sequence[str] | None = None) -> dict[str, float]:
        rows = self._kept_rows(RECENT)
        if rows is None:
            raise AttributeError(f"this {type(self).__name__} holds no rows whose columns could be compared")
        found: Explanation = self.explain(rows, groups=groups)
        sizes = np.abs(found.values).mean(axis=0)
        return dict(zip(found.columns, (sizes if sizes.ndim == 1 else sizes.mean(axis=1)).tolist(), strict=True))

    def _dense_rows(self, X) -> np.ndarray:
        self._fitted()
        X = canonical(checked(self, X, largest=self._largest, dtype=self._problem.dtype, reset=False))
        return X.toarray() if sparse.issparse(X) else X

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{place}" for place in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _terms(self) -> int:
        """Return the number of points of the largest sum over points."""
        return max(part.stored for part in self._fitted() if isinstance(part, (Expansion, Linear)))

    def _kept_rows(self, most: int) -> np.ndarray | None:
        """Return at most so many rows that the model holds, in the units that they came in; None if it holds none."""
        for part in self._fitted():
            if isinstance(part, Expansion) and part.stored:
                return some_of(part.points[: part.stored], most) + part.centre
        return None

    def _shares(self, game: Game, sampling: tuple[int, np.random.Generator]) -> Shares:
        """Return the shares of columns in the score of an expansion, and of linear features."""
        function, total, rest = self.function(), shapley.nothing(game, self._problem.outputs), []
        for part in function.parts:
            own = _with_formula(game, function.kernel, part)
            if own is not None:
                total = total.plus(own)
            elif isinstance(part, Linear) and not part.frequencies.any():  # a constant
                total = total.times(1.0, self._scores_of([part], game.background[:1])[0])
            else:
                rest.append(part)
        if rest:
            total = total.plus(shapley.sampled(game, lambda rows: self._scores_of(rest, rows), *sampling))
        total = total.times(1.0, function.offset)
        return total.times(getattr(self, "target_spread_", 1.0), getattr(self, "target_mean_", 0.0))

    def _scores_of(self, parts: list[Expansion | Linear], X: np.ndarray) -> np.ndarray:
        rows, out = as_rows(np.ascontiguousarray(X, self._problem.dtype)), np.zeros((len(X), self._problem.outputs))
        for part in parts:
            add_scores(self._setup, part, rows, out, 0, len(X))
        return out


def some_of(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, evenly spread over them."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.intp)]


def _with_formula(game: Game, kernel: Kernel, part: Expansion | Linear) -> Shares | None:
    """Return the shares in a part that is a sum or a product over columns; None for others."""
    coef, centre = part.coef[0], part.centre.astype(np.float64)
    centred = game.seen(lambda X: X - centre)
    if isinstance(part, Linear):
        return None if len(part.frequencies) else shapley.linear(centred, coef)
    if kernel.kind == LINEAR:
        return shapley.linear(centred, coef @ part.points.astype(np.float64))
    used = coef.any(axis=0)
    terms = Products(part.points[used].T, coef[:, used], kernel.gamma, False)
    return shapley.of_products(centred, terms) if kernel.kind == RBF else None
