"""River's models as estimators: scikit-learn's checks, equality with River's own loop, and kernling's evaluation."""

import numpy as np
import pandas
import pytest
from river import anomaly, datasets, linear_model, naive_bayes, optim, preprocessing, tree
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernling import evaluate
from kernling.compat import from_river
from oracles import stream

LOGISTIC = preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.1))


@parametrize_with_checks(
    [
        from_river(preprocessing.StandardScaler() | naive_bayes.GaussianNB()),
        from_river(linear_model.LogisticRegression()),
        from_river(preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)),
    ],
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_rivers_own_loop():
    rows = list(datasets.Phishing().take(300))
    frame, y = pandas.DataFrame([x for x, _ in rows]), np.array([y for _, y in rows])
    river, ours = LOGISTIC.clone(), from_river(LOGISTIC)
    expected = []
    for x, label in rows:
        expected.append(river.predict_proba_one(x)[True])
        river.learn_one(x, label)
    said = ours.predict_then_learn(frame, y, method="predict_proba")
    np.testing.assert_allclose(said[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(frame)[:, 1], [river.predict_proba_one(x)[True] for x, _ in rows])
    np.testing.assert_array_equal(ours.predict(frame), [river.predict_one(x) for x, _ in rows])
    odds = from_river(LOGISTIC).predict_then_learn(frame, y, method="decision_function")
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-odds)), expected, rtol=1e-9)
    assert ours.nbytes_ > 0


def test_sparse_rows_are_what_they_store():
    X, y = stream("binary", 100)
    X = np.where(X > 0.3, X, 0.0)
    model = from_river(linear_model.LogisticRegression()).fit(sparse.csr_array(X), y)
    dense = from_river(linear_model.LogisticRegression()).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([-1, 1]), np.array([3, 7]), np.array([False, True])])
def test_two_classes_of_any_name(labels):
    X, y = stream("binary", 200)
    expected = from_river(LOGISTIC).fit(X, y)
    model = from_river(LOGISTIC).fit(X, labels[y])
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), labels[expected.predict(X)])
    late = from_river(LOGISTIC)
    for first, label in ((0, labels[1]), (1, labels[0])):  # one label first, then the other
        late.partial_fit(X[y != first], np.full((y != first).sum(), label))
    assert late.classes_.tolist() == labels.tolist()
    assert late.predict_proba(X).shape == (200, 2)
    with pytest.raises(ValueError, match="Only binary"):
        late.partial_fit(X[:1], np.array(["perhaps"]) if labels.dtype.kind == "U" else [9])
    assert late.classes_.tolist() == labels.tolist()


@pytest.mark.parametrize("model", [LOGISTIC, tree.HoeffdingTreeClassifier()], ids=str)
def test_evaluation_beside_others(model):
    X, y = stream("binary", 300)
    rows = evaluate.online(from_river(model), (X, y), permutations=2, metrics=["mistakes", "auc", "log_loss"])
    assert rows[0]["params"].count("Classifier") or rows[0]["params"].count("LogisticRegression")
    assert evaluate.summary(rows)[0]["permutations"] == 2
    assert 0.0 < rows[0]["mistakes"] < 0.6
    assert rows[0]["nbytes"] > 0
    with pytest.raises(ValueError, match="there is no method"):
        evaluate.model_of(rows[0])


def test_regression_and_several_classes():
    X, y = stream("regression", 200)
    assert evaluate.online(from_river(linear_model.LinearRegression()), (X, y))[-1]["rmse"] > 0.0
    X, y = stream("multiclass", 200)
    model = from_river(naive_bayes.GaussianNB())
    said = model.predict_then_learn(X, y, method="decision_function")
    assert said.shape == (200, 4)
    assert evaluate.online(from_river(naive_bayes.GaussianNB()), (X, y), metrics=["accuracy"])[-1]["accuracy"] > 0.3


def test_what_cannot_be_taken():
    with pytest.raises(TypeError, match="from_river takes"):
        from_river(anomaly.HalfSpaceTrees())
    with pytest.raises(ValueError, match="method must be"):
        from_river(LOGISTIC).predict_then_learn(np.eye(3), [0, 1, 0], method="guess")
