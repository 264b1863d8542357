"""Adapters that make estimators CapyMOA learners, so that its evaluation and benchmarks built on it can run them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators.checking import is_fitted
from ..estimators.tasks import probabilities
from ..methods.auto import AutoClassifier, AutoRegressor
from ..pipeline import StreamPipeline

try:
    from capymoa.base import Classifier, Regressor
except ImportError as error:
    raise ImportError("kernling.compat.capymoa needs CapyMOA, which needs Java: pip install capymoa") from error


class _FromInstances:
    """Base class of both adapters: a pipeline that learns dictionaries, in which values of nominal attributes are text."""

    schema: Any
    learned: StreamPipeline

    def _begin(self, model: Any) -> None:
        seeded = clone(model)
        if "random_state" in seeded.get_params():
            seeded.set_params(random_state=self.random_seed)  # type: ignore[attr-defined]
        self.learned = seeded if isinstance(seeded, StreamPipeline) else StreamPipeline.auto(seeded)
        header = self.schema.get_moa_header()
        attributes = [header.attribute(i) for i in range(header.numAttributes()) if i != header.classIndex()]
        self._values = [
            (str(one.name()), [str(value) for value in one.getAttributeValues()] if one.isNominal() else None)
            for one in attributes
        ]

    def _row(self, instance: Any) -> dict[str, Any]:
        pairs = zip(self._values, instance.x.tolist(), strict=True)
        return {name: value if values is None or value != value else values[int(value)] for (name, values), value in pairs}

    def __str__(self) -> str:
        return type(self.learned.named_steps["model"]).__name__


class CapyMOAClassifier(_FromInstances, Classifier):
    """A classifier as a CapyMOA learner.

    Parameters
    ----------
    schema : capymoa.stream.Schema
        Describes the stream; nominal attributes are encoded by :meth:`kernling.StreamPipeline.auto`.
    model : estimator or StreamPipeline, optional
        Left unchanged.  The default is :class:`kernling.AutoClassifier`.
    random_seed : int
        Seed of the model's random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from capymoa.evaluation import prequential_evaluation
    >>> from capymoa.stream import NumpyStream
    >>> from kernling.compat.capymoa import CapyMOAClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> stream = NumpyStream(X, (X[:, 0] * X[:, 1] > 0.0).astype(int), target_type="categorical")
    >>> result = prequential_evaluation(stream, CapyMOAClassifier(stream.get_schema()))
    >>> print(f"{result.accuracy():.0f} %")
    93 %
    """

    def __init__(self, schema: Any, model: Any = None, random_seed: int = 1):
        super().__init__(schema=schema, random_seed=random_seed)
        self._begin(AutoClassifier() if model is None else model)

    def train(self, instance: Any) -> None:
        """Learn an instance."""
        self.learned.learn_one(self._row(instance), int(instance.y_index))

    def predict_proba(self, instance: Any) -> np.ndarray | None:
        """Return the probability of each label of the schema; None before the first label was learned."""
        if not is_fitted(self.learned):
            return None
        classes = self.learned.classes_
        scores = np.reshape(self.learned.score_one(self._row(instance)), (1, -1))
        found = np.zeros(self.schema.get_num_classes())
        found[classes] = probabilities(scores, len(classes))[0]
        return found


class CapyMOARegressor(_FromInstances, Regressor):
    """A regressor as a CapyMOA learner; the parameters are those of :class:`CapyMOAClassifier`, by default an Auto."""

    def __init__(self, schema: Any, model: Any = None, random_seed: int = 1):
        super().__init__(schema=schema, random_seed=random_seed)
        self._begin(AutoRegressor() if model is None else model)

    def train(self, instance: Any) -> None:
        """Learn an instance."""
        self.learned.learn_one(self._row(instance), float(instance.y_value))

    def predict(self, instance: Any) -> float:
        """Return the predicted value; 0 before the first one was learned."""
        said = self.learned.predict_one(self._row(instance))
        return 0.0 if said is None else float(said)
