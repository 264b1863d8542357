"""Intervals and sets: errors before learning, whatever the chunks; how many targets are inside; files, copies and pipelines."""

import copy
import math
import pickle

import numpy as np
import pytest

import kernling as kl
from commands import call
from forgery import refuse_change
from kernling.components.conformal import LEVELS, follow, levels, new_errors
from kernling.estimators.calibrated import losses_of
from kernling.estimators.labels import decide
from oracles.conformal import Thresholds

RNG = np.random.default_rng(5)
X = RNG.normal(size=(900, 3))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=900)
LABELS = np.digitize(Y, [-0.6, 0.6])
REGRESSORS = [
    kl.AVMRegressor(gamma=0.5, delta=0.5, calibrate=True),
    kl.SPARegressor(gamma=0.5, random_state=0, calibrate=True),
    kl.POLKRegressor(gamma=0.5, standardise_target=False, calibrate=True),
    kl.DualSVRGRegressor(gamma=0.5, theta=1.0, random_state=0, calibrate=True),
    kl.KRLSRegressor(gamma=0.5, calibrate=True),
    kl.AutoRegressor(calibrate=True),
]
CLASSIFIERS = [
    kl.AVMClassifier(gamma=0.5, delta=0.5, calibrate=True),
    kl.AOGDClassifier(gamma=0.5, calibrate=True, random_state=0),
    kl.DualSVRGClassifier(gamma=0.5, theta=1.0, random_state=0, calibrate=True),
    kl.AutoClassifier(calibrate=True, class_weight="balanced"),
]


def named(model):
    return type(model).__name__


def new(model, **changes):
    return type(model)(**model.get_params() | changes)


def same_errors(a, b, digits=6):
    for name, own, other in zip(a._errors._fields, a._errors, b._errors, strict=True):
        np.testing.assert_allclose(own, other, rtol=10.0**-digits, atol=10.0**-digits, err_msg=name)


SEQUENCES = {
    "plain": lambda rng: (rng.normal(size=1200), np.abs(rng.normal(size=1200))),
    "larger with the prediction": lambda rng: (said := rng.gamma(2.0, size=1200), said * np.abs(rng.standard_t(2, size=1200))),
    "zeros, then a change": lambda rng: (np.zeros(1200), np.repeat([0.0, 1.0, 0.0, 30.0], 300)),
    "ties": lambda rng: (rng.integers(0, 3, 1200) * 1.0, rng.integers(0, 4, 1200) * 1.0),
}


@pytest.mark.parametrize("of_values", [True, False])
@pytest.mark.parametrize("kind", SEQUENCES)
def test_thresholds_are_those_of_the_definition(kind, of_values):
    said, found = SEQUENCES[kind](np.random.default_rng(3))
    slow, fast = Thresholds(of_values), new_errors(of_values)
    thresholds, later = np.empty((1200, 5)), np.empty((1, 5))
    follow(fast, levels(), said[:700], found[:700], thresholds[:700])
    follow(fast, levels(), said[700:], found[700:], thresholds[700:])
    expected = np.empty((1200, 5))
    for t in range(1200):
        expected[t] = [slow.threshold(said[t], level) for level in LEVELS]
        slow.learn(said[t], found[t])
    np.testing.assert_allclose(thresholds, expected, rtol=1e-8, atol=1e-10)
    before = copy.deepcopy(fast)
    follow(fast, levels(), said[:1], np.empty(0), later)  # without errors, nothing is learned
    np.testing.assert_allclose(later[0], [slow.threshold(said[0], level) for level in LEVELS], rtol=1e-8, atol=1e-10)
    assert all(np.array_equal(a, b) for a, b in zip(before, fast, strict=True))
    fast.check({})


