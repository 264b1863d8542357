"""Single events and small batches take short cuts, and give the same as rows that do not."""

import copy

import numpy as np
import pytest

import checks
import kernling
from kernling.core.limits import Diverged
from oracles import stream

METHODS = [kernling.AVMClassifier, kernling.SPAClassifier, kernling.DualSVRGClassifier, kernling.AOGDClassifier]
X, Y = stream("binary", 300)


def fitted(cls, **options):
    return cls(**{"gamma": 1.0, "random_state": 0} | options).partial_fit(X[:200], Y[:200])


@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)
def test_small_batches_are_learned_as_any_rows(cls):
    quick, careful = fitted(cls), fitted(cls)
    for first in range(200, 300, 20):
        part = slice(first, first + 20)
        assert quick._learn_plain(X[part], Y[part])
        careful.partial_fit(X[part], Y[part], sample_weight=np.ones(20))
    assert quick._rng.bit_generator.state == careful._rng.bit_generator.state
    np.testing.assert_allclose(checks.scores(quick, X), checks.scores(careful, X), atol=1e-9)


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_single_events_draw_the_same_numbers(shared):
    model = fitted(kernling.SPAClassifier, random_state=np.random.default_rng(0) if shared else 0)
    twin = copy.deepcopy(model)
    for x, label in zip(X[200:], Y[200:], strict=True):
        model.learn_one(x, label)
        with pytest.raises(ValueError, match="NaN"):
            model.learn_one(np.full_like(x, np.nan), label)
        twin.partial_fit(x[np.newaxis], [label], sample_weight=[1.0])
    assert model._rng.bit_generator.state == twin._rng.bit_generator.state
    np.testing.assert_allclose(checks.scores(model, X), checks.scores(twin, X), atol=1e-9)


def test_rows_with_gaps_and_other_types():
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    model, twin = fitted(kernling.AVMClassifier), fitted(kernling.AVMClassifier)
    for i in range(200, 250):
        model.learn_one(wide[i], Y[i])
        twin.learn_one(X[i].tolist(), Y[i])
        assert model.score_one(wide[i]) == twin.score_one(X[i])
    checks.assert_identical(model, twin)


@pytest.mark.parametrize("rows", [32, 1], ids=["batch", "event"])
def test_a_batch_that_diverges_changes_nothing(rows):
    options = {"features": "linear", "loss": "squared", "eta": 2.0, "second_eta": 2.0, "random_state": 0}
    model = kernling.AOGDClassifier(**options).partial_fit(X[:4], Y[:4], classes=np.unique(Y))

    def learn(first):
        if rows == 1:
            model.learn_one(X[first], Y[first])
        else:
            model.partial_fit(X[first : first + rows], Y[first : first + rows])

    for first in list(range(0, 300 - rows, rows)) * 20:
        before = copy.deepcopy(model)
        try:
            learn(first)
        except Diverged:
            break
    else:
        pytest.fail("it never diverges")
    checks.assert_identical(model, before)


def test_a_copy_of_a_pipeline_does_not_see_later_events():
    rows = [dict(zip("abc", row, strict=False)) for row in X[:, :3].tolist()]
    pipeline = kernling.StreamPipeline.auto(kernling.AVMClassifier(gamma=1.0)).partial_fit(rows[:100], Y[:100])
    pipeline.learn_one(rows[100], Y[100])
    encode = pipeline.steps_[0][1]
    held, state = copy.copy(encode), encode.to_state()
    mean = encode.scale_.mean_.copy()
    pipeline.learn_one(rows[101], Y[101])
    assert held.to_state() == state
    assert not np.array_equal(encode.scale_.mean_, mean)
