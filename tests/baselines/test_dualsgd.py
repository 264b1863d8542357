"""DualSGD: what its definition implies."""

import numpy as np

import kernling as kl
from kernling.baselines import DualSGDClassifier
from oracles import stream

PROBES = np.random.default_rng(9).uniform(-1.0, 1.0, size=(40, 3))


def model(budget: int, **others) -> DualSGDClassifier:
    return DualSGDClassifier(lam=0.01, gamma=1.0, budget=budget, random_state=0, **others)


def test_without_a_budget_it_is_pegasos():
    X, y = stream("multiclass", 300)
    pegasos = kl.AVMClassifier(lam=0.01, eta=None, gamma=1.0, delta=1e-9, max_cells=None, output="last").fit(
        X, y
    )  # every event its own cell
    np.testing.assert_allclose(model(10**6).fit(X, y).decision_function(PROBES), pegasos.decision_function(PROBES), atol=1e-9)


def test_merging_loses_as_little_as_the_features_are_good():
    X, y = stream("binary", 300)
    exact = model(10**6, loss="logistic").fit(X, y).decision_function(PROBES)
    few, many = (
        np.abs(model(20, loss="logistic", n_leaving=5, n_components=n).fit(X, y).decision_function(PROBES) - exact).max()
        for n in (20, 40_000)
    )
    assert many < 0.1 * few


def test_what_leaves_goes_on_through_its_features():
    """And what is removed is gone."""
    X, y = stream("binary", 200)
    merged = model(10, n_leaving=10, features="linear").fit(X, y)
    forgotten = model(10, n_leaving=10, features="linear", maintain="remove").fit(X, y)
    assert merged.state_.linear.coef.any()
    assert not forgotten.state_.linear.coef.any()
    assert forgotten.n_stored_ <= 10
    assert np.abs(forgotten.dual_coef_).sum() <= forgotten.certificate()["coefficient_bound"]
