"""kernling.merge: the weighted mean of functions, within each method's bound, for every registered method."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import is_classifier

import checks
import kernling as kl
from kernling.components.stats import STEPS
from kernling.core import averages
from kernling.core.expansion import EVENTS, Expansion, new_expansion
from kernling.core.fourier import Linear
from kernling.driver import scoring
from kernling.merging import rules
from kernling.merging.rules import at_time
from oracles import CASES, Case, stream

ROWS = 240  # of each part; a multiple of POLK's batch
ALL = [  # the first case of each estimator at once, the others with -m long
    pytest.param(cls, case, id=f"{cls.__name__}-{number}", marks=[pytest.mark.long] if number else [])
    for cls in checks.estimators()
    for number, case in enumerate(CASES[cls.__name__])
]
FIRST = [pytest.param(cls, CASES[cls.__name__][0], id=cls.__name__) for cls in checks.estimators()]
MIXTURES = ("auto",)  # experts merge each as it would alone: no output is a mean, and no bound says how far it is from one
ADD_UP = ("krls",)  # whose sums add up on the same points or features, which is more than the mean: methods/test_krls.py
PROBES = np.random.default_rng(5).uniform(-1.2, 1.2, size=(40, 3))


def is_no_mean(cls, case: Case) -> bool:
    """Whether the output of a merged model is not the mean of outputs: votes are averaged, and what they weigh as well."""
    return cls.learner.name in MIXTURES or checks.make(cls, case).get_params().get("output") == "auto"


def rows(case: Case, part: int, n: int = ROWS):
    return stream(case.stream, n, seed=10 + part)


def trained(cls, case, part: int, start=None, **changes):
    """A model of one part; all know all classes."""
    X, y = rows(case, part)
    model = checks.make(cls, case, **{"batch_size": 16} if "batch_size" in case.params else {}, **changes)
    return checks.learn(model if start is None else kl.merge([start]), X, y, np.unique(y))


@cache
def three(cls, key: int) -> list:
    """Models of three parts, which no test changes."""
    case = CASES[cls.__name__][key]
    return [trained(cls, case, part) for part in range(3)]


def parts_of(cls, case) -> list:
    return three(cls, CASES[cls.__name__].index(case))


def outputs(model, X=PROBES) -> np.ndarray:
    """What the model predicts with, (rows, outputs); a transformer's weights."""
    if isinstance(model, kl.AOGDClassifier):  # its threshold follows from the function and the classes' means: it is no mean
        return model._scores(X) + model.threshold_
    return model.weights_[np.newaxis] if hasattr(model, "weights_") else in_units(model, model._scores(X))


def in_units(model, scores) -> np.ndarray:
    """Scores in the units of the targets."""
    return getattr(model, "target_mean_", 0.0) + getattr(model, "target_spread_", 1.0) * scores


def current(model, X=PROBES) -> np.ndarray:
    """The function that it learns from, whatever it predicts with."""
    setup = model._setup._replace(output=averages.LAST)
    return in_units(model, scoring.score(setup, model._state, scoring_rows(X)))


def scoring_rows(X):
    from kernling.core.rows import as_rows

    return as_rows(np.ascontiguousarray(X))


def reach(model, X=PROBES) -> np.ndarray:
    """||K(x, .)|| of each row: by how much a function of norm 1 can differ there."""
    kernel = kl.kernel(model.kernel, model.gamma_, model.degree, model.coef0)
    return np.sqrt([kernel(x, x)[0, 0] for x in X])[:, np.newaxis]


def assert_mean(merged, models, shares) -> None:
    """Outputs and the current function are the weighted means, up to the certificate."""
    error = merged.certificate()["merge_error"]
    for function in (outputs, current):
        if hasattr(merged, "weights_") and function is current:
            continue
        mean = sum(share * function(model) for share, model in zip(shares, models, strict=True))
        apart = np.abs(function(merged) - mean)
        assert (apart <= (error * reach(merged) if apart.shape[0] == len(PROBES) else error) + 1e-8 * (1 + np.abs(mean))).all()


def bound(model) -> float:
    return checks.bound(model)