@pytest.mark.parametrize("model", REGRESSORS, ids=named)
def test_regressors_follow_the_errors_before_learning(model):
    whole, parts, slow = new(model), new(model), Thresholds(of_values=True)
    weights = (np.arange(900) % 7 > 0) * 1.0
    said = whole.predict_then_learn(X, Y, sample_weight=weights)
    parts.partial_fit(X[:3], Y[:3], sample_weight=weights[:3])
    for place in range(3, 40):
        parts.learn_one(X[place], Y[place], weights[place])
    for place in range(40, 60):
        parts.predict_then_learn_one(X[place], Y[place], sample_weight=weights[place])
    for first, last in ((60, 300), (300, 307), (307, 900)):
        parts.partial_fit(X[first:last], Y[first:last], sample_weight=weights[first:last])
    same_errors(whole, parts)
    inside = widths = 0.0
    for t in np.flatnonzero(weights):
        half = slow.threshold(said[t], 0.9)
        if slow.errors:
            inside, widths = inside + (abs(Y[t] - said[t]) <= half), widths + 2.0 * half
        slow.learn(said[t], abs(Y[t] - said[t]))
    assert whole.calibration_[0.9] == pytest.approx((inside / (len(slow.said) - 1), widths / (len(slow.said) - 1)), rel=1e-6)
    limits = whole.predict_interval(X[:5], 0.9)
    middle = whole.predict(X[:5])
    assert limits == pytest.approx(
        np.array([[one - slow.threshold(one, 0.9), one + slow.threshold(one, 0.9)] for one in middle]), rel=1e-6
    )
    assert whole.predict_interval_one(X[0]) == pytest.approx(tuple(limits[0]))
    between = whole.predict_interval(X[:5], 0.85)
    assert (np.diff(whole.predict_interval(X[:5], 0.8)) <= np.diff(between)).all()
    assert (np.diff(between) <= np.diff(limits)).all()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_follow_the_losses_before_learning(model, classes):
    y = LABELS if classes == 3 else LABELS > 1
    whole, parts, slow = new(model), new(model), Thresholds(of_values=False)
    segments = whole.predict_then_learn(X, y, method="segments")
    parts.partial_fit(X[:3], y[:3])
    for place in range(3, 20):
        parts.learn_one(X[place], y[place])
    for place in range(20, 40):
        parts.predict_then_learn_one(X[place], y[place])
    for first, last in ((40, 300), (300, 307), (307, 900)):
        parts.partial_fit(X[first:last], y[first:last])
    same_errors(whole, parts)
    t, inside, sizes, met = 0, 0, 0, set()
    for known, scores in segments:
        for losses, best in zip(losses_of(scores, len(known)), decide(known, scores), strict=True):
            place = known.tolist().index(y[t])
            own = losses[place] if t == 0 or y[t] in met else math.inf
            chosen = (losses <= slow.threshold(0.0, 0.9)) | (known == best)
            if t > 0:
                inside += bool(chosen[place]) and y[t] in met
                sizes += int(chosen.sum())
            slow.learn(0.0, own)
            met.add(y[t])
            t += 1
    assert whole.calibration_[0.9] == pytest.approx((inside / 899, sizes / 899))
    sets = whole.predict_set(X, 0.9)
    assert sets.shape == (900, classes)
    assert sets[np.arange(900), np.searchsorted(whole.classes_, whole.predict(X))].all()
    assert (sets <= whole.predict_set(X, 0.99)).all()


