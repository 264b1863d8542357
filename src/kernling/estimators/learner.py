"""The parts of a method: the functions that make it run, and defaults that suit most of them.

A method's file ends with ``LEARNER = Learner(__name__, kernel_loop(step), configure)`` and overrides the defaults where needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..components.eviction import UNBOUNDED
from ..core import averages
from ..core.expansion import CHOICES, LIMIT, Expansion, new_expansion
from ..core.fourier import Linear, new_linear
from ..core.kernels import Kernel
from ..core.losses import KINDS, Loss
from ..core.setup import Setup
from ..driver.loops import Loop

if TYPE_CHECKING:
    from ..merging.rules import Merge

FEWEST = 1024  # points for which there must be room, or rows are too wide


class Problem(NamedTuple):
    """The estimator's resolved parameters, the task and the shape of the data."""

    options: dict[str, Any]  # parameters by name, with numbers in place of "scale" and "auto"
    task: str  # "classification", "regression" or "oneclass"
    d: int
    outputs: int
    dtype: type
    kernel: Kernel


@dataclass(frozen=True)
class Needs:
    """Requirements of a learner on the driver."""

    tolerance: float = -1.0  # in squared distance, to keep the nearest core point; negative: not needed
    dense: bool = False  # the step reads whole rows
    output: str = "last"
    suffix: float = 1.0
    uniforms: int = 0  # random numbers per event
    room: int = 0  # points that one call of the step may add, if more than the block
    notes: int = 0  # numbers that the learner records with the outputs of each event
    decay: float = 1.0  # factor by which the model is multiplied after each event, to forget


# ---------------------------------------------------------------------- parts of configure


def loss_of(problem: Problem) -> Loss:
    """Return the chosen loss; hinge or epsilon-insensitive if there is no parameter ``loss``."""
    default = "epsilon_insensitive" if problem.task == "regression" else "hinge"
    return Loss(KINDS[problem.options.get("loss", default)], problem.options.get("epsilon", 0.0), 0.0)


def budget_of(problem: Problem) -> int:
    """Return the maximum number of points."""
    return problem.options["budget"] or UNBOUNDED


def check_shrinkage(problem: Problem) -> None:
    """Raise unless 1 - eta lam, the shrinkage per event, is positive."""
    eta, lam = problem.options["eta"], problem.options["lam"]
    if eta * lam >= 1.0:
        raise ValueError(f"eta * lam must be less than 1, but eta={eta:g} and lam={lam:g}")


def decay_of(problem: Problem) -> float:
    """Return the factor by which coefficients shrink per event, for a half-life of ``forget`` events."""
    half_life = problem.options["forget"]
    return 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)


def horizon(problem: Problem) -> float:
    """Return the t at which steps of size 1 / (lam t) stop decreasing, so that the model shrinks by 1 - 1/t per event."""
    kept = decay_of(problem)
    return np.inf if kept == 1.0 else 1.0 / (1.0 - kept)


def steps_of(problem: Problem) -> tuple[float, float]:
    """Return delay and horizon of steps 1 / (lam T): annealed, or all equal to ``eta`` if it is given, T = 1 / (eta lam)."""
    eta, lam = problem.options["eta"], problem.options["lam"]
    if eta is None:
        return 0.0, horizon(problem)
    check_shrinkage(problem)
    if problem.options["forget"] is not None:
        raise ValueError(
            "forget is for steps of size 1 / (lam t); with a constant eta, raise lam: 1 - eta lam is kept per event"
        )
    return 1.0 / (eta * lam), 1.0 / (eta * lam)


def delay(problem: Problem) -> float:
    """Return by how many events t is advanced, so that no step of size 1 / (lam t) is larger than eta."""
    eta, lam = problem.options["eta"], problem.options["lam"]
    return 0.0 if eta is None else max(0.0, 1.0 / (eta * lam) - 1.0)


# ---------------------------------------------------------------------- parts of start


def empty_expansion(needs: Needs, problem: Problem, tags: int = 0, groups: int | None = None) -> Expansion:
    """Return a model without points, with the groups of coefficients that the output needs, or this many."""
    widest = LIMIT // FEWEST
    if problem.d > widest:
        raise ValueError(
            f"rows of {problem.d} columns are too wide for a method that stores points, which takes at most {widest} columns: "
            "hash them to fewer (sklearn.feature_extraction.FeatureHasher), or take AOGDClassifier(features='linear')"
        )
    kind = averages.KINDS[needs.output]
    return new_expansion(
        problem.d,
        problem.outputs,
        problem.dtype,
        groups=groups or averages.group_count(kind, needs.suffix),
        tags=tags,
        marks=averages.snapshot_count(kind, needs.suffix),
        votes=len(CHOICES) if kind == averages.AUTO else 0,
    )