@pytest.mark.parametrize(("cls", "case"), ALL)
def test_the_mean_within_the_certificate(cls, case):
    models = parts_of(cls, case)
    if is_no_mean(cls, case):
        pytest.skip("a mixture's output is no mean")
    if cls.learner.name in ADD_UP and not models[0].n_stored_:
        pytest.skip("sums of the same features add up")
    for weights, shares in ((None, [0.5, 0.5]), ([3.0, 1.0], [0.75, 0.25])):
        merged = kl.merge(models[:2], weights)
        assert_mean(merged, models[:2], shares)
        assert merged.t_ == 2 * ROWS
        assert merged.n_support_ <= merged.n_stored_ <= bound(merged)


@pytest.mark.parametrize(("cls", "case"), ALL)
def test_merging_a_model_with_itself_gives_it_back(cls, case):
    model = parts_of(cls, case)[0]
    merged = kl.merge([model, model])
    if cls.learner.name != "polk":  # which prunes again, by its own eps
        assert merged.n_stored_ == model.n_stored_
        assert merged.certificate()["merge_error"] <= 1e-7
    if cls.learner.name not in ADD_UP + MIXTURES:
        assert_mean(merged, [model], [1.0])
    alone = kl.merge([model])
    checks.assert_identical(alone, model)
    assert alone is not model


@pytest.mark.parametrize(("cls", "case"), FIRST)
def test_the_order_of_merging_changes_no_more_than_the_certificates_say(cls, case):
    a, b, c = parts_of(cls, case)
    left, right = kl.merge([kl.merge([a, b]), c]), kl.merge([a, kl.merge([b, c])])
    turned = kl.merge([c, b, a])
    assert left.t_ == right.t_ == turned.t_ == 3 * ROWS
    if is_no_mean(cls, case):
        return  # windows keep the latest events of both, which depend on the order
    for one, other in ((left, right), (left, turned)):
        error = one.certificate()["merge_error"] + other.certificate()["merge_error"]
        apart = np.abs(outputs(one) - outputs(other))
        assert (apart <= error * (reach(one) if len(apart) == len(PROBES) else 1.0) + 1e-8).all()


@pytest.mark.parametrize(("cls", "case"), FIRST)
def test_the_merged_model_goes_on_learning_within_its_bound(cls, case, tmp_path):
    models = parts_of(cls, case)
    before = [checks.state_of(model) for model in models]
    merged = kl.merge(models)
    kl.save(merged, tmp_path / "model.kern")
    loaded = kl.load(tmp_path / "model.kern")
    assert loaded.certificate() == merged.certificate()
    X, y = rows(case, 7)
    for model in (merged, loaded):
        checks.learn(model, X, y)
        model.learn_one(X[0], y[0])
    checks.assert_identical(merged, loaded)
    assert checks.events_seen(merged) == 4 * ROWS + 1
    assert merged.n_stored_ <= bound(merged)
    assert np.isfinite(outputs(merged)).all()
    assert all(np.isfinite(array).all() for name, array in checks.state_of(merged).items() if not name.endswith("clock"))
    assert "merge_error" not in merged.certificate()
    for model, then in zip(models, before, strict=True):
        now = checks.state_of(model)
        assert all(now[name].tobytes() == then[name].tobytes() for name in now)


@pytest.mark.parametrize(("cls", "case"), FIRST)
def test_what_was_learned_before_a_common_start_counts_once(cls, case):
    start = parts_of(cls, case)[2]
    models = [trained(cls, case, part, start=start) for part in range(2)]
    merged = kl.merge(models, start=start)
    assert merged.t_ == 3 * ROWS
    if cls.learner.name not in ADD_UP and not is_no_mean(cls, case):
        assert_mean(merged, models, [0.5, 0.5])
    state, begun = merged.state_, start.state_
    for name in ("sides", "classes", "moments", "buffers"):
        if hasattr(state, name):
            counted = sum(getattr(model.state_, name).counts - getattr(begun, name).counts for model in models)
            np.testing.assert_allclose(getattr(state, name).counts, getattr(begun, name).counts + counted)
    if hasattr(merged, "_counts") and merged.class_weight == "balanced":
        assert merged._counts.sum() == 3 * ROWS


