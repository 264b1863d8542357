"""KRLS with ``restart``: alarms, a successor, and who stays; tests/oracles/auto.py has the slow version."""

import signal

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import checks
import forgery
import kernling as kl
from kernling.components import succession
from kernling.driver import events
from kernling.estimators.sizes import size_within
from oracles.auto import Restarting
from oracles.krls import KRLS

PARAMS = {"points": 20, "gamma": 0.5, "restart": True, "block_size": 16, "random_state": 0}


@pytest.fixture
def soon(monkeypatch):
    """Everything happens within a few hundred events."""
    for name, value in {"DELAY": 16, "DECIDE": 32, "YOUNG": 128, "LIFE": 384}.items():
        monkeypatch.setattr(succession, name, value)


def changing(n: int, change: int, kind: str = "binary", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and targets by a rule that becomes another one."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    new = np.arange(n) >= change
    if kind == "regression":
        return X, np.where(new, 2.0 * X[:, 2] ** 2, X[:, 0] + 0.3 * X[:, 1])
    if kind == "multiclass":
        return X, np.digitize(np.where(new, X[:, 1] * X[:, 2], X[:, 0]), [-0.4, 0.4])
    return X, np.where(new, X[:, 1] * X[:, 2] > 0.0, X[:, 0] > 0.3).astype(int)


def estimator(kind: str, **changes):
    params = PARAMS | changes
    return kl.KRLSRegressor(standardise_target=False, **params) if kind == "regression" else kl.KRLSClassifier(**params)


def known(kind: str) -> dict:
    return {} if kind == "regression" else {"classes": range(3 if kind == "multiclass" else 2)}


def scores(model, X) -> np.ndarray:
    return np.atleast_2d(checks.scores(model, X).T).T


def began(model) -> int:
    """The number of events before those that what answers has learned."""
    return model.t_ - int(model.state_.regression.events)


def with_successor(kind: str = "binary", **changes):
    """A model in the middle of a succession, and the events after that."""
    X, y = changing(900, 400, kind)
    model = estimator(kind, **changes).partial_fit(X[:500], y[:500], **known(kind))
    assert model.state_.successor.has_begun
    return model, X[500:], y[500:]


# ---------------------------------------------------------------------- what happens


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("binary", {}),
        ("multiclass", {"points": 40}),  # events wait
        ("regression", {"forget": 300.0}),
        ("regression", {"features": "fourier"}),
    ],
)
def test_a_succession_is_that_of_the_slow_version(kind, changes, soon):
    X, y = changing(800, 330, kind)
    model = estimator(kind, **changes)
    outputs = 3 if kind == "multiclass" else 1
    oracle = Restarting(
        lambda: KRLS(model.get_params(), 3, outputs),
        *(getattr(succession, name) for name in ("DELAY", "DECIDE", "YOUNG", "LIFE")),
        kind == "regression",
    )
    expected = []
    for x, target in zip(X, 2.0 * y - 1.0 if kind == "binary" else y, strict=True):
        expected.append(oracle.scores(x))
        oracle.learn(x, target, 1.0, None)
    given = {} if kind == "regression" else {"method": "decision_function", **known(kind)}
    said = model.predict_then_learn(X, y, **given).reshape(800, -1)
    np.testing.assert_allclose(said, expected, rtol=1e-6, atol=1e-6)
    found = [(alarm.event, alarm.replaced) for alarm in model.rises_]
    assert found == [(row[0], row[3]) for row in oracle.alarms]
    assert any(replaced for _, replaced in found)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_it_becomes_a_model_of_the_events_since_the_alarm(kind, soon):
    """What it says, its deviations and its certificate are those of a new model on these events."""
    X, y = changing(1000, 400, kind)
    model = estimator(kind).partial_fit(X, y, **known(kind))
    begun = began(model)
    assert 400 < begun < 600
    fresh = estimator(kind).partial_fit(X[begun:], y[begun:], **known(kind))
    np.testing.assert_allclose(scores(model, X), scores(fresh, X), rtol=1e-6, atol=1e-6)
    assert model.certificate() == pytest.approx(fresh.certificate(), rel=1e-6)
    assert model.t_ == 1000
    if kind == "regression":
        np.testing.assert_allclose(*(one.predict(X, return_std=True)[1] for one in (model, fresh)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("points", [20, 60])  # events are learned at once, or wait
def test_single_events_chunks_and_one_call_lead_to_the_same_bits(kind, points, soon):
    X, y = changing(800, 350, kind)
    whole, chunks, single = (estimator(kind, points=points, block_size=size) for size in (512, 64, 5))
    whole.partial_fit(X, y, **known(kind))
    for part in np.split(np.arange(800), [3, 200, 351, 403, 600]):
        chunks.partial_fit(X[part], y[part], **known(kind))
    single.partial_fit(X[:1], y[:1], **known(kind))
    for x, target in zip(X[1:], y[1:], strict=True):
        single.learn_one(x, target)
    assert any(alarm.replaced for alarm in whole.rises_)
    for other in (chunks, single):
        checks.assert_identical(whole, other)


@pytest.mark.parametrize("calls", [5, 30, 40])
def test_ctrl_c_leaves_the_model_between_two_events(calls, soon, monkeypatch):
    X, y = changing(800, 350)
    model, straight = estimator("binary"), estimator("binary")
    left = [calls]

    def length(state, setup):
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return setup.block_size

    monkeypatch.setattr(events, "_call_length", length)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y, classes=[0, 1])
    learned = model.t_
    assert 0 < learned < 800
    for one, first in ((model, learned), (straight, 0)):
        one.partial_fit(X[first:], y[first:], classes=[0, 1])
    assert model.rises_
    checks.assert_identical(model, straight)


def test_sparse_rows_are_learned_by_a_successor_as_dense_ones_are(soon):
    X, y = changing(900, 400)
    dense, csr = (estimator("binary").partial_fit(rows, y, classes=[0, 1]) for rows in (X, sparse.csr_array(X)))
    assert [rise.replaced for rise in dense.rises_] == [rise.replaced for rise in csr.rises_] != [None]
    np.testing.assert_allclose(scores(csr, X), scores(dense, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_nothing_happens_on_a_stream_that_stands_still(kind):
    X, y = changing(5000, 5000, kind)
    own, plain = (estimator(kind, restart=restart).partial_fit(X, y, **known(kind)) for restart in (True, False))
    assert own.rises_ == []
    assert scores(own, X).tobytes() == scores(plain, X).tobytes()


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_it_recovers_from_a_change(kind):
    """Within Auto's goal for the first span of benchmarks/changes.py."""
    X, y = changing(9000, 5000, kind, seed=2)
    errors = []
    for restart, first in ((True, 0), (True, 5000), (False, 0)):
        model = estimator(kind, points=100, restart=restart)
        said = model.predict_then_learn(X[first:], y[first:])
        errors.append(np.mean((said - y[first:])[-2000:] ** 2))
    assert errors[0] < 1.3 * errors[1] + 0.005
    assert errors[0] < 0.5 * errors[2]


def test_rises_are_told_in_the_units_of_the_targets():
    X, y = changing(3000, 2500, "regression")
    y = 100.0 * (y + 0.5 * np.random.default_rng(1).normal(size=3000))
    model = kl.KRLSRegressor(**PARAMS)
    errors = (model.predict_then_learn(X, y) - y) ** 2
    (rise,) = model.rises_
    assert 2500 < rise.event < 2600
    assert 0.1 < rise.before / errors[500:2500].mean() < 10.0  # of targets whose variance is about 10,000
    assert 3.0 * rise.before < rise.after < 10.0 * errors[2500:2600].mean()
    with pytest.raises(AttributeError, match="restart=True"):
        _ = kl.KRLSRegressor().fit(X, y).rises_


def test_classes_that_come_while_there_is_a_successor_are_learned_by_both(soon):
    X, y = changing(1500, 500)
    y[800:][X[800:, 0] > 1.0] = 2
    y[1000:][X[1000:, 0] < -1.0] = 3
    late, told = estimator("binary", points=60), estimator("binary", points=60)
    begun = []
    for part in np.array_split(np.arange(1500), 60):
        late.partial_fit(X[part], y[part])
        begun.append(late.state_.successor.has_begun)
    assert begun[32]
    assert (late.predict(X[1300:]) != y[1300:]).mean() < 0.25
    assert told.partial_fit(X, y).rises_ == late.rises_


# ---------------------------------------------------------------------- memory, files, merging


@pytest.mark.parametrize("features", ["points", "fourier"])
def test_memory_for_a_successor_is_there_only_while_there_is_one(features, soon):
    X, y = changing(1800, 400)
    model = estimator("binary", features=features, points=60).partial_fit(X[:300], y[:300])
    first, used = checks.allocated(model), []
    for part in np.array_split(np.arange(300, 1800), 60):
        model.partial_fit(X[part], y[part])
        used.append(checks.allocated(model))
    assert model.rises_
    assert first < max(used) < 2.1 * first
    assert used[-1] == first
    estimate, alone = (size_within(one, 3, 1, 60, 2**30) for one in (model, clone(model).set_params(restart=False)))
    assert 1.8 * alone < estimate < 2.1 * alone  # there may be one


@pytest.mark.parametrize("features", ["points", "fourier", "linear"])
def test_a_model_saved_in_the_middle_goes_on_bit_for_bit(features, soon, tmp_path):
    X, y = changing(1100, 500)
    whole, cut = (estimator("binary", features=features, dtype="float32") for _ in range(2))
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], 1100)
    begun = []
    for part in np.split(np.arange(1100), [400, 560, 620, 640, 700]):
        for model in (whole, cut):
            model.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weights[part])
        begun.append(cut.state_.successor.has_begun)
        kl.save(cut, tmp_path / "cut.kern")
        cut = kl.load(tmp_path / "cut.kern")
    assert any(begun)
    assert whole.rises_ == cut.rises_ != []
    checks.assert_identical(whole, cut)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("successor.model.size", lambda a: a + 1, "shape"),
        ("successor.model.clock", lambda a: -a, "clock"),
        ("successor.whitening.most", lambda a: a + 1, "follows from the parameters"),
        ("successor.whitening.factor", lambda a: -a, "not positive"),
        ("successor.squares.size", lambda a: a[::-1], "squares"),
        ("succession.contest", lambda a: np.full_like(a, 1e300), "contest"),
        ("succession.adwin.counts", lambda a: a + 1, "adwin|detector"),
        ("successor.squares.record", lambda _: None, "missing"),
    ],
)
def test_forged_successors_are_refused(name, change, told, soon, tmp_path):
    forgery.refuse_change(with_successor()[0], f"state.{name}", change, told, tmp_path / "forged.kern")


