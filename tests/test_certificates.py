"""Certificates, tried against brute force on random streams: what one says is true, and what is not true is absent."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

import checks
import kernling as kl
from kernling.theory import avm as avm_theory
from oracles import stream
from oracles.common import kernel_values

SEEDS = range(3)


def stream_of(cls):
    """The kind of stream that an estimator learns."""
    tasks = {"classification": "multiclass", "regression": "regression", "oneclass": "oneclass", "metric": "multiclass"}
    return tasks[cls.task]


def norm(model):
    """The norm of the last model, over all outputs."""
    part = model.state_.model
    coef, points = part.clock[0] * part.coef[0, :, : part.stored], part.points[: part.stored] + part.centre
    params = model.get_params(deep=False) | {"gamma": model.gamma_}
    K = np.array([kernel_values(params, points, p) for p in points]).reshape(len(points), len(points))
    return math.sqrt(max(0.0, np.einsum("ok,kl,ol->", coef, K, coef)))


# ---------------------------------------------------------------------- all methods


@pytest.mark.parametrize("cls", checks.estimators(), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("published", [False, True])
def test_every_number_is_explained(cls, published):
    if published and not hasattr(cls, "published"):
        pytest.skip("is in none of the papers")
    values = {"beta": 2.0, "theta": 0.7, "epsilon": 0.1, "radius": 0.5, "n_components": 20, "oracle": "coverage"}
    if published:
        paper = cls.published_settings
        model = cls.published(**{name: values.get(name, 0.5) for name in (*paper.required, *paper.required_with)})
    else:
        model = cls()
    X, y = stream(stream_of(cls), 150)
    found, meanings = model.fit(X, y).certificate(), cls.certificate_meanings()
    assert set(found) <= set(meanings)
    assert all(type(value) in (int, float) and not math.isnan(value) for value in found.values()), found
    assert all(meaning.endswith((".", "=...")) for meaning in meanings.values())


@pytest.mark.parametrize("cls", checks.estimators(), ids=lambda cls: cls.__name__)
def test_points_never_exceed_their_bounds(cls):
    """With the defaults; SPA, OSKL and NPBSGD have bounds in expectation, which have tests of their own."""
    for seed in SEEDS:
        X, y = stream(stream_of(cls), 400, seed)
        model = cls(random_state=seed) if "random_state" in cls.parameters else cls()
        found = model.fit(X, y).certificate()
        for name in ("points_bound", "budget", "points_per_class"):
            per_class = len(np.unique(y)) if name == "points_per_class" else 1
            assert model.n_stored_ <= found.get(name, math.inf) * per_class


def test_what_the_stream_does_not_say_must_be_meant_for_the_method():
    X, y = stream("binary", 50)
    model = kl.SPAClassifier().fit(X, y)
    with pytest.raises(TypeError, match="the certificate of SPAClassifier accepts best_norm and best_loss, not diameter"):
        model.certificate(diameter=1.0)
    with pytest.raises(ValueError, match=r"confidence must be between 0 and 1, not 1\.5"):
        kl.AVMClassifier().fit(X, y).certificate(confidence=1.5)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, not '95 %'"):
        kl.AVMClassifier().fit(X, y).certificate(confidence="95 %")
    with pytest.raises(TypeError, match="accepts nothing"):
        kl.POLKClassifier().fit(X, y).certificate(diameter=1.0)


# ---------------------------------------------------------------------- AVM: Theorems 4, 19, 21, 25


AVM = {
    "defaults": {},
    "published": {"eta": None, "zero_cells": True, "max_cells": None},
    "replacing": {"max_cells": 25},
    "dropping": {"max_cells": 25, "when_full": "drop"},
    "boxes": {"coverage": "box"},
    "printed boxes": {"coverage": "printed_box"},
    "coins": {"approximate": "bernoulli", "beta": 20.0},
    "forgetting": {"forget": 50.0},
}
COMMON = {"gamma": 2.0, "delta": 0.5, "lam": 0.02}


def lost(model, X, y):
    """Learn; return which events had a loss."""
    margins = model.predict_then_learn(X, y, method="decision_function", classes=np.unique(y))
    if margins.ndim == 1:
        return (2.0 * y - 1.0) * margins < 1.0
    own = margins[np.arange(len(y)), y]
    margins[np.arange(len(y)), y] = -np.inf
    return own - margins.max(axis=1) < 1.0


def farthest_from_points(model, X):
    return cdist(X, model.state_.model.points[: model.n_stored_] + model.state_.model.centre).min(axis=1).max()


def in_features(model, distance):
    return math.sqrt(2.0 * (1.0 - math.exp(-model.gamma_ * distance**2)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("settings", AVM)
def test_events_are_as_near_to_their_cores_as_certified(settings, kind, seed):
    X, y = stream(kind, 600, seed)
    model = kl.AVMClassifier(**COMMON | AVM[settings], output="last", random_state=seed)
    learned = X[lost(model, X, y)]
    found = model.certificate()
    actual = farthest_from_points(model, learned)
    if "delta_phi" in found:
        assert found["replaced"] == 0
        assert actual <= found["farthest"] + 1e-9
        assert in_features(model, actual) <= found["delta_phi"] + 1e-9
    else:
        assert found["replaced"] > 0
        assert settings in ("replacing", "dropping")
        assert in_features(model, actual) > in_features(model, 0.25)  # it would have been false


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("budget", [None, 20])
def test_of_merged_models_too(seed, budget):
    X, y = stream("binary", 800, seed)
    models = [kl.AVMClassifier(**COMMON, output="last") for _ in range(2)]
    halves = [slice(400), slice(400, 800)]
    learned = np.vstack([X[half][lost(model, X[half], y[half])] for model, half in zip(models, halves, strict=True)])
    merged = kl.merge(models, budget=budget)
    found, actual = merged.certificate(), farthest_from_points(merged, learned)
    assert ("delta_phi" in found) == (budget is None)
    if budget is None:
        assert actual <= found["farthest"] + 1e-9
        assert in_features(merged, actual) <= found["delta_phi"] + 1e-9
        assert norm(merged) <= found["norm_bound"]
    else:
        assert in_features(merged, actual) > in_features(merged, 0.25)
        assert "norm_bound" not in found


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[1:])])
@pytest.mark.parametrize("lam", [0.02, 3.0])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "l1", "l2"])
@pytest.mark.parametrize("settings", ["defaults", "published", "replacing", "dropping", "forgetting"])
def test_the_norm_is_at_most_what_is_certified(settings, loss, lam, seed):
    kind = "multiclass" if loss in ("hinge", "logistic") else "regression"
    X, y = stream(kind, 80, seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], 80)
    cls = kl.AVMRegressor if kind == "regression" else kl.AVMClassifier
    model = cls(loss=loss, **COMMON | AVM[settings] | {"lam": lam}, output="last")
    known = {"classes": np.unique(y)} if kind == "multiclass" else {}
    replaced = False
    for i in range(80):
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1], **known)
        found = model.certificate()
        replaced = model.n_replaced_ > 0
        assert norm(model) <= found.get("norm_bound", math.inf) * (1.0 + 1e-9)
    assert ("norm_bound" in found) == (not replaced or (loss == "l2" and lam <= 1.0))


@pytest.mark.parametrize("coverage", ["sphere", "box", "printed_box"])
@pytest.mark.parametrize("delta", [0.1, 0.5, 9.0])
def test_a_set_of_this_diameter_holds_no_more_cells(coverage, delta):
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(3000, 2)) * 0.7  # of diameter 1
    model = kl.AVMClassifier.published(gamma=1.0, lam=0.01, delta=delta).set_params(coverage=coverage)
    model.fit(X, rng.integers(2, size=3000))
    bound = model.certificate(diameter=1.0)["cells_bound"]
    assert model.n_cells_ <= bound <= 40.0 * model.n_cells_


@pytest.mark.parametrize(("beta", "rho"), [(8.0, 1.0), (2.0, 0.5), (6.0, 1.5)])
def test_expected_points_of_the_bernoulli_rule(beta, rho):
    """Theorem 15, with closed forms that are looser."""
    X, y = stream("binary", 1200)
    closed = {1.0: beta * (math.log(1200) + 1.0), 0.5: beta * 1200**0.5 / 0.5, 1.5: beta * 2.612375}[rho]
    kept = avm_theory.kept_events(beta, rho, 1200.0)
    assert sum(min(1.0, beta / t**rho) for t in range(1, 1201)) <= kept <= closed
    sizes, certified = [], []
    for seed in range(20):
        rule = {"approximate": "bernoulli", "beta": beta, "rho": rho}
        model = kl.AVMClassifier.published(loss="logistic", gamma=1.0, lam=0.01, delta=0.8, random_state=seed, **rule).fit(X, y)
        sizes.append(model.n_stored_)
        certified.append(model.certificate()["expected_points"])
        limited = model.set_params(max_cells=5)
        assert limited.fit(X[:50], y[:50]).learner.bound(limited._params, 50) < 50 or beta == 8.0
    assert np.mean(sizes) <= np.mean(certified) + 4.0 * math.sqrt(kept / 20)
    assert np.mean(certified) < 2.0 * np.mean(sizes)


# ---------------------------------------------------------------------- minimisers, for theorems about independent draws


def drawn(kind="binary", rows=15, seed=0):
    """A few rows from which events are drawn."""
    X, y = stream(kind, rows, seed)
    return X, 2.0 * y - 1.0 if kind == "binary" else y


def objective(K, signs, lam):
    """The regularised logistic risk of coefficients on the rows."""
    return lambda a: 0.5 * lam * a @ K @ a + np.logaddexp(0.0, -signs * (K @ a)).mean()


def minimiser(K, signs, lam):
    def slope(a):
        return K @ (lam * a - signs / (1.0 + np.exp(signs * (K @ a))) / len(a))

    return minimize(objective(K, signs, lam), np.zeros(len(K)), jac=slope, tol=1e-14).x


def on_rows(model, X):
    """The coefficients, on the rows, of a model whose points are among them."""
    a = np.zeros(len(X))
    points, coef = model._expansion()
    for p, c in zip(points, coef[:, 0], strict=True):
        a[np.abs(X - p).sum(axis=1).argmin()] += c
    return a


@pytest.mark.parametrize(("output", "suffix"), [("average", 0.5), ("suffix", 0.5)])
@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_avm_regret(output, suffix, delta):
    """Theorems 5 and 9 by the mean over runs, and the constants of Lemmas 21 and 22 along them."""
    X, signs = drawn()
    lam, T, gamma = 0.5, 40, 0.5
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    best = minimiser(K, signs, lam)
    f = objective(K, signs, lam)
    excess, away = [], np.zeros((30, T))
    for seed in range(30):
        rows = np.random.default_rng(seed).integers(len(X), size=T)
        settings = {"gamma": gamma, "lam": lam, "delta": delta, "loss": "logistic"}
        model = kl.AVMClassifier.published(**settings, output=output, suffix=suffix).fit(X[rows], signs[rows])
        excess.append(f(on_rows(model, X)) - f(best))
        last = kl.AVMClassifier.published(**settings)
        for t, row in enumerate(rows[:-1], 1):
            last.partial_fit(X[row : row + 1], signs[row : row + 1], classes=[-1, 1])
            change = on_rows(last, X) - best
            away[seed, t] = change @ K @ change
    away[:, 0] = best @ K @ best
    found = model.certificate(confidence=0.5)
    run = avm_theory.run_of(model._params, model.state_, model._problem)
    H, W = avm_theory.constants(run)
    assert (away.mean(axis=0)[[0, *range(3, T)]] <= W).all()
    assert (away.mean(axis=0)[1:3] <= 2.0 * W).all()
    assert np.mean(excess) <= found["regret_bound"] < found["random_regret_bound"]
    if delta == 0.0 and output == "average":  # the paper's formula with A = 0, B = 1
        assert pytest.approx(4.0) == H
        assert found["regret_bound"] == pytest.approx(4.0 * (math.log(T) + 1.0) / (2.0 * lam * T))
    if delta == 0.0:
        assert found["regret_bound"] < 1.0e3 * np.mean(excess)


@pytest.mark.parametrize(
    "change", [{"eta": 0.5}, {"forget": 50.0}, {"max_cells": 3}, {"output": "last"}, {"class_weight": "balanced"}]
)
def test_avm_regret_is_only_proven_for_the_published_steps(change):
    X, y = stream("binary", 100)
    model = kl.AVMClassifier.published(gamma=1.0, lam=0.1, delta=0.5, output="average")
    assert "regret_bound" in model.fit(X, y).certificate()
    assert "regret_bound" not in model.set_params(**change).fit(X, y).certificate()


# ---------------------------------------------------------------------- POLK: Proposition 7 and Theorem 3


POLK = [{}, {"max_points": 5}, {"kernel": "poly", "coef0": 1.0}, {"prune": "random"}, {"forget": 60.0}]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("settings", POLK, ids=str)
@pytest.mark.parametrize("loss", ["hinge", "softmax", "l1", "l2", "squared_hinge"])
def test_polk_norm(loss, settings, seed):
    kind = "regression" if loss in ("l1", "l2") else "multiclass"
    X, y = stream(kind, 200, seed)
    cls = kl.POLKRegressor if kind == "regression" else kl.POLKClassifier
    model = cls(loss=loss, gamma=1.0, eta=0.5, lam=0.3, random_state=seed, **settings)
    weights = np.random.default_rng(seed).choice([0.5, 2.0], 200)
    known = {"classes": np.unique(y)} if kind == "multiclass" else {}
    largest = 0.0
    for i in range(0, 200, 10):
        model.partial_fit(X[i : i + 10], y[i : i + 10], sample_weight=weights[i : i + 10], **known)
        found = model.certificate()
        if model.t_:
            assert ("norm_bound" in found) == (loss not in ("l2", "squared_hinge"))
        largest = max(largest, norm(model) / found.get("norm_bound", math.inf))
    assert largest <= 1.0 + 1e-9
    assert largest > 0.05 or "norm_bound" not in found or "kernel" in settings  # it says something


def test_polk_neighbourhood():
    X, signs = drawn(rows=10)
    gamma, lam = 2.0, 0.2
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    best = minimiser(K, signs, lam)
    rows = np.random.default_rng(0).integers(len(X), size=400)
    model = kl.POLKClassifier.published(gamma=gamma, eta=0.3, lam=lam, parsimony=0.2, loss="softmax")
    near = math.inf
    for row in rows:
        model.partial_fit(X[row : row + 1], signs[row : row + 1], classes=[-1, 1])
        change = on_rows(model, X) - best
        near = min(near, math.sqrt(change @ K @ change))
    found = model.certificate()
    sigma = 2.0 + 0.2 * math.sqrt(0.3)
    assert found["neighbourhood"] == pytest.approx(math.sqrt(0.3) / lam * (0.2 + math.sqrt(0.04 + lam * sigma**2)))
    assert near <= found["neighbourhood"] <= 200.0 * near
    for change in ({"forget": 10.0}, {"max_points": 1}, {"step": "diminishing"}, {"lam": 0.0}, {"loss": "squared_hinge"}):
        other = kl.POLKClassifier.published(gamma=gamma, eta=0.3, lam=lam, parsimony=0.01, loss="softmax").set_params(**change)
        assert "neighbourhood" not in other.fit(X[rows], signs[rows]).certificate()


# ---------------------------------------------------------------------- SPA: Theorems 3.1 and 3.2


def test_spa_points_by_the_losses_of_another_function():
    X, y = stream("binary", 600)
    signs = 2.0 * y - 1.0
    K = np.exp(-2.0 * cdist(X, X, "sqeuclidean"))
    a = np.linalg.solve(K + 0.5 * np.eye(600), signs)
    chosen = {"gamma": 2.0, "eta": 0.01, "alpha": 1.0, "beta": 1.0}
    points, totals = [], []
    for seed in range(10):
        model = kl.SPAClassifier.published(**chosen, output="last", random_state=seed)
        f = model.predict_then_learn(X, y, method="decision_function", classes=[0, 1])
        totals.append(np.maximum(0.0, 1.0 - signs * f).sum())
        points.append(model.n_stored_)
    for share in (0.3, 1.0):
        f = share * K @ a
        norm2, loss = share**2 * a @ K @ a, np.maximum(0.0, 1.0 - signs * f).sum()
        found = model.certificate(best_norm=math.sqrt(norm2), best_loss=loss)
        regret = norm2 / 0.02 + 0.01 * 600 / min(1.0, math.sqrt(0.01))
        assert found["regret_bound"] == pytest.approx(regret)
        assert np.mean(totals) - loss < found["regret_bound"]
        assert found["expected_bound_by_loss"] == pytest.approx(loss + regret)
        assert np.mean(points) <= found["expected_bound_by_loss"]


def test_spa_best_eta():
    X, y = stream("binary", 200)
    chosen = {"gamma": 2.0, "alpha": 0.05, "beta": 2.0}
    model = kl.SPAClassifier.published(**chosen, eta=0.3, random_state=0).fit(X, y)
    best = model.certificate(best_norm=5.0)["best_eta"]
    assert best == pytest.approx(5.0 * math.sqrt(0.05 / (2.0 * 2.0 * 200)))

    def regret(eta):
        return kl.SPAClassifier.published(**chosen, eta=eta).fit(X, y).certificate(best_norm=5.0)["regret_bound"]

    assert regret(best) == pytest.approx(5.0 * math.sqrt(2.0 * 2.0 * 200 / 0.05))  # the paper's second form
    assert regret(best) < min(regret(0.9 * best), regret(1.1 * best))
    assert "best_eta" not in model.set_params(alpha=1.0).fit(X, y).certificate(best_norm=5.0)  # alpha^3 is too large


def test_spa_proves_nothing_of_weights_and_merged_models():
    X, y = stream("binary", 200)
    assert "regret_constant" in kl.SPAClassifier().fit(X, y).certificate()
    assert "regret_constant" not in kl.SPAClassifier().fit(X, y, sample_weight=np.full(200, 2.0)).certificate()
    models = [kl.SPAClassifier(gamma=1.0, random_state=seed).fit(X, y) for seed in SEEDS]
    assert "regret_constant" not in kl.merge(models).certificate()


# ---------------------------------------------------------------------- DualSVRG: Theorems 1 and 2


def test_dualsvrg_rate_and_gap():
    """With all events in the kernel's space, features err by nothing."""
    X, signs = drawn()
    lam, period, gamma = 1.0, 250, 0.5
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    f = objective(K, signs, lam)
    least = f(minimiser(K, signs, lam))
    settings = {"gamma": gamma, "lam": lam, "oracle": "budget", "loss": "logistic", "eta": 0.02, "period": period}
    excess = np.zeros((8, 4))
    for seed in range(8):
        model = kl.DualSVRGClassifier.published(**settings, budget=4 * period)
        rows = np.random.default_rng(seed).integers(len(X), size=4 * period)
        for r in range(4):
            part = rows[r * period : (r + 1) * period]
            model.partial_fit(X[part], signs[part], classes=[-1, 1])
            excess[seed, r] = f(on_rows(model, X)) - least
    found = model.certificate()
    assert found["rate_applies"] == 1.0
    rate = 13 * 0.02 / ((1 + 0.02) * (1 - 0.24)) + 1 / (period * 0.02 * (1 - 0.24))
    assert found["rate"] == pytest.approx(rate)
    assert found["gap"] == pytest.approx(2 * 18 * 0.02 / (100 * (1 - rate)))
    begin = f(np.zeros(len(X))) - least
    for r in range(4):
        left = begin - 2.0 * 6.0 * 0.02 / (100 * (1.0 - rate))
        assert excess[:, r].mean() <= rate ** (r + 1) * left + found["gap"]