@pytest.mark.parametrize(("cls", "case"), FIRST)
def test_classes_are_united(cls, case):
    if not hasattr(parts_of(cls, case)[0], "classes_"):
        pytest.skip("no classes")
    known = []
    for part, labels in enumerate(([0, 1], [1, 2])):
        X, y = stream("multiclass", ROWS, seed=part)
        known.append(checks.make(cls, case).partial_fit(X[np.isin(y, labels)], y[np.isin(y, labels)]))
    merged = kl.merge(known)
    np.testing.assert_array_equal(merged.classes_, [0, 1, 2])
    assert [list(model.classes_) for model in known] == [[0, 1], [1, 2]]
    if is_classifier(merged) and not merged.pairwise and cls.learner.name not in ADD_UP and not is_no_mean(cls, case):
        shares = np.array([model.t_ for model in known]) / merged.t_
        (f,), (g,) = (model._scores(PROBES[:1])[0] for model in known)
        error = merged.certificate()["merge_error"] + 1e-9
        expected = shares[0] * np.array([-f, f, 0.0]) / 2 + shares[1] * np.array([0.0, -g, g]) / 2
        np.testing.assert_allclose(merged._scores(PROBES[:1])[0], expected, atol=error)
    X, y = stream("multiclass", ROWS, seed=4)
    merged.partial_fit(X, y)
    np.testing.assert_array_equal(merged.classes_, [0, 1, 2, 3])


@pytest.mark.parametrize(("cls", "case"), FIRST)
def test_setting_the_clock_changes_no_function_and_no_order(cls, case):
    model = kl.merge([parts_of(cls, case)[0]])
    before = kl.merge([model])
    model._state = at_time(model.learner.merge, model._setup, model._params, model._state, 60.0)
    assert model.t_ == 60
    for function in (outputs, current) if not hasattr(model, "weights_") else (outputs,):
        np.testing.assert_allclose(function(model), function(before), rtol=1e-10, atol=1e-12)
    if model.n_stored_:
        tags, old = model.state_.model.tags, before.state_.model.tags[:, : before.n_stored_]
        np.testing.assert_array_equal(tags == 0.0, old == 0.0)
        np.testing.assert_array_equal(np.argsort(tags, kind="stable"), np.argsort(old, kind="stable"))
    X, y = rows(case, 6)
    checks.learn(model, X, y)
    assert checks.events_seen(model) == 60 + ROWS
    assert model.n_stored_ <= bound(before) + ROWS
    assert np.isfinite(outputs(model)).all()


# ---------------------------------------------------------------------- facts about particular methods


def expansion_norm(model, points, coef) -> float:
    values = kl.kernel(model.kernel, model.gamma_)(points, points)
    return float(np.sqrt(max(0.0, np.trace(coef.T @ values @ coef))))


def terms(model) -> tuple[np.ndarray, np.ndarray]:
    return model.support_vectors_, model.dual_coef_.reshape(model.n_support_, -1)


@pytest.mark.parametrize("learner", ["avm", "bsgd", "polk"])
def test_the_certificate_is_the_distance_itself_for_two_models(learner):
    params = {
        "avm": dict(gamma=1.0, delta=0.8, lam=1e-2, output="last"),
        "bsgd": dict(gamma=1.0, budget=12, lam=1e-2),
        "polk": dict(gamma=1.0, eta=1.0, parsimony=0.1, batch_size=16),
    }[learner]
    cls = next(cls for cls in checks.estimators() if cls.learner.name == learner and is_classifier(cls()))
    models = [cls(**params).fit(*stream("multiclass", ROWS, seed=seed)) for seed in range(2)]
    merged = kl.merge(models)
    points = np.vstack([merged.support_vectors_, *(model.support_vectors_ for model in models)])
    coef = np.vstack([terms(merged)[1], *(-0.5 * terms(model)[1] for model in models)])
    distance = expansion_norm(merged, points, coef)
    error = merged.certificate()["merge_error"]
    assert error == pytest.approx(distance, rel=1e-6)
    assert error > 1e-3  # something was approximated
    if learner == "polk":
        assert error <= 0.1 * 1.0**1.5


def test_the_error_of_a_merged_model_remains_when_it_merges_again():
    models = [kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3).fit(*stream("binary", 300, seed=n)) for n in range(2)]
    once = kl.merge(models)
    error = once.certificate()["merge_error"]
    assert error > 0.0
    assert kl.merge([once, once]).certificate()["merge_error"] == pytest.approx(error)  # which itself costs nothing
    assert kl.merge([once, models[0]], [3.0, 1.0]).certificate()["merge_error"] > 0.75 * error


