"""The batch methods of the papers' tables against brute force, and where they must agree with each other."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from kernling.io import synthetic
from kernling.papers import batch
from kernling.papers.batch import IVM, KernelMachine, KMeansNystroem, OneVsAll, SparseKernel
from kernling.papers.kernel_machines import hinge_loss, softmax_loss
from kernling.papers.sparse_kernel import Pairs

GAMMA = 1.4


def rows(n=60, seed=16):
    X, y = synthetic("multidist", n, seed).load()
    return np.asarray(X), y


def scores(n=40, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, classes)), rng.integers(classes, size=n)


@pytest.mark.parametrize("smooth", [0.0, 0.05])
def test_the_losses_by_loops_and_their_gradients_by_differences(smooth):
    F, place = scores()
    best = (lambda found: smooth * np.log(np.sum(np.exp(np.array(found) / smooth)))) if smooth else max
    gaps = [1.0 - f[c] + best([f[k] for k in range(len(f)) if k != c]) for f, c in zip(F, place, strict=True)]
    rounded = [(g + smooth) ** 2 / (4 * smooth) if abs(g) < smooth else max(g, 0.0) for g in gaps]
    assert hinge_loss(F, place, smooth)[0] == pytest.approx(np.mean(rounded))
    logs = [np.log(np.exp(f).sum()) - f[c] for f, c in zip(F, place, strict=True)]
    assert softmax_loss(F, place)[0] == pytest.approx(np.mean(logs))
    for loss in (softmax_loss, lambda F, place: hinge_loss(F, place, smooth)):
        gradient = loss(F, place)[1]
        for i, c in ((0, 1), (7, place[7]), (11, 3)):
            moved = F.copy()
            moved[i, c] += 1e-6
            assert (loss(moved, place)[0] - loss(F, place)[0]) / 1e-6 == pytest.approx(gradient[i, c], abs=1e-5)


def test_kernel_machine_reaches_the_optimum_of_a_dual_solver():
    X, y = rows(150)
    y = np.where(y > 1, 1, 0)
    K = rbf_kernel(X, gamma=GAMMA)
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    lam = 1e-3
    machine = KernelMachine(GAMMA, lam, "hinge").fit(X, y)
    dual = LinearSVC(C=1.0 / (lam * len(y)), loss="hinge", fit_intercept=False, max_iter=10**6, tol=1e-8).fit(features, y)
    margins = np.where(y == 1, 1, -1) * (features @ dual.coef_[0])
    # two functions with opposite signs: a margin is their difference, and the norms of both count
    best = np.mean(np.maximum(0.0, 1.0 - margins)) + 0.5 * lam * (dual.coef_**2).sum()
    assert KernelMachine(GAMMA, 2.0 * lam, "hinge").fit(X, y).regularised_risk(X, y) == pytest.approx(best, rel=0.01)
    assert machine.regularised_risk(X, y) <= best


def test_many_classes_leave_the_start_where_all_scores_are_the_same():
    """Were one of 13 classes every other's only rival there, L-BFGS would find no step that reduces the risk."""
    rng = np.random.default_rng(0)
    y = np.arange(390) % 13
    X = rng.normal(size=(13, 4))[y] + 0.1 * rng.normal(size=(390, 4))
    assert KernelMachine(0.1, 1e-6, "hinge", max_iter=100).fit(X[:260], y[:260]).score(X[260:], y[260:]) > 0.9


def test_kernel_logistic_regression_is_at_its_optimum():
    """Where the gradient is 0, f is the sum of (e_i - p(x_i)) / (lam n) K(x_i, .), with e_i the row of the label."""
    X = np.random.default_rng(16).normal(size=(200, 2))
    y, lam = (X[:, 0] * X[:, 1] > 0.0).astype(int), 0.01
    f = KernelMachine(gamma=1.0, lam=lam, loss="softmax").fit(X, y).decision_function(X)
    expected = rbf_kernel(X, gamma=1.0) @ (np.eye(2)[y] - softmax(f, axis=1)) / (lam * len(y))
    np.testing.assert_allclose(f, expected, atol=1e-4)


def test_ivm_with_all_points_is_kernel_logistic_regression():
    X, y = rows(40)
    lam = 1e-2
    few, full = IVM(GAMMA, lam, tol=-1.0).fit(X, y), KernelMachine(GAMMA, lam).fit(X, y)
    assert sorted(few.support_) == list(range(40))
    assert few.regularised_risk(X, y) == pytest.approx(full.regularised_risk(X, y), rel=1e-4)
    assert np.abs(few.decision_function(X) - full.decision_function(X)).max() < 0.05


