"""NOGD: what its definition implies."""

import numpy as np
import pytest

from kernling.baselines import NOGDClassifier
from oracles import encoded, stream
from oracles.nogd import NOGD

PROBES = np.random.default_rng(9).uniform(-1.0, 1.0, size=(40, 3))


def model(budget: int, **others) -> NOGDClassifier:
    return NOGDClassifier(eta=0.5, gamma=1.0, budget=budget, **others)


def when_full(X, y, budget: int) -> int:
    """After how many events so many points are stored."""
    endless = model(1000, kernel="exponential")
    endless.partial_fit(X[:1], y[:1], classes=[0, 1])
    while endless.n_stored_ < budget:
        endless.learn_one(X[endless.t_], y[endless.t_])
    return endless.t_


@pytest.mark.parametrize("rank", [30, 10])
def test_the_switch_to_features(rank):
    """With as many features as landmarks nothing is lost; with fewer, the model is projected on what they span."""
    X, y = stream("binary", 300)
    n = when_full(X, y, 30)
    before = model(1000, kernel="exponential").fit(X[:n], y[:n])
    after = model(30, rank=rank, kernel="exponential").fit(X[:n], y[:n])
    assert before.n_stored_ == after.n_stored_ == 30
    change = np.abs(after.decision_function(PROBES) - before.decision_function(PROBES)).max()
    assert change < 1e-10 if rank == 30 else change > 1e-3
    assert after.certificate()["features"] == rank
    assert np.linalg.matrix_rank(after.state_.M) == rank
    span, *_ = np.linalg.lstsq(after.state_.M.T, after._expansion()[1], rcond=None)
    np.testing.assert_allclose(after.state_.M.T @ span, after._expansion()[1], atol=1e-10)


def test_kernels_of_the_inner_product():
    X, y = stream("binary", 200)
    fitted = model(20, kernel="poly", degree=2, coef0=1.0, rank=8).fit(X, y)
    slow = NOGD(fitted.get_params(), 3, 1)
    for x, target in zip(X, encoded("binary", y), strict=True):
        slow.learn(x, target, 1.0, np.nan)
    np.testing.assert_allclose(fitted.decision_function(PROBES), np.squeeze([slow.scores(x) for x in PROBES]), atol=1e-8)


def test_repeated_landmarks_make_no_features():
    X, _ = stream("binary", 4)
    rows, labels = np.tile(X, (20, 1)), np.tile([0, 1, 1, 0, 1], 16)  # labels that contradict each other
    fitted = model(20, rank=20).fit(rows, labels)
    assert fitted.n_stored_ == 20
    assert fitted.certificate()["features"] == 4
