"""Experts that vote, and two more that learn how to weight the others' scores.

Votes are those of a weighted majority (core/votes.py).  Two experts see the scores of the others, each centred and over its
running scale.  The combined one is least squares with forgetting, shrunk towards equal weights, as for regression
(combination.py): it finds good weights soon, also where experts resemble each other.  The stacked one is softmax of a weighted
sum, with steps of AdaGrad whose sums forget; its weights stay positive.  It gives the probabilities.  Where the vote overrules
it, the class that was voted for changes places with the likeliest one.  Last, the probability of the winner is replaced by how
often winners of such a probability were right lately, and the others share the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compiler import inline, jit
from ..core.shapes import declared
from ..core.state import Widening, added
from ..core.votes import TIE, update_votes
from .combination import RIDGE

if TYPE_CHECKING:
    from ..merging.rules import Merging

SHRINK, FADE, PERIOD = RIDGE  # of the combined expert
RATE = 0.2  # of the votes: the weight of a mistake
SHARE = 0.0003  # of all votes, which is divided after each event
STEP = 0.3  # of the stacked expert
KEEP = 0.999  # what an event leaves of the sums of its squared gradients
SLOWEST = 0.001  # the least weight of an event in the scale of an expert's scores
REACH = 4.0  # scales, beyond which scores are clipped
TRUST = 3.0  # the sum of the stacked expert's weights at first
AHEAD = 1e-9  # votes that the stacked expert's choice has besides: it decides where votes are equal
BINS = 20  # of the winner's probability, in which is counted how often it was right
PRIOR = 10.0  # events, as many as which a probability itself counts in its bin
BARELY = 1e-9  # by which a probability is ahead of others, and below 1
EVENTS, MISTAKES, SPENT = range(3)  # what record holds: mistakes of the vote, and what they cost by the theorem
LEAST = 1e-3  # pivot of these least squares, which is more if there are no rounding errors
LARGEST = 1e6  # more than weights of the combined and the stacked expert can be


@declared(
    votes=f"0..{LARGEST}: voters",
    mistakes="not negative: voters",
    blend=f"{-LARGEST}..{LARGEST}: experts",
    blend_squares="coefficients: experts experts",
    blend_moments="coefficients: experts",
    pull=f"0..{LARGEST}: experts",
    pull_squares="0..1e130: experts",
    scale="positive: experts",
    bias=f"{-LARGEST}..{LARGEST}: labels",
    bias_squares="0..1e130: labels",
    sure="0..1e130: 2 bins",
    record="not negative: record",
)
class Mixture(NamedTuple):
    votes: np.ndarray  # weights, the combined and the stacked expert's last
    mistakes: np.ndarray  # weighted, of all events so far
    blend: np.ndarray  # of the combined expert
    blend_squares: np.ndarray  # sums of products of scores, of which the lower triangle counts
    blend_moments: np.ndarray  # sums of scores times targets
    pull: np.ndarray  # of the stacked expert
    pull_squares: np.ndarray  # sums of squared gradients
    scale: np.ndarray  # mean squared scores
    bias: np.ndarray  # of the stacked expert
    bias_squares: np.ndarray
    sure: np.ndarray  # events by the probability of their winner, and those of them where it was right
    record: np.ndarray  # see EVENTS and the rest above

    def check(self, dimensions: Mapping[str, int]) -> None:
        """Raise unless somebody votes, and no more winners were right than there were."""
        if not self.votes.sum() > 0.0:
            raise ValueError("the votes of the mixture are all 0")
        if (self.sure[1] > self.sure[0]).any():
            raise ValueError("the mixture has more right winners than winners")

    def widened(self, change: Widening) -> Mixture:
        """Convert to the outputs of ``change``; a new class is as likely as the least likely one."""
        if change.outputs == 1:
            order = slice(None, None, int(np.sign(change.factors[0])))
            return self._replace(bias=self.bias[order].copy(), bias_squares=self.bias_squares[order].copy())
        known = change.old >= 0
        two = len(self.bias) == 2  # classes that shared one output, the first with a factor below 0
        origin = (change.factors > 0.0).astype(np.intp) if two else np.maximum(change.old, 0)
        return self._replace(
            bias=np.where(known, self.bias[origin], self.bias.min()),
            bias_squares=np.where(known, self.bias_squares[origin], 1.0),
        )

    def merged(self, other: Mixture, start: Mixture | None, merging: Merging) -> Mixture:
        """Return the mean of the weights; counts are added."""
        mean = Mixture(*(merging.shares[0] * own + merging.shares[1] * theirs for own, theirs in zip(self, other, strict=True)))
        mistakes = added(self, other, start, lambda mixture: mixture.mistakes)
        return mean._replace(mistakes=mistakes, record=added(self, other, start, lambda mixture: mixture.record))

    def calibration(self) -> np.ndarray:
        """Return how often winners were right in each bin of their probability, which itself counts as a few events."""
        return (self.sure[1] + PRIOR * (np.arange(BINS) + 0.5) / BINS) / (self.sure[0] + PRIOR)

    def certificate(self) -> dict[str, float]:
        """Return the mistakes of the vote and of the best expert, and the maximum of the first, given the second.

        A mistake removes at least (1 - exp(-RATE)) / 2 of the total weight, and the best expert keeps exp(-RATE) of its own for
        each of its mistakes and 1 - SHARE for each event.  Events of weight s count as s.
        """
        experts, best = len(self.votes), float(self.mistakes.min())
        spent = RATE * best + math.log(experts) - self.record[EVENTS] * math.log1p(-SHARE)
        each = math.log(2.0 / (1.0 + math.exp(-RATE)))
        return {
            "mistakes": float(self.record[SPENT]) / each,
            "best_expert_mistakes": best,
            "mistakes_bound": float(spent) / each,
        }


def new_mixture(experts: int, outputs: int) -> Mixture:
    """Return an untrained mixture of this many experts, the combined and the stacked one."""
    classes = max(2, outputs)
    return Mixture(
        votes=np.full(experts + 2, 1.0 / (experts + 2)),
        mistakes=np.zeros(experts + 2),
        blend=np.full(experts, 1.0 / experts),
        blend_squares=np.zeros((experts, experts)),
        blend_moments=np.zeros(experts),
        pull=np.full(experts, TRUST / experts),
        pull_squares=np.ones(experts),
        scale=np.ones(experts),
        bias=np.zeros(classes),
        bias_squares=np.ones(classes),
        sure=np.zeros((2, BINS)),
        record=np.zeros(3),
    )


def mixed(mixture: Mixture, scores: np.ndarray) -> np.ndarray:
    """Return log probabilities, or log odds, (outputs, events), from scores (experts, outputs, events)."""
    n = scores.shape[2]
    return learn_mixed(mixture, scores, np.zeros(n), np.zeros(n))


def learn_mixed(mixture: Mixture, scores: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Say of each event what ``mixed`` would say before it is learned, and learn it."""
    out = np.empty(scores.shape[1:])
    _learn_mixed(mixture, scores, targets, weights, out)
    return out


