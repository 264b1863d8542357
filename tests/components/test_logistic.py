"""Logistic regression by folds: what it minimises, which events it keeps; tests/oracles/auto.py has its slow version."""

import numpy as np
import pytest
from scipy.optimize import minimize

import kernling as kl
from kernling.components import logistic
from kernling.components.logistic import CREDIT, ENTRIES, FOLDED, MEAN, RIDGE, ROOM, WAITING, new_logistic, triangle
from kernling.core import state as states
from kernling.core.state import Widening


def learned(held, Z, targets, weights=None):
    """Learn events, rows of Z, and return their scores before, (events, outputs)."""
    scores = np.empty((len(held.places), len(Z)))
    weights = np.ones(len(Z)) if weights is None else weights
    logistic.learn(held, np.ascontiguousarray(Z.T), np.asarray(targets, float), weights, scores)
    return scores.T


def problem(n: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, the first number of which is 1, and targets."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n), rng.normal(size=(n, 4))])
    f = Z @ rng.normal(size=(5, max(outputs, 2))) + rng.gumbel(size=(n, max(outputs, 2)))
    labels = f.argmax(axis=1)
    return Z, (2.0 * labels - 1.0 if outputs == 1 else labels.astype(float))


def losses(W: np.ndarray, Z: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The log-loss of each event."""
    if len(W) == 1:
        return np.logaddexp(0.0, -targets * (Z @ W[0]))
    f = Z @ W.T
    return np.logaddexp.reduce(f, axis=1) - f[np.arange(len(Z)), targets.astype(int)]


def matrix(held) -> np.ndarray:
    n = held.count
    H = np.zeros((n, n))
    H[np.tril_indices(n)] = held.curvature[: triangle(n)]
    return H + np.tril(H, -1).T


@pytest.mark.parametrize("outputs", [1, 3])
def test_each_fold_minimises_the_loss_of_its_events_and_what_the_others_said(outputs):
    held, scale = new_logistic(5, 0, outputs).grown(0), 1.0 if outputs == 1 else 2.0
    for fold in range(3):
        Z, targets = problem(400, outputs, seed=fold)
        learned(held, Z, targets)
        kept = int(held.size[WAITING])
        assert 40 < kept < 130
        rows, labels, parts = held.rows[:kept].copy(), held.labels[:kept].copy(), held.parts[:kept].copy()
        start, A = held.weights.copy(), matrix(held) + scale * RIDGE * np.eye(5)

        def loss(w, rows=rows, labels=labels, parts=parts, start=start, A=A):
            W = w.reshape(start.shape)
            return 0.5 * np.einsum("oi,ij,oj->", W - start, A, W - start) + parts @ losses(W, rows, labels)

        best = minimize(loss, np.zeros(start.size), method="BFGS", options={"gtol": 1e-7})
        logistic.fold(held)
        assert loss(held.weights.ravel()) <= best.fun * (1.0 + 1e-6)
        np.testing.assert_allclose(held.weights.ravel(), best.x, atol=2e-3)
        f = rows @ held.weights.T
        p = 1.0 / (1.0 + np.exp(-f)) if outputs == 1 else np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
        bend = scale * parts * (p * (1.0 - p)).max(axis=1)
        np.testing.assert_allclose(matrix(held) + scale * RIDGE * np.eye(5), A + (rows.T * bend) @ rows)
        assert held.size[WAITING] == 0


def test_two_classes_have_the_weights_of_two_scores():
    """Log odds are the difference of two scores, with twice the ridge."""
    Z, targets = problem(300, 1)
    one, two = new_logistic(5, 0, 1).grown(0), new_logistic(5, 0, 2).grown(0)
    learned(one, Z, targets)
    learned(two, Z, targets > 0.0)
    np.testing.assert_array_equal(one.parts, two.parts)
    for held in (one, two):
        logistic.fold(held)
    np.testing.assert_allclose(two.weights[1] - two.weights[0], one.weights[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(matrix(two), 2.0 * matrix(one), rtol=1e-4)


def test_few_events_are_kept_and_their_weights_stand_for_all():
    held = new_logistic(5, 0, 1).grown(0)
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(20_000), rng.normal(size=(20_000, 4))])
    targets = np.where(rng.random(20_000) < 1.0 / (1.0 + np.exp(5.5 - 2.0 * Z[:, 1])), 1.0, -1.0)
    kept = positives = total = 0.0
    for first in range(0, 20_000, 200):
        part = slice(first, first + 200)
        learned(held, Z[part], targets[part])
        waiting = int(held.size[WAITING])
        if first >= 4000:
            kept += waiting
            total += held.parts[:waiting].sum()
            positives += np.sum(held.labels[:waiting] > 0.0)
        logistic.fold(held)
    assert kept < 0.2 * 16_000
    assert positives > 0.95 * np.sum(targets[4000:] > 0.0)
    assert total == pytest.approx(16_000, rel=0.15)
    assert held.size[FOLDED] >= kept
    direct = minimize(lambda w: losses(w[np.newaxis], Z, targets).sum() + RIDGE / 2.0 * w @ w, np.zeros(5)).x
    np.testing.assert_allclose(held.weights[0], direct, atol=0.35)


def test_of_events_of_which_nothing_is_known_an_eighth_is_kept():
    held = new_logistic(2, 0, 1).grown(0)
    rng = np.random.default_rng(0)
    learned(held, np.column_stack([np.ones(800), rng.normal(size=800)]), rng.choice([-1.0, 1.0], 800))
    assert held.size[WAITING] == 100
    np.testing.assert_allclose(held.parts[:100], 8.0)
    assert held.record[MEAN] == pytest.approx(0.25)
    assert 0.0 <= held.record[CREDIT] < 1.0


def test_what_does_not_fit_is_left_out():
    held = new_logistic(5, 0, 1).grown(0)
    Z, targets = problem(3000, 1)
    learned(held, Z, targets)
    assert held.size[WAITING] == ROOM
    before = held.rows.copy()
    learned(held, Z, targets)
    np.testing.assert_array_equal(held.rows, before)


def test_features_that_join_were_0_before():
    Z, targets = problem(600, 1)
    Z[:200, 3:] = 0.0
    late, whole = new_logistic(3, 2, 1).grown(0), new_logistic(5, 0, 1).grown(0)
    for held in (late, whole):
        for part in np.split(np.arange(600), [100, 200, 250, 400]):
            if held is late and part[-1] >= 200:
                held = late = late.grown(2)
            learned(held, Z[part][:, : 3 if held is late and part[-1] < 200 else 5], targets[part])
            logistic.fold(held)
    np.testing.assert_allclose(late.weights, whole.weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(matrix(late), matrix(whole), rtol=1e-6, atol=1e-9)
    assert late.size[ENTRIES] == triangle(5)


def test_events_of_weight_0_are_only_scored_and_heavy_ones_do_no_harm():
    held = new_logistic(5, 0, 1).grown(0)
    Z, targets = problem(300, 1)
    learned(held, Z, targets)
    logistic.fold(held)
    before = states.copied(held)
    scores = learned(held, Z, targets, np.zeros(300))
    np.testing.assert_allclose(scores[:, 0], Z @ held.weights[0])
    for array, old in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, old)
    learned(held, Z, -targets, np.full(300, 1e10))
    logistic.fold(held)
    assert np.isfinite(held.weights).all()
    assert np.mean(np.sign(Z @ held.weights[0]) == -targets) > 0.6


@pytest.mark.parametrize("signs", [(-1.0, 1.0), (1.0, -1.0)])
def test_a_third_class_leaves_the_odds_of_the_others(signs):
    held = new_logistic(5, 0, 1).grown(0)
    Z, targets = problem(600, 1)
    learned(held, Z[:400], targets[:400])
    logistic.fold(held)
    learned(held, Z[400:], targets[400:])  # events that wait
    change = Widening(np.array([0, -1, 0]), np.array([0.5 * signs[0], 0.0, 0.5 * signs[1]]))
    wide = held.widened(change)
    odds = Z @ (wide.weights[2] - wide.weights[0])
    np.testing.assert_allclose(odds, signs[1] * (Z @ held.weights[0]))
    np.testing.assert_array_equal(matrix(wide), 2.0 * matrix(held))
    waiting = int(held.size[WAITING])
    np.testing.assert_array_equal(wide.labels[:waiting] == 2.0, held.labels[:waiting] * signs[1] > 0.0)
    own, other = states.copied(held), wide
    for each in (own, other):
        logistic.fold(each)
    np.testing.assert_allclose(Z @ (other.weights[2] - other.weights[0]), signs[1] * (Z @ own.weights[0]), atol=0.1, rtol=0.05)


def test_a_file_with_wrong_counts_is_refused():
    held = new_logistic(3, 2, 1).grown(2)
    Z, targets = problem(100, 1)
    learned(held, Z, targets)
    for place, value in ((ENTRIES, 14), (WAITING, ROOM + 1), (0, 4)):
        wrong = held._replace(size=held.size.copy())
        wrong.size[place] = value
        with pytest.raises(ValueError, match="logistic regression"):
            wrong.check({"stored": 2})
    held.check({"stored": 2})


def test_heavy_events_on_far_rows_do_not_lead_search_astray():
    """Rounding had made what a long step costs negative: the step was doubled as long as there were numbers."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3)) * 1e3
    y = (X[:, 0] > 1.6e3).astype(int)
    model = kl.AutoClassifier(points=30, memory=0, window=50, standardise=False, gamma=1e-3)
    said = model.partial_fit(X, y, sample_weight=np.full(600, 1e10)).predict_proba(X)
    assert np.isfinite(said).all()
    assert np.abs(model._fitted().logistic.weights).max() < 1e6
