"""A program that uses kernling as its types allow; tests/test_release.py has mypy check it."""

from pathlib import Path

import numpy as np

import kernling as kl
from kernling.baselines import PegasosClassifier
from kernling.evaluate import test_then_train
from kernling.export import to_json
from kernling.io import stream
from kernling.tables import Standardise


def learn(X: np.ndarray, y: np.ndarray) -> kl.StreamPipeline:
    """Every call has the type that it says."""
    model = kl.AVMClassifier(gamma=1.0, delta=0.5, loss="logistic", random_state=0)
    baseline: PegasosClassifier = PegasosClassifier(lam=0.1)
    baseline.partial_fit(X, y)
    pipeline = kl.StreamPipeline([("scale", Standardise(clip=5.0)), ("model", model)])
    pipeline.partial_fit(X, y)
    rows = test_then_train(kl.KRLSClassifier(points=10), stream(X, y))
    print(len(rows))
    return pipeline


def hand_on(pipeline: kl.StreamPipeline, folder: Path) -> int:
    """Files, and a number of a model."""
    kl.save(pipeline, folder / "model.kern")
    kl.to_onnx(pipeline, folder / "model.onnx")
    to_json(pipeline, folder / "model.json")
    points: int = kl.SPARegressor(gamma=1.0).n_stored_
    return points


def wrong() -> None:
    """Calls that a checker must refuse: an unused "type: ignore" is an error."""
    kl.to_onnx(kl.AVMClassifier())  # type: ignore[call-arg]
    kl.AVMClassifier(block_size="many")  # type: ignore[arg-type]
    kl.no_such_name  # type: ignore[attr-defined]  # noqa: B018
