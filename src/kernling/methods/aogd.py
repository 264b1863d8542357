"""AOGD, averaged online gradient descent for pairs, maximising the area under the ROC curve.

H. AlQuabeh, W. de Vazelhes, B. Gu: Limited Memory Online Gradient Descent for Kernelized Pairwise Learning with Dynamic
Averaging.  AAAI Conference on Artificial Intelligence (2024).

A linear model on random features r(x), so that the score of x is w.r(x).  Event t with label y is paired with the mean m of the
other class, then with one stored example e of it:

    w <- w - eta (l'(w.d) d + lam w),           d = y (r(x_t) - m),
    w <- w - second_eta (l'(w.d) d + lam w),    d = y (r(x_t) - e),   at the w of the first step.

Then x_t updates the mean of its own class and, with probability p, replaces that class's example.

With two classes, both gradients of the loss are multiplied by the weight of the event, which forms pairs with n of the t - 1
events before it (``weighting``):

    weight = min(1, 2 n / (t - 1)).

Departures from the paper, each with its reason:

- A mean and an example per class, as in the paper's text.  With ``means="single"``, as in its Algorithm 1, there is one of each
  for all events; then an event is also paired with its own class, whose mean is used in place of the other's.  The listing has
  no rule for an example with the event's own label: the second step is omitted.
- Features have <r(x), r(x)> = 1, and the frequencies the variance 2 gamma of the Gaussian kernel; the printed factors give
  another kernel.
- lam is used in both steps; in the listing it is an input that is never used.
- By default pairs have equal weights, as in the paper's loss (1), which divides the sum over the n pairs of an event by t - 1:
  events of a frequent class take small steps.  Twice that share is 1 if classes are even; it is at most 1, so that no step is
  larger than eta.  In Algorithm 1 events have equal weights (``weighting="events"``), and if positives are rare, the steps of
  many negatives against the mean of few positives follow the noise in that mean.
- By default the mean of a class follows its last ``mean_events`` events instead of all, and predictions weight the last w, the
  average of all and that of the latest by how well each has ranked events lately (``output``); the paper returns the last.
- No certificate: the paper's regret bound is not established (its proof needs (1 + a)^2 <= 2 a).
- Labels need a threshold, which the paper does not define: the score half-way between the means of both classes.
- Several classes: one against the rest, all with the same random number, and events with equal weights: with those of pairs,
  the highest score is more often that of a wrong class.
- A sample weight multiplies both gradients of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.pairwise import pair_loss, pair_slope, side_of
from ..components.sides import Sides, join_mean, keep_example, new_sides
from ..core import losses
from ..core.averages import AUTO, KINDS, RATE, SHARE
from ..core.expansion import EVENTS
from ..core.fourier import Linear, output_score
from ..core.limits import GAMMA
from ..core.votes import TIE, update_votes
from ..driver import loops
from ..estimators.constraints import NOTHING, OneOf, Real, Whole
from ..estimators.examples import Example
from ..estimators.learner import FeatureLearner, Needs, Problem, decay_of, empty_linear
from ..estimators.options import Forgets, MeanAndExample, PairLoss, RandomFeatures, VotedMean
from ..estimators.pairwise import PairwiseClassifier
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.resolve import smooth_gamma

RAREST = 20.0  # times the mean weight: at most this much counts a mistake of a rare class for the votes


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    second_eta: float
    refresh: float
    lam: float
    mean_events: float
    single: bool  # one mean and one example of all events
    pairs: bool  # have equal weights, if there are two classes, instead of events
    output: int


class State(NamedTuple):
    model: Linear
    sides: Sides


@inner
def descend(params, w, z, mean, example, second_eta, own_mean, share, f, sign, weight):
    """Take both steps for an event with features z and score f, and update the mean of its class.

    All products first, then all changes, to read the long arrays as few times as possible.
    """
    f_mean = f_example = product = 0.0
    for i in range(w.size):
        r = np.float64(z[i])
        f_mean += w[i] * mean[i]
        f_example += w[i] * example[i]
        product += (r - mean[i]) * (r - example[i])
    kept, kept_then = 1.0 - params.eta * params.lam, 1.0 - second_eta * params.lam
    first = -params.eta * weight * sign * pair_slope(params.loss, sign * (f - f_mean))
    m = sign * (kept * (f - f_example) + first * product)
    second = -second_eta * weight * sign * pair_slope(params.loss, m)
    first *= kept_then
    for i in range(w.size):
        r = np.float64(z[i])
        w[i] = kept * kept_then * w[i] + first * (r - mean[i]) + second * (r - example[i])
        own_mean[i] += share * (r - own_mean[i])


@inner
def descend_from_all(params, w, z, sides, o, own, share, f, sign, weight):
    """Take both steps against the mean and the example of all events, whatever their class."""
    other, counts = 1 - own, sides.counts
    mean, own_mean, example = np.empty(w.size), sides.means[o, own], sides.examples[o, other]
    own_share = (counts[o, own] - 1.0) / (counts[o, own] + counts[o, other] - 1.0)
    for i in range(w.size):
        mean[i] = own_share * own_mean[i] + (1.0 - own_share) * sides.means[o, other, i]
    second_eta = params.second_eta if sides.latest[o] == other else 0.0
    descend(params, w, z, mean, example, second_eta, own_mean, share, f, sign, weight)


@inline
def step(params, state, features, j, f, y, weight, u):
    model, sides = state.model, state.sides
    if params.output == AUTO:
        vote(model, sides, features, j, y, weight)
    z = features.Z[j]
    for o in range(f.size):
        own = side_of(y, o, f.size)
        other = 1 - own
        w, sign, own_mean = model.coef[0, model.places[o]], 2.0 * own - 1.0, sides.means[o, own]
        if params.pairs and f.size == 1:
            weight *= pair_weight(sides.counts[o, own], sides.counts[o, other])
        sides.counts[o, own] += 1.0
        share = 1.0 / min(sides.counts[o, own], params.mean_events)
        if params.single and sides.latest[o] >= 0.0:
            descend_from_all(params, w, z, sides, o, own, share, f[o], sign, weight)
        elif sides.counts[o, other] > 0.0:
            mean, example = sides.means[o, other], sides.examples[o, other]
            descend(params, w, z, mean, example, params.second_eta, own_mean, share, f[o], sign, weight)
        else:
            join_mean(own_mean, z, share)
        first = sides.latest[o] < 0.0 if params.single else sides.counts[o, own] == 1.0
        if first or u[0] < params.refresh:
            keep_example(sides, z, o, own)


@inline
def pair_weight(own, other):
    """Return the weight of an event, given the numbers of earlier events of its own and the other class."""
    return min(1.0, 2.0 * other / max(1.0, own + other))


@inline
def vote(model, sides, features, j, y, weight):
    """Update the votes of the outputs by their mistakes at event j, in which both classes count alike."""
    outputs = model.places.size
    for g in range(model.votes.size):
        features.losses[g] = 0.0
        for o in range(outputs):
            own = side_of(y, o, outputs)
            negatives, positives = sides.counts[o, 0], sides.counts[o, 1]
            if negatives > 0.0 and positives > 0.0:
                f = centred_score(model.coef[g, model.places[o]], features.Z[j], sides.means[o, 0], sides.means[o, 1])
                wrong = (f >= -TIE * model.clock[EVENTS]) != (own == 1)
                rarity = (negatives + positives) / (2.0 * sides.counts[o, own])
                features.losses[g] += wrong * min(rarity, RAREST) / outputs
    update_votes(model.votes, features.losses, RATE * weight, SHARE)


@inner
def centred_score(w, z, negative, positive):
    """Return the score of an event minus that of the point half-way between two means."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * (np.float64(z[i]) - 0.5 * (negative[i] + positive[i]))
    return total


