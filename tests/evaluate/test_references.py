"""The constant answer and a linear model beside every result."""

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import root_mean_squared_error

import kernling
from kernling.evaluate import ConstantAnswer, LinearModel, batch, online, summary, test_then_train
from kernling.io import stream
from kernling.report import cells, curve
from kernling.tables import Standardise

RNG = np.random.default_rng(2)
X = RNG.normal(size=(1500, 4))
Y = 5.0 + X @ [3.0, -1.0, 0.0, 0.5] + 0.1 * RNG.normal(size=1500)
LABELS = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + [0.5, 0.0, 0.0], axis=1)]


def test_the_constant_answer_knows_only_what_came_before():
    said = ConstantAnswer("regression").predict_then_learn(X, Y)
    np.testing.assert_allclose(said[1:], [Y[:t].mean() for t in range(1, len(Y))])
    said = ConstantAnswer("classification").predict_then_learn(X, LABELS)
    for t in range(1, 200):
        names, counts = np.unique(LABELS[:t], return_counts=True)
        assert counts[names == said[t]] == counts.max()


@pytest.mark.parametrize("answer", [ConstantAnswer, LinearModel])
@pytest.mark.parametrize(("task", "y"), [("regression", Y), ("classification", LABELS)])
def test_how_the_stream_is_cut_changes_nothing(answer, task, y):
    whole, parts = answer(task).predict_then_learn(X, y), answer(task)
    said = np.concatenate([parts.predict_then_learn(X[part], y[part]) for part in (slice(7), slice(7, 500), slice(500, None))])
    assert (said == whole).all() if task == "classification" else np.allclose(said, whole)


def test_the_linear_model_is_least_squares_on_the_rows_before():
    said = LinearModel("regression").predict_then_learn(X, Y)
    for t in (100, 700, 1400):
        fitted = Ridge(1e-6).fit(X[:t], Y[:t])
        assert said[t] == pytest.approx(fitted.predict(X[t : t + 1])[0], abs=0.2)
    assert np.std(said[500:] - Y[500:]) < 0.12
    wrong = LinearModel("classification").predict_then_learn(sparse.csr_matrix(X), LABELS) != LABELS
    assert wrong[500:].mean() < 0.15
    late = LinearModel("classification").predict_then_learn(X, np.where(np.arange(1500) < 700, "a", LABELS))
    assert set(late[1000:]) == {"a", "b", "c"}


def test_a_linear_model_of_rows_too_large_for_squares_says_something_finite():
    assert np.isfinite(LinearModel("regression").predict_then_learn(1e200 * X, Y)).all()


def test_both_stand_beside_the_metrics_in_rows_tables_and_figures():
    rows = test_then_train(kernling.AVMRegressor(), stream(X, Y), every=500, linear=True)
    constant = np.sqrt(np.mean((ConstantAnswer("regression").predict_then_learn(None, Y) - Y) ** 2))
    assert rows[-1]["rmse_constant"] == pytest.approx(constant)
    assert rows[-1]["rmse_linear"] < 0.5 * rows[-1]["rmse_constant"]
    assert rows[-1]["mae_window_linear"] < rows[-1]["mae_window_constant"]
    assert {"RMSE, constant answer", "RMSE, linear model"} <= set(cells(rows).heads)
    names = [line.get_label() for line in curve(rows, "events", "rmse_window").axes[0].lines]
    assert names[1:] == ["constant answer", "linear model"]
    classified = summary(online(kernling.AVMClassifier(), (X, LABELS), permutations=2))[0]
    assert 0.0 < classified["mistakes_constant"] < 1.0
    assert "mistakes_linear" not in classified


def test_the_linear_model_gets_the_rows_that_the_last_step_gets():
    """Categories and scales included: the table is linear once it is encoded."""
    town = RNG.choice(["Oslo", "Rome", "Lima"], 1500)
    table = pandas.DataFrame({"km": 1e5 + 1e4 * X[:, 0], "town": town, "y": X[:, 0] + 5.0 * (town == "Oslo")})
    model = kernling.StreamPipeline.auto(task="regression")
    row = test_then_train(model, stream(table, target="y", missing="keep"), linear=True)[-1]
    assert row["rmse_linear"] < 0.2 * row["rmse_constant"]


def test_wide_rows_have_no_linear_model():
    wide = sparse.random(50, 400, random_state=0, format="csr")
    row = test_then_train(kernling.AVMClassifier(), stream(wide, np.arange(50) % 2), linear=True)[-1]
    assert "mistakes_linear" not in row
    assert "mistakes_constant" in row


@pytest.mark.parametrize(
    ("cls", "y", "metric"), [(kernling.AVMRegressor, Y, "rmse"), (kernling.AVMClassifier, LABELS, "mistakes")]
)
def test_on_held_out_rows_they_know_only_the_training_rows(cls, y, metric):
    """Also in a pipeline, whose last step has scaled rows."""
    test = X[1000:], y[1000:]
    (row,) = batch(cls(), (X[:1000], y[:1000]), test=test, linear=True)
    scaled = kernling.StreamPipeline([("scale", Standardise()), ("model", cls())])
    assert batch(scaled, (X[:1000], y[:1000]), test=test, linear=True)[0][f"{metric}_linear"] == pytest.approx(
        row[f"{metric}_linear"], rel=1e-3
    )
    if metric == "rmse":
        fitted = LinearRegression().fit(X[:1000], y[:1000])
        assert row["rmse_linear"] == pytest.approx(root_mean_squared_error(test[1], fitted.predict(test[0])), rel=0.01)
        assert row["rmse_constant"] == pytest.approx(np.sqrt(np.mean((test[1] - y[:1000].mean()) ** 2)))
    else:
        assert row["mistakes_constant"] == np.mean(test[1] != "a")
        assert row["mistakes_linear"] < 0.5 * row["mistakes_constant"]
    assert f"{metric}_linear" not in batch(cls(), (X, y))[0]
