"""Protocols measure what they say: against a loop by hand, over permutations, through drift, and again from a row."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn import metrics as sk
from sklearn.base import clone

import kernling as kl
from costs import instructions_of
from kernling.evaluate import batch, model_of, online, read_rows, summary, test_then_train, write_rows
from kernling.io import stream, synthetic
from kernling.papers import dataset, datasets, run_again

MODEL = kl.AVMClassifier(gamma=2.0, delta=0.5, loss="logistic", random_state=0)
FIVE = kl.AVMClassifier(gamma=2.0, delta=0.5, random_state=0)
TIMES = ("seconds", "test_seconds")


def without_times(row):
    return {name: value for name, value in row.items() if name not in TIMES}


def by_hand(model, X, y, method):
    """What the method says of each row just before it is learned, row by row."""
    model = clone(model)
    return [model.predict_then_learn(X[i : i + 1], y[i : i + 1], method=method)[0] for i in range(len(y))], model


def test_test_then_train_is_the_loop_by_hand():
    X, y = synthetic("gaussian", 600, seed=2).load()
    said, alone = by_hand(MODEL, X, y, "predict")
    scores, _ = by_hand(MODEL, X, y, "decision_function")
    model = clone(MODEL)
    names = ["mistakes", "accuracy", "balanced_accuracy", "f1", "auc", "log_loss"]
    rows = test_then_train(model, stream(X, y, chunk=130), metrics=names, window=100, every=250)
    assert [row["events"] for row in rows] == [250, 500, 600]
    for row in rows:
        t = row["events"]
        assert row["accuracy"] == pytest.approx(sk.accuracy_score(y[:t], said[:t]), abs=1e-12)
        assert row["mistakes"] == pytest.approx(1 - row["accuracy"])
        assert row["f1"] == pytest.approx(sk.f1_score(y[:t], said[:t]))
        assert row["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(y[:t], said[:t]))
        assert row["auc"] == pytest.approx(sk.roc_auc_score(y[:t], scores[:t]), abs=2e-3)
        assert row["accuracy_window"] == pytest.approx(sk.accuracy_score(y[t - 100 : t], said[t - 100 : t]))
        assert row["majority"] == max((y[:t] == -1).mean(), (y[:t] == 1).mean())
        assert row["majority_window"] == max((y[t - 100 : t] == -1).mean(), (y[t - 100 : t] == 1).mean())
    both = int(np.argmax(y != y[0]))  # one class alone has probability 1
    given = expit(np.array(scores) * y).clip(np.finfo(float).eps)
    assert rows[-1]["log_loss"] == pytest.approx(-np.log(given[both:]).sum() / 600)
    assert np.allclose(model.decision_function(X), alone.decision_function(X))
    assert rows[-1]["n_stored"] == model.n_stored_


def test_labels_are_the_same_whether_scores_are_asked_for_or_not():
    rows = synthetic("multidist", 3000, seed=1, chunk=700)
    plain = test_then_train(clone(FIVE), rows, metrics=["mistakes"], every=500)
    X, y = rows.load()
    said, _ = by_hand(FIVE, X[:500], y[:500], "predict")
    assert plain[0]["mistakes"] == pytest.approx(np.mean(said != y[:500]), abs=1e-12)
    two = synthetic("spirals", 3000, chunk=700)
    with_scores = test_then_train(clone(MODEL), two, metrics=["mistakes", "auc"], every=500)
    without = test_then_train(clone(MODEL), two, metrics=["mistakes"], every=500)
    assert [row["mistakes"] for row in with_scores] == [row["mistakes"] for row in without]


def test_late_classes_and_log_loss():
    model = kl.AVMClassifier(gamma=2.0, delta=0.5, loss="logistic")
    X, y = synthetic("spirals", 400).load()
    y = np.where(np.arange(400) < 100, 1, y)  # the other class comes late: its first row had probability 1/2, no class before
    row = test_then_train(model, stream(X, y), metrics=["log_loss", "mistakes"])[-1]
    assert 0.0 < row["log_loss"] < 5.0
    assert np.isfinite(row["mistakes"])


def test_regression():
    X, _ = synthetic("spirals", 1500).load()
    y = np.sin(3 * X[:, 0])
    model = kl.AVMRegressor(gamma=2.0, delta=0.3, lam=1e-4)
    said, _ = by_hand(model, X[:300], y[:300], "predict")
    rows = test_then_train(clone(model), stream(X, y), every=300)
    assert rows[0]["rmse"] == pytest.approx(sk.root_mean_squared_error(y[:300], said))
    assert rows[0]["mae"] == pytest.approx(sk.mean_absolute_error(y[:300], said))
    assert "majority" not in rows[0]
    assert rows[-1]["rmse_window"] < rows[0]["rmse"]


def test_drift_shows_in_the_window():
    X, y = synthetic("checkerboard", 12_000).load()
    y = np.where(np.arange(12_000) < 8_000, y, -y)  # the colours change places
    rows = test_then_train(kl.AVMClassifier(gamma=4.0, delta=0.3), stream(X, y), window=500, every=500)
    windowed = np.array([row["mistakes_window"] for row in rows])
    whole = np.array([row["mistakes"] for row in rows])
    assert windowed[15] < 0.2  # just before
    assert windowed[16] > 0.5  # just after
    assert whole[16] < 0.3  # what the mean over all hides


def test_measuring_takes_few_instructions_of_python_for_a_row():
    """Only the constant answer counts labels one by one; predicting and learning a row are compiled."""
    X = np.random.default_rng(0).random((8000, 4))
    y = np.where(X[:, 0] > X[:, 1], 1, -1)

    def cost(n):
        return instructions_of(lambda: test_then_train(clone(FIVE), stream(X[:n], y[:n]), metrics=["mistakes"], every=10_000))

    cost(100)  # the first call compiles
    assert (cost(8000) - cost(1000)) / 7000 < 80


def test_permutations_are_numpys_and_the_summary_is_their_mean():
    X, y = synthetic("multidist", 1000).load()
    rows = online(FIVE, (X, y), permutations=3, seed=5)
    for p, row in enumerate(rows):
        order = np.random.default_rng(5 + p).permutation(1000)
        model = clone(FIVE).set_params(random_state=5 + p)
        assert row["mistakes"] == pytest.approx(np.mean(model.predict_then_learn(X[order], y[order]) != y[order]))
        assert (row["permutation"], row["seed"]) == (p, 5)
    (line,) = summary(rows)
    values = [row["mistakes"] for row in rows]
    assert line["mistakes"] == pytest.approx(np.mean(values))
    assert line["mistakes_std"] == pytest.approx(np.std(values, ddof=1))
    assert line["permutations"] == 3
    assert line["majority"] == pytest.approx(np.bincount(y).max() / 1000)
    assert not hasattr(FIVE, "classes_")  # the model given is not changed


def test_batch_trains_on_one_part_and_tests_on_the_other():
    X, y = synthetic("gaussian", 2000).load()
    (row,) = batch(MODEL, (X, y), test_size=0.25, seed=3, metrics=["accuracy", "auc", "log_loss"])
    order = np.random.default_rng(3).permutation(2000)
    train, test = order[:1500], order[1500:]
    model = clone(MODEL).set_params(random_state=3).fit(X[train], y[train])
    assert row["accuracy"] == pytest.approx(sk.accuracy_score(y[test], model.predict(X[test])))
    assert row["log_loss"] == pytest.approx(sk.log_loss(y[test], model.predict_proba(X[test])))
    assert row["auc"] == pytest.approx(sk.roc_auc_score(y[test], model.decision_function(X[test])), abs=2e-3)
    assert row["events"] == 1500
    assert row["majority"] == max((y[test] == 1).mean(), (y[test] == -1).mean())
    assert row["accuracy_constant"] == (y[test] == 1).mean()  # the majority of the training rows
    assert "auc_constant" not in row
    given = batch(MODEL, (X[:1500], y[:1500]), test=(X[1500:], y[1500:]), permutations=2)
    assert [r["events"] for r in given] == [1500, 1500]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_come_back_as_they_were_and_run_again(tmp_path, suffix):
    rows = online(FIVE, synthetic("multidist", 800, seed=4), permutations=2, every=400)
    rows += batch(FIVE, synthetic("multidist", 800, seed=4), permutations=2)
    write_rows(rows, tmp_path / f"rows{suffix}")
    back = read_rows(tmp_path / f"rows{suffix}")
    for row, again in zip(rows, back, strict=True):
        assert {name: value for name, value in again.items() if value is not None} == {
            name: value for name, value in row.items() if value is not None
        }
    assert [p.name for p in tmp_path.iterdir()] == [f"rows{suffix}"]
    for row in (back[3], back[5]):
        again = run_again(row)[-1]
        measured = [name for name in row if name not in (*TIMES, "permutation", "seed") and row[name] is not None]
        assert [again[name] for name in measured] == [row[name] for name in measured]


def test_a_row_says_what_was_run():
    (row,) = online(MODEL, (np.eye(20), np.arange(20) % 2))
    assert model_of(row).get_params() == MODEL.get_params() | {"random_state": 0}
    assert json.loads(row["versions"])["numpy"] == np.__version__
    assert row["learner"] == "avm"
    other = np.eye(20)
    other[3, 3] = 2.0
    changed = online(MODEL, (other, np.arange(20) % 2))[0]
    assert changed["data_info"] != row["data_info"]
    with pytest.raises(ValueError, match="must be passed as data="):
        run_again(row)
    again = run_again(row, (np.eye(20), np.arange(20) % 2))
    assert without_times(again[0]) == without_times(row)


def test_a_named_data_set_is_found_again():
    if datasets._find(datasets.CATALOGUE["diabetes"].parts["train"][1][0]) is None:
        pytest.skip("the files of diabetes are not in KERNLING_DATA")
    row = online(MODEL, dataset("diabetes"), permutations=2)[1]
    assert json.loads(row["data_info"])["sha256"]["diabetes_scale"].startswith("0c07eb4c")
    assert row["majority"] == 500 / 768
    assert run_again(row)[0]["mistakes"] == row["mistakes"]


def test_a_damaged_line_leaves_a_usable_model(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 50 + "1 x:1\n" + "1 1:1\n")
    model = clone(MODEL)
    with pytest.raises(ValueError, match="line 101"):
        test_then_train(model, stream(path, n_features=2))
    assert model.t_ == 100
    assert model.predict(np.eye(2)).tolist() == [1, -1]


def test_errors():
    rows = synthetic("spirals", 10)
    with pytest.raises(ValueError, match="a metric must be one of"):
        test_then_train(MODEL, rows, metrics=["kappa"])
    with pytest.raises(ValueError, match="'rmse' is not defined for classification"):
        test_then_train(MODEL, rows, metrics=["rmse"])
    with pytest.raises(ValueError, match="'auc' is not defined for regression"):
        test_then_train(kl.AVMRegressor(), rows, metrics=["auc"])
    with pytest.raises(ValueError, match="log_loss needs probabilities"):
        test_then_train(FIVE, rows, metrics=["log_loss"])
    with pytest.raises(ValueError, match="every must be"):
        test_then_train(MODEL, rows, every=-1)
    with pytest.raises(ValueError, match="no target"):
        test_then_train(MODEL, stream(np.eye(2)))
    with pytest.raises(ValueError, match="permutations"):
        online(MODEL, rows, permutations=0)
    with pytest.raises(ValueError, match="test_size"):
        batch(MODEL, rows, test_size=1.0)
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        write_rows([], "rows.json")


def test_auto_is_resolved_from_the_whole_first_chunk_whatever_is_measured():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[0], y[1:20] = -1, 1  # the second class comes at once
    diameters = set()
    for metrics in (["mistakes"], ["mistakes", "auc"]):
        model = kl.AVMClassifier(delta="auto")
        test_then_train(model, stream(X, y), metrics=metrics)
        diameters.add(model.delta_)
    assert len(diameters) == 1
