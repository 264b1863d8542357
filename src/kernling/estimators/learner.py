"""What every learner is: the data that registry, estimators, tests and documentation read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core import averages
from ..core.expansion import Expansion, new_expansion
from ..core.fourier import Linear, new_linear
from ..core.kernels import Kernel
from ..merging.rules import Merge


class Problem(NamedTuple):
    """What a learner is told when it starts: the estimator's parameters, resolved, and the shape of the data."""

    options: dict[str, Any]  # parameters by name, with numbers in place of "scale" and "auto"
    task: str  # "classification", "regression" or "oneclass"
    d: int
    outputs: int
    dtype: type
    kernel: Kernel


@dataclass(frozen=True)
class Needs:
    """What a learner asks of the driver."""

    tolerance: float = -1.0  # in squared distance, to keep the nearest core point; negative: not needed
    dense: bool = False  # the step reads whole rows
    output: str = "last"
    suffix: float = 1.0
    uniforms: int = 0  # random numbers per event
    room: int = 0  # points that one call of the step may add, where that is more than the block
    notes: int = 0  # numbers that the learner records beside the outputs of each event
    keep: float = 1.0  # what the model is multiplied by after each event, to forget


@dataclass(frozen=True, eq=False)
class Learner:
    """One published method."""

    name: str
    title: str
    citation: str
    loop: Callable  # compiled: runs the step over events
    configure: Callable[[Problem], tuple[Any, Needs]]  # -> Params and what the driver must provide
    start: Callable[[Any, Needs, Problem, np.random.Generator], Any]  # -> State
    bound: Callable[[Any, int], float]  # stored points after t events, at most
    certificate: Callable[[Any, Any, Problem], dict[str, float]]  # what the theory promises for this run
    finish: Callable[[Any, Any, Kernel], None] | None = None  # learn what still waits, at the end of fit
    expected_bound: bool = False  # the bound holds for the mean over random draws
    merge: Merge = field(default_factory=Merge)  # how two of its models become one


def empty_expansion(needs: Needs, problem: Problem, tags: int = 0, groups: int | None = None) -> Expansion:
    """A model without points that can give the output asked for, or with so many groups of coefficients."""
    kind = averages.KINDS[needs.output]
    return new_expansion(
        problem.d,
        problem.outputs,
        problem.dtype,
        groups=groups or averages.group_count(kind, needs.suffix),
        tags=tags,
        marks=averages.snapshot_count(kind, needs.suffix),
    )


def empty_linear(needs: Needs, problem: Problem, rng: np.random.Generator) -> Linear:
    """An empty model on the features asked for, that can give the output asked for."""
    o = problem.options
    return new_linear(problem, o["features"], o["n_components"], rng, groups=2 if needs.output == "average" else 1)


def no_points(params: Any, t: int) -> float:
    """The bound of a learner that stores no points."""
    return 0


def feature_count(params: Any, state: Any, problem: Problem) -> dict[str, float]:
    """The certificate of a learner of which nothing is promised: the number of features."""
    return {"features": state.model.coef.shape[2]}


def kept_share(problem: Problem) -> float:
    """What an event leaves of the model's coefficients, for a half-life of ``forget`` events."""
    half_life = problem.options["forget"]
    return 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)


def horizon(problem: Problem) -> float:
    """The t at which steps of size 1 / (lam t) must stop to get smaller, so that 1 - 1/t is what an event leaves."""
    kept = kept_share(problem)
    return np.inf if kept == 1.0 else 1.0 / (1.0 - kept)


def typed(record: Any) -> Any:
    """The same NamedTuple with every number of its declared type, so that compiled code sees one signature."""
    casts = {"float": float, "int": int, "bool": bool}
    return type(record)(
        *(
            typed(value) if hasattr(value, "_fields") else casts[record.__annotations__[name].__forward_arg__](value)
            for name, value in zip(record._fields, record, strict=True)
        )
    )