def test_classes_are_counted_once_and_votes_are_means():
    X, y = stream("binary", 900)
    make = lambda: kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3, output="auto", class_weight="balanced")  # noqa: E731
    start = make().fit(X[:300], y[:300])
    one, other = (kl.merge([start]).partial_fit(X[rows], y[rows]) for rows in (slice(300, 400), slice(400, 900)))
    merged = kl.merge([one, other], start=start)
    np.testing.assert_array_equal(merged._counts, [(y == 0).sum(), (y == 1).sum()])
    votes = [model.state_.model.votes for model in (merged, one, other)]
    assert np.abs(votes[1] - votes[2]).max() > 1e-3
    np.testing.assert_allclose(votes[0], (votes[1] + 5.0 * votes[2]) / 6.0)


def test_merged_cores_stay_apart_and_cover_all_cores():
    models = [
        kl.AVMClassifier(gamma=1.0, delta=0.7, lam=1e-2, zero_cells=True).fit(*stream("binary", 600, seed=s)) for s in (1, 2)
    ]
    merged = kl.merge(models)
    cores = merged.state_.model.points
    distances = np.linalg.norm(cores[:, None] - cores[None], axis=2) + 9.0 * np.eye(len(cores))
    assert distances.min() >= 0.35 * (1.0 - 1e-6)
    centre = merged.state_.model.centre
    for model in models:
        own = model.state_.model
        points = own.points[: own.stored] + own.centre - centre
        assert np.linalg.norm(points[:, None] - cores[None], axis=2).min(axis=1).max() < 0.35
    assert merged.certificate()["cells"] == len(cores) < sum(model.n_stored_ for model in models)
    assert merged.certificate()["farthest"] <= 0.7
    assert merged.certificate()["delta_phi"] >= models[0].certificate()["delta_phi"]


def test_steps_of_one_over_t_go_on_as_if_one_learner_had_met_all_events():
    """The mean of Pegasos models weighted by their events is the sum of their steps over all events."""
    from kernling.baselines import PegasosClassifier

    models = [PegasosClassifier(gamma=1.0, lam=0.1).fit(*stream("binary", n, seed=n)) for n in (100, 300)]
    merged = kl.merge(models)
    np.testing.assert_allclose(
        merged.t_ * merged.decision_function(PROBES), sum(model.t_ * model.decision_function(PROBES) for model in models)
    )
    x, f = np.array([9.0, 9.0, 9.0]), merged.decision_function(PROBES)
    merged.learn_one(x, 0)  # far from all others
    np.testing.assert_allclose(merged.decision_function(PROBES), f * 400 / 401)
    assert merged.score_one(x) == pytest.approx(-1.0 / (0.1 * 401))


def test_steps_that_are_limited_go_on_as_if_one_learner_had_met_all_events():
    """By default no step of AVM is larger than eta, as if 1 / (eta lam) events had come before the first."""
    models = [kl.AVMClassifier(gamma=1.0, delta=0.3, output="last").fit(*stream("binary", n, seed=n)) for n in (100, 300)]
    merged = kl.merge(models)
    earlier = 1.0 / (merged.eta * merged.lam) - 1.0
    assert earlier > 1000.0
    f = merged.decision_function(PROBES)
    merged.learn_one(np.array([9.0, 9.0, 9.0]), 0)  # far from all others
    np.testing.assert_allclose(merged.decision_function(PROBES), f * (400 + earlier) / (401 + earlier))
    assert merged.score_one(np.array([9.0, 9.0, 9.0])) == pytest.approx(-1.0 / (merged.lam * (401 + earlier)))


def test_going_on_does_not_harm():
    X, y = stream("binary", 8000, seed=3)
    test = stream("binary", 2000, seed=4)
    for params in (dict(output="last"), dict(output="average"), dict(output="suffix", suffix=0.5)):
        make = lambda: kl.AVMClassifier(gamma=1.0, delta=0.5, lam=1e-3, **params)  # noqa: E731, B023
        whole = make().fit(X, y).score(*test)
        merged = kl.merge([make().fit(X[i : i + 1000], y[i : i + 1000]) for i in range(0, 4000, 1000)])
        before = merged.score(*test)
        after = merged.partial_fit(X[4000:], y[4000:]).score(*test)
        assert after >= before - 0.01
        assert after >= whole - 0.015