def test_ivm_adds_the_point_whose_newton_step_is_best_and_stops():
    X, y = rows(30)
    classes = len(np.unique(y))
    model = IVM(GAMMA, 1e-2, budget=3, tol=0.0).fit(X, y)
    K, place = rbf_kernel(X, gamma=GAMMA), np.searchsorted(model.classes_, y)
    found = model.gains(K, np.zeros((30, classes)), place)
    for row in (0, 9, 29):

        def risk(a, row=row):
            return softmax_loss(np.outer(K[:, row], a), place)[0] + 0.5 * 1e-2 * K[row, row] * (a @ a)

        step = 1e-3
        eye = step * np.eye(classes)
        slope = np.array([(risk(e) - risk(-e)) / (2 * step) for e in eye])
        curve = np.array([[(risk(e + g) - risk(e) - risk(g) + risk(0 * e)) / step**2 for g in eye] for e in eye])
        assert found[row] == pytest.approx(0.5 * slope @ np.linalg.solve(curve, slope), rel=1e-2)
    assert model.support_[0] == found.argmax()
    assert len(model.support_) == 3
    X, y = rows(400)
    stopped = IVM(GAMMA, 1e-4, tol=0.05).fit(X, y)
    assert len(stopped.support_) < 100
    assert stopped.score(X, y) > 0.9


def brute(f, positive):
    return np.mean([max(0.0, 1.0 - p + n) ** 2 / 2.0 for p in f[positive] for n in f[~positive]])


def test_pairs_by_sorting_are_those_of_two_loops():
    rng = np.random.default_rng(1)
    f, positive = rng.standard_normal(30), rng.random(30) < 0.4
    f[:4] = 0.5  # ties
    value, gradient = Pairs(f, positive).loss()
    assert value == pytest.approx(brute(f, positive))
    for i in (0, 5, 20):
        move = 1e-5 * (np.arange(30) == i)
        assert (brute(f + move, positive) - brute(f - move, positive)) / 2e-5 == pytest.approx(gradient[i], abs=1e-8)
    columns = rng.standard_normal((30, 3))
    pairs = [(i, j) for i in np.flatnonzero(positive) for j in np.flatnonzero(~positive) if f[i] - f[j] < 1.0]
    each = [sum((k[i] - k[j]) ** 2 for i, j in pairs) for k in columns.T]
    number = positive.sum() * (~positive).sum()
    assert Pairs(f, positive).curvature(columns) == pytest.approx(np.array(each) / number)
    outer = sum(np.outer(columns[i] - columns[j], columns[i] - columns[j]) for i, j in pairs)
    assert Pairs(f, positive).hessian(columns) == pytest.approx(outer / number)


def test_sparse_kernel_with_all_points_is_a_kernel_ranksvm():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 2))
    y = (np.hypot(*X.T) + 0.3 * rng.standard_normal(40) < 1.0).astype(int)
    K, lam, positive = rbf_kernel(X, gamma=1.0), 0.05, y == 1
    model = SparseKernel(1.0, lam, budget=40, random_state=0).fit(X, y)

    def risk(f, a):
        return brute(f, positive) + 0.5 * lam * a @ K @ a

    a = np.zeros(40)
    a[model.support_] = model.coef_
    best = minimize(lambda a: risk(K @ a, a), np.zeros(40), method="L-BFGS-B", options={"maxfun": 10**5}).fun
    assert risk(K @ a, a) == pytest.approx(best, rel=1e-3)
    few = SparseKernel(1.0, lam, budget=10, random_state=0).fit(X, y)
    assert len(few.support_) == 10
    assert roc_auc_score(y, few.decision_function(X)) > 0.85


def test_landmarks_of_k_means_span_the_rows_if_there_are_as_many_as_rows():
    X, _ = rows(50)
    features = KMeansNystroem(0.5, 50, random_state=0).fit_transform(X)
    assert features @ features.T == pytest.approx(rbf_kernel(X, gamma=0.5), abs=5e-3)


def test_one_vs_all_is_a_machine_per_class():
    X, y = rows(200)
    model = OneVsAll(GAMMA, 10.0).fit(X, y)
    table = [SVC(C=10.0, gamma=GAMMA).fit(X, np.where(y == c, 1, -1)).decision_function(X) for c in np.unique(y)]
    assert (model.predict(X) == np.unique(y)[np.argmax(table, axis=0)]).all()
    assert isinstance(batch.libsvm(GAMMA, one_vs_all=True), OneVsAll)


@pytest.mark.parametrize("maker", [batch.fourier, batch.nystrom])
def test_features_with_softmax_have_probabilities_and_those_with_the_hinge_do_not(maker):
    X, y = rows(300)
    size = {"n_components": 200} if maker is batch.fourier else {"budget": 50}
    soft = maker(GAMMA, **size, C=10.0, loss="softmax", random_state=0).fit(X, y)
    assert soft.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(300))
    assert soft.score(X, y) > 0.9
    hard = maker(GAMMA, **size, C=10.0, random_state=0).fit(X, y)
    assert not hasattr(hard, "predict_proba")
    assert hard.score(X, y) > 0.9
