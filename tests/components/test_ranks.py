"""How high events of rare classes are ranked: components/ranks.py next to a slow version, and false alarms."""

import numpy as np
import pytest

import kernling as kl
from kernling.compiler import jit_exact
from kernling.components.ranks import have_fallen, new_ranks, pace, rank
from kernling.components.succession import FADE, LEAD, WEIGHT, follow, new_succession
from kernling.estimators.labels import widening


class Slow:
    """Means and deviations as weighted sums, and bets on places in a list."""

    def __init__(self, classes: int):
        self.classes, self.labels = classes, []
        self.scores = [[] for _ in range(classes)]  # of each class, at events of others
        self.latest, self.gain, self.usual, self.since = [], 0.0, 0.0, []

    def rank(self, scores: np.ndarray, label: int) -> float:
        counts = np.bincount(self.labels, minlength=self.classes) + 1.0
        share = -1.0
        uneven = 1.0 - np.square(counts / counts.sum()).sum() < 0.5 * (1.0 - 1.0 / self.classes)
        if uneven and counts.sum() >= 1024.0 and counts[label] < 0.5 * counts.sum() / self.classes:
            others = np.array(self.scores[label])
            rates = [max(1.0 / 1024.0, 1.0 / (n + self.classes)) for n in range(len(others))]
            weights = [rate * np.prod(1.0 - np.array(rates[n + 1 :])) for n, rate in enumerate(rates)]
            mean = np.dot(weights, others)  # what is left of the first one, 0, has the rest of the weight
            spread = np.dot(weights, (others - mean) ** 2) + (1.0 - np.sum(weights)) * mean**2
            share = 1.0 / (1.0 + np.exp(1.702 * (scores[label] - mean) / np.sqrt(spread)))
        for k in range(self.classes):
            if k != label:
                self.scores[k].append(scores[k])
        self.labels.append(label)
        return share

    def have_fallen(self, share: float) -> tuple[float, float, float] | None:
        """What was before and since, and by what chance, if that is found."""
        if len(self.latest) >= 20:
            if self.gain <= 0.0:
                self.gain, self.usual, self.since = 0.0, np.mean(self.latest), []
            below = sum((one < share) + 0.5 * (one == share) for one in self.latest)
            self.gain += np.log(1.0 + 0.95 * (2.0 * (below + 0.5) / (len(self.latest) + 1.0) - 1.0))
            self.since.append(share)
            if self.gain > np.log(1e4):
                found = self.usual, np.mean(self.since), np.exp(-self.gain)
                self.latest, self.gain = [], 0.0
                return found
        self.latest = [*self.latest, share][-256:]
        return None


