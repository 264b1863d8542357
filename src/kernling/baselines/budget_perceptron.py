"""The budget perceptron.

K. Crammer, J. Kandola, Y. Singer: Online Classification on a Budget.  Advances in Neural Information Processing Systems 16
(2004).

When y f(x_t) <= beta the event is added, as in the perceptron; if this exceeds the budget, the point i is removed that is
classified best without itself: the largest y_i (f(x_i) - a_i K(x_i, x_i)).  A point with a wrong label is never removed, so
such points accumulate: flipping one label in a hundred triples the mistakes on separable data.

Departures from the paper, each with its reason:

- f in the rule includes the new event, which is never removed itself.
- Several classes: margins f_y - f_z over the best wrong class z; the class of a point is that of its positive coefficient.
- The scores of all stored points are cached, so that a step costs one row of kernel values instead of a matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.eviction import Values, event_value, point_value, store
from ..core import losses
from ..core.block import point_values
from ..core.expansion import Expansion
from ..core.updates import add
from ..driver import loops
from ..estimators.constraints import Real
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, budget_of, empty_expansion, loss_of
from ..estimators.options import Budget
from ..estimators.parameters import parameter
from ..estimators.tasks import OnlineClassifier


class Params(NamedTuple):
    loss: losses.Loss
    beta: float
    budget: int


class State(NamedTuple):
    model: Expansion
    values: Values


@inline
def step(params, state, block, j, f, y, weight, u):
    model, scores = state.model, state.values.scores
    if losses.margin(f, y) > params.beta:
        return
    losses.gradient(params.loss, f, y, block.g)
    outputs, size = f.size, model.size[0]
    for o in range(outputs):
        block.g[o] *= -weight  # the step
        for i in range(size):
            scores[o, i] += block.g[o] * np.float64(block.K[i, j])
        block.work[1, o] = f[o] + block.g[o] * event_value(block, j)
    victim = -1
    if size == params.budget:
        victim = best_without_itself(model, block.kernel, scores, f)
        point_values(model, block.kernel, victim, block.work[0])
        for o in range(outputs):
            a = model.coef[0, model.places[o], victim]
            for i in range(size):
                scores[o, i] -= a * block.work[0, i]
            block.work[1, o] -= a * np.float64(block.K[victim, j])
    k = store(model, block, j, params.budget, victim)
    for o in range(outputs):
        scores[o, k] = block.work[1, o]
    add(model, block, j, k, 1.0, block.g)


@inner
def best_without_itself(model, kernel, scores, f):
    """Return the point with the largest margin in the model without it; f is overwritten."""
    best, largest = 0, -np.inf
    for i in range(model.size[0]):
        k_ii = point_value(model, kernel, i)
        label = 0
        for o in range(f.size):
            a = model.coef[0, model.places[o], i]
            f[o] = scores[o, i] - a * k_ii
            if a > model.coef[0, model.places[label], i]:
                label = o
        y = float(label) if f.size > 1 else np.sign(model.coef[0, 0, i])
        margin = losses.margin(f, y)
        if margin > largest:
            best, largest = i, margin
    return best


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), problem.options["beta"], budget_of(problem)), Needs()


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem, tags=1), Values(np.zeros((problem.outputs, 0))))


LEARNER = Learner(__name__, loops.kernel_loop(step), configure, start)


class BudgetPerceptronClassifier(Budget, OnlineClassifier):
    """The budget perceptron: the point that is classified best without itself is removed."""

    learner = LEARNER
    example = Example("0.68", random_state=0)
    beta: float = parameter(default=0.0, allowed=Real(0.0, 0.999999), doc="Margin up to which an event is added; less than 1.")