@pytest.mark.parametrize("change", [{"forget": 50.0}, {"memory": 1}, {"eta": 0.2}])
def test_dualsvrg_rate_needs_its_conditions(change):
    X, y = stream("binary", 50)
    usual = {"gamma": 1.0, "lam": 1.0, "oracle": "always", "loss": "logistic", "eta": 0.02, "period": 250}
    model = kl.DualSVRGClassifier.published(**usual, random_state=0)
    assert model.fit(X, y).certificate()["rate_applies"] == 1.0
    found = model.set_params(**change).fit(X, y).certificate()
    assert found["rate_applies"] == 0.0
    assert "gap" not in found
    several = kl.DualSVRGClassifier.published(**usual).fit(*stream("multiclass", 50)).certificate()
    assert several["rate_applies"] == 0.0  # the best wrong class changes: the gradient jumps


def test_dualsvrg_failures_are_no_more_likely_than_certified():
    """The kernel of all pairs on a line of this length, over random features."""
    gamma, lam, n, errors = 0.3, 1.0, 1200, (0.3, 1.5, 1.8, 3.0)
    X = np.linspace(0.0, 2.0, 40)[:, np.newaxis]
    y = (X[:, 0] > 1.0).astype(int)
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    worst = []
    for seed in range(20):
        model = kl.DualSVRGClassifier.published(gamma=gamma, lam=lam, oracle="always", n_components=n, random_state=seed)
        model.fit(X, y)
        angles = X @ model.state_.linear.frequencies.T
        worst.append(np.abs(np.cos(angles[:, None] - angles[None]).mean(axis=2) - K).max())
    certified = [model.certificate(error=error, diameter=2.0)["failure_probability"] for error in errors]
    assert certified[0] == 1.0 > certified[1] > certified[2] > certified[3]
    each = 1.5 * lam / 3.0
    formula = 2**8 * (math.sqrt(2 * gamma) * 2.0 / each) ** 2 * math.exp(-(n / 2) * each**2 / (4 * 3))
    assert certified[1] == pytest.approx(formula)
    for error, bound in zip(errors, certified, strict=True):
        assert np.mean(np.array(worst) >= error * lam / 3.0) <= bound + 0.3  # 20 draws
    assert max(worst) > 0.0
