"""Warnings name the line of the user."""

import numpy as np
import pytest

import kernling as kl
from kernling.compat import to_river


def uneven():
    X = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1e4]
    return X, (X[:, 0] > 0.0).astype(int)


def rows(**more):
    return [{"km": float(i), **more} for i in range(60)]


@pytest.mark.parametrize(
    ("about", "call"),
    [
        ("ranges differ", lambda: kl.AVMClassifier().fit(*uneven())),
        ("ranges differ", lambda: kl.AVMClassifier().partial_fit(*uneven())),
        ("ranges differ", lambda: kl.AVMClassifier().predict_then_learn(*uneven())),
        ("are ignored", lambda: kl.StreamPipeline.auto().partial_fit(rows(), [0, 1] * 30).predict(rows(snow=1.0))),
        ("share them", lambda: to_river(kl.AVMClassifier(), columns=1).learn_one({"a": 1.0, "b": 1.0}, True)),
    ],
)
def test_a_warning_names_the_line_of_the_call(about, call):
    with pytest.warns(UserWarning, match=about) as caught:
        call()
    assert [one.filename for one in caught] == [__file__]
