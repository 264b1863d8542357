"""Choosing from a grid, learning with a test part held out, and folds: against the same by hand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import kernling as kl
from kernling.evaluate import choose, folds, held_out
from kernling.evaluate.selection import points_of
from kernling.io import synthetic

X, Y = synthetic("checkerboard", 900, seed=3).load()
MODEL = kl.AVMClassifier(gamma=4.0, delta=0.4)


def made(point):
    return clone(MODEL).set_params(**point)


def test_points_of_a_grid_may_set_several_parameters_together():
    grid = {"gamma": [1.0, 2.0], "steps": [{"lam": 0.1, "delta": 1.0}, {"lam": 0.2, "delta": 2.0}]}
    assert points_of(grid)[1] == {"gamma": 1.0, "lam": 0.2, "delta": 2.0}
    assert len(points_of(grid)) == 4


@pytest.mark.parametrize("how", ["online", "split", "folds"])
def test_choose_is_the_best_by_hand(how):
    gammas = [0.05, 4.0, 60.0]
    order = np.random.default_rng(5).permutation(len(Y))
    rows, labels = X[order], Y[order]

    def accuracy(gamma):
        model = made({"gamma": gamma}).set_params(random_state=5)
        if how == "online":
            return np.mean(model.predict_then_learn(rows, labels) == labels)
        parts = [(np.arange(720), np.arange(720, 900))] if how == "split" else StratifiedKFold(3).split(labels, labels)
        return np.mean([clone(model).fit(rows[a], labels[a]).score(rows[b], labels[b]) for a, b in parts])

    best = max(gammas, key=accuracy)
    found = choose(made, {"gamma": gammas}, X, Y, metric="accuracy", how=how, seed=5)
    assert found.params == {"gamma": best}
    assert found.model.gamma == best
    assert choose(made, {"gamma": gammas}, X, Y, metric="mistakes", how=how, seed=5).params == {"gamma": best}


def test_held_out_is_the_loop_by_hand_over_passes():
    learn, test = (X[:600], Y[:600]), (X[600:], Y[600:])
    rows = held_out(clone(MODEL).set_params(passes=2), learn, test, moments=(0.25, 0.75, 1.0), permutations=2)
    assert [row["events"] for row in rows] == [300, 900, 1200] * 2
    second = np.random.default_rng([0, 0]).permutation(600)
    order = np.concatenate([np.random.default_rng(0).permutation(600), second])
    model = clone(MODEL)
    for row, (first, last) in zip(rows, [(0, 300), (300, 900), (900, 1200)], strict=False):
        model.partial_fit(X[order[first:last]], Y[order[first:last]])
        assert row["accuracy"] == pytest.approx(model.score(*test))
        assert row["n_stored"] == model.n_stored_


def test_held_out_fits_once_what_cannot_learn_bit_by_bit():
    (row,) = held_out(SVC(gamma=4.0), (X[:600], Y[:600]), (X[600:], Y[600:]), moments=(0.5, 1.0))
    fitted = SVC(gamma=4.0).fit(X[:600], Y[:600])
    assert row["accuracy"] == pytest.approx(fitted.score(X[600:], Y[600:]))
    assert row["n_stored"] == len(fitted.support_)


def test_folds_show_a_search_only_the_training_part():
    numbered = np.column_stack([X, 1e-3 * np.arange(len(Y))])
    seen = []

    def search(rows, labels, fold):
        seen.append(np.rint(1e3 * rows[:, 2]).astype(int))
        return choose(made, {"gamma": [4.0]}, rows, labels, metric="auc", how="folds")

    rows = folds(search, (numbered, Y), n_folds=3, metrics=["auc"])
    parts = StratifiedKFold(3, shuffle=True, random_state=0).split(Y, Y)
    for row, given, (train, test) in zip(rows, seen, parts, strict=True):
        assert set(given) == set(train)
        model = made({}).set_params(random_state=row["permutation"]).fit(numbered[given], Y[given])
        assert row["auc"] == pytest.approx(roc_auc_score(Y[test], model.decision_function(numbered[test])), abs=2e-3)
        assert row["chosen"] == {"gamma": 4.0}