@pytest.mark.parametrize("classes", [2, 4])
def test_shares_are_those_of_the_slow_version(classes):
    rng = np.random.default_rng(classes)
    n = 1400
    labels = rng.choice(classes, n, p=np.r_[0.95 - 0.15 * (classes - 2) / 2, np.full(classes - 2, 0.075), 0.05])
    scores = rng.normal(size=(classes, n)) + 2.0 * (np.arange(classes)[:, np.newaxis] == labels)
    if classes == 2:
        scores = np.array([-scores[1], scores[1]])
    ranks, slow = new_ranks(classes), Slow(classes)
    found = [rank(ranks, scores[1:] if classes == 2 else scores, j, labels[j]) for j in range(n)]
    expected = [slow.rank(scores[:, j], labels[j]) for j in range(n)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (np.array(found)[labels > 0][-10:] >= 0.0).all()
    assert (np.array(found)[labels == 0] == -1.0).all()


def test_nothing_is_ranked_where_classes_are_even():
    rng = np.random.default_rng(0)
    ranks, labels = new_ranks(3), rng.choice(3, 3000, p=[0.5, 0.45, 0.05])
    assert {rank(ranks, rng.normal(size=(3, 1)), 0, label) for label in labels} == {-1.0}


def test_falls_are_those_of_the_slow_version():
    rng = np.random.default_rng(0)
    shares = np.concatenate([rng.beta(1.0, high, 400).round(2) for high in (8.0, 2.0, 2.0, 20.0, 4.0)])
    ranks, slow, found, events = new_ranks(2), Slow(2), np.zeros(3), []
    for event, share in enumerate(shares):
        expected = slow.have_fallen(share)
        assert have_fallen(ranks, share, found) == (expected is not None)
        if expected:
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            events.append(event)
    assert [event // 400 for event in events] == [1, 4]


def test_false_alarms_are_as_rare_as_the_theorem_says():
    """Between two of them lie at least 10,000 events on average, whatever the distribution."""
    rng = np.random.default_rng(1)
    ranks, found = new_ranks(2), np.zeros(3)
    false = sum(have_fallen(ranks, share, found) for share in rng.beta(0.3, 2.0, 50_000))
    assert false <= 10  # five are expected at most


def test_comparisons_take_longer_where_classes_are_uneven():
    for counts, expected in (([500, 500], 1.0), ([9900, 100], 0.0792), ([800, 100, 100], 1.0), ([9800, 100, 100], 0.119)):
        assert pace(new_ranks(len(counts))._replace(seen=np.array(counts, float))) == pytest.approx(expected, abs=1e-3)


def test_a_late_class_leaves_what_is_known_of_the_others():
    known = new_ranks(2)._replace(seen=np.array([5.0, 6.0]), mean=np.array([-0.3, 0.3]), variance=np.array([0.5, 0.7]))
    _, change = widening(np.array(["b", "d"]), "c")
    ranks = known.widened(change)
    assert (ranks.seen == [5.0, 1.0, 6.0]).all()
    _, change = widening(np.array(["b", "c", "d"]), "a")
    ranks = ranks.widened(change)
    assert (ranks.seen == [1.0, 5.0, 1.0, 6.0]).all()
    assert (ranks.mean == [0.0, -0.3, 0.0, 0.3]).all()
    assert (ranks.variance == [0.0, 0.5, 0.0, 0.7]).all()
    _, change = widening(np.array(["b"]), "a")  # the only class was that of the second label
    assert (known.widened(change).seen == [6.0, 5.0]).all()


def test_a_merged_model_has_ranked_nothing():
    """Its scores are those of neither, and losses are watched anew."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = kl.AutoClassifier(points=10, window=20, memory=2000).fit(X, X[:, 0] > 1.5)
    assert model.state_.succession.ranks.seen.sum() == 302.0
    assert kl.merge([model, model]).state_.succession.ranks.seen.sum() == 2.0


def test_either_of_two_classes_may_be_the_rare_one():
    rng = np.random.default_rng(4)
    labels = (rng.random(1500) < 0.03).astype(int)
    scores = rng.normal(size=(1, 1500)) + labels
    ranks, mirrored = new_ranks(2), new_ranks(2)
    found = [rank(ranks, scores, j, labels[j]) for j in range(1500)]
    assert found == [rank(mirrored, -scores, j, 1 - labels[j]) for j in range(1500)]
    assert max(found) > 0.0


@jit_exact
def followed(succession, outputs, other, two, targets, weights, values, losses, units, shares):
    return follow(succession, outputs, other, two, targets, weights, values, losses, units, shares)


@pytest.mark.parametrize("leads", [False, True])
def test_mistakes_and_ranks_are_those_of_what_answers(leads):
    """The contest itself forgets more slowly where classes are uneven."""
    held = new_succession(2)
    held.ranks.seen[:], held.ranks.variance[:] = [3960.0, 40.0], 1.0
    held.contest[LEAD] = 1.0 if leads else -1.0
    said, losses, units, shares = np.array([[-2.0, -2.0]]), np.empty(2), np.empty(2), np.empty(2)
    speed = pace(held.ranks)
    followed(held, said, np.array([[2.0, 2.0]]), True, np.array([1.0, 1.0]), np.ones(2), False, losses, units, shares)
    assert (losses == (0.0 if leads else 1.0)).all()
    assert ((shares < 0.1) == leads).all()
    assert ((shares > 0.9) != leads).all()
    assert (said == (2.0 if leads else -2.0)).all()
    assert held.contest[WEIGHT] == pytest.approx(2.0 - FADE * speed, rel=1e-6)
    assert speed < 0.1