def test_a_suffix_stays_within_its_spread_after_merging():
    fraction = 0.5
    make = lambda: kl.AVMClassifier(gamma=1.0, delta=0.8, lam=1e-2, output="suffix", suffix=fraction)  # noqa: E731
    merged = kl.merge([make().partial_fit(*stream("binary", 500, seed=s)) for s in range(3)])
    X, y = stream("binary", 6000, seed=9)
    for first in range(0, len(X), 250):
        share = averages.averaged_share(merged.state_.model, averages.SUFFIX, fraction)
        assert fraction - 1e-3 <= share <= averages.SPREAD * fraction + 2e-3
        merged.partial_fit(X[first : first + 250], y[first : first + 250])


def test_methods_that_never_forget_can_be_given_a_budget():
    models = [kl.SPAClassifier(gamma=1.0, random_state=0).fit(*stream("binary", 500, seed=s)) for s in range(2)]
    whole, short = kl.merge(models), kl.merge(models, budget=20)
    assert whole.n_stored_ == sum(model.n_stored_ for model in models)
    assert whole.certificate()["merge_error"] == 0.0
    assert short.n_stored_ == 20
    error = short.certificate()["merge_error"]
    apart = np.abs(short.decision_function(PROBES) - whole.decision_function(PROBES))
    assert 0.0 < apart.max() <= error < expansion_norm(whole, *terms(whole))


def test_class_means_and_counts_of_aogd_are_those_of_all_events():
    X, y = stream("binary", 900, seed=2)
    make = lambda: kl.AOGDClassifier(gamma=1.0, random_state=0, n_components=20)  # noqa: E731
    whole = make().partial_fit(X, y, classes=[0, 1]).state_.sides
    start = make().partial_fit(X[:300], y[:300], classes=[0, 1])
    models = [kl.merge([start]).partial_fit(X[i : i + 300], y[i : i + 300]) for i in (300, 600)]
    merged = kl.merge(models, start=start).state_.sides
    np.testing.assert_array_equal(merged.counts, whole.counts)
    np.testing.assert_allclose(merged.means, whole.means, atol=1e-12)


def test_a_ball_keeps_its_norms():
    models = [kl.SPAOneClass(gamma=0.5, radius=0.6, random_state=s).fit(stream("oneclass", 300, seed=s)[0]) for s in range(2)]
    merged = kl.merge(models)
    assert merged._squared_norm() == pytest.approx(expansion_norm(merged, *terms(merged)) ** 2)


# ---------------------------------------------------------------------- what cannot merge


X, Y = stream("binary", 100)
DIFFERENT = [
    (lambda: kl.AVMClassifier(gamma=2.0, delta=1.0).fit(X, Y), "gamma: 2.0 and 1.0"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=1.0, kernel="cauchy").fit(X, Y), "kernel: 'cauchy' and 'rbf'"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=2.0).fit(X, Y), "delta: 2.0 and 1.0"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=1.0, output="average").fit(X, Y), "output"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=1.0, dtype="float32").fit(X, Y), "dtype"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X[:, :2], Y), "number of columns: 2 and 3"),
    (lambda: kl.POLKClassifier(gamma=1.0).fit(X, Y), "POLKClassifier, but models.0. is a AVMClassifier"),
    (lambda: kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, Y.astype(str)), "labels of type"),
]


@pytest.mark.parametrize(("other", "message"), DIFFERENT)
def test_a_difference_is_named(other, message):
    with pytest.raises(ValueError, match=message):
        kl.merge([kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, Y), other()])


def test_parameters_from_the_data_are_named_with_their_cure():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [kl.AVMClassifier(delta=1.0).fit(scale * X, Y) for scale in (1.0, 3.0)]
    with pytest.raises(ValueError, match=r"models\[1\] differs from models\[0\] in gamma: .*gamma='scale'; set it to a number"):
        kl.merge(models)


def test_other_frequencies_name_the_seed():
    from kernling.baselines import FOGDClassifier

    models = [FOGDClassifier(gamma=1.0, random_state=seed).fit(X, Y) for seed in range(2)]
    with pytest.raises(ValueError, match="random frequencies: give all models the same random_state"):
        kl.merge(models)


