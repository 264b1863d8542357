"""PA, passive-aggressive learning with kernels.

K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer: Online Passive-Aggressive Algorithms.
Journal of Machine Learning Research 7 (2006).

At event t, with loss l of the current model f_t and S the squared norm of its gradient (K(x_t, x_t) for one output),
f <- f - tau l'(f_t) with

    PA: tau = l / S,    PA-I: tau = min(C, l / S),    PA-II: tau = l / (S + 1 / (2 C)).

Every event with a loss is stored, for good.

Departures from the paper, each with its reason:

- Several classes: the margin f_y - f_z over the best wrong class z, as in the paper's section on multiclass problems, with
  S = 2 K(x_t, x_t) since the step goes to both columns.
- One-class learning: the centre and the ball of fixed radius live in feature space; or a half-space, the hinge loss with y = 1.
- A weight multiplies C; PA has none, so that weights other than 0 do not change it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import drive
from ..core.ball import merged_ball, new_ball
from ..core.combine import Merge
from ..core.expansion import Expansion
from ..core.jit import inline
from ..core.kernels import self_value
from ..core.passive import Task, event_loss, note_norm, steepness, step_against_loss
from ..estimators.parameters import CLASS_WEIGHT, POSITIVE, OneOf, Real, Rule
from ..estimators.tasks import OnlineClassifier, OnlineOneClass, OnlineRegressor
from ..learners.base import Learner, Needs, Problem, empty_expansion

PA, PA_I, PA_II = range(3)
VARIANTS = {"PA": PA, "PA-I": PA_I, "PA-II": PA_II}


class Params(NamedTuple):
    task: Task
    variant: int
    C: float


class State(NamedTuple):
    model: Expansion
    ball: np.ndarray


@inline
def step(params, state, block, j, f, y, weight, u):
    k_xx = self_value(block.kernel, np.float64(block.norms[j]))
    loss = event_loss(params.task, state, f, y, k_xx)
    if loss > 0.0:
        steep = steepness(params.task, f, k_xx)
        C = weight * params.C
        if params.variant == PA_I:
            tau = min(C, loss / steep)
        else:
            tau = loss / (steep + (0.5 / C if params.variant == PA_II else 0.0))
        step_against_loss(params.task, state, block, j, f, y, k_xx, tau)


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    task = Task.of(problem)
    return Params(task, VARIANTS[o["variant"]], o["C"]), Needs(notes=int(task.radius > 0.0))


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(empty_expansion(needs, problem), new_ball())


def bound(params: Params, t: int) -> float:
    """Every event may be stored."""
    return t


def certificate(params: Params, state: State, problem: Problem) -> dict[str, float]:
    """The number of points, which nothing bounds."""
    return {"points": int(state.model.size[0])}


LEARNER = Learner(
    name="passive_aggressive",
    title="Passive-Aggressive learning",
    citation=(
        "K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer: Online Passive-Aggressive Algorithms, JMLR 7, 2006"
    ),
    loop=drive.kernel_loop(step, note_norm),
    configure=configure,
    start=start,
    bound=bound,
    certificate=certificate,
    merge=Merge(arrays={"ball": merged_ball}),
)

_RULES: dict[str, tuple[Rule, ...]] = {"C": (POSITIVE,), "variant": (OneOf(tuple(VARIANTS)),)}


class PassiveAggressiveClassifier(OnlineClassifier):
    """Passive-aggressive classification with kernels: the smallest step that leaves no loss, or a capped one.

    Parameters
    ----------
    C : float
        Aggressiveness: the cap of a step ("PA-I"), or what its softening is divided by ("PA-II").
    variant : {"PA-I", "PA", "PA-II"}
        Capped, plain and softened steps.
    kernel, gamma, degree, coef0, class_weight, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`kernling.AVMClassifier`; the kernels "poly" and "linear" work too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from kernling.baselines import PassiveAggressiveClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PassiveAggressiveClassifier(gamma=0.1)
    >>> labels = model.predict_then_learn(X / 16.0, y)
    >>> print(f"{(labels != y).mean():.2f} mistakes")
    0.05 mistakes
    """

    learner = "passive_aggressive"
    rules = {**_RULES, "class_weight": CLASS_WEIGHT}
    loss = "hinge"

    def __init__(
        self, C=1.0, *, variant="PA-I", kernel="rbf", gamma="scale", degree=3, coef0=0.0, class_weight=None, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class PassiveAggressiveRegressor(OnlineRegressor):
    """Passive-aggressive regression with kernels and the epsilon-insensitive loss.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube without loss.
    C, variant, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`PassiveAggressiveClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import PassiveAggressiveRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> model = PassiveAggressiveRegressor(gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.score(X, np.sin(X[:, 0])):.2f}")
    0.99
    """

    learner = "passive_aggressive"
    rules = {**_RULES, "epsilon": (Real(0.0),)}

    def __init__(
        self, C=1.0, *, variant="PA-I", epsilon=0.1, kernel="rbf", gamma="scale", degree=3, coef0=0.0, random_state=None,
        dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())


class PassiveAggressiveOneClass(OnlineOneClass):
    """Passive-aggressive one-class learning with kernels: what do normal events look like?

    Parameters
    ----------
    mode : {"ball", "halfspace"}
        A ball around normal events in feature space, or a half-space that holds them.
    radius : float
        Of the ball; less than 1 for kernels of the distance.
    C, variant, kernel, gamma, degree, coef0, random_state, dtype, block_size, passes, shuffle, n_jobs, verbose
        As in :class:`PassiveAggressiveClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.baselines import PassiveAggressiveOneClass
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = PassiveAggressiveOneClass(C=0.1, gamma=0.1).fit(X)
    >>> print(model.predict([[0.0, 0.0], [9.0, 9.0]]))
    [ 1 -1]
    """

    learner = "passive_aggressive"
    rules = {**_RULES, "mode": (OneOf(("ball", "halfspace")),), "radius": (POSITIVE,)}

    def __init__(
        self, mode="ball", *, radius=0.9, C=1.0, variant="PA-I", kernel="rbf", gamma="scale", degree=3, coef0=0.0,
        random_state=None, dtype="float64", block_size=128, passes=1, shuffle=False, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._remember(locals())
