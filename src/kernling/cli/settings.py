"""Methods and their parameters, as they are written on a command line."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer


def _known_learner(name: str) -> str:
    from .. import registry

    try:
        registry.find(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return name


def _known_metrics(text: str | None) -> str | None:
    from ..evaluate.metrics import METRICS

    for name in names_of(text) or ():
        if name not in METRICS:
            raise typer.BadParameter(f"there is no {name!r}; there are {', '.join(METRICS)}")
    return text


LearnerOption = Annotated[str, typer.Option(help="The method; see 'kernling learners'.", callback=_known_learner)]
SetOption = Annotated[list[str], typer.Option("--set", help="A parameter of the method, as name=value; may be repeated.")]
Task = Literal["classification", "regression"]
TaskOption = Annotated[
    Task | None, typer.Option(help="Without it, regression for numbers with a fraction or of more than 20 values.")
]
SeedOption = Annotated[int, typer.Option(help="Of the method's random choices.")]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help="Separated by commas: mistakes, accuracy, balanced_accuracy, f1, log_loss, auc; rmse, mae.",
        callback=_known_metrics,
    ),
]
_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None, "null": None}


def value_of(text: str) -> Any:
    """A number, True, False, None, or else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def split_pairs(pairs: list[str], option: str) -> dict[str, str]:
    """The name=value pairs of an option."""
    for pair in pairs:
        if "=" not in pair:
            raise typer.BadParameter(f"must be name=value, not {pair!r}", param_hint=option)
    return dict(pair.split("=", 1) for pair in pairs)


def new_model(learner: str, task: str, settings: dict[str, str], seed: int) -> Any:
    """A model that has learned nothing, with parameters from text."""
    from .. import registry

    cls = registry.estimator_for(learner, task)
    model = cls()
    known = model.get_params(deep=False)
    for name in settings:
        if name not in known:
            raise ValueError(f"{cls.__name__} has no parameter {name!r}; it has {', '.join(known)}")
    given = {name: value_of(text) for name, text in settings.items()}
    return model.set_params(**({"random_state": seed} if "random_state" in known else {}) | given)


def as_options(params: dict[str, Any]) -> str:
    """Parameters as they would be written."""
    return " ".join(f"--set {name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items())


def names_of(text: str | None) -> list[str] | None:
    """A list of names separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
