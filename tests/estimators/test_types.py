"""Arrays that would be converted in silence into something else than what was meant are refused, with the cure."""

import numpy as np
import pandas as pd
import pytest

import kernling as kl

X = np.random.default_rng(0).normal(size=(60, 2))
LABELS = (X[:, 0] > 0).astype(int)
DAYS = np.arange(60).astype("datetime64[D]")
MASKED = np.ma.masked_array(X, mask=X > 1.0)

ROWS = {
    "masked": (MASKED, "X has masked entries"),
    "dates": (np.column_stack([DAYS, DAYS]), "X contains dates"),
    "frame of dates": (pd.DataFrame({"a": DAYS, "b": DAYS}), "X contains dates"),
    "frame with dates": (pd.DataFrame({"a": X[:, 0], "b": DAYS}), "X contains dates"),
    "durations": (np.column_stack([DAYS - DAYS[0]] * 2), "X contains durations"),
    "complex": (X + 1j, "X contains complex numbers"),
    "records": (np.array([tuple(row) for row in X], dtype=[("a", float), ("b", float)]), "X contains records"),
}
TARGETS = {
    "masked": (np.ma.masked_array(LABELS, mask=LABELS == 1), "y has masked entries"),
    "dates": (DAYS, "y contains dates"),
    "list of dates": (list(DAYS), "y contains dates"),
    "list of bytes": ([b"a", b"b"] * 30, "y contains bytes"),
    "bytes": (np.array([b"no", b"yes"])[LABELS], "y contains bytes"),
    "complex": (LABELS + 0.5j, "y contains complex numbers"),
}


@pytest.mark.parametrize("call", ["fit", "partial_fit", "predict_then_learn"])
@pytest.mark.parametrize(("rows", "message"), ROWS.values(), ids=ROWS)
def test_rows(rows, message, call):
    model = kl.AVMClassifier(gamma=1.0, delta=1.0)
    with pytest.raises(ValueError, match=message):
        getattr(model, call)(rows, LABELS)
    assert not hasattr(model, "t_")


@pytest.mark.parametrize(("rows", "message"), ROWS.values(), ids=ROWS)
def test_rows_to_predict(rows, message):
    model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, LABELS)
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


@pytest.mark.parametrize("cls", [kl.AVMClassifier, kl.AVMRegressor])
@pytest.mark.parametrize(("targets", "message"), TARGETS.values(), ids=TARGETS)
def test_targets(cls, targets, message):
    with pytest.raises(ValueError, match=message):
        cls(gamma=1.0, delta=1.0).fit(X, targets)


def test_weights():
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, LABELS, sample_weight=np.ma.masked_array(np.ones(60), mask=LABELS == 1))


def test_masked_arrays_without_masked_entries_are_plain():
    plain = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, LABELS)
    model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(np.ma.masked_array(X, mask=False), LABELS)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
