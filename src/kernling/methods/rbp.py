"""RBP, the randomised budget perceptron.

G. Cavallanti, N. Cesa-Bianchi, C. Gentile: Tracking the best hyperplane with a simple budget Perceptron.
Machine Learning 69 (2007).

A perceptron; when a mistake finds the budget full, a point chosen at random gives way to the new one.  Several classes as in
the perceptron.
"""

from __future__ import annotations

from typing import NamedTuple

from ..components.eviction import keep, mistaken
from ..core import loop, losses
from ..core.jit import inline
from ..core.updates import add
from ..estimators.constraints import Whole
from ..estimators.learner import Learner, Needs, Problem
from ..estimators.parameters import parameter
from ..estimators.shared import budget_of, budgeted, loss_of, no_points, point_count
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge, to_budget


class Params(NamedTuple):
    loss: losses.Loss
    budget: int


@inline
def step(params, state, block, j, f, y, weight, u):
    if mistaken(params.loss, f, y, block.g):
        k = keep(state.model, block, j, params.budget, int(u[0] * params.budget))
        add(state.model, block, j, k, -weight, block.g)


def configure(problem: Problem) -> tuple[Params, Needs]:
    return Params(loss_of(problem), budget_of(problem)), Needs(uniforms=1)


LEARNER = Learner(
    name="rbp",
    title="Randomised Budget Perceptron",
    citation=(
        "G. Cavallanti, N. Cesa-Bianchi, C. Gentile: "
        "Tracking the best hyperplane with a simple budget Perceptron, Machine Learning 69, 2007"
    ),
    loop=loop.kernel_loop(step),
    configure=configure,
    start=no_points,
    bound=budgeted,
    certificate=point_count,
    merge=Merge(points=to_budget),
)


class RBPClassifier(OnlineClassifier):
    """The randomised budget perceptron: a random point gives way to the event that was got wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import RBPClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBPClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.21 mistakes, 100 points
    """

    learner = LEARNER
    budget: int = parameter(default=100, allowed=Whole(1), doc="The largest number of points.")
    loss = "hinge"
