"""Explanations: those of all coalitions (tests/oracles/shapley.py), which sum to the scores, for all kinds of models."""

import numpy as np
import pytest
from scipy import sparse

import kernling as kl
from kernling.baselines import FOGDClassifier
from kernling.components import explaining
from kernling.components.answering import Kept
from kernling.components.experts import CLASSIFIERS, REGRESSORS
from kernling.components.mixture import LOGISTIC, Mixture
from kernling.components.scaling import target_scale
from kernling.components.shapley import Game, exact
from oracles.shapley import shapley

COLUMNS = 4


def stream(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose last column says nothing."""
    X = np.random.default_rng(seed).normal(size=(n, COLUMNS))
    return X, X[:, 0] * X[:, 1] + 0.5 * X[:, 2]


X, VALUES = stream()
LABELS, KINDS = VALUES > 0.0, np.digitize(VALUES, [-0.5, 0.5])
BACKGROUND = X[:3]
SHIFT = np.array([0.0, 100.0, 0.0, 0.0])


def sums_up(found, model, rows) -> None:
    score = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
    np.testing.assert_array_equal(found.score, score)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), score, rtol=1e-9, atol=1e-9)


MODELS = {
    "gaussian": (kl.AVMClassifier(gamma=0.5, delta=0.5), LABELS),
    "classes": (kl.SPAClassifier(gamma=0.5), KINDS),
    "scaled targets": (kl.POLKRegressor(gamma=0.5), 100.0 + 20.0 * VALUES),
    "constant and columns": (kl.KRLSRegressor(), VALUES),
    "linear kernel": (kl.SPAClassifier(kernel="linear"), LABELS),
    "linear features": (kl.AOGDClassifier(features="linear", random_state=0), LABELS),
    "half-space": (kl.SPAOneClass(kernel="rbf", mode="halfspace"), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_with_a_formula_have_the_values_of_all_coalitions(name):
    model, targets = MODELS[name]
    model.fit(X, targets)
    found = model.explain(X[10:13], BACKGROUND)
    sums_up(found, model, X[10:13])
    assert not found.error.any()
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    score = lambda rows: ask(rows).reshape(len(rows), -1)  # noqa: E731
    for row, values in zip(X[10:13], found.values, strict=True):
        expected, base = shapley(score, row, BACKGROUND, range(COLUMNS))
        np.testing.assert_allclose(values.reshape(COLUMNS, -1), expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.base, base if len(base) > 1 else base[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (kl.KRLSRegressor(kernel="matern52"), VALUES),
        (FOGDClassifier(random_state=0), LABELS),
        (kl.DualSVRGClassifier(random_state=0), LABELS),
        (kl.SPAOneClass(), None),
    ],
    ids=["kernel", "random features", "both", "ball"],
)
def test_other_models_are_right_within_their_errors(model, targets):
    model.fit(X, targets)
    found = model.explain(X[10:12], BACKGROUND, samples=400)
    sums_up(found, model, X[10:12])
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    for row, values, error in zip(X[10:12], found.values, found.error, strict=True):
        expected, _ = shapley(lambda rows: ask(rows)[:, np.newaxis], row, BACKGROUND, range(COLUMNS))
        assert (error > 0.0).all()
        assert (np.abs(values - expected[:, 0]) < 5.0 * error).all()


def test_columns_of_a_group_are_absent_together():
    model = kl.AVMClassifier(gamma=0.5, delta=0.5).fit(X, LABELS)
    found = model.explain(X[10:12], BACKGROUND, groups=["a", "b", "a", "c"])
    assert found.columns == ("a", "b", "c")
    for row, values in zip(X[10:12], found.values, strict=True):
        expected, _ = shapley(lambda rows: model.decision_function(rows)[:, np.newaxis], row, BACKGROUND, [0, 1, 0, 2])
        np.testing.assert_allclose(values, expected[:, 0], rtol=1e-8, atol=1e-10)


def test_classes_may_come_late_and_in_any_order(autos):
    late = KINDS != 0
    rows, labels = np.vstack([X[late], X[~late]]), np.concatenate([KINDS[late], KINDS[~late]])
    for model in (kl.AVMClassifier(gamma=0.5, delta=0.5), kl.AutoClassifier()):
        found = model.partial_fit(rows, labels).explain(X[:3])
        sums_up(found, model, X[:3])
        assert found.labels == (0, 1, 2)
        assert found.row(0)["score_of"] == model.predict(X[:1])[0]
    two = autos["two"].explain(X[:1])
    assert two.labels == (True,)
    assert "score_of" not in autos["values"].explain(X[:1]).row(0)


def test_rows_may_be_sparse_or_single_precision():
    model = kl.AVMClassifier(gamma=0.5, delta=0.5).fit(sparse.csr_array(X), LABELS)
    np.testing.assert_allclose(model.explain(sparse.csr_array(X[:2])).values, model.explain(X[:2]).values)
    coarse = kl.AVMClassifier(gamma=0.5, delta=0.5, dtype="float32").fit(X, LABELS)
    found = coarse.explain(X[:5])
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), found.score, rtol=1e-4, atol=1e-4)


def test_wrong_arguments_are_refused():
    model = kl.AVMClassifier(gamma=0.5, delta=0.5).fit(X, LABELS)
    with pytest.raises(ValueError, match="samples must be a whole number"):
        model.explain(X[:1], samples=1)
    with pytest.raises(ValueError, match="groups has 1 names, but there are 4 columns"):
        model.explain(X[:1], groups=["a"])
    with pytest.raises(AttributeError, match="has learned nothing"):
        kl.AVMClassifier().explain(X)
    nothing_held = FOGDClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="holds no rows to compare with"):
        nothing_held.explain(X[:1])
    assert not hasattr(nothing_held, "importances_")


# ---------------------------------------------------------------------- Auto


@pytest.fixture(scope="module")
def autos() -> dict:
    return {
        "two": kl.AutoClassifier().fit(X + SHIFT, LABELS),
        "three": kl.AutoClassifier().fit(X + SHIFT, KINDS),
        "values": kl.AutoRegressor().fit(X + SHIFT, VALUES),
        "far values": kl.AutoRegressor(standardise=False).fit(X + SHIFT, VALUES),
        "without": kl.AutoClassifier(memory=0, standardise=False).fit(X, LABELS),
    }


@pytest.mark.parametrize("name", ["two", "three", "values", "without"])
def test_contributions_sum_to_the_score_of_a_mixture(autos, name):
    model = autos[name]
    rows = X[:6] + np.array([0.0, 0.0 if name == "without" else 100.0, 0.0, 0.0])
    found = model.explain(rows)
    sums_up(found, model, rows)
    assert found.error.any() == (name != "without")
    sizes = model.importances_
    assert list(sizes) == ["x0", "x1", "x2", "x3"]
    assert sizes["x3"] < 0.4 * min(sizes["x0"], sizes["x1"], sizes["x2"])


@pytest.mark.parametrize("name", ["two", "three", "values"])
def test_experts_with_a_formula_have_the_values_of_all_coalitions(autos, name):
    model = autos[name]
    row, others = X[20] + np.array([0.0, 100.0, 0.0, 0.0]), X[:2] + np.array([0.0, 100.0, 0.0, 0.0])
    state, answers = model._state.answering, model._answers().answers
    kernel = state.kernel(model._problem.kernel)
    game = Game(row[np.newaxis], others, np.arange(COLUMNS))
    found = explaining._with_formula(state, kernel, True, answers, game, Kept(()))
    names = CLASSIFIERS if name != "values" else REGRESSORS
    known = {names[place] for place in found}
    assert known == {one for one in names if not one.startswith(("average", "nearest", "memory"))}
    for place, own in found.items():
        expected, base = shapley(lambda rows, place=place: model._expert_scores(rows)[:, place], row, others, range(COLUMNS))
        np.testing.assert_allclose(own.values[0], expected, rtol=1e-6, atol=1e-7, err_msg=names[place])
        np.testing.assert_allclose(own.base, base, rtol=1e-6, atol=1e-7)


def test_neighbours_are_right_within_their_errors(autos):
    """The same weights of the values of all coalitions of four columns and two other rows."""
    model, row, others = autos["values"], X[20] + SHIFT, X[:2] + SHIFT
    state, weights = model._state.answering, 1.0 / len(REGRESSORS) + model._answers().answers.mixture[0]
    values, base = shapley(lambda rows: model._expert_scores(rows)[..., 0], row, others, range(COLUMNS))
    shift, width = target_scale(state.target)
    found = model.explain(row[np.newaxis], others, samples=400)
    assert found.base == pytest.approx(shift + width * weights @ base, abs=0.02)
    assert (found.error > 0.0).all()
    assert (np.abs(found.values[0] - width * values @ weights) < 5.0 * found.error[0]).all()


def test_explanations_of_a_state_share_only_what_belongs_to_it(autos, tmp_path):
    """After other rows, groups and backgrounds, and after events: the same as of a model that was not asked before."""
    kl.save(autos["values"], tmp_path / "m.kern")
    model = kl.load(tmp_path / "m.kern")
    calls = [{}, {"groups": ["a", "b", "a", "c"]}, {"background": X[:9] + SHIFT}, {"samples": 20}, {}]
    for more in (0, 1, 300):
        model.partial_fit(X[:more] + SHIFT, VALUES[:more] + 1.0) if more else None
        for settings in calls:
            kl.save(model, tmp_path / "m.kern")
            fresh = kl.load(tmp_path / "m.kern").explain(X[:2] + SHIFT, **settings)
            for own, other in zip(model.explain(X[:2] + SHIFT, **settings)[:4], fresh[:4], strict=True):
                np.testing.assert_array_equal(own, other)


def both_ways(model, rows, groups, monkeypatch):
    """The explanation along orders of columns, and that by scores of whole rows."""
    quick = model.explain(rows, groups=groups)
    monkeypatch.setattr(explaining, "_have_paths", lambda experts, found: False)
    slow = model.explain(rows, groups=groups)
    assert quick.error.any()
    return quick, slow


@pytest.mark.parametrize("far", [100.0, 1e3, 1e9])
def test_all_events_are_as_far_from_a_row_that_is_very_far(far, monkeypatch):
    """The nearest five are then the first ones."""
    model = kl.AutoRegressor(standardise=False, memory=0, window=60, points=20, gamma=1.0).fit(X, VALUES)
    rows = np.vstack([X[0] + far * np.array([1.0, -1.0, 0.0, 0.0]), X[1]])
    for one, other in zip(*(found[:4] for found in both_ways(model, rows, None, monkeypatch)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_distances_that_are_lost_by_rounding_are_not_below_zero():
    """From a row that is very far to one of the events: kernel values above 1 would be infinite."""
    model = kl.AutoRegressor(standardise=False, memory=0, window=60, points=20, gamma=1.0).fit(X, VALUES)
    far = np.random.default_rng(0).uniform(1e9, 2e9, size=(40, 4))
    found = model.explain(X[-20:], far)
    assert np.isfinite(found.values).all()
    assert np.abs(found.values).max() < 1e3


@pytest.mark.parametrize("name", ["two", "three", "values", "far values"])
def test_neighbours_say_the_same_along_orders_as_of_each_row(autos, name, monkeypatch):
    """A group of two columns, which change together, and single ones."""
    model, rows = autos[name], X[:3] + np.array([0.0, 100.0, 0.0, 0.0])
    quick, slow = both_ways(model, rows, ["a", "b", "a", "c"], monkeypatch)
    for one, other in zip(quick[:4], slow[:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_change_of_a_mixture_is_divided_along_a_line():
    """The same by small steps, and numerical derivatives of the answer to the sums of the stacks."""
    rng = np.random.default_rng(1)
    experts, stacks, classes, players = 6, 3, 3, 5
    mixture = Mixture(
        mean=rng.normal(size=(experts, classes)),
        spread=rng.uniform(0.5, 2.0, experts),
        pull=rng.normal(size=(stacks, experts)),
        curvature=np.zeros((stacks, experts, experts)),
        bias=rng.normal(size=(stacks, classes)),
        bias_curvature=np.zeros((stacks, classes)),
        noise=np.array([0.01, 0.1, 0.2]),
        trust=np.array([0.2, 0.3, 0.5]),
        losses=np.zeros(stacks),
        seen=np.arange(2.0, 2.0 + classes),
        record=np.zeros(2),
    )
    shares = [exact(rng.normal(size=(1, players, classes)), rng.normal(size=classes)) for _ in range(experts)]
    found = explaining._through_stacks(mixture, shares)
    is_log_odds = (np.arange(experts) == LOGISTIC)[:, np.newaxis]
    scale = np.where(is_log_odds, 1.0, np.sqrt(mixture.spread)[:, np.newaxis])

    def seen(scores: np.ndarray) -> np.ndarray:
        z = scores - np.where(is_log_odds, 0.0, mixture.mean)
        z = (z - z.mean(axis=1, keepdims=True)) / scale
        return z, np.where(is_log_odds, z, z / np.sqrt(1.0 + np.abs(z)))

    def said(sums: np.ndarray) -> np.ndarray:
        p = np.exp(sums) / np.exp(sums).sum(axis=1, keepdims=True)
        noise = mixture.noise[:, np.newaxis]
        return np.log(mixture.trust @ ((1.0 - noise) * p + noise * mixture.seen / mixture.seen.sum()))

    base, whole = np.array([own.base for own in shares]), np.array([own.scores[0] for own in shares])
    (low, before), (high, after) = seen(base), seen(whole)
    parts = []
    for j in range(players):
        own = np.array([share.values[0, j] for share in shares])
        own = (own - own.mean(axis=1, keepdims=True)) / scale
        parts.append(mixture.pull @ (own * (after - before) / (high - low)))
    start, end = (mixture.bias + mixture.pull @ x for x in (before, after))
    steps, tiny = 400, 1e-5
    expected = np.zeros((players, classes))
    for step in range(steps):
        here = start + (step + 0.5) / steps * (end - start)
        for j, part in enumerate(parts):
            expected[j] += (said(here + tiny * part) - said(here - tiny * part)) / (2.0 * tiny * steps)
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.base, said(start), rtol=1e-9)
    np.testing.assert_allclose(found.scores[0], said(end), rtol=1e-9)


def test_rows_to_compare_with_are_recent_whatever_the_chunks():
    X, values = stream(2100)
    numbered = np.column_stack([X, np.arange(len(X))])
    whole = kl.AutoRegressor().partial_fit(numbered, values)
    held = whole._fitted().latest.held[:, -1]
    np.testing.assert_array_equal(np.sort(held), np.arange(2096 - 63 * 16, 2100, 16))
    parts = kl.AutoRegressor()
    for start in (0, 1, 130, 700, 1999):
        stop = {0: 1, 1: 130, 130: 700, 700: 1999, 1999: 2100}[start]
        parts.partial_fit(numbered[start:stop], values[start:stop])
        seen = np.sort(parts._fitted().latest.held[:, -1])
        assert len(seen) == min(stop, 64)
        assert seen[0] >= stop - 2 * 64 * 16
        assert seen[-1] >= stop - 16
    np.testing.assert_array_equal(parts._fitted().latest.rows, whole._fitted().latest.rows)


@pytest.mark.parametrize(
    "model",
    [kl.AutoClassifier(), kl.AutoRegressor(), kl.AVMClassifier(), kl.SPARegressor(), kl.POLKRegressor()],
    ids=lambda model: type(model).__name__,
)
def test_importances_follow_the_stream(model):
    """Of two columns one matters, and 2,000 events after the other took its place, that one, whatever the chunks."""
    rows = np.random.default_rng(5).normal(size=(5000, 3))
    values = 2.0 * np.where(np.arange(5000) < 3000, rows[:, 0], rows[:, 2])
    targets = values > 0.0 if model.task == "classification" else values
    before = model.partial_fit(rows[:3000], targets[:3000]).importances_
    assert before["x0"] > 3.0 * max(before["x1"], before["x2"])
    after = model.partial_fit(rows[3000:], targets[3000:]).importances_
    assert after["x2"] > 3.0 * max(after["x0"], after["x1"])


def test_importances_do_not_depend_on_chunks(tmp_path):
    rows, labels = trips(1500)
    whole = kl.StreamPipeline.auto(kl.AutoClassifier(memory=0)).partial_fit(rows, labels)
    parts = kl.StreamPipeline.auto(kl.AutoClassifier(memory=0)).partial_fit(rows[:700], labels[:700])
    kl.save(parts, tmp_path / "parts.kern")
    parts = kl.load(tmp_path / "parts.kern").partial_fit(rows[700:], labels[700:])
    assert whole.importances_ == pytest.approx(parts.importances_, rel=1e-6)


def test_explaining_changes_nothing(autos, tmp_path):
    model = autos["two"]
    before = {name: array.copy() for name, array in model.to_contents().arrays.items()}
    kl.save(model, tmp_path / "auto.kern")
    first = model.explain(X[:2])
    again = kl.load(tmp_path / "auto.kern").explain(X[:2])
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    after = model.to_contents().arrays
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


# ---------------------------------------------------------------------- pipelines


def trips(n: int = 400) -> tuple[list[dict], list[str]]:
    rng = np.random.default_rng(3)
    cities = rng.choice(["Oslo", "Rome", "Bern"], n).tolist()
    rows = [{"km": km, "city": city} for km, city in zip(rng.normal(50.0, 9.0, n).tolist(), cities, strict=True)]
    return rows, ["late" if row["city"] == "Rome" or row["km"] > 60.0 else "on time" for row in rows]


def test_columns_of_a_category_are_explained_together():
    rows, labels = trips()
    model = kl.StreamPipeline.auto(kl.AVMClassifier(delta=0.3)).partial_fit(rows, labels)
    found = model.explain(rows[:5])
    assert found.columns == ("km", "city")
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.decision_function(rows[:5]), rtol=1e-9)
    encoded, others = model.passed(rows[:1])[0], model.passed(rows[10:13])
    players = [0] + [1] * 4 + [2] * (len(encoded) - 5)
    expected, _ = shapley(lambda X: model.model_.decision_function(X)[:, np.newaxis], encoded, others, players)
    np.testing.assert_allclose(model.explain(rows[:1], rows[10:13]).values[0], expected[:2, 0], rtol=1e-8)
    one = model.explain_one(rows[0])
    assert sorted(one) == ["city", "km"]
    assert [abs(value) for value in one.values()] == sorted((abs(value) for value in one.values()), reverse=True)
    assert set(model.importances_) == {"km", "city"}


def test_columns_are_named_as_the_last_step_sees_them():
    from sklearn.decomposition import IncrementalPCA
    from sklearn.preprocessing import StandardScaler

    model = kl.StreamPipeline([("scale", StandardScaler()), ("model", kl.AVMClassifier(gamma=0.5, delta=0.5))]).fit(X, LABELS)
    assert model.explain(X[:1]).columns == ("x0", "x1", "x2", "x3")
    mixed = kl.StreamPipeline([("turn", IncrementalPCA(2)), ("model", kl.AVMClassifier(gamma=0.5, delta=0.5))]).fit(X, LABELS)
    assert mixed.explain(X[:1]).columns == ("incrementalpca0", "incrementalpca1")
    assert kl.StreamPipeline([("model", kl.AVMClassifier(gamma=0.5))]).fit(X, LABELS).explain(X[:1]).values.shape == (1, 4)
