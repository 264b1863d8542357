"""SPA, sparse passive-aggressive learning.

J. Lu, P. Zhao, S. C. H. Hoi: Online Sparse Passive Aggressive Learning with Kernels.
SIAM International Conference on Data Mining (2016).

At event t, with loss l of the current model f_t, a step is taken with probability rho = min(alpha, l) / beta:

    f <- f + tau sgn K(x_t, .),    tau = min(eta / rho, l / K(x_t, x_t)).

For one-class learning f is a half-space (the hinge loss with y = 1), or the centre of a ball with the loss
l = max(0, ||f - Phi(x)|| - radius), and the step goes towards Phi(x): f <- (1 - r) f + r Phi(x_t), r = tau / ||f - Phi(x_t)||,
tau = min(eta / rho, l).

No point is ever removed: the expected number of points after T events is at most alpha T / beta, and the average of all
models uses the same points.

``max_points``, not in the paper, bounds the memory: at the limit, each step projects one term on the span of the five nearest
points and removes its point.  That is the new event itself if its squared distance from that span is at most 0.3 K(x, x), else
the point whose term in f has the smallest norm.  The term is projected in all models so far, so the average is the mean of
models on the stored points.

Departures from the paper, each with its reason:

- Several classes (not in the paper): the hinge loss of the margin f_y - f_z; the step goes to both columns, so its cap is
  l / (2 K(x_t, x_t)).
- If the loss is 0, rho is 0 and no step is taken, without a division by rho.  The same applies to a row with
  K(x, x) = 0, whose score nothing can change.
- The mean used for prediction after T events is that of f_1 ... f_T, including f_1 = 0, both online and at the end; the
  paper's online runs also count f_{T+1}.
- The mean of the latest models, and the weighted mean of it, the average and the last model (``output="auto"``), are not in the
  paper; they use the same points.
- A sample weight multiplies eta, the cap of the step.
- The theorems are given for any kernel and for several classes (theory/spa.py).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..compiler import inline, inner
from ..components.ball import merged_ball, new_ball, note_projection
from ..components.eviction import UNBOUNDED, lightest, point_value
from ..components.neighbours import event_row, move_to_nearest, point_row, project_on_nearest
from ..components.passive import Task, event_loss, note_norm, note_score, steepness, step_against_loss
from ..components.recent_scores import RecentScores, new_scores
from ..components.stats import CHANCES, SPA_STATS, STEEPEST, TERMS_PROJECTED, UNPROVEN
from ..core.expansion import Expansion
from ..core.kernels import self_value
from ..core.shapes import declared
from ..driver import loops
from ..estimators.constraints import NOTHING, POSITIVE, Whole
from ..estimators.examples import Example
from ..estimators.learner import Learner, Needs, Problem, empty_expansion
from ..estimators.one_class import OnlineOneClass
from ..estimators.options import Averaged, MeanOrLast, StepSize, TubeRegressor
from ..estimators.parameters import parameter
from ..estimators.published import Published
from ..estimators.ranges import Log
from ..estimators.tasks import OnlineClassifier
from ..merging.rules import Merge, Merging, each
from ..theory import spa as theory

NEAR = 0.3  # relative to K(x, x): the squared distance from the nearest points' span up to which an event is projected


class Params(NamedTuple):
    task: Task
    eta: float
    alpha: float
    beta: float
    budget: int  # maximum number of points


@declared()
class State(NamedTuple):
    model: Expansion  # tags: the event that added the point
    ball: Annotated[np.ndarray, "coefficients: 3"]
    recent: RecentScores  # of one-class models
    # what certificates need, by the names of stats.py
    stats: Annotated[np.ndarray, "not negative", "not negative", "not negative", "not negative"]


@inline
def step(params, state, block, j, f, y, weight, u):
    k_xx = self_value(block.kernel, np.float64(block.norms[j]))
    note_score(params.task, state, block, j, k_xx)
    loss = event_loss(params.task, state, f, y, k_xx)
    steep = steepness(params.task, f, k_xx)
    rho = min(params.alpha, loss) / params.beta
    state.stats[CHANCES] += rho
    state.stats[STEEPEST] = max(state.stats[STEEPEST], steep)
    state.stats[UNPROVEN] += weight != 1.0
    if u[0] < rho:
        tau = min(weight * params.eta / rho, loss / steep)
        old = lightest(state.model, block) if state.model.size[0] >= params.budget else -1
        step_against_loss(params.task, state, block, j, f, y, k_xx, tau)
        if old >= 0:
            project_one(params.task, state, block, j, k_xx, old)


@inner
def project_one(task, state, block, j, k_xx, old):
    """Project event j, which is the last point, on the span of the nearest points if it is near, else the old point."""
    model = state.model
    p = model.size[0] - 1
    event_row(model, block, j)
    count, gap = project_on_nearest(model, block, k_xx, p)
    if gap > NEAR * k_xx:
        p = old
        point_row(model, block, p)
        count, gap = project_on_nearest(model, block, point_value(model, block.kernel, p), p)
    if task.radius > 0.0:
        note_projection(state.ball, model, block, p, count, gap)
    move_to_nearest(model, block, j, p, count)
    state.stats[TERMS_PROJECTED] += 1.0


def configure(problem: Problem) -> tuple[Params, Needs]:
    o = problem.options
    task = Task.of(problem)
    needs = Needs(output=o["output"], suffix=o.get("suffix", 1.0), uniforms=1, notes=int(task.radius > 0.0))
    return Params(task, o["eta"], o["alpha"], _beta(o), o["max_points"] or UNBOUNDED), needs


def _beta(o: dict) -> float:
    alpha, beta, budget, horizon = (o[name] for name in ("alpha", "beta", "budget", "horizon"))
    if (budget is None) != (horizon is None):
        raise ValueError(f"budget and horizon must be given together, but budget={budget} and horizon={horizon}")
    if budget is None:
        if beta is not None and beta < alpha:
            raise ValueError(f"beta must be at least alpha, but beta={beta:g} and alpha={alpha:g}")
        return alpha if beta is None else beta
    if beta is not None:
        raise ValueError(f"beta={beta:g} and budget={budget} both determine the number of points; give only one of them")
    if budget > horizon:
        raise ValueError(f"budget must be at most horizon, but budget={budget} and horizon={horizon}")
    return alpha * horizon / budget


def start(params: Params, needs: Needs, problem: Problem, rng: np.random.Generator) -> State:
    return State(
        empty_expansion(needs, problem, tags=1), new_ball(), new_scores(problem.task == "oneclass"), np.zeros(SPA_STATS)
    )


def bound(params: Params, t: int) -> float:
    """Return the bound on the expected number of points: alpha T / beta, or the limit."""
    return min(params.budget, params.alpha * t / params.beta)


def merged_stats(merging: Merging, name: str) -> np.ndarray:
    stats = each("total", "largest", "total", "total")(merging, name)
    stats[UNPROVEN] += 1.0
    return stats


LEARNER = Learner(
    __name__,
    loops.kernel_loop(step, note_norm),
    configure,
    start,
    bound,
    theory.certificate,
    assumed=theory.assumed,
    meanings=theory.MEANINGS,
    expected_bound=lambda params: True,
    merge=Merge(arrays={"ball": merged_ball, "stats": merged_stats}),
)


class _SPA(StepSize):
    """Parameters shared by all tasks."""

    learner = LEARNER
    published_settings = Published(
        required=("gamma", "eta", "beta"),
        choices={"output": ("average", "last")},
        values={"kernel": "rbf", "degree": 3, "coef0": 0.0, "alpha": 1.0},
        off={"max_points": None, "budget": None, "horizon": None},
    )
    eta: float = parameter(default=1.0, doc="Aggressiveness: the maximum size of a step that is taken with probability 1.")
    alpha: float = parameter(
        default=1.0,
        allowed=POSITIVE,
        doc="A step is taken with probability min(alpha, loss) / beta. The expected number of points after T events is at most "
        "alpha T / beta.",
    )
    beta: float | None = parameter(
        default=None,
        allowed=(NOTHING, POSITIVE),
        search=Log(1.0, 50.0),
        doc="Larger values give fewer steps and points. At least alpha, which is the default.",
    )
    max_points: int | None = parameter(
        default=1500,
        allowed=(NOTHING, Whole(1)),
        doc="Maximum number of points: at this many, each further step projects the new event or the smallest term on the "
        "nearest points. None: the points grow with the stream, as published.",
    )
    budget: int | None = parameter(
        default=None,
        allowed=(NOTHING, Whole(1)),
        doc="Expected number of points after ``horizon`` events; sets beta to alpha * horizon / budget.",
    )
    horizon: int | None = parameter(
        default=None, allowed=(NOTHING, Whole(1)), doc="Number of events after which there are ``budget`` points."
    )


class SPAClassifier(_SPA, Averaged, OnlineClassifier):
    """Sparse Passive-Aggressive classification: a step is taken with a probability that grows with the loss.

    By default it stores at most 1,500 points, and predicts with the mean of the last model, the average and the suffix average,
    weighted by how well each has predicted lately.
    """

    example = Example("0.95", beta=4.0, random_state=0)
    published_settings = _SPA.published_settings.also(off={"suffix": 0.5, "class_weight": None})
    output: str = parameter(default="auto")


class SPARegressor(_SPA, Averaged, TubeRegressor):
    """Sparse Passive-Aggressive regression with the epsilon-insensitive loss.

    By default it stores at most 1,500 points, and predicts with the mean of the last model, the average and the suffix average,
    weighted by how well each has predicted lately.
    """

    example = Example("0.99", gamma=1.0, beta=4.0, random_state=1)
    published_settings = _SPA.published_settings.also(("epsilon",), off={"suffix": 0.5, "standardise_target": False})
    output: str = parameter(default="auto")


class SPAOneClass(_SPA, MeanOrLast, OnlineOneClass):
    """Sparse Passive-Aggressive one-class learning for anomaly detection.

    By default it stores at most 1,500 points.
    """

    example = Example("0.97", random_state=0)
    published_settings = _SPA.published_settings.also(
        choices={"mode": ("ball", "halfspace")}, required_with={"radius": ("mode", "ball")}, off={"contamination": None}
    )
