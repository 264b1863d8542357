"""Probabilities from the scores of experts: stacks that minimise log-loss, mixed by how well each did lately.

A stack is softmax of a weighted sum of the experts' scores, each score minus its running mean and over its running spread, z,
and compressed to z / sqrt(1 + |z|), so that the few high scores of a rare class count and still differ.  Its weights are
learned by Newton steps: gradients over the sum of curvatures so far.  Curvatures fade as information arrives, not as time
passes: an event whose class was certain tells nothing about the weights, and nothing is forgotten for it.  So a class of one
per cent is learned from as many of its events as a common one.  A share of the labels may be noise, drawn from all labels so
far: a stack learns how large it is, by the probability that each label was noise (online EM), and learns less from it.

Several stacks, from slow to fast, differ in how much they forget.  Two more are for rare classes, of which there are too few
events for as many weights: one that is drawn towards the experts that are smooth and never forget, and one of the linear expert
only.
The probabilities of all stacks are averaged by weights that follow their likelihoods (a Bayesian mixture with a share,
core/votes.py), so that log-loss is at most that of the best stack and a little more.  The share is smaller where a class is
rare: otherwise weights would be even again before its next event.  Nothing is clipped or replaced by the mean of a bin, so that
different scores have different probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..compiler import inline_exact, jit_exact
from ..core.shapes import declared
from ..core.state import Widening, added
from ..core.votes import update_votes

if TYPE_CHECKING:
    from ..merging.rules import Merging

FADES = (0.06, 0.02, 0.001, 0.001, 0.001)  # what the most uncertain event makes each stack forget
DRAWN, ALONE = 3, 4  # the stack that is drawn towards the experts that never forget, and that of the linear one
KERNEL, LINEAR, LOGISTIC = 0, 1, 4  # the places of these experts
SHARE = 0.001  # of the weight of all stacks, which is divided after each event if classes are equally frequent
START = 1.0  # the sum of a stack's weights at first, without that of log odds
RIDGE = 10.0  # curvature of a stack's weights at first, in events
DRAWN_RIDGE = 100.0  # the same of the one that is drawn
BIAS_RIDGE = 2.0  # the same of the biases
NOISE = 0.01  # share of the labels at first
LEAST_NOISE = 1e-5
NOISE_RATE = 0.001  # the least weight of an event in it
SLOWEST = 0.0001  # the least weight of an event in means and spreads of scores
EVENTS, LOG_LOSS = range(2)  # what record holds
LEAST = 1e-3  # pivot of a system of equations, which is more if there are no rounding errors
LARGEST = 1e6  # more than weights and biases can be


@declared()
class Mixture(NamedTuple):
    mean: Annotated[np.ndarray, "coefficients: experts outputs"]  # of scores
    spread: Annotated[np.ndarray, "positive: experts"]  # mean squared differences of scores from it
    pull: Annotated[np.ndarray, f"{-LARGEST}..{LARGEST}: stacks experts"]  # weights of scores
    # sums of second derivatives, of which the lower triangle counts
    curvature: Annotated[np.ndarray, "coefficients: stacks experts experts"]
    bias: Annotated[np.ndarray, f"{-LARGEST}..{LARGEST}: stacks labels"]
    bias_curvature: Annotated[np.ndarray, "0..1e130: stacks labels"]
    noise: Annotated[np.ndarray, "0..1: stacks"]  # share of the labels
    trust: Annotated[np.ndarray, "shares: stacks"]  # weights of the stacks
    losses: Annotated[np.ndarray, "not negative: stacks"]  # log-loss of each stack, of all events so far
    seen: Annotated[np.ndarray, "positive: labels"]  # events of each class so far, and one
    record: Annotated[np.ndarray, "counts", "not negative"]  # see EVENTS and LOG_LOSS above

    def widened(self, change: Widening) -> Mixture:
        """Convert to the outputs of ``change``; a new class has the lowest mean score, and the least bias."""
        mean = change._replace(factors=np.sign(change.factors)).of(self.mean, axis=1)
        known, order = places_of_labels(change, len(self.seen))
        if change.outputs > 1:
            mean[:, ~known] = mean[:, known].min(axis=1, keepdims=True)
        bias = np.where(known, self.bias[:, order], self.bias.min(axis=1, keepdims=True))
        curvature = np.where(known, self.bias_curvature[:, order], 0.0)
        seen = np.where(known, self.seen[order], 1.0)
        fields = {"bias": bias, "bias_curvature": curvature, "seen": seen}
        return self._replace(mean=mean, **{name: np.ascontiguousarray(array) for name, array in fields.items()})

    def merged(self, other: Mixture, start: Mixture | None, merging: Merging) -> Mixture:
        """Return the mean of the weights; losses and events are added."""
        mean = Mixture(*(merging.shares[0] * own + merging.shares[1] * theirs for own, theirs in zip(self, other, strict=True)))
        losses = added(self, other, start, lambda mixture: mixture.losses)
        seen = np.maximum(1.0, added(self, other, start, lambda mixture: mixture.seen - 1.0) + 1.0)
        return mean._replace(losses=losses, seen=seen, record=added(self, other, start, lambda mixture: mixture.record))

    @property
    def frequency(self) -> np.ndarray:
        """Return that of each class so far, as if there had been one more event of each."""
        return self.seen / self.seen.sum()

    def units(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what is subtracted from scores, (experts, outputs), what the rest is divided by, and 1 or 0 for each expert.

        A result z counts as z / sqrt(1 + |z|) with 1, and as it is with 0: log odds are what is to be added.
        """
        is_log_odds, whole = np.arange(len(self.mean)) == LOGISTIC, 2.0 if self.mean.shape[1] == 1 else 1.0
        mean, scale = np.where(is_log_odds[:, np.newaxis], 0.0, self.mean), np.where(is_log_odds, whole, np.sqrt(self.spread))
        return mean, scale, np.where(is_log_odds, 0.0, 1.0)

    @property
    def evenness(self) -> float:
        """Return the variance of the classes so far over that of equally frequent ones."""
        return float((1.0 - self.frequency @ self.frequency) / (1.0 - 1.0 / len(self.seen)))

    def expert_weights(self) -> np.ndarray:
        """Return the mean weight of each expert's scaled scores, which may be negative."""
        return self.trust @ self.pull

    def certificate(self) -> dict[str, float]:
        """Return the log-loss of all events so far and that of the best stack, and the maximum of the first, given the second.

        A stack keeps at least 1 - SHARE of its part of the weight at each event.  Events of weight s count as min(s, 1).
        """
        best = float(self.losses.min())
        return {
            "log_loss": float(self.record[LOG_LOSS]),
            "best_stack_log_loss": best,
            "log_loss_bound": best + math.log(self.trust.size) - float(self.record[EVENTS]) * math.log1p(-SHARE),
        }


