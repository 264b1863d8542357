"""How high events of rare classes are ranked, watched for changes that mistakes do not show.

Where a class is rare, the answer is nearly always another one, so mistakes stay as they are when the rule changes.  What
changes is how many other events the model ranks above those of the class.  That share is estimated for each of its events, from
the mean and the deviation of the scores of the latest other events; its mean is one minus the area under the ROC curve, and
does not depend on how frequent the class is.  Where classes are more even, mistakes tell enough.

While nothing changes, the place of a new share among the latest ones is equally likely to be any, whatever their distribution,
so a bet on higher places gains nothing on average (V. Vovk, I. Nouretdinov and A. Gammerman: Testing Exchangeability On-Line.
International Conference on Machine Learning (2003)).  The capital of such bets is at least 1 after each, as in CUSUM (E. S.
Page: Continuous Inspection Schemes.  Biometrika 41 (1954)), and an alarm is raised when it is large.  Rare classes have few
events: about twenty suffice, of which ADWIN's bound would ask for a hundred.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inner_exact, jit_exact
from ..core.shapes import declared
from ..core.state import Widening
from .adwin import AFTER, BEFORE, CHANCE
from .mixture import evenness, places_of_labels

RARE = 0.5  # of an equal share of the events: a class with fewer is rare
MATURE = 1024.0  # events, before which nothing is ranked
SLOWEST = 1.0 / 1024.0  # the least weight of an event in means and deviations
NORMAL = 1.702  # the logistic function of this multiple of a number is nearly the normal distribution function
LEAST = 1e-12  # variance of scores
EVEN = 0.5  # evenness of the classes, from which mistakes tell enough
LATEST = 256  # shares that a new one is compared with
FEWEST = 20  # of these, before which nothing is bet
BET = 0.95  # of the capital, on the highest place
CAPITAL = 1e4  # for an alarm: on average at least so many events of rare classes lie between two that are false
HELD, GAIN, USUAL, SUM, COUNT = range(5)  # what record holds: shares so far, the logarithm of the capital, see below


@declared()
class Ranks(NamedTuple):
    held: Annotated[np.ndarray, f"0..1: {LATEST}"]  # the latest shares, as a ring
    # shares so far; logarithm of the capital; mean share when it was last 1; sum and number of shares since
    record: Annotated[np.ndarray, "counts", "-5..20", "0..1", "not negative", "counts"]
    seen: Annotated[np.ndarray, "1..1e16: labels"]  # events of each class so far, and one
    mean: Annotated[np.ndarray, "coefficients: labels"]  # of the score of each class at events of other classes
    variance: Annotated[np.ndarray, "not negative: labels"]

    def widened(self, change: Widening) -> Ranks:
        """Convert to the outputs of ``change``; nothing is known of a new class."""
        known, order = places_of_labels(change, len(self.seen))
        fields = {"seen": 1.0, "mean": 0.0, "variance": 0.0}
        return self._replace(**{name: np.where(known, getattr(self, name)[order], new) for name, new in fields.items()})


def new_ranks(labels: int) -> Ranks:
    """Return what is known of no event."""
    return Ranks(np.zeros(LATEST), np.zeros(5), np.ones(labels), np.zeros(labels), np.zeros(labels))


@jit_exact
def pace(ranks):
    """Return how fast losses of classes as uneven as these may be compared: 1 if no class is very rare."""
    return min(1.0, evenness(ranks.seen) / EVEN)


@jit_exact
def rank(ranks, outputs, j, label):
    """Return the share of other events that are ranked above event j, or -1 if its class is not rare; learn its scores.

    None is if mistakes tell enough: a successor costs time.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.components.ranks import new_ranks, rank
    >>> ranks, scores = new_ranks(2), np.random.default_rng(0).normal(size=(1, 2000))
    >>> for j in range(2000):
    ...     _ = rank(ranks, scores, j, 0)
    >>> print(f"{rank(ranks, np.array([[1.645]]), 0, 1):.2f}")
    0.06
    """
    total, classes = 0.0, ranks.seen.size
    for k in range(classes):
        total += ranks.seen[k]
    share = -1.0
    if total >= MATURE and ranks.seen[label] * classes < RARE * total and pace(ranks) < 1.0:
        away = (_score(outputs, j, label) - ranks.mean[label]) / np.sqrt(max(ranks.variance[label], LEAST))
        share = 1.0 / (1.0 + np.exp(min(NORMAL * away, 700.0)))
    for k in range(classes):
        if k != label:
            rate = max(SLOWEST, 1.0 / (total - ranks.seen[k] + 1.0))
            away = _score(outputs, j, k) - ranks.mean[k]
            ranks.mean[k] += rate * away
            ranks.variance[k] = (1.0 - rate) * (ranks.variance[k] + rate * away * away)
    ranks.seen[label] += 1.0
    return share


@jit_exact
def have_fallen(ranks, share, found):
    """Take in a share; return whether events of rare classes are ranked lower than before, and write what was found."""
    record, n, below, total = ranks.record, int(min(ranks.record[HELD], LATEST)), 0.0, 0.0
    if n >= FEWEST:
        for i in range(n):
            total += ranks.held[i]
            below += 1.0 if ranks.held[i] < share else 0.5 if ranks.held[i] == share else 0.0
        if record[GAIN] <= 0.0:
            record[GAIN], record[USUAL], record[SUM], record[COUNT] = 0.0, total / n, 0.0, 0.0
        place = (below + 0.5) / (n + 1.0)
        record[GAIN] += np.log(1.0 + BET * (2.0 * place - 1.0))
        record[SUM] += share
        record[COUNT] += 1.0
        if record[GAIN] > np.log(CAPITAL):
            found[BEFORE], found[AFTER] = record[USUAL], record[SUM] / record[COUNT]
            found[CHANCE] = np.exp(-record[GAIN])
            for k in range(record.size):
                record[k] = 0.0
            return True
    ranks.held[int(record[HELD]) % LATEST] = share
    record[HELD] += 1.0
    return False


@inner_exact
def _score(outputs, j, k):
    if outputs.shape[0] == 1:
        return outputs[0, j] if k == 1 else -outputs[0, j]
    return outputs[k, j]
