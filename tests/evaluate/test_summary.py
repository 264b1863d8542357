"""What a summary says: by class, over time, in pairs; and metrics by scikit-learn's names."""

import numpy as np
import pytest
from sklearn import metrics as sk

import kernling as kl
from kernling.baselines import PerceptronClassifier
from kernling.cli import settings
from kernling.evaluate import Batch, ProgressiveRun, feed, metric
from kernling.evaluate.metrics import METRICS, OTHER_NAMES
from kernling.evaluate.summary import Summary, Trail
from kernling.io import stream, synthetic
from kernling.report import decisions

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("classes", [2, 4])
def test_counts_in_pairs_are_those_of_scikit_learn(classes):
    y, said = RNG.integers(classes, size=(2, 500))
    summary = Summary("classification")
    for first in range(0, 500, 70):
        summary.update(Batch(y[first : first + 70], said[first : first + 70]))
    np.testing.assert_array_equal(summary.pairs, sk.confusion_matrix(y, said))
    average = "binary" if classes == 2 else "macro"
    for name, score in (("recall", sk.recall_score), ("precision", sk.precision_score)):
        one = metric(name)
        one.update(Batch(y, said))
        assert one.value == pytest.approx(score(y, said, average=average))


def test_variance_explained_in_any_chunks():
    y, said = 1e6 + RNG.normal(size=(2, 500))
    one = metric("r2_score")
    for first in range(0, 500, 70):
        one.update(Batch(y[first : first + 70], said[first : first + 70]))
    assert one.value == pytest.approx(sk.r2_score(y, said))


def test_the_command_line_knows_all_names():
    assert tuple(METRICS) == settings.METRICS
    assert tuple(OTHER_NAMES) == settings.OTHER_NAMES
    assert {type(metric(name)) for name in OTHER_NAMES} <= set(METRICS.values())


def test_the_trail_is_bounded_and_exact():
    losses = RNG.random(10_000)
    trail = Trail()
    for first in range(0, len(losses), 77):
        trail.update(losses[first : first + 77])
    means = trail.means(1000)
    assert 32 <= len(means) <= 64
    length = trail._length
    np.testing.assert_allclose(means[:30], losses[: 30 * length].reshape(30, -1).mean(axis=1))
    falling = Trail()
    falling.update(np.linspace(1.0, 0.0, 5000))
    line = falling.blocks(8)
    assert line == "".join(sorted(line, reverse=True))
    assert (line[0], line[-1]) == ("█", "▁")


def test_a_rare_class_is_shown_with_its_ranking():
    """A model that ranks well and never says the rare class."""
    X = RNG.normal(size=(3000, 3))
    y = (RNG.random(3000) < 1.0 / (1.0 + np.exp(4.5 - X[:, 0]))).astype(int)
    run = ProgressiveRun(kl.KRLSClassifier(), {}, summarise=True, metrics=["mistakes", "auc"])
    feed(run, stream(X, y))
    said = "\n".join(decisions(run.summary))
    assert run.summary.is_imbalanced()
    assert f"{100 * run.value('auc'):.2f} %" in said
    assert "AUC" in said
    assert "never" in said


def test_confidence_is_compared_with_hits():
    X = RNG.normal(size=(1500, 2))
    y = (X[:, 0] + RNG.normal(size=1500) > 0.0).astype(int)
    run = ProgressiveRun(kl.AVMClassifier(loss="logistic"), {}, summarise=True)
    feed(run, stream(X, y))
    probability = run.summary._sure
    assert probability[0].sum() == 1500
    assert probability[2].sum() == pytest.approx(1500 * run.value("accuracy"))
    assert 0.0 < run.summary.calibration_error() < 0.2
    assert "calibration" in "\n".join(decisions(run.summary))


@pytest.mark.parametrize("rows", [99, 2381, 20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_measurements_are_spread_over_any_stream(rows):
    data = synthetic("gaussian", rows)
    runs = [ProgressiveRun(PerceptronClassifier(), data.info, every=every) for every in (0, 800)]
    for run in runs:
        feed(run, data)
    spread, cut = ([row["events"] for row in run.end()] for run in runs)
    assert spread[-1] == rows
    assert (rows < 1000 and len(spread) == -(-rows // 20)) or 50 <= len(spread) <= 101
    assert len(set(np.diff(spread[:-1]))) <= 1
    both = set(spread) & set(cut)
    for events in both - {rows}:
        ours, theirs = (next(row for row in run.rows if row["events"] == events) for run in runs)
        assert ours["mistakes"] == theirs["mistakes"]
        assert ours["mistakes_window"] == theirs["mistakes_window"]
        assert ours["mistakes_constant"] == theirs["mistakes_constant"]