@jit
def _learn_mixed(mixture, scores, targets, weights, out):
    experts, outputs, n = scores.shape
    classes = max(2, outputs)
    x = np.empty((experts, classes))
    factor = np.empty((experts, experts))
    chosen = np.empty(experts + 2, np.int64)
    stacked = chosen.size - 1
    wrong = np.empty(chosen.size)
    logits = np.empty(classes)
    gradient = np.empty(classes)
    for j in range(n):
        _standardised(mixture, scores, j, x)
        for m in range(experts):
            chosen[m] = _best(x[m], outputs)
        _combine(mixture, x, logits)
        chosen[experts] = _best(logits, outputs)
        _stack(mixture, x, logits)
        chosen[stacked] = _best(logits, outputs)
        winner = _vote(mixture, chosen, outputs, gradient)
        for k in range(classes):
            gradient[k] = logits[k]
        logits[winner], logits[chosen[stacked]] = logits[chosen[stacked]], logits[winner]
        said = _calibrate(mixture, logits, winner)
        if outputs == 1:
            out[0, j] = logits[1] - logits[0]
        else:
            for k in range(classes):
                out[k, j] = logits[k]
        if weights[j] > 0.0:
            label = int(targets[j]) if outputs > 1 else int(targets[j] > 0.0)
            for m in range(chosen.size):
                wrong[m] = chosen[m] != label
            _learn_votes(mixture, wrong, winner != label, weights[j])
            _probabilities(gradient)
            gradient[label] -= 1.0
            _learn_stack(mixture, x, gradient, weights[j])
            _learn_blend(mixture, x, label, weights[j], factor)
            _learn_sure(mixture, said, winner == label, weights[j])
            _learn_scales(mixture, scores, j)
            mixture.record[EVENTS] += 1.0


@inline
def _centre(scores, m, j):
    """The mean score of an expert over the classes; of one output, those of the classes are -f and f."""
    outputs = scores.shape[1]
    if outputs == 1:
        return 0.0
    total = 0.0
    for o in range(outputs):
        total += scores[m, o, j]
    return total / outputs


@inline
def _standardised(mixture, scores, j, x):
    outputs = scores.shape[1]
    for m in range(x.shape[0]):
        root = np.sqrt(mixture.scale[m])
        centre = _centre(scores, m, j)
        for o in range(outputs):
            f = min(max((scores[m, o, j] - centre) / root, -REACH), REACH)
            if outputs == 1:
                x[m, 0], x[m, 1] = -f, f
            else:
                x[m, o] = f


@inline
def _best(f, outputs):
    """The class with the highest score: the second of two where they are equal up to rounding, the first of several."""
    if outputs == 1:
        return 1 if f[1] >= f[0] - TIE else 0
    best = 0
    for k in range(1, f.size):
        if f[k] > f[best] + TIE:
            best = k
    return best


@inline
def _combine(mixture, x, values):
    for k in range(values.size):
        values[k] = 0.0
        for m in range(x.shape[0]):
            values[k] += mixture.blend[m] * x[m, k]


@inline
def _stack(mixture, x, logits):
    for k in range(logits.size):
        logits[k] = mixture.bias[k]
        for m in range(x.shape[0]):
            logits[k] += mixture.pull[m] * x[m, k]


