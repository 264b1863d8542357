"""One-class models: normal rows are flagged about as often as asked, and abnormal ones are ranked below them."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import kernling as kl
from kernling.baselines import PassiveAggressiveOneClass
from kernling.components.recent_scores import LENGTH

SPLITS = 20


def halves(normal, abnormal, rng, scale=True):
    """Half of the normal rows to learn, the other half and the abnormal ones to judge."""
    order = rng.permutation(len(normal))
    learned, held = normal[order[: len(order) // 2]], normal[order[len(order) // 2 :]]
    scaler = StandardScaler(with_mean=scale, with_std=scale).fit(learned)
    return tuple(map(scaler.transform, (learned, held, abnormal)))


def gaussian(columns, rng):
    return halves(rng.normal(size=(2000, columns)), rng.uniform(-6.0, 6.0, size=(1000, columns)), rng)


def tumours(rng):
    rows, benign = load_breast_cancer(return_X_y=True)
    return halves(rows[benign == 1], rows[benign == 0], rng)


def digit(which, rng):
    rows, digits = load_digits(return_X_y=True)
    return halves(rows[digits == which] / 16, rows[digits != which] / 16, rng, scale=False)


SETS = {
    "gaussian, 2 columns": lambda rng: gaussian(2, rng),
    "gaussian, 10 columns": lambda rng: gaussian(10, rng),
    "tumours": tumours,
    **{f"digit {which}": lambda rng, which=which: digit(which, rng) for which in range(10)},
}


def auc(model, held, abnormal):
    scores = np.concatenate([model.score_samples(held), model.score_samples(abnormal)])
    return roc_auc_score(np.repeat([1, 0], [len(held), len(abnormal)]), scores)


LATER = [f"digit {which}" for which in range(3, 10)]
SOONER = [pytest.param(name, marks=[pytest.mark.long] if name in LATER else []) for name in SETS]


@pytest.mark.parametrize("name", SOONER)
def test_normal_rows_are_flagged_about_as_often_as_asked(name):
    flagged, found = [], []
    for seed in range(SPLITS):
        learned, held, abnormal = SETS[name](np.random.default_rng(seed))
        model = kl.SPAOneClass(random_state=seed).fit(learned)
        flagged.append(np.mean(model.predict(held) == -1))
        found.append(np.mean(model.predict(abnormal) == -1))
    assert 0.025 <= np.mean(flagged) <= 0.1
    assert np.mean(found) > 0.5


@pytest.mark.long
@pytest.mark.parametrize("name", SETS)
def test_the_order_is_as_good_as_an_isolation_forests(name):
    gains = []
    for seed in range(SPLITS):
        learned, held, abnormal = SETS[name](np.random.default_rng(seed))
        own, other = (model.fit(learned) for model in (kl.SPAOneClass(random_state=seed), IsolationForest(random_state=seed)))
        gains.append(auc(own, held, abnormal) - auc(other, held, abnormal))
    assert np.mean(gains) > 0.0


@pytest.mark.parametrize("cls", [kl.SPAOneClass, PassiveAggressiveOneClass])
@pytest.mark.parametrize("contamination", [0.2, None])
@pytest.mark.parametrize("mode", ["ball", "halfspace"])
def test_labels_in_bulk_are_those_of_single_events(cls, contamination, mode):
    X = np.random.default_rng(0).normal(size=(3 * LENGTH + 300, 2))
    weights = np.ones(len(X))
    weights[5::7] = 0.0
    options = {"contamination": contamination, "mode": mode, "gamma": 4.0, "random_state": 0}
    bulk, single = cls(**options), cls(**options)
    bulk.fit(X[:1])
    single.fit(X[:1])
    said = [bulk.predict_then_learn(X[part], sample_weight=weights[part]) for part in (slice(1, 700), slice(700, None))]
    one_by_one = []
    for x, weight in zip(X[1:], weights[1:], strict=True):
        one_by_one.append(single.predict_one(x))
        single.learn_one(x, sample_weight=weight)
    assert np.concatenate(said).tolist() == one_by_one
    assert bulk.offset_ == pytest.approx(single.offset_, rel=1e-12)
    if contamination is None:
        assert bulk.offset_ == (-0.5 if mode == "ball" else 1.0)
    else:
        new = np.random.default_rng(1).normal(size=(2000, 2))
        assert np.mean(bulk.predict(new) == -1) == pytest.approx(0.2, abs=0.06)


def test_the_border_follows_the_latest_scores_only():
    rng = np.random.default_rng(1)
    model = kl.SPAOneClass(gamma=1.0, random_state=0).fit(rng.normal(size=(6 * LENGTH, 2)))
    scores = model.state_.recent.latest()
    assert len(scores) == LENGTH
    assert np.mean(scores < model.offset_) == pytest.approx(0.05, abs=1e-9)


def test_a_merged_model_has_the_border_of_both():
    rng = np.random.default_rng(2)
    models = [kl.SPAOneClass(gamma=1.0, random_state=s).fit(rng.normal(size=(n, 2))) for s, n in enumerate((1500, 500))]
    merged = kl.merge(models)
    both = np.concatenate([model.state_.recent.latest() for model in models])
    assert np.isin(merged.state_.recent.latest(), both).all()
    assert np.mean(merged.predict(rng.normal(size=(2000, 2))) == -1) == pytest.approx(0.05, abs=0.03)