@pytest.mark.parametrize("ways", [forgery.evil, forgery.misshapen])
def test_whatever_a_file_claims_a_successor_does_no_harm(ways, soon, tmp_path):
    model, X, y = with_successor(points=5)
    kl.save(model, tmp_path / "whole.kern")
    changes = forgery.of_arrays((tmp_path / "whole.kern").read_bytes(), ways)
    of_a_successor = (change for change in changes if "success" in change[0][:20])
    forgery.use_all((tmp_path / "whole.kern").read_bytes(), of_a_successor, tmp_path / "forged.kern", X[:60], y[:60])


def test_models_are_merged_by_what_answers(soon):
    X, y = changing(1400, 500)
    start = estimator("binary").partial_fit(X[:480], y[:480])
    parts = [kl.merge([start]).partial_fit(X[part], y[part]) for part in (slice(480, 600), slice(600, 1400))]
    assert began(parts[1]) > 480  # so what the start had learned is part of one only
    merged = kl.merge(parts, start=start)
    assert merged.t_ == 1400
    assert not merged.state_.successor.has_begun
    assert {alarm.event for alarm in merged.rises_} == {alarm.event for part in parts for alarm in part.rises_}
    mean = scores(parts[0], X) * 120 / 920 + scores(parts[1], X) * 800 / 920
    assert np.abs(scores(merged, X) - mean).max() <= merged.certificate()["merge_error"] + 1e-9
    merged.partial_fit(X, y)
    assert np.isfinite(scores(merged, X)).all()


def test_models_without_an_alarm_are_merged_exactly():
    X, y = changing(900, 900)
    parts = [estimator("binary", features="linear").fit(X[i : i + 300], y[i : i + 300]) for i in (0, 300, 600)]
    whole = estimator("binary", features="linear").fit(X, y)
    np.testing.assert_allclose(scores(kl.merge(parts), X), scores(whole, X), rtol=1e-8)
