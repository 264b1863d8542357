"""The budgeted baselines: limit cases in which they are their parents, and what their papers promise."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kernling import AVMClassifier, baselines, kernel
from kernling.components.point_merging import best_share
from kernling.papers import dataset
from oracles import stream

PLENTY = 10**6


def made(name, **params):
    published = {"standardise_target": False} if name.endswith("Regressor") else {}
    return getattr(baselines, name)(**{"gamma": 1.0, **published, **params})


def trace(model, X, y):
    """Scores before each event."""
    if hasattr(model, "decision_function"):
        return model.predict_then_learn(X, y, method="decision_function", classes=np.unique(y))
    return model.predict_then_learn(X, y)


def terms(model):
    """Points and coefficients, (points, outputs), of the current model."""
    points, coef = model._expansion()
    return points.copy(), coef.copy()


def learned_one_by_one(model, X, y):
    """The terms before each event, the event, and the terms after it."""
    model.partial_fit(X[:1], y[:1], classes=np.unique(y))
    for x, label in zip(X[1:], y[1:], strict=True):
        before = terms(model)
        model.learn_one(x, label)
        yield before, x, label, terms(model)


# ---------------------------------------------------------------------- limit cases


PARENTS = [
    ("RBP", dict(budget=PLENTY), "Perceptron", {}),
    ("Forgetron", dict(budget=PLENTY), "Perceptron", {}),
    ("BudgetPerceptron", dict(budget=PLENTY), "Perceptron", {}),
    ("Projectron", dict(threshold=0.0, kernel="exponential"), "Perceptron", dict(kernel="exponential")),
    ("BPAS", dict(budget=PLENTY, C=0.5), "PassiveAggressive", dict(C=0.5)),
    ("BPANN", dict(budget=PLENTY, C=0.5), "PassiveAggressive", dict(C=0.5)),
    ("BOGD", dict(budget=PLENTY, eta=0.4, lam=0.05), "NORMA", dict(eta=0.4, lam=0.05)),
    ("BOGD", dict(budget=PLENTY, eta=0.4, lam=0.05, removal="weighted"), "NORMA", dict(eta=0.4, lam=0.05)),
    ("BSGD", dict(budget=PLENTY, lam=0.02, maintenance="removal"), "Pegasos", dict(lam=0.02)),
    (
        "BSGD",
        dict(budget=PLENTY, lam=0.02, maintenance="projection", kernel="exponential"),
        "Pegasos",
        dict(lam=0.02, kernel="exponential"),
    ),
    ("BSGD", dict(budget=PLENTY, lam=0.02, maintenance="merging"), "Pegasos", dict(lam=0.02)),
    ("NPBSGD", dict(beta=1e9, lam=0.02), "Pegasos", dict(lam=0.02)),
    ("BSGD", dict(budget=PLENTY, lam=0.02, eta=0.4), "NORMA", dict(eta=0.4, lam=0.02)),
    ("NPBSGD", dict(beta=1e9, lam=0.02, eta=0.4), "NORMA", dict(eta=0.4, lam=0.02)),
    ("NORMA", dict(lam=0.0, eta=0.4), "OGD", dict(eta=0.4)),
]


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize(("name", "params", "parent", "parent_params"), PARENTS)
def test_without_its_limit_it_is_its_parent(name, params, parent, parent_params, kind):
    task = "Regressor" if kind == "regression" else "Classifier"
    if not hasattr(baselines, name + task):
        pytest.skip(f"{name} has no {task.lower()}")
    X, y = stream(kind, 300, seed=2)
    child, other = made(name + task, **params), made(parent + task, **parent_params)
    np.testing.assert_allclose(trace(child, X, y), trace(other, X, y), rtol=1e-6, atol=1e-6)
    assert child.n_stored_ == other.n_stored_


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_avm_without_cells_is_pegasos(kind):
    X, y = stream(kind, 300, seed=3)
    avm = AVMClassifier(gamma=1.0, lam=0.02, eta=None, delta=0.0, max_cells=None, output="last")
    np.testing.assert_allclose(trace(avm, X, y), trace(made("PegasosClassifier", lam=0.02), X, y), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "params", "score"),
    [
        ("OGD", dict(eta=1.0), 1.0),
        ("NORMA", dict(eta=1.0, lam=0.0), 1.0),
        ("BOGD", dict(eta=1.0, lam=0.0), 1.0),
        ("BOGD", dict(eta=1.0, lam=0.0, removal="weighted"), 1.0),
        ("NOGD", dict(eta=1.0), 1.0),
        ("PassiveAggressive", dict(C=9.0), 1.0),
        ("DualSGD", dict(lam=1.0), 0.5),
        ("Pegasos", dict(lam=1.0), 0.5),
        ("BSGD", dict(lam=1.0, maintenance="removal"), 0.5),
        ("BSGD", dict(lam=1.0, maintenance="projection"), 0.5),
        ("BSGD", dict(lam=1.0, maintenance="merging"), 0.5),
        ("NPBSGD", dict(lam=1.0), 0.5),
        ("BPAS", dict(C=9.0), 1.0),
        ("BPANN", dict(C=9.0), 1.0),
        ("Perceptron", {}, 1.0),
        ("RBP", {}, 1.0),
        ("Forgetron", {}, 1.0),
        ("BudgetPerceptron", dict(beta=0.9), 1.0),
        ("Projectron", {}, 1.0),
        ("ProjectronPlusPlus", {}, 1.0),
    ],
)
def test_a_margin_of_one_is_no_loss(name, params, score):
    """The first event brings its own score to 1; seen again, it changes nothing but what time shrinks."""
    model = made(f"{name}Classifier", **params)
    x = np.array([0.3, -0.2])
    model.partial_fit(x[np.newaxis], [1], classes=[0, 1])
    assert model.score_one(x) == 1.0
    model.learn_one(x, 1)
    assert model.score_one(x) == score
    assert model.n_stored_ == 1


# ---------------------------------------------------------------------- Forgetron


def test_forgetron_shrinks_as_little_as_it_may():
    """Q is summed here by the definition of Psi; phi is 1, or uses up all that Q leaves."""
    X, y = stream("binary", 2000, seed=4)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, 1 - y, y)
    values = kernel("rbf", 1.0)
    model = made("ForgetronClassifier", budget=20)
    mistakes, Q, least = 1, 0.0, 1.0
    for (before, old), x, label, (points, coef) in learned_one_by_one(model, X, y):
        if np.array_equal(before, points):
            continue
        mistakes += 1
        if len(before) < 20:
            continue
        (r,) = np.flatnonzero((points != before).any(axis=1))
        kept = np.arange(20) != r
        phi = coef[kept, 0] / old[kept, 0]
        np.testing.assert_allclose(phi, phi[0], rtol=1e-9)
        phi = min(phi[0], 1.0)
        a = old[r, 0]
        f_r = values(before, before[[r]])[:, 0] @ old[:, 0] + (2 * label - 1) * values(x[np.newaxis], before[[r]])[0, 0]
        sigma, mu = abs(a), np.sign(a) * f_r
        room = 15.0 / 32.0 * mistakes - Q
        psi = (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
        assert psi == pytest.approx(room, abs=1e-9) if phi < 1.0 - 1e-9 else psi <= room + 1e-9
        Q += psi
        least = min(least, phi)
    assert least < 0.999
    found = model.certificate()
    assert (found["mistakes"], found["damage"], found["smallest_phi"]) == pytest.approx((mistakes, Q, least), rel=1e-6)


@pytest.mark.parametrize("flipped", [0.0, 0.05])
def test_forgetron_keeps_its_bound(flipped):
    """Five clusters, and a competitor g of small norm that gets all rows right with a margin of 1, but for flipped labels."""
    rng = np.random.default_rng(5)
    centres = 10.0 * np.eye(5)
    clusters = rng.integers(5, size=30_000)
    X = centres[clusters] + 0.1 * rng.normal(size=(30_000, 5))
    signs = 2.0 * (np.arange(5) % 2) - 1.0
    outputs = kernel("rbf", 1.0)(X, centres) @ signs
    outputs /= np.abs(outputs).min()
    y = np.where(rng.random(30_000) < flipped, -1, 1) * np.sign(outputs)
    model = made("ForgetronClassifier", budget=1000)
    mistakes = np.sum(model.predict_then_learn(X, y, classes=[-1, 1]) != y)
    g = signs / np.abs(kernel("rbf", 1.0)(X, centres) @ signs).min()
    square = g @ kernel("rbf", 1.0)(centres, centres) @ g
    losses = np.maximum(0.0, 1.0 - y * outputs).sum()
    certificate = model.certificate()
    assert square <= certificate["largest_norm"] ** 2
    assert mistakes <= certificate["mistakes"] <= 2.0 * square + 4.0 * losses < 30_000
    assert (certificate["mistakes"] > 1500) == (flipped > 0.0)  # then it has to forget


# ---------------------------------------------------------------------- projections


@pytest.mark.parametrize("name", ["Projectron", "ProjectronPlusPlus"])
def test_what_is_projected_is_the_least_squares_projection(name):
    """What is left of Phi(x) is orthogonal to all points: at them, the step is a multiple of K(x, .)."""
    X, y = stream("binary", 400, seed=7)
    model = made(f"{name}Classifier", threshold=0.2, budget=15, kernel="matern32")
    values = kernel("matern32", 1.0)
    projected = 0
    for (before, old), x, label, (points, coef) in learned_one_by_one(model, X, y):
        if len(points) == len(before) and not np.array_equal(old, coef):
            change = values(points, points) @ (coef - old)[:, 0]
            own = values(points, x[np.newaxis])[:, 0]
            size = (change @ own) / (own @ own)
            np.testing.assert_allclose(change, size * own, atol=1e-8)
            size *= 2 * label - 1
            assert size == pytest.approx(1.0) if name == "Projectron" else 0.0 < size <= 1.0 + 1e-9
            projected += 1
    assert projected > 20


@pytest.mark.parametrize("name", ["ProjectronClassifier", "BSGDClassifier"])
def test_the_inverse_matrix_does_not_drift(name):
    """A wide kernel makes the Gram matrix hard to invert."""
    X, y = stream("binary", 3000, seed=8)
    y = np.where(np.random.default_rng(2).random(len(y)) < 0.1, 1 - y, y)
    params = dict(threshold=0.0) if name.startswith("P") else dict(lam=1e-3, maintenance="projection")
    model = made(name, gamma=0.2, budget=60, **params).fit(X, y)
    gram, n = model.state_.gram, model.n_stored_
    points = terms(model)[0]
    matrix = kernel("rbf", 0.2)(points, points)
    assert np.linalg.cond(matrix) > 1e6
    np.testing.assert_allclose(gram.matrix[:n, :n], matrix, atol=1e-12)
    probe = np.random.default_rng(3).normal(size=n)
    assert np.abs(gram.matrix[:n, :n] @ (gram.inverse[:n, :n] @ probe) - probe).max() < 1e-5
    assert model.score(X, y) > 0.75


# ---------------------------------------------------------------------- BPA-S


def test_bpas_closed_form_is_the_explicit_search():
    """For each point that could go, the best coefficient of the event is searched for."""
    X, y = stream("binary", 300, seed=9)
    C, budget = 0.4, 12
    values = kernel("rbf", 1.0)
    tried = 0

    def cost(b, a, k, f, sign):
        """Of the coefficient b for the event when the point with coefficient a, and kernel value k with the event, goes."""
        return 0.5 * (a**2 - 2.0 * a * b * k + b**2) + C * max(0.0, 1.0 - sign * (f - a * k + b))

    for (points, coef), x, label, (after, new) in learned_one_by_one(made("BPASClassifier", C=C, budget=budget), X, y):
        sign, k = 2.0 * label - 1.0, values(points, x[np.newaxis])[:, 0]
        f = k @ coef[:, 0]
        if len(points) < budget or sign * f >= 1.0 or tried > 40:
            continue
        options = [(coef[r, 0], k[r], f, sign) for r in range(budget)]
        searches = [minimize_scalar(cost, args=each, bounds=(-5.0, 5.0), options={"xatol": 1e-10}) for each in options]
        r = int(np.argmin([search.fun for search in searches]))
        assert np.array_equal(after[r], x)
        assert cost(new[r, 0], *options[r]) <= searches[r].fun + 1e-9
        assert new[r, 0] == pytest.approx(searches[r].x, abs=1e-4)
        tried += 1
    assert tried > 20


# ---------------------------------------------------------------------- BSGD


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_merging_and_projection_cost_no_more_than_removal(kind):
    X, y = stream(kind, 400, seed=10)
    lam, budget, gamma = 0.02, 15, 2.0
    values = kernel("rbf", gamma)
    for maintenance in ("merging", "projection"):
        model = made("BSGDClassifier", gamma=gamma, lam=lam, budget=budget, maintenance=maintenance)
        saved = []
        for (points, coef), x, label, (after, new) in learned_one_by_one(model, X, y):
            t = model.t_
            if kind == "binary":
                direction = np.array([2.0 * label - 1.0])
            else:
                f = values(x[np.newaxis], points)[0] @ coef
                f[label] = -np.inf
                direction = np.zeros(len(f))
                direction[label], direction[f.argmax()] = 1.0, -1.0
            old = (t - 1) / t * coef
            if len(points) < budget or (len(after) == budget and np.allclose(new, old) and np.array_equal(points, after)):
                continue  # no loss, or room
            whole = np.vstack([points, x]), np.vstack([old, direction / (lam * t)])
            both = np.vstack([whole[0], after])
            difference = np.vstack([whole[1], -new])
            cost = np.einsum("ko,kl,lo->", difference, values(both, both), difference)
            removal = (whole[1] ** 2).sum(axis=1).min()
            assert cost <= removal * (1.0 + 1e-9)
            saved.append(cost / removal)
        assert len(saved) > 30
        assert np.median(saved) < 0.7


def test_merging_without_a_partner_is_removal():
    """The two points have opposite signs and equal weights: the older one goes, and the other stays where it is."""
    X = np.array([[0.0], [0.3]])
    model = made("BSGDClassifier", lam=0.1, budget=1)
    model.partial_fit(X, [1, 0], classes=[0, 1])
    np.testing.assert_array_equal(model.support_vectors_, X[[1]])


def test_the_table_of_merging_is_close_to_the_best():
    share = getattr(best_share, "py_func", best_share)  # only compiled code can call it compiled
    rng = np.random.default_rng(11)
    for m, kappa in zip(rng.uniform(0.0, 0.5, 300), rng.uniform(0.0, 1.0, 300), strict=True):

        def kept(h, m=m, kappa=kappa):
            return m * kappa ** ((1.0 - h) ** 2) + (1.0 - m) * kappa ** (h**2)

        best = max(kept(h) for h in np.linspace(0.0, 1.0, 4001))
        assert kept(share(m, kappa)) >= best * (1.0 - 2e-4)


# ---------------------------------------------------------------------- random removal


@pytest.mark.parametrize("removal", ["uniform", "weighted"])
def test_bogd_keeps_the_mean_of_the_model(removal):
    X, y = stream("binary", 400, seed=12)
    lam, eta = 0.1, 0.4
    model = made("BOGDClassifier", eta=eta, lam=lam, budget=12, removal=removal, clip=1e6, random_state=0)
    model.partial_fit(X, y)
    x = next(x for x in X if abs(model.score_one(x)) < 0.5)
    probes = np.random.default_rng(13).uniform(-1.0, 1.0, size=(20, 3))
    expected = (1.0 - eta * lam) * model.decision_function(probes) + eta * kernel("rbf", 1.0)(probes, x[np.newaxis])[:, 0]
    copies = pickle.dumps(model)
    found = []
    for seed in range(2000):
        copy = pickle.loads(copies)
        copy._rng = np.random.default_rng(seed)
        points, coef = terms(copy.learn_one(x, 1))
        found.append(kernel("rbf", 1.0)(probes, points) @ coef[:, 0])
    error = np.std(found, axis=0) / math.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - expected) <= 4.5 * error + 1e-9).all()


def test_npbsgd_stores_few_points():
    X, y = stream("binary", 1000, seed=14)
    models = [made("NPBSGDClassifier", lam=0.01, beta=5.0, random_state=seed).fit(X, y) for seed in range(30)]
    assert np.mean([model.n_stored_ for model in models]) <= models[0].certificate()["expected_bound"]
    assert np.mean([model.score(X, y) for model in models]) > 0.85


def test_norma_truncation_is_as_small_as_promised():
    X, y = stream("binary", 500, seed=15)
    short = made("NORMAClassifier", eta=0.5, lam=0.1, loss="logistic", budget=40).fit(X, y)
    whole = made("NORMAClassifier", eta=0.5, lam=0.1, loss="logistic").fit(X, y)
    assert short.n_stored_ == 40 < whole.n_stored_
    newest = whole.support_vectors_[-40:]
    assert {tuple(p) for p in short.support_vectors_} == {tuple(p) for p in newest}
    tail = kernel("rbf", 1.0)(X, whole.support_vectors_[:-40]) @ whole.dual_coef_[:-40]
    assert np.abs(tail).max() <= short.certificate()["truncation"]


def test_merging_is_for_the_gaussian_kernel():
    with pytest.raises(ValueError, match=r"merging.*removal"):
        made("BSGDClassifier", kernel="cauchy").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("name", "params", "budget", "toolbox"),
    [
        ("BPAS", dict(C=1.0), 100, 15.5),
        ("BPAS", dict(C=1.0), 400, 10.1),
        ("ProjectronPlusPlus", dict(threshold=0.2), 100, 9.3),
        ("ProjectronPlusPlus", dict(threshold=0.2), 400, 7.5),
    ],
)
def test_mistakes_on_cod_rna(data_folder, name, params, budget, toolbox):
    """A C++ toolbox for online kernel learning makes so many mistakes, in percent; the majority would make 33.3."""
    X, y = dataset("cod-rna").load()
    order = np.random.default_rng(0).permutation(len(y))
    labels = made(f"{name}Classifier", budget=budget, **params).predict_then_learn(X[order], y[order])
    assert 100.0 * np.mean(labels != y[order]) < toolbox + 1.0


# ---------------------------------------------------------------------- constant steps


@pytest.mark.parametrize("name", ["BSGDClassifier", "DualSGDClassifier", "NPBSGDRegressor"])
def test_a_constant_step_must_shrink_the_model_and_does_not_forget_otherwise(name):
    X, y = stream("regression" if "Regressor" in name else "binary", 50)
    with pytest.raises(ValueError, match=r"eta \* lam must be less than 1"):
        made(name, eta=2.0, lam=0.5).fit(X, y)
    with pytest.raises(ValueError, match="forget is for steps of size"):
        made(name, eta=0.5, lam=0.5, forget=10.0).fit(X, y)
