"""OSKL, online sparse kernel learning.

L. Zhang, J. Yi, R. Jin, M. Lin, X. He: Online Kernel Learning with a Near Optimal Sparsity Bound.
International Conference on Machine Learning (2013).

At event t, with slope l' of a smooth loss at the score f_t(x_t) and |l'| <= G, a coin falls with probability |l'| / G, and if
it does

    f <- f - eta G sgn(l') K(x_t, .).

So a step is in expectation one of gradient descent, events that the model is sure of are seldom stored, and a larger G means
fewer points.  No point is ever removed, and the average of all models lives on the same points.

Departures from the paper, each with its reason:

- No projection on a ball: J. Lu, P. Zhao, S. C. H. Hoi (Online Sparse Passive Aggressive Learning with Kernels, 2016), whose
  comparison this is for, have none, and the ball's radius would be one more thing to tune.
- Several classes and regression (not in the paper): the slope is that of the margin f_y - f_z, the step goes to both columns;
  or that of a smooth loss of the residual.
- A weight multiplies the step, not the chance, which stays a probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import drive, losses
from ..core.changes import add, insert
from ..core.combine import Merge, each
from ..core.expansion import EVENTS, Expansion
from ..core.jit import inline
from ..estimators.parameters import CLASS_WEIGHT, POSITIVE, OneOf, Real, Rule
from ..estimators.tasks import OnlineClassifier, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, empty_expansion

CHANCES = 0  # in stats


class Params(NamedTuple):
    loss: losses.Loss
    eta: float
    G: float


class State(NamedTuple):
    model: Expansion
    stats: np.ndarray  # the sum of the coins' chances


@inline
def step(params, state, block, j, f, y, weight, u):
    slope = block.g
    losses.gradient(params.loss, f, y, slope)
    size = abs(slope[0]) if f.size == 1 else -slope[int(y)]
    chance = size / params.G
    state.stats[CHANCES] += chance
    if u[0] < chance:
        k = insert(state.model, block, j, 0.0)
        add(state.model, block, j, k, -weight * params.eta * params.G / size, slope)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    name = "smooth_epsilon" if problem.task == "regression" else o["loss"]
    loss = losses.Loss(losses.KINDS[name], o["tau"], o.get("epsilon", 0.0))
    return Params(loss, o["eta"], o["G"]), Needs(output=o["output"], uniforms=1)


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem), np.zeros(1))


def bound(params: Params, t: int) -> float:
    """Of the expected number of points: all slopes are at most 1."""
    return t / params.G


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """The number of points."""
    return {
        "expected_bound": float(bound(params, state.model.clock[EVENTS])),
        "expected_points": float(state.stats[CHANCES]),
        "points": int(state.model.size[0]),
    }


LEARNER = Learner(
    name="oskl",
    title="Online Sparse Kernel Learning",
    citation="L. Zhang, J. Yi, R. Jin, M. Lin, X. He: Online Kernel Learning with a Near Optimal Sparsity Bound, ICML, 2013",
    loop=drive.kernel_loop(step),
    configure=configure,
    start=start,
    bound=bound,
    expected_bound=True,
    certificate=certificate,
    merge=Merge(arrays={"stats": each("total")}),
)

_RULES: dict[str, tuple[Rule, ...]] = {
    "eta": (POSITIVE,),
    "G": (Real(1.0),),
    "tau": (POSITIVE,),
    "output": (OneOf(("average", "last")),),
}


class OSKLClassifier(OnlineClassifier):
    """Online sparse kernel learning: gradient steps at random events, most likely where the loss is steep.

    Parameters
    ----------
    loss : {"logistic", "smooth_hinge"}
        Of the margin; for more than two classes, of the margin over the best wrong class.
    eta : float
        Step size of the gradient descent that is imitated.
    G : float
        A step is taken with probability abs(slope of the loss) / G, and is G times as large; at least 1.
    tau : float
        Width of the curved part of the smooth hinge loss.
    output : {"average", "last"}
        Which model predicts: the mean of all, or the current one.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import OSKLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OSKLClassifier(gamma=0.1, random_state=0)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes, {model.n_support_} points")
    0.14 mistakes, 366 points
    """

    learner = "oskl"
    rules = {**_RULES, "loss": (OneOf(("logistic", "smooth_hinge")),), "class_weight": CLASS_WEIGHT}

    def __init__(
        self, loss="logistic", *, eta=1.0, G=1.0, tau=0.5, output="average", kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        class_weight=None, random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None,
        verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class OSKLRegressor(OnlineRegressor):
    """Online sparse kernel learning for regression, with the smooth epsilon-insensitive loss.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube without loss.
    tau : float
        Width of the curved part of the loss beside the tube; with epsilon = 0, Huber's loss divided by its knee tau.
    eta, G, output, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`OSKLClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import OSKLRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = OSKLRegressor(gamma=1.0, random_state=1).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    1.00
    """

    learner = "oskl"
    rules = {**_RULES, "epsilon": (Real(0.0),)}

    def __init__(
        self, eta=1.0, *, G=1.0, epsilon=0.1, tau=0.5, output="average", kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