@inline
def note(params, state, row):
    """Record the thresholds with the scores of each event."""
    outputs = state.model.places.size
    for o in range(outputs):
        negative = output_score(state.model, params.output, o, state.sides.means[o, 0])
        positive = output_score(state.model, params.output, o, state.sides.means[o, 1])
        row[outputs + o] = 0.5 * (negative + positive)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    mean_events = float(o["mean_events"] or np.inf)
    steps = o["eta"], o["second_eta"], o["refresh"], o["lam"]
    single, pairs = o["means"] == "single", o["weighting"] == "pairs"
    params = Params(pair_loss(o["loss"]), *steps, mean_events, single, pairs, KINDS[o["output"]])
    return params, Needs(output=o["output"], uniforms=1, notes=problem.outputs, decay=decay_of(problem))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    model = empty_linear(needs, problem, rng)
    return State(model, new_sides(model))


LEARNER = FeatureLearner(__name__, loops.feature_loop(step, note), configure, start)


class AOGDClassifier(PairLoss, MeanAndExample, VotedMean, Forgets, RandomFeatures, PairwiseClassifier):
    """Averaged online gradient descent on pairs: maximises the area under the ROC curve, for imbalanced classes.

    The fewer pairs an event forms, the smaller are its steps (``weighting``), so that rare positives need no smaller ``eta``.
    ``decision_function`` is ``rank_scores`` minus the score half-way between the means of both classes, so that rare classes
    count as much as frequent ones.  More than two classes are learned one against the rest.  No points are stored: the model
    has ``n_components`` weights, 2,000 by default, for each output, and their means.
    """

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "eta", "second_eta", "refresh", "n_components"),
        choices={"means": ("single", "class"), "loss": ("squared", "hinge", "logistic")},
        values={"kernel": "rbf", "degree": 3, "lam": 0.0},
        off={"weighting": "events", "mean_events": None, "output": "last", "features": "fourier", "coef0": 0.0, "forget": None},
    )
    example = Example("0.98", random_state=0)
    eta: float = parameter(default=0.4, doc="Size of the step against the mean of the other class.")
    second_eta: float = parameter(default=0.1, doc="Size of the step against the example of the other class.")
    refresh: float = parameter(
        default=0.1, doc="Probability with which an event becomes the example of its class; with 1, it is the last event."
    )
    means: str = parameter(
        default="class",
        allowed=OneOf(("class", "single")),
        doc="Whether each class has a mean and an example, or there is one of each for all events, as in the paper's listing.",
    )
    weighting: str = parameter(
        default="pairs",
        allowed=OneOf(("pairs", "events")),
        doc="What has equal weights: ``pairs``, so that events of the more frequent of two classes, which form few pairs, take "
        "small steps; or ``events``, as in the paper's listing, and with more than two classes in any case.",
    )
    mean_events: int | None = parameter(
        default=1000,
        allowed=(NOTHING, Whole(1)),
        doc="The mean of a class follows about this many of its latest events; None: it is that of all, as in the paper.",
    )
    n_components: int = parameter(default=2000)
    gamma: float | str = parameter(
        default="smooth",
        allowed=(OneOf(("smooth", "scale")), Real(0.0, strict=True, extreme=GAMMA)),
        resolve=smooth_gamma,
        doc='Kernel coefficient; "scale" is 1 / (columns * variance of the first rows), "smooth" half of that.',
    )
