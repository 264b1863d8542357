"""Targets are learned on their running scale: units change nothing."""

import numpy as np
import pytest

import kernling
from kernling.estimators.target_scale import TargetScale, merged_scale

RNG = np.random.default_rng(4)
X = RNG.normal(size=(800, 3))
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=800)
LEARNED = {  # the largest error on new rows, in standard deviations of the targets, and the lowest score on learned rows
    kernling.AVMRegressor(gamma=0.5, delta=0.5): (0.4, 0.8),
    kernling.SPARegressor(gamma=0.5, output="average", random_state=0): (0.32, 0.9),
    kernling.POLKRegressor(gamma=0.5): (0.45, 0.8),
    kernling.DualSVRGRegressor(gamma=0.5, theta=1.0, random_state=0): (0.5, 0.7),
    kernling.KRLSRegressor(gamma=0.5, random_state=0): (0.25, 0.95),
}
METHODS = list(LEARNED)


def new(model, **changes):
    return type(model)(**model.get_params() | changes)


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_units_change_nothing(model):
    shift, unit = 4e6, 3e4
    error, score = LEARNED[model]
    plain, large = new(model), new(model)
    said, meant = plain.predict_then_learn(X, Y), large.predict_then_learn(X, shift + unit * Y)
    np.testing.assert_allclose(meant[1:], shift + unit * said[1:], atol=1e-4 * unit)
    np.testing.assert_allclose(large.predict(X), shift + unit * plain.predict(X), atol=1e-4 * unit)
    assert large.predict_one(X[0]) == pytest.approx(large.predict(X[:1])[0])
    assert np.sqrt(np.mean((meant[400:] - shift - unit * Y[400:]) ** 2)) < error * unit * np.std(Y[400:])
    fitted = new(model).fit(X, shift + unit * Y)
    assert fitted.score(X, shift + unit * Y) > score
    assert fitted.target_mean_ == pytest.approx(shift + unit * Y.mean())
    assert fitted.target_spread_ == pytest.approx(unit * Y.std())


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_models_of_targets_on_different_scales_merge(model):
    """The mean of what both say, in the targets' units; kernel least squares is more than that."""
    parts = [new(model).fit(X[half], Y[half] + far) for half, far in ((slice(400), 100.0), (slice(400, None), 130.0))]
    merged = kernling.merge(parts)
    mean = np.mean([part.predict(X) for part in parts], axis=0)
    allowed = merged.certificate()["merge_error"] + 1e-6
    if isinstance(model, kernling.KRLSRegressor):
        allowed = 2.0
    assert np.abs(merged.predict(X) - mean).max() <= allowed
    assert merged.target_mean_ == pytest.approx(115.0 + Y.mean(), abs=0.1)


def test_kernel_least_squares_on_features_merges_to_that_of_all_rows():
    options = {"gamma": 0.5, "features": "linear", "random_state": 0}
    whole = kernling.KRLSRegressor(**options).fit(X, 1e4 + 1e3 * Y)
    parts = [kernling.KRLSRegressor(**options).fit(X[half], (1e4 + 1e3 * Y)[half]) for half in (slice(300), slice(300, None))]
    np.testing.assert_allclose(kernling.merge(parts).predict(X), whole.predict(X), rtol=1e-4)


def test_targets_that_are_all_the_same():
    model = kernling.AVMRegressor().fit(X, np.full(800, 7e5))
    assert model.predict(X[:3]).tolist() == [7e5] * 3
    assert kernling.AVMRegressor().learn_one(X[0], 12.0).predict_one(X[1]) == 12.0


def test_as_published():
    model = kernling.AVMRegressor(standardise_target=False).fit(X, Y)
    assert (model.target_mean_, model.target_spread_) == (0.0, 1.0)


def test_a_scale_is_that_of_the_targets_before():
    counts = np.arange(800) % 7 > 0
    scale, scaled, means, spreads = TargetScale().learned(Y, counts.astype(float))
    kept, before = Y[counts], Y[:100][counts[:100]]
    assert scale == pytest.approx((len(kept), kept.mean(), len(kept) * kept.var()))
    assert (means[100], spreads[100]) == pytest.approx((before.mean(), before.std()))
    now = np.append(before, Y[100])
    assert scaled[100] == pytest.approx((Y[100] - now.mean()) / now.std())
    halves = [TargetScale().learned(part, np.ones(len(part)))[0] for part in (Y[:200], Y[200:])]
    assert merged_scale(halves, np.array([0.25, 0.75])) == pytest.approx((800, Y.mean(), 800 * Y.var()))
    one = TargetScale()
    for value in Y[:50]:
        one = one.with_one(value)
    assert one == pytest.approx((50, Y[:50].mean(), 50 * Y[:50].var()))
    for forged in ([1.0, 0.0, -1.0], [np.inf, 0.0, 1.0], [1.0, np.nan, 1.0], [1.0, 1e300, 1.0]):
        with pytest.raises(ValueError, match="not a valid scale of targets"):
            TargetScale.from_plain(forged)


def test_rows_of_a_common_start_count_once():
    scales = [TargetScale(100.0, 1.0, 50.0), TargetScale(80.0, 2.0, 40.0), TargetScale(60.0, 0.0, 9.0)]
    assert merged_scale(scales, np.array([0.5, 0.5])).rows == 120.0
