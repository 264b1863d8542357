"""Comparison of models with their ONNX exports in onnxruntime, on the same rows."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

import kernling as kl
from kernling.tables.encode import Encode
from kernling.tables.frames import as_table
from kernling.tables.schema import dates_of
from kernling.tables.table import category

TIE = 1e-5  # labels may differ if scores are this close to a tie


class Agreement(NamedTuple):
    """Differences between onnxruntime and kernling on some rows."""

    error: float  # largest difference of scores or values, divided by their size or root mean square, whichever is larger
    labels: int  # that differ although the scores are not tied
    probability: float  # the largest difference


class Exported:
    """An exported model in onnxruntime, on one thread."""

    def __init__(self, model: Any, folder: Path):
        self.model = model
        path = folder / "model.onnx"
        kl.to_onnx(model, path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def inputs(self, X: Any) -> dict[str, np.ndarray]:
        """Convert rows to the inputs of the graph."""
        steps = getattr(self.model, "steps_", None)
        if steps and isinstance(steps[0][1], Encode):
            return table_inputs(steps[0][1], X)
        dtype = {"tensor(double)": np.float64, "tensor(float)": np.float32}[self.session.get_inputs()[0].type]
        return {"rows": np.ascontiguousarray(X, dtype)}

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        return dict(zip([each.name for each in self.session.get_outputs()], self.session.run(None, inputs), strict=True))

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores of the model itself."""
        for name in ("transform", "decision_function", "predict"):
            if hasattr(self.model, name):
                return getattr(self.model, name)(X)
        raise TypeError(f"{self.model!r} has no method that predicts")

    def agreement(self, X: Any) -> Agreement:
        """Compare both on rows."""
        found = self.run(self.inputs(X))
        ours = self.scores(X)
        theirs = next(found[name] for name in ("transformed", "score", "value") if name in found)
        assert theirs.shape == ours.shape
        size = np.maximum(np.abs(ours), np.sqrt(np.mean(ours**2)))
        error = np.max(np.abs(ours - theirs) / np.where(size > 0.0, size, 1.0))
        wrong = 0
        if "label" in found:
            labels = self.model.predict(X)
            assert found["label"].dtype.kind == ("O" if labels.dtype.kind == "U" else labels.dtype.kind)
            wrong = int(((found["label"] != labels) & (_margin(ours) > TIE)).sum())
        probability = 0.0
        assert ("probability" in found) == hasattr(self.model, "predict_proba")
        if "probability" in found:
            probability = float(np.abs(found["probability"] - self.model.predict_proba(X)).max())
        return Agreement(float(error), wrong, probability)


def table_inputs(encode: Encode, X: Any) -> dict[str, np.ndarray]:
    """Convert a table to the inputs of a pipeline's graph, one for each column that is used."""
    table = as_table(X)
    found: dict[str, Any] = {}
    for column in encode.schema_:
        values, missing = table.columns[column.name], table.missing(column.name)
        if column.treatment == "category":
            words = ["" if gap else category(value, column.name) for value, gap in zip(values.tolist(), missing, strict=True)]
            found[column.name] = np.array(words, dtype=object)
        elif column.treatment == "date":
            found[column.name] = dates_of(table, column.name, column.form).astype(np.int64)
        elif column.treatment == "boolean" and not column.gaps:
            found[column.name] = values.astype(bool)
        elif column.treatment != "ignore":
            found[column.name] = table.numbers(column.name)
    return found


def _margin(scores: np.ndarray) -> np.ndarray:
    """Return the distance of scores from a tie."""
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2]
