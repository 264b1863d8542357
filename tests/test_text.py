"""Text that cannot be stored, answered and exported again is refused wherever data enter."""

import numpy as np
import pytest

import kernling as kl
from kernling.io import stream

X = np.random.default_rng(0).normal(size=(40, 2))
BAD = {"NUL at the end": "late\0", "NUL inside": "la\0te", "half of a pair": "late\ud800"}
SENTENCE = "contains (a NUL character|half of a surrogate pair, which is not a character): remove it"


@pytest.mark.parametrize("label", BAD.values(), ids=BAD)
def test_labels_given_to_an_estimator(label):
    model = kl.AVMClassifier(gamma=1.0, delta=0.5)
    for y in (["late", label] * 20, np.array(["late", label] * 20, dtype=object)):
        for method in (model.fit, model.partial_fit, model.predict_then_learn):
            with pytest.raises(ValueError, match=f"the label .* {SENTENCE}"):
                method(X, y)
    with pytest.raises(ValueError, match=SENTENCE):
        model.partial_fit(X, ["late", "on time"] * 20, classes=["late", "on time", label])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, ["late", "on time"] * 20)
    with pytest.raises(ValueError, match=SENTENCE):
        model.learn_one(X[0], label)
    assert model.classes_.tolist() == ["late", "on time"]


def test_arrays_of_text_cannot_end_in_nul_but_hold_the_rest():
    for label in ("la\0te", "late\ud800"):
        with pytest.raises(ValueError, match=SENTENCE):
            kl.AVMClassifier().fit(X, np.array(["late", label] * 20))


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_categories_and_names_given_to_a_pipeline(text):
    rows = [{"km": x, "city": "Oslo" if x > 0.0 else "Rome"} for x in X[:, 0].tolist()]
    y = [True, False] * 20
    with pytest.raises(ValueError, match=f"column 'city': the text .* {SENTENCE}"):
        kl.StreamPipeline.auto().partial_fit([*rows[:-1], {"km": 1.0, "city": text}], y)
    with pytest.raises(ValueError, match=f"the name of column .* {SENTENCE}"):
        kl.StreamPipeline.auto().partial_fit([{text: row["km"]} for row in rows], y)
    model = kl.StreamPipeline.auto().partial_fit(rows, y)
    for method in (model.predict, model.predict_one):
        with pytest.raises(ValueError, match=SENTENCE):
            method({"km": 1.0, "city": text} if method == model.predict_one else [{"km": 1.0, "city": text}])


ESCAPED = {"NUL at the end": r"late\u0000", "half of a pair": r"late\ud800"}


@pytest.mark.parametrize("text", ESCAPED.values(), ids=ESCAPED)
@pytest.mark.parametrize("line", ['{"km": 1.0, "late": "%s"}', '{"km": 1.0, "%s": "late"}'], ids=["value", "name"])
def test_json_lines(tmp_path, text, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"km": 2.0, "late": "yes"}\n' + line % text + "\n")
    found = []
    with pytest.raises(ValueError, match=f"line 2: the text .* {SENTENCE}"):
        found += [(len(X), y.tolist()) for X, y in stream(path, target="late")]
    path.write_text(r'{"km": 1.0, "late": "\\u0000"}')  # a backslash, and no NUL
    assert [y.tolist() for _, y in stream(path, target="late")] == [["\\u0000"]]


def test_json_lines_in_another_encoding(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"km": 1.0, "late": "yes\xed\xa0\x80"}\n')  # half of a pair as bytes
    with pytest.raises(ValueError, match="line 1: 'utf-8' codec"):
        list(stream(path, target="late"))


def test_labels_in_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"km,late\n1.0,no\n2.0,yes\0\n")
    learned = []
    with pytest.raises(ValueError, match=rf"row 2: column 'late': the text 'yes\\x00' {SENTENCE}"):
        learned += [y.tolist() for _, y in stream(path, target="late")]
    path.write_bytes(b"km,late\n1.0,no\n2.0,yes\xed\xa0\x80\n")
    with pytest.raises(ValueError, match="line 3 is not UTF-8"):
        list(stream(path, target="late"))