def test_names_of_columns_must_agree():
    import pandas

    frames = [pandas.DataFrame(X, columns=list(names)) for names in ("abc", "acb")]
    with pytest.raises(ValueError, match="names of columns: 'c' and 'b'"):
        kl.merge([kl.AVMClassifier(gamma=1.0, delta=1.0).fit(frame, Y) for frame in frames])


@pytest.mark.parametrize(
    ("models", "weights", "message"),
    [
        ([], None, "models is empty"),
        ([1], [1.0, 2.0], r"weights has shape \(2,\), but there are 1 models"),
        ([1, 1], [-1.0, 2.0], "not negative"),
        ([1, 1], [0.0, 0.0], "not all zero"),
    ],
)
def test_bad_calls(models, weights, message):
    model = kl.AVMClassifier(gamma=1.0, delta=1.0).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        kl.merge([model for _ in models], weights)


def test_every_part_of_every_state_can_merge():
    """A new method that declares nothing about a bare array or a part of its own is found here."""
    for cls in checks.estimators():
        state = parts_of(cls, CASES[cls.__name__][0])[0].state_
        for name, part in zip(state._fields, state, strict=True):
            known = isinstance(part, (Expansion, Linear)) or hasattr(part, "merged")
            assert known or name in cls.learner.merge.arrays, f"{cls.__name__}.{name}"


# ---------------------------------------------------------------------- the functions of an expansion, and back


def random_columns(kind, groups, marks, points=5):
    """An expansion with points and without functions, and functions for it."""
    rng = np.random.default_rng(0)
    model = new_expansion(2, 3, np.float64, groups=groups, marks=marks)
    model = model._replace(points=rng.normal(size=(points, 2)), norms=np.zeros(points), coef=np.zeros((groups, 3, points)))
    functions = {averages.LAST: 1, averages.AVERAGE: 2, rules.PERIOD: 3}.get(kind.output, 3 + max(0, marks - 2))
    return model, rng.normal(size=(functions, 3, points))


@pytest.mark.parametrize("events", [40.0, 43.0])
@pytest.mark.parametrize("delay", [0.0, 7.0])
@pytest.mark.parametrize("output", [averages.LAST, averages.AVERAGE, averages.SUFFIX, rules.PERIOD])
def test_functions_that_are_written_are_read_again(output, delay, events):
    """In the middle of a period, and where a snapshot would be due when the suffix begins: a quarter of 40 events."""
    fraction = 0.75 if output == averages.SUFFIX else 1.0
    marks = averages.snapshot_count(averages.SUFFIX, fraction) if output == averages.SUFFIX else 0
    kind = rules.Kind(output, fraction, output != rules.PERIOD, delay, 12)  # steps within a period are constant
    model, columns = random_columns(kind, {averages.LAST: 1, rules.PERIOD: 3}.get(output, 2 + marks), marks)
    again = rules._columns(rules._with_columns(model, kind, columns, events), kind)
    np.testing.assert_allclose(again[:3], columns[:3], rtol=1e-9)


def test_sums_between_snapshots_are_interpolated():
    rng = np.random.default_rng(0)
    marks, events = np.array([6.0, -1.0, 2.0, 12.0]), 10.0  # the last one is later than all events
    model = new_expansion(2, 3, np.float64, groups=6, marks=4)
    coef, mean = rng.normal(size=(6, 3, 5)), rng.normal(size=(3, 5))
    model.clock[EVENTS] = events
    model = model._replace(coef=coef, marks=marks)
    for share in (0.1, 0.2, 0.3, 0.5, 0.6, 0.9):
        sums = [np.zeros_like(mean), coef[4] / events, coef[2] / events, mean]
        expected = [np.interp(share, [0.0, 0.2, 0.6, 1.0], values) for values in np.reshape(sums, (4, -1)).T]
        np.testing.assert_allclose(rules._sum_until(model, share, mean).ravel(), expected, rtol=1e-12)


def test_setting_the_clock_sets_the_steps_of_polk():
    model = kl.POLKClassifier(gamma=1.0, batch_size=8).fit(*stream("binary", 160))
    steps = model.state_.stats[STEPS]
    later = at_time(model.learner.merge, model._setup, model._params, model._state, 480.0)
    assert steps == 20.0
    assert later.stats[STEPS] == 60.0
    np.testing.assert_array_equal(np.delete(later.stats, STEPS), np.delete(model.state_.stats, STEPS))
