"""Prose: hashed words and pairs of words, whose scores are columns."""

import math
import pickle
import re
import zlib

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

import kernling as kl
from kernling.serve.service import Service
from kernling.tables import Encode, Standardise
from kernling.tables.prose import NOISE, OUTPUTS, PLACES, Prose, _shared


def tickets(n, seed=0, classes=3, keys=20):
    """Texts of ten words, two of which matter, and their classes, 5 % of which are wrong."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, 2001)
    y = rng.integers(classes, size=n)
    texts = []
    for label in np.where(rng.random(n) < 0.05, rng.integers(classes, size=n), y):
        words = [f"w{word}" for word in rng.choice(2000, size=8, p=shares / shares.sum())]
        for key in rng.integers(keys, size=2):
            words.insert(rng.integers(9), f"K{label}x{key}")
        texts.append(" ".join(words))
    return texts, np.array(["red", "green", "blue", *map(str, range(60))])[y]


def oracle(texts, targets):
    """Scores before learning, with dictionaries; targets are one column, and a NaN is not learned."""
    weights, variances, counts, scores = {}, {}, {}, []
    for row, (text, target) in enumerate(zip(texts, targets, strict=True)):
        words = re.findall(r"\w+", text.casefold())
        pairs = [f"{words[i]} {words[i + 1]}" for i in range(len(words) - 1)]
        places = sorted({zlib.crc32(key.encode()) % PLACES for key in words + pairs})
        idf = [math.log((1 + row) / (1 + counts.get(place, 0))) + 1 for place in places]
        length = math.sqrt(sum(one * one for one in idf))
        x = {place: one / length for place, one in zip(places, idf, strict=True)} | {"constant": 1.0}
        scores.append(sum(weights.get(place, 0.0) * value for place, value in x.items()))
        if not math.isnan(target):
            spread = NOISE + sum(variances.get(place, 1.0) * value**2 for place, value in x.items())
            for place, value in x.items():
                step = variances.get(place, 1.0) * value
                weights[place] = weights.get(place, 0.0) + (target - scores[-1]) * step / spread
                variances[place] = variances.get(place, 1.0) - step**2 / spread
        for place in places:
            counts[place] = counts.get(place, 0) + 1
    return np.array(scores)


def test_scores_are_those_of_the_oracle():
    texts, y = tickets(300)
    learned, scores = Prose("classification").learn(texts, y)
    assert set(learned.labels) == {"red", "green", "blue"}
    for output, label in enumerate(learned.labels):
        first = y.tolist().index(label)
        begun = np.arange(300) >= max(first, y.tolist().index(learned.labels[output - 1]) if output else 0)
        targets = np.where(begun, np.where(y == label, 1.0, -1.0), np.nan)
        np.testing.assert_allclose(scores[:, output], np.clip(oracle(texts, targets), -5.0, 5.0), atol=2e-4)
    assert not scores[:, 3:].any()


def test_labels_without_an_output_share_two_that_differ_for_most():
    shared = [_shared(str(label)) for label in range(300)]
    assert {len(one) for one in shared} == {2}
    assert set.union(*shared) == set(range(OUTPUTS))
    assert len(set(map(tuple, map(sorted, shared)))) > 100  # of 120 pairs


def test_values_are_standardised_as_they_come():
    texts, y = tickets(200)
    values = 1e6 + 50.0 * (y == "red") + np.random.default_rng(0).normal(size=200)
    _, scores = Prose("regression").learn(texts, values)
    targets = Standardise(clip=5.0).learn_transform(values[:, np.newaxis])[:, 0]
    np.testing.assert_allclose(scores[:, 0], np.clip(oracle(texts, targets), -5.0, 5.0), atol=2e-4)
    assert np.corrcoef(scores[100:, 0], values[100:])[0, 1] > 0.8


def test_any_chunks_give_the_same():
    texts, y = tickets(200, classes=20)  # more than have an output of their own
    whole, scores = Prose("classification").learn(texts, y)
    parts, found, place = Prose("classification"), [], 0
    for size in (1, 1, 5, 60, 3, 130):
        parts, some = parts.learn(texts[place : place + size], y[place : place + size])
        found.append(some)
        place += size
    np.testing.assert_array_equal(np.vstack(found), scores)
    np.testing.assert_array_equal(parts.scores(texts), whole.scores(texts))
    assert len(whole.labels) == OUTPUTS


def test_an_object_stays_as_it_was_until_the_one_after_the_next():
    texts, y = tickets(60)
    first, _ = Prose("classification").learn(texts[:30], y[:30])
    before = first.scores(texts)
    second, scores = first.learn(texts[30:], y[30:])
    np.testing.assert_array_equal(first.scores(texts), before)
    np.testing.assert_array_equal(first.learn(texts[30:], y[30:])[1], scores)
    assert (second.scores(texts) != before).any()


def frame(texts):
    return pandas.DataFrame({"message": texts, "hour": np.arange(len(texts)) % 24})


def test_half_the_mistakes_of_none_and_no_more_than_a_linear_model_of_hashed_words():
    texts, y = tickets(3000, seed=5)
    before = kl.StreamPipeline.auto().predict_then_learn(frame(texts), y)
    X, model, mistakes = HashingVectorizer(n_features=2**16).transform(texts), SGDClassifier(random_state=0), 0
    for first in range(0, len(y), 50):
        if first:
            mistakes += int((model.predict(X[first : first + 50]) != y[first : first + 50]).sum())
        model.partial_fit(X[first : first + 50], y[first : first + 50], classes=np.unique(y))
    assert (before != y).sum() <= 1.2 * mistakes


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_single_events_and_blocks_saved_and_resumed(task, tmp_path):
    texts, labels = tickets(160)
    y = labels if task == "classification" else 2.0 * (labels == "red") + np.arange(160) % 3
    model = kl.AVMClassifier(gamma=0.1) if task == "classification" else kl.AVMRegressor(gamma=0.1)
    X = frame(texts)
    blocks = kl.StreamPipeline.auto(clone(model)).partial_fit(X[:110], y[:110])
    kl.save(blocks, tmp_path / "model.kern")
    again = kl.load(tmp_path / "model.kern")
    rows = X.to_dict("records")
    for row, target in zip(rows[110:], y[110:], strict=True):
        again.learn_one(row, target)
    blocks.partial_fit(X[110:], y[110:])
    held = pickle.loads(pickle.dumps(blocks))
    np.testing.assert_array_equal(blocks.passed(X), again.passed(X))
    np.testing.assert_array_equal(blocks.passed(X), held.passed(X))
    found = [[blocks.predict_one(row) for row in rows[:9]], blocks.predict(X[:9]).tolist(), again.predict(X[:9]).tolist()]
    assert all(one == pytest.approx(found[0]) for one in found) if task == "regression" else found[0] == found[1] == found[2]
    assert again.steps_[0][1].schema_[0].treatment == "text"


def test_prediction_changes_nothing_and_errors_neither():
    texts, y = tickets(150)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(gamma=0.1)).partial_fit(frame(texts[:100]), y[:100])
    before = model.passed(frame(texts))
    model.predict(frame(texts))
    with pytest.raises(ValueError, match=r"inconsistent|samples|targets"):
        model.partial_fit(frame(texts[100:]), y[:7])
    with pytest.raises(ValueError, match="weight"):
        model.partial_fit(frame(texts[100:]), y[100:], sample_weight=np.full(50, -1.0))
    np.testing.assert_array_equal(model.passed(frame(texts)), before)
    twin = clone(model).partial_fit(frame(texts[:100]), y[:100])
    twin.partial_fit(frame(texts[100:]), y[100:])
    model.partial_fit(frame(texts[100:]), y[100:])
    np.testing.assert_array_equal(model.passed(frame(texts)), twin.passed(frame(texts)))


def test_fit_scores_rows_before_they_are_learned():
    texts, _ = tickets(400)
    y = np.random.default_rng(0).permutation(400) % 2  # nothing can be learned
    encode = Encode()
    rows = encode.fit_transform(frame(texts), y)
    assert (
        abs(np.corrcoef(rows[:, 0], y == y[0])[0, 1]) < 0.2 < np.corrcoef(encode.transform(frame(texts))[:, 0], y == y[0])[0, 1]
    )


def test_what_is_prose():
    texts, y = tickets(120)
    table = frame(texts).assign(name=[f"person {i}" for i in range(120)], city=["New York City now", "Oslo"] * 60)
    kinds = {column.name: column.treatment for column in Encode().begin(table, "classification").schema_}
    assert kinds == {"message": "text", "hour": "number", "name": "ignore", "city": "category"}
    with pytest.warns(UserWarning, match="'message' .prose, which only classifiers and regressors can use"):
        assert Encode().begin(frame(texts)).columns_out == 1
    given = Encode(text=["city"]).fit(table[["city"]], y)
    assert str(given.schema_) == f"city  text, scored by its words  {OUTPUTS} columns"
    assert given.get_feature_names_out()[1] == "city score 1"
    gaps = given.transform(pandas.DataFrame({"city": [None, "Oslo"]}))
    assert np.isfinite(gaps).all()
    assert (gaps[0] != gaps[1]).any()


def test_the_service_learns_prose_and_goes_on_after_a_restart(tmp_path):
    texts, y = tickets(300, classes=2)
    rows = [
        {"message": text, "hour": place % 24, "target": label}
        for place, (text, label) in enumerate(zip(texts, y.tolist(), strict=True))
    ]
    service = Service(tmp_path)
    for first in range(0, 300, 60):
        service.learn("tickets", rows[first : first + 60]).result()
    model = service.model("tickets")
    asked = [{"message": "K0x1 w1 w5"}, {"message": None}, {"message": "K1x3 w1 K1x7"}]
    before = model.published.predict(asked, model.traits.layout)
    assert before == model.published.predict_few(asked, model.traits.layout)
    assert before[0]["probabilities"]["red"] > 0.7 > 0.3 > before[2]["probabilities"]["red"]
    service.stop()
    again = Service(tmp_path)
    assert again.model("tickets").published.predict(asked, model.traits.layout) == before
    again.stop()


def test_export_refuses(tmp_path):
    texts, y = tickets(120)
    model = kl.StreamPipeline.auto(kl.AVMClassifier(gamma=0.1)).partial_fit(frame(texts), y)
    with pytest.raises(TypeError, match="'message' holds prose, which cannot be exported"):
        kl.to_onnx(model, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda state, arrays: arrays.update(counts=arrays["counts"] + np.inf),
        lambda state, arrays: arrays.update(counts=arrays["counts"][1:]),
        lambda state, arrays: arrays.update(places=arrays["places"][::-1]),
        lambda state, arrays: arrays.update(places=arrays["places"] + 1),
        lambda state, arrays: arrays.update(beliefs=arrays["beliefs"] * np.float32(np.nan)),
        lambda state, arrays: arrays.update(beliefs=-arrays["beliefs"]),
        lambda state, arrays: arrays.update(beliefs=arrays["beliefs"][:, :1]),
        lambda state, arrays: state.update(labels=["red", "red", "blue"]),
        lambda state, arrays: state.update(labels=["red", "green", "\ud800"]),
        lambda state, arrays: state.update(task="ranking"),
        lambda state, arrays: state.update(rows=-1),
        lambda state, arrays: state.update(moments=[0.0, math.nan, 0.0]),
    ],
)
def test_forged_states_are_refused(wrong):
    learned, _ = Prose("classification").learn(*tickets(50))
    state, arrays = learned.to_state(), learned.to_arrays()
    np.testing.assert_array_equal(Prose.from_state(state, arrays).scores(["K0x1 w1"]), learned.scores(["K0x1 w1"]))
    wrong(state, arrays)
    with pytest.raises(ValueError, match=r"."):
        Prose.from_state(state, arrays)
