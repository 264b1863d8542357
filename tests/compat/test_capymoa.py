"""Estimators as CapyMOA learners; needs Java, so it is skipped without the package."""

import numpy as np
import pytest

pytest.importorskip("capymoa")

from capymoa.evaluation import prequential_evaluation
from capymoa.stream import ARFFStream, NumpyStream

import kernling as kl
from kernling.compat.capymoa import CapyMOAClassifier, CapyMOARegressor

SMALL = {"points": 30, "window": 50}


@pytest.fixture
def mixed(tmp_path):
    """A stream with a number that is sometimes missing, a nominal attribute that is the label, and the label in the middle."""
    rows = [f"{i % 7 if i % 10 else '?'},{'pqr'[i % 3]},{'xyz'[i % 3]}" for i in range(300)]
    head = "@relation s\n@attribute number numeric\n@attribute label {p,q,r}\n@attribute letter {x,y,z}\n@data\n"
    (tmp_path / "s.arff").write_text(head + "\n".join(rows) + "\n")
    return ARFFStream(str(tmp_path / "s.arff"), class_index=1)


def test_nominal_attributes_are_text_and_gaps_are_allowed(mixed):
    result = prequential_evaluation(mixed, CapyMOAClassifier(mixed.get_schema(), kl.AutoClassifier(**SMALL)))
    assert result.accuracy() > 95.0


def test_it_is_the_pipeline(mixed):
    """Its probabilities are those of the pipeline on the same rows, in the order of the schema's labels."""
    adapter = CapyMOAClassifier(mixed.get_schema(), kl.AutoClassifier(**SMALL), random_seed=3)
    own = kl.StreamPipeline.auto(kl.AutoClassifier(**SMALL, random_state=3))
    assert adapter.predict_proba(mixed.next_instance()) is None
    for i in range(1, 200):
        instance = mixed.next_instance()
        adapter.train(instance)
        own.learn_one({"number": float(i % 7) if i % 10 else np.nan, "letter": "xyz"[i % 3]}, i % 3)
    row = {"number": float(200 % 7), "letter": "xyz"[200 % 3]}
    instance = mixed.next_instance()  # a gap
    expected = own.predict_proba([row | {"number": np.nan}])[0]
    np.testing.assert_allclose(adapter.predict_proba(instance), expected, rtol=1e-9)


def test_regression():
    X = np.random.default_rng(0).normal(size=(500, 3))
    stream = NumpyStream(X, 2.0 * X[:, 0], target_type="numeric")
    result = prequential_evaluation(stream, CapyMOARegressor(stream.get_schema(), kl.AutoRegressor(**SMALL)))
    assert result.rmse() < 0.4