def empty_linear(needs: Needs, problem: Problem, rng: np.random.Generator, groups: int | None = None) -> Linear:
    """Return an empty model on the chosen features; see ``empty_expansion``."""
    groups = groups or {"last": 1, "average": 2, "auto": len(CHOICES)}[needs.output]
    votes = groups * (needs.output == "auto")
    return new_linear(problem, problem.options["features"], problem.options["n_components"], rng, groups, votes)


class PointState(NamedTuple):
    model: Expansion  # tags: the event that added the point


class LinearState(NamedTuple):
    model: Linear


# ---------------------------------------------------------------------- defaults of a learner


def start_points(params: Any, needs: Needs, problem: Problem, rng: np.random.Generator) -> PointState:
    """Return a state that consists of an expansion only."""
    return PointState(empty_expansion(needs, problem, tags=1))


def start_linear(params: Any, needs: Needs, problem: Problem, rng: np.random.Generator) -> LinearState:
    """Return a state that consists of a linear model only."""
    return LinearState(empty_linear(needs, problem, rng))


def within_budget(params: Any, t: int) -> float:
    """Return the budget, or t if there is none, since every event may be stored."""
    return min(t, getattr(params, "budget", t))


def point_count(params: Any, state: Any, problem: Problem) -> dict[str, float]:
    """Return the number of points, and the budget if there is one."""
    found = {"points": state.model.stored}
    budget = problem.options.get("budget")
    return {**found, "budget": budget} if budget else found


def feature_count(params: Any, state: Any, problem: Problem) -> dict[str, float]:
    """Return the number of features; there are no guarantees."""
    return {"features": state.model.coef.shape[2]}


@dataclass(frozen=True, eq=False)
class Learner:
    """A published method.

    The defaults are those of a method whose state is an expansion; if its ``Params`` have a ``budget``, it never stores more
    points than that.

    Attributes
    ----------
    module : str
        ``__name__`` of the method's file.  Its docstring starts with the title on the first line and a paragraph with the
        citation.
    loop : callable
        The step, compiled into a loop over events: ``kernel_loop(step)``, ``feature_loop(step)``, ``dual_loop(step)`` or
        ``batch_loop(step, work)``.
    configure : callable
        ``configure(problem)`` returns the ``Params`` of the step, and what the driver must provide.
    start : callable
        ``start(params, needs, problem, rng)`` returns the state before the first event.
    bound : callable
        ``bound(params, t)`` returns the maximum number of points after t events.
    certificate : callable
        ``certificate(params, state, problem)`` returns the theoretical guarantees for this run.
    finish : callable, optional
        ``finish(setup, params, state)`` learns the rows of an incomplete mini-batch at the end of ``fit``, and returns the
        state.
    assumed : callable, optional
        ``assumed(params, state, problem, *, ...)`` returns the guarantees that need to be told something that the stream does
        not say, such as a confidence: its keyword-only arguments, which are optional.
    meanings : dict
        What the numbers of the two say, with the number of the paper's theorem.
    expected_bound : callable
        ``expected_bound(params)`` returns whether the bound holds only in expectation.
    merge : Merge, optional
        Rules for merging two models; by default the mean of their functions.
    """

    module: str
    loop: Loop
    configure: Callable[[Problem], tuple[Any, Needs]]
    start: Callable[[Any, Needs, Problem, np.random.Generator], Any] = start_points
    bound: Callable[[Any, int], float] = within_budget
    certificate: Callable[[Any, Any, Problem], dict[str, float]] = point_count
    finish: Callable[[Setup, Any, Any], Any] | None = None
    assumed: Callable[..., dict[str, float]] | None = None
    meanings: dict[str, str] = field(default_factory=dict)
    expected_bound: Callable[[Any], bool] = lambda params: False
    merge: Merge | None = None

    @property
    def name(self) -> str:
        """Name of the method's file."""
        return self.module.rpartition(".")[2]

    @property
    def title(self) -> str:
        """Title of the method."""
        return self._paragraph(0).removesuffix(".")

    @property
    def citation(self) -> str:
        """Authors, title, venue and year of the paper."""
        return self._paragraph(1)

    def _paragraph(self, place: int) -> str:
        """Return a paragraph of the file's docstring as one line; empty if Python runs without docstrings."""
        paragraphs = (sys.modules[self.module].__doc__ or "\n\n").split("\n\n")
        return " ".join(paragraphs[place].split())


@dataclass(frozen=True, eq=False)
class FeatureLearner(Learner):
    """A method whose model is linear in features and stores no points."""

    start: Callable[[Any, Needs, Problem, np.random.Generator], Any] = start_linear
    bound: Callable[[Any, int], float] = lambda params, t: 0
    certificate: Callable[[Any, Any, Problem], dict[str, float]] = feature_count


def typed(record: Any) -> Any:
    """Return the NamedTuple with all numbers converted to their declared types, so that compiled code has one signature."""
    casts = {"float": float, "int": int, "bool": bool}
    return type(record)(
        *(
            typed(value) if hasattr(value, "_fields") else casts[record.__annotations__[name].__forward_arg__](value)
            for name, value in zip(record._fields, record, strict=True)
        )
    )
