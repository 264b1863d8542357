"""Options for methods and their parameters."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

METRICS = (
    "mistakes",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "log_loss",
    "auc",
    "risk",
    "rmse",
    "mae",
    "r2",
)  # evaluate takes long to import
OTHER_NAMES = (
    "roc_auc",
    "zero_one_loss",
    "neg_log_loss",
    "root_mean_squared_error",
    "neg_root_mean_squared_error",
    "mean_absolute_error",
    "neg_mean_absolute_error",
    "r2_score",
)


def _known_learner(name: str) -> str:
    from .. import registry

    try:
        registry.find(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return name


def _known_level(level: float | None) -> float | None:
    if level is None:
        return None
    from ..components.conformal import LEVELS  # which imports what learns

    if level not in LEVELS:
        raise typer.BadParameter(f"must be one of {', '.join(map(str, LEVELS))}")
    return level


def check_calibrated(model: Any, path: Any) -> None:
    """Raise for a model that has not followed its errors."""
    if not hasattr(model, "calibration_"):
        raise ValueError(f"the model in {path} has no intervals or sets: train it with --interval, or --set calibrate=true")


def _known_metrics(text: str | None) -> str | None:
    for name in names_of(text) or ():
        if name not in METRICS + OTHER_NAMES:
            raise typer.BadParameter(f"there is no metric {name!r}; the metrics are {', '.join(METRICS)}")
    return text


LearnerOption = Annotated[str, typer.Option(help="Method; see 'kernling learners'.", callback=_known_learner)]
SetOption = Annotated[list[str], typer.Option("--set", help="Parameter of the method as name=value; may be repeated.")]
Task = Literal["classification", "regression"]
TaskOption = Annotated[
    Task | None, typer.Option(help="Task (default: regression for fractions or more than 20 distinct targets).")
]
SeedOption = Annotated[int, typer.Option(help="Seed of the random number generator.")]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Comma-separated metrics: {', '.join(METRICS[:-3])}; {', '.join(METRICS[-3:])}; or scikit-learn's names.",
        callback=_known_metrics,
    ),
]
IntervalOption = Annotated[
    float | None,
    typer.Option(
        help="Also learn intervals of values, or sets of labels, that contain this share of the targets, such as 0.9.",
        callback=_known_level,
    ),
]
_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None, "null": None}


def value_of(text: str) -> Any:
    """Parse a number, True, False or None; return any other text unchanged."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def split_pairs(pairs: list[str], option: str) -> dict[str, str]:
    """Parse the name=value pairs of an option."""
    for pair in pairs:
        if "=" not in pair:
            raise typer.BadParameter(f"must be name=value, not {pair!r}", param_hint=option)
    return dict(pair.split("=", 1) for pair in pairs)


def new_model(learner: str, task: str, settings: dict[str, str], seed: int, watch: bool = False) -> Any:
    """Return an untrained model with parameters parsed from text; with ``watch``, it raises alarms if it can."""
    from .. import registry

    cls = registry.estimator_for(learner, task)
    model = cls()
    known = model.get_params(deep=False)
    for name in settings:
        if name not in known:
            raise ValueError(f"{cls.__name__} has no parameter {name!r}; it has {', '.join(known)}")
    given = {name: value_of(text) for name, text in settings.items()}
    usual = {"random_state": seed} | ({"watch": True} if watch else {})
    return model.set_params(**{name: value for name, value in usual.items() if name in known} | given)


def as_options(params: dict[str, Any]) -> str:
    """Format parameters as command-line options."""
    return " ".join(f"--set {name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items())


def names_of(text: str | None) -> list[str] | None:
    """Split a comma-separated list of names."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
