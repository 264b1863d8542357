"""Explanations and alarms of pipelines, in terms of the columns that they are given."""

from __future__ import annotations

from sklearn.base import OneToOneFeatureMixin

from ..components.alarms import Alarm
from ..estimators.explained import Explanation
from ..estimators.turns import predicting
from ..estimators.watched import RaisesAlarms, named
from .frames import one_row
from .steps import Steps, last_has


class ExplainsColumns(RaisesAlarms, Steps):
    """What a fitted pipeline says about its columns: contributions to scores, importances, and which of them have moved."""

    @last_has("explain")
    @predicting
    def explain(self, X, background=None, *, samples=None) -> Explanation:
        """Return what each column of the rows contributes to their scores; see the last step's ``explain``.

        All encoded columns of a column have one value together.  After a step that mixes columns, such as PCA, the values are
        those of the columns that it gives.

        Examples
        --------
        >>> import kernling as kl
        >>> rows = [{"hour": hour, "city": city} for hour in range(24) for city in ("Oslo", "Rome")]
        >>> model = kl.StreamPipeline.auto().partial_fit(20 * rows, 20 * [row["city"] == "Rome" for row in rows])
        >>> found = model.explain(rows[:1])
        >>> print(found.columns, found.values[0, 1] < -1.0)
        ('hour', 'city') True
        """
        last = self._learned()
        others = {} if background is None else {"background": self.passed(background)}
        return _without_free(last.explain(self.passed(X), **others, samples=samples, groups=self._sources()))

    @last_has("explain")
    def explain_one(self, x) -> dict[str, float]:
        """Return what each column of an event contributes to its score, or to that of the predicted label if there are many."""
        return self.explain(one_row(x)).row(0)["contributions"]

    @property
    def importances_(self) -> dict[str, float]:
        """Mean size of the contribution of each column to the scores of rows that the model holds; see the last step's."""
        found = self._learned()._importances(self._sources())
        return {name: size for name, size in found.items() if name}

    def _sources(self) -> list[str]:
        """Return the name of the column that each column of the last step comes from."""
        first, parts = self.steps_[0][1], [part for _, part in self.steps_[:-1]]
        keeps = getattr(first, "takes_tables", False) and all(isinstance(part, OneToOneFeatureMixin) for part in parts[1:])
        if keeps and len(first.sources) == self.model_.n_features_in_:
            return first.sources
        return self[:-1].get_feature_names_out().tolist() if parts else self.model_._column_names()

    @property
    def alarms_(self) -> list[Alarm]:  # type: ignore[override]
        """The latest 16 alarms, the oldest first, with the names of columns as they are given; needs ``watch=True``."""
        first = self.steps_[0][1]
        names = first.watched_names if hasattr(first, "watched") else getattr(self, "feature_names_in_", ())
        return named(self._learned().numbered_alarms(), names)


def _without_free(found: Explanation) -> Explanation:
    """Leave out the columns that are kept free, which are 0 in all rows."""
    there = [place for place, name in enumerate(found.columns) if name]
    columns = tuple(found.columns[place] for place in there)
    return found._replace(values=found.values[:, there], error=found.error[:, there], columns=columns)