@inline
def _vote(mixture, chosen, outputs, votes):
    for k in range(votes.size):
        votes[k] = 0.0
    for m in range(chosen.size):
        votes[chosen[m]] += mixture.votes[m]
    votes[chosen[chosen.size - 1]] += AHEAD
    return _best(votes, outputs)


@inline
def _probabilities(logits):
    """Softmax, in place."""
    highest = logits[_best(logits, logits.size)]
    total = 0.0
    for k in range(logits.size):
        logits[k] = np.exp(logits[k] - highest)
        total += logits[k]
    for k in range(logits.size):
        logits[k] /= total


@inline
def _learn_votes(mixture, wrong, mistaken, weight):
    update_votes(mixture.votes, wrong, RATE * weight, SHARE)
    for m in range(wrong.size):
        mixture.mistakes[m] += weight * wrong[m]
    if mistaken:
        mixture.record[MISTAKES] += weight
        mixture.record[SPENT] += np.log(2.0 / (1.0 + np.exp(-RATE * weight)))


@inline
def _learn_stack(mixture, x, gradient, weight):
    for k in range(gradient.size):
        g = weight * gradient[k]
        mixture.bias_squares[k] = KEEP * mixture.bias_squares[k] + g * g
        mixture.bias[k] -= STEP * g / np.sqrt(mixture.bias_squares[k] + 1.0)
    for m in range(x.shape[0]):
        g = 0.0
        for k in range(gradient.size):
            g += weight * gradient[k] * x[m, k]
        mixture.pull_squares[m] = KEEP * mixture.pull_squares[m] + g * g
        mixture.pull[m] = max(0.0, mixture.pull[m] - STEP * g / np.sqrt(mixture.pull_squares[m] + 1.0))


@inline
def _learn_blend(mixture, x, label, weight, factor):
    """Least squares of 1 for the label's scores and -1 for others, centred; of two classes, one is enough."""
    experts, classes = x.shape
    S, B, w = mixture.blend_squares, mixture.blend_moments, mixture.blend
    for i in range(experts):
        B[i] *= FADE
        for m in range(i + 1):
            S[i, m] *= FADE
    for k in range(1 if classes == 2 else 0, classes):
        target = weight * ((1.0 if k == label else -1.0) + 1.0 - 2.0 / classes)
        for i in range(experts):
            B[i] += target * x[i, k]
            for m in range(i + 1):
                S[i, m] += weight * x[i, k] * x[m, k]
    ridge = SHRINK * FADE ** ((mixture.record[EVENTS] + 1.0) % PERIOD)
    for i in range(experts):  # the Cholesky factor, and the first of two triangular systems
        total = B[i] + ridge / experts
        for m in range(i + 1):
            entry = S[i, m] + (ridge if i == m else 0.0)
            for c in range(m):
                entry -= factor[i, c] * factor[m, c]
            factor[i, m] = entry / factor[m, m] if m < i else np.sqrt(max(entry, LEAST))
        for m in range(i):
            total -= factor[i, m] * w[m]
        w[i] = total / factor[i, i]
    for i in range(experts - 1, -1, -1):
        for m in range(i + 1, experts):
            w[i] -= factor[m, i] * w[m]
        w[i] /= factor[i, i]


@inline
def _calibrate(mixture, logits, winner):
    """Let the winner, which has the highest logit, have the probability that such winners had; returns the one it had here."""
    rest = second = 0.0
    for k in range(logits.size):
        if k != winner:
            share = np.exp(logits[k] - logits[winner])
            rest += share
            second = max(second, share)
    said = 1.0 / (1.0 + rest)
    place = min(max(said * BINS - 0.5, 0.0), BINS - 1.0)
    low = min(int(place), BINS - 2)
    part = place - low
    right = (1.0 - part) * _right(mixture, low) + part * _right(mixture, low + 1)
    least = second / (rest + second)  # as likely as the second, if the others share the rest
    right = min(max(right, least + BARELY), 1.0 - BARELY)
    logits[winner] += np.log(right / (1.0 - right)) + np.log(max(rest, 1e-300))
    return said


@inline
def _right(mixture, place):
    """How often winners of such a probability were right."""
    return (mixture.sure[1, place] + PRIOR * (place + 0.5) / BINS) / (mixture.sure[0, place] + PRIOR)


@inline
def _learn_sure(mixture, said, right, weight):
    place = min(int(said * BINS), BINS - 1)
    mixture.sure[0, place] = KEEP * mixture.sure[0, place] + weight
    mixture.sure[1, place] = KEEP * mixture.sure[1, place] + (weight if right else 0.0)


@inline
def _learn_scales(mixture, scores, j):
    outputs = scores.shape[1]
    rate = max(SLOWEST, 1.0 / (mixture.record[EVENTS] + 2.0))
    for m in range(scores.shape[0]):
        centre = _centre(scores, m, j)
        squares = 0.0
        for o in range(outputs):
            squares += (scores[m, o, j] - centre) ** 2 / outputs
        mixture.scale[m] = (1.0 - rate) * mixture.scale[m] + rate * max(squares, 1e-9)