def places_of_labels(change: Widening, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which labels were there before ``change``, and the old places of those, given how many there were."""
    if change.outputs == 1:
        return np.ones(2, bool), np.arange(2)[:: int(np.sign(change.factors[0]))]
    if labels == 2:  # classes that shared one output, the first with a factor below 0
        return change.old >= 0, (change.factors > 0.0).astype(np.intp)
    return change.old >= 0, np.maximum(change.old, 0)


def new_mixture(experts: int, outputs: int) -> Mixture:
    """Return an untrained mixture of this many experts."""
    stacks, classes = len(FADES), max(2, outputs)
    pull = np.full((stacks, experts), START / (experts - 1))
    pull[DRAWN:] = 0.0
    pull[DRAWN, [KERNEL, LINEAR]] = START / 2.0
    pull[[DRAWN, ALONE], [LOGISTIC, LINEAR]] = START
    return Mixture(
        mean=np.zeros((experts, outputs)),
        spread=np.ones(experts),
        pull=pull,
        curvature=np.zeros((stacks, experts, experts)),
        bias=np.zeros((stacks, classes)),
        bias_curvature=np.zeros((stacks, classes)),
        noise=np.full(stacks, NOISE),
        trust=np.full(stacks, 1.0 / stacks),
        losses=np.zeros(stacks),
        seen=np.ones(classes),
        record=np.zeros(2),
    )


@inline_exact
def _first_of(s):
    """Return the first expert of a stack."""
    return LINEAR if s == ALONE else 0


@inline_exact
def _last_of(s, experts):
    """Return the expert after the last one of a stack."""
    return LINEAR + 1 if s == ALONE else experts


@jit_exact
def learn_mixed(mixture, fades, scores, targets, weights, out):
    """Write log probabilities, or log odds, (outputs, events), from scores (experts, outputs, events), and learn each event.

    They are those before it was learned; events of weight 0 are not learned.  ``fades`` are FADES.
    """
    experts, outputs, n = scores.shape
    classes = max(2, outputs)
    away = np.empty((experts, classes))
    x = np.empty((experts, classes))
    said = np.empty((fades.size, classes))
    whole = np.empty(classes)
    losses = np.empty(fades.size)
    frequency = np.empty(classes)
    work = np.empty((experts + 2, experts))
    for j in range(n):
        _standardise(mixture, scores, j, away, x)
        _write_frequency(mixture.seen, frequency)
        _stack(mixture, x, frequency, said)
        _mix(mixture, said, whole)
        if outputs == 1:
            out[0, j] = whole[1] - whole[0]
        else:
            for k in range(classes):
                out[k, j] = whole[k]
        if weights[j] > 0.0:
            label = int(targets[j]) if outputs > 1 else int(targets[j] > 0.0)
            _learn_trust(mixture, said, label, whole[label], weights[j], losses)
            for s in range(fades.size):
                _learn_stack(mixture, s, fades[s], x, said[s], label, weights[j], frequency, work)
            _learn_scales(mixture, scores, j, away)
            mixture.seen[label] += 1.0
            mixture.record[EVENTS] += 1.0


@inline_exact
def _standardise(mixture, scores, j, away, x):
    """Write scores minus their means over time and over classes, and the same over the spread, compressed, or log odds."""
    outputs = scores.shape[1]
    for m in range(x.shape[0]):
        root = np.sqrt(mixture.spread[m])
        if m == LOGISTIC:
            root = 2.0 if outputs == 1 else 1.0
        centre = 0.0
        for o in range(outputs):
            away[m, o] = scores[m, o, j] - (mixture.mean[m, o] if m != LOGISTIC else 0.0)
            centre += away[m, o] / outputs
        if outputs == 1:
            away[m, 1] = away[m, 0]
            away[m, 0] = -away[m, 1]
            centre = 0.0
        for k in range(x.shape[1]):
            away[m, k] -= centre
            x[m, k] = away[m, k] / root
            if m != LOGISTIC:
                x[m, k] /= np.sqrt(1.0 + abs(x[m, k]))


@inline_exact
def _write_frequency(seen, frequency):
    total = 0.0
    for k in range(seen.size):
        total += seen[k]
    for k in range(seen.size):
        frequency[k] = seen[k] / total


@inline_exact
def _stack(mixture, x, frequency, said):
    """Write the log probabilities of each stack."""
    for s in range(said.shape[0]):
        highest = -np.inf
        for k in range(said.shape[1]):
            total = mixture.bias[s, k]
            for m in range(_first_of(s), _last_of(s, x.shape[0])):
                total += mixture.pull[s, m] * x[m, k]
            said[s, k] = total
            highest = max(highest, total)
        total = 0.0
        for k in range(said.shape[1]):
            total += np.exp(said[s, k] - highest)
        total = highest + np.log(total)
        for k in range(said.shape[1]):
            p = np.exp(said[s, k] - total)
            said[s, k] = np.log((1.0 - mixture.noise[s]) * p + mixture.noise[s] * frequency[k])


@inline_exact
def _mix(mixture, said, whole):
    """Write the logarithm of the mean probability of all stacks."""
    for k in range(whole.size):
        highest = said[0, k]
        for s in range(1, said.shape[0]):
            highest = max(highest, said[s, k])
        total = 0.0
        for s in range(said.shape[0]):
            total += mixture.trust[s] * np.exp(said[s, k] - highest)
        whole[k] = highest + np.log(total)


@inline_exact
def _learn_trust(mixture, said, label, own, weight, losses):
    counts = min(weight, 1.0)  # beyond, the loss of a mean is not at most the mean of losses
    mixture.record[LOG_LOSS] -= counts * min(own, 0.0)
    best = said[0, label]
    for s in range(losses.size):
        best = max(best, said[s, label])
        mixture.losses[s] -= counts * said[s, label]
    for s in range(losses.size):
        losses[s] = best - said[s, label]
    update_votes(mixture.trust, losses, counts, SHARE * evenness(mixture.seen))


@inline_exact
def evenness(seen):
    """Return the variance of the classes over that of equally frequent ones, given the number of events of each."""
    total = 0.0
    for k in range(seen.size):
        total += seen[k]
    rest = 1.0
    for k in range(seen.size):
        rest -= (seen[k] / total) ** 2
    return max(rest, 0.0) / (1.0 - 1.0 / seen.size)


@inline_exact
def _learn_stack(mixture, s, fade, x, p, label, weight, frequency, work):
    """A Newton step of log-loss; ``p`` are log probabilities, and probabilities without noise after it.

    Half of the curvature is that of this event's own gradient, which bounds the step.
    """
    experts, classes = x.shape
    first, last = _first_of(s), _last_of(s, experts)
    gradient, centre, curvature = work[experts], work[experts + 1], mixture.curvature[s]
    share = mixture.noise[s]
    is_noise = share * frequency[label] / np.exp(p[label])
    weight *= max(1.0 - is_noise, 0.0)  # the share of noise may be rounded to more than 1
    rate = max(NOISE_RATE, 1.0 / (mixture.record[EVENTS] + 100.0))
    mixture.noise[s] = max(share + rate * (is_noise - share), LEAST_NOISE)
    uncertain = 1.0
    for m in range(first, last):
        centre[m] = 0.0
    for k in range(classes):
        p[k] = max(np.exp(p[k]) - share * frequency[k], 0.0) / (1.0 - share)
        uncertain -= p[k] * p[k]
        for m in range(first, last):
            centre[m] += p[k] * x[m, k]
    kept = 1.0 - fade * max(uncertain, 0.0)
    for i in range(first, last):
        gradient[i] = centre[i] - x[i, label]
        for m in range(first, i + 1):
            curvature[i, m] = kept * curvature[i, m] + 0.5 * weight * gradient[i] * gradient[m]
    for k in range(classes):
        slope = p[k] - (1.0 if k == label else 0.0)
        bent = 0.5 * (slope * slope + p[k] * max(1.0 - p[k], 0.0))  # as may p
        mixture.bias_curvature[s, k] = kept * mixture.bias_curvature[s, k] + weight * bent
        mixture.bias[s, k] -= weight * slope / (mixture.bias_curvature[s, k] + BIAS_RIDGE)
        for i in range(first, last):
            part = 0.5 * weight * p[k] * (x[i, k] - centre[i])
            for m in range(first, i + 1):
                curvature[i, m] += part * (x[m, k] - centre[m])
    ridge = DRAWN_RIDGE if s == DRAWN else RIDGE
    _newton_step(curvature, gradient, mixture.pull[s], weight, ridge, work, first, last)


@inline_exact
def _newton_step(curvature, gradient, pull, weight, ridge, factor, first, last):
    """Subtract the solution of (curvature + ridge) step = weight gradient, by a Cholesky factor, for some experts."""
    for i in range(first, last):
        for m in range(first, i + 1):
            entry = curvature[i, m] + (ridge if i == m else 0.0)
            for c in range(first, m):
                entry -= factor[i, c] * factor[m, c]
            factor[i, m] = entry / factor[m, m] if m < i else np.sqrt(max(entry, LEAST))
        for m in range(first, i):
            gradient[i] -= factor[i, m] * gradient[m]
        gradient[i] /= factor[i, i]
    for i in range(last - 1, first - 1, -1):
        for m in range(i + 1, last):
            gradient[i] -= factor[m, i] * gradient[m]
        gradient[i] /= factor[i, i]
        pull[i] -= weight * gradient[i]


@inline_exact
def _learn_scales(mixture, scores, j, away):
    rate = max(SLOWEST, 1.0 / (mixture.record[EVENTS] + 2.0))
    classes = away.shape[1]
    for m in range(scores.shape[0]):
        squares = 0.0
        for k in range(classes):
            squares += away[m, k] * away[m, k] / classes
        mixture.spread[m] = (1.0 - rate) * mixture.spread[m] + rate * max(squares, 1e-9)
        for o in range(scores.shape[1]):
            mixture.mean[m, o] += rate * (scores[m, o, j] - mixture.mean[m, o])