def test_intervals_contain_their_share_through_changes():
    """Within 1 point overall and 4 in every 2,000 events, while the rule, the noise and the units of the target change."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(16_000, 3))
    y = np.where(np.arange(16_000) < 6000, X[:, 0] * X[:, 1], 40.0 * X[:, 2] ** 2)
    y += np.where(np.arange(16_000) < 11_000, 0.3, 8.0) * rng.normal(size=16_000)
    model = kl.AVMRegressor(gamma=0.5, delta=0.5, calibrate=True)
    inside = {level: [] for level in (0.8, 0.9, 0.95)}
    for first in range(0, 16_000, 20):
        rows = slice(first, first + 20)
        if first:
            for level, found in inside.items():
                low, high = model.predict_interval(X[rows], level).T
                found.append((low <= y[rows]) & (y[rows] <= high))
        model.partial_fit(X[rows], y[rows])
    for level, found in inside.items():
        each = np.concatenate(found)
        assert each.mean() == pytest.approx(level, abs=0.01)
        for start in range(0, 15_980, 2000):
            assert each[start : start + 2000].mean() == pytest.approx(level, abs=0.04)


def test_the_first_pass_of_fit_counts():
    once, twice = (kl.AVMRegressor(gamma=0.5, delta=0.5, passes=n, calibrate=True).fit(X, Y) for n in (1, 3))
    same_errors(once, twice)
    assert once.calibration_[0.9].inside == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("model", [REGRESSORS[0], CLASSIFIERS[0]], ids=named)
def test_saved_pickled_and_merged(model, folder):
    y = Y if model.task == "regression" else LABELS
    first, last = new(model).partial_fit(X[:500], y[:500]), new(model).partial_fit(X[500:], y[500:])
    kl.save(first, "m.kern")
    for twin in (kl.load("m.kern"), pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        twin.partial_fit(X[500:], y[500:])
        same_errors(twin, new(model).partial_fit(X[:500], y[:500]).partial_fit(X[500:], y[500:]), digits=12)
    assert kl.merge([first, last]).calibration_ == first.calibration_  # of the one that has seen more


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("errors.ordered", lambda array: array[::-1], "not the latest"),
        ("errors.latest", lambda array: -array, "errors.latest"),
        ("errors.allowed", lambda array: array + 5.0, "errors.allowed"),
        ("errors.record", lambda array: array[:3], "errors.record"),
        ("errors.factors", lambda array: array * np.nan, "errors.factors"),
        ("errors.factors", lambda array: array + 1e300, "errors.factors"),  # intervals would be infinite
        ("errors.record", lambda array: array - [0.0, 0.0, 0.0, 1e300, 0.0], "errors.record"),
        ("errors.record", lambda array: array * [1.0, 1.0, 1e-300, 1.0, 1.0], "errors without weight"),
        ("errors.tally", lambda array: None, "errors.tally is missing"),
    ],
)
def test_files_with_other_errors_are_refused(folder, name, change, told):
    refuse_change(new(REGRESSORS[0]).partial_fit(X, Y), name, change, told, folder / "m.kern")


def test_a_call_that_fails_follows_nothing():
    model = new(REGRESSORS[0]).partial_fit(X, Y)
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 3), np.nan), Y[:5])
    same_errors(model, before, digits=15)


def test_what_is_asked_for_too_early_or_in_vain_is_told():
    plain = kl.AVMRegressor(gamma=0.5).partial_fit(X, Y)
    assert not hasattr(plain, "predict_interval")
    assert not hasattr(plain, "calibration_")
    for without in (plain, kl.StreamPipeline([("model", plain)])):
        with pytest.raises(AttributeError, match="calibrate=True"):
            without.predict_interval(X)
    with pytest.raises(AttributeError, match="calibrate=True"):
        _ = plain.calibration_
    model = kl.AVMRegressor(gamma=0.5, calibrate=True)
    assert model.predict_interval_one(X[0]) is None
    model.partial_fit(X[:1], Y[:1])
    assert math.isnan(model.calibration_[0.9].inside)
    model.partial_fit(X, Y)
    for coverage in (0.3, 0.999, 90, "much", math.nan):
        with pytest.raises(ValueError, match=r"from 0.5 to 0.99"):
            model.predict_interval(X, coverage)


def test_pipelines_and_dictionaries():
    rows = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
    model = kl.StreamPipeline.auto(kl.AVMRegressor(gamma=0.5, delta=0.5, calibrate=True))
    model.partial_fit(rows[:500], Y[:500])
    for row, target in zip(rows[500:600], Y[500:600], strict=True):
        model.learn_one(row, target)
    limits = model.predict_interval(rows[:3], 0.8)
    assert model.predict_interval_one(rows[0], 0.8) == pytest.approx(tuple(limits[0]))
    assert model.calibration_[0.8].inside == pytest.approx(0.8, abs=0.03)
    other = kl.StreamPipeline.auto(kl.AVMClassifier(gamma=0.5, delta=0.5, calibrate=True)).partial_fit(rows, LABELS)
    assert other.predict_set(rows[:4]).shape == (4, 3)
    assert not hasattr(other, "predict_interval")
    chosen = kl.StreamPipeline.auto(calibrate=True, watch=True).partial_fit(rows, Y)  # the model is chosen later
    assert chosen.predict_interval(rows[:4]).shape == (4, 2)
    assert chosen.alarm_count_ == 0
    assert kl.StreamPipeline.auto(kl.AVMRegressor(calibrate=True), watch=True).steps[-1][1].calibrate


def test_the_command_line_tells_how_many_targets_were_inside(folder):
    lines = "a,b,c,y\n" + "".join(f"{a},{b},{c},{t}\n" for (a, b, c), t in zip(X, Y, strict=True))
    (folder / "t.csv").write_text(lines)
    learner = ("--learner", "avm", "--target", "y")
    shown = call("run", "t.csv", *learner, "--interval", "0.9", "--save", "m.kern").output
    model = kl.load("m.kern")
    inside, size = model.calibration_[0.9]
    assert f"90% intervals: {inside:.1%} of the targets inside, mean width {size:.4g}" in shown
    (folder / "u.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b, _), c in zip(X, LABELS, strict=True)))
    shown = call("run", "u.csv", *learner, "--interval", "0.8", "--save", "sets.kern").output
    inside, size = kl.load("sets.kern").calibration_[0.8]
    assert f"80% sets: {inside:.1%} of the targets inside, {size:.2f} labels on average" in shown
    assert "train a regressor" in call("predict", "sets.kern", "u.csv", "--interval", "0.9", code=1).output
    assert "must be one of" in call("run", "t.csv", *learner, "--interval", "0.7", code=2).output
    limits = call("predict", "m.kern", "t.csv", "--interval", "0.9").stdout.splitlines()
    low, high = map(float, limits[0].split(","))
    table = {name: X[:1, place] for place, name in enumerate("abc")}
    assert [[low, high]] == pytest.approx(model.predict_interval(table))
    call("run", "t.csv", *learner, "--save", "plain.kern")
    assert "no intervals" in call("run", "t.csv", "--resume", "plain.kern", "--interval", "0.9", code=1).output
    assert "calibrate=true" in call("predict", "plain.kern", "t.csv", "--interval", "0.9", code=1).output
