"""Creation of models from the JSON of a request or from a model file."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..pipeline import StreamPipeline, last_step
from ..tables import Encode
from ..tables.given import OPTIONS, given_treatments
from ..tables.schema import Schema
from .refusal import Refused, first_line
from .rows import Layout
from .settings import Settings
from .targets import KINDS, Targets

TASKS = ("classification", "regression")
KEYS = ("estimator", "parameters", "task", "columns")
SEED = 0  # of models without a given seed: replaying a journal must draw the same random numbers


def checked_spec(spec: Any) -> dict[str, Any]:
    """Validate a spec and return it with its task.

    Examples
    --------
    >>> from kernling.serve.specs import checked_spec
    >>> checked_spec({"estimator": "SPAClassifier", "parameters": {"gamma": 2.0}})["task"]
    'classification'
    """
    if not isinstance(spec, dict) or not set(spec) <= set(KEYS):
        raise Refused(422, f"a model is created by a JSON object with {', '.join(KEYS)}, all of them optional")
    estimator, parameters, task = spec.get("estimator"), spec.get("parameters", {}), spec.get("task")
    if task is not None and task not in TASKS:
        raise Refused(422, f"task must be one of {', '.join(TASKS)}")
    if not isinstance(parameters, dict):
        raise Refused(422, "parameters must be a JSON object of names and values")
    columns = _checked_columns(spec.get("columns", {}))
    if estimator is None:
        if parameters:
            raise Refused(422, "parameters need the estimator that they belong to")
        return {"task": task} | columns
    cls = _estimator_class(estimator)
    if task not in (None, cls.task):
        raise Refused(422, f"{cls.__name__} is for {cls.task}: leave task out")
    known = cls().get_params(deep=False)
    if not set(parameters) <= set(known):
        raise Refused(422, f"{cls.__name__} has the parameters {', '.join(known)}, and no others")
    try:
        cls.check_parameters(known | parameters)
    except (TypeError, ValueError) as error:
        raise Refused(422, first_line(error)) from None
    return {"estimator": cls.__name__, "parameters": parameters, "task": cls.task} | columns


def _checked_columns(columns: Any) -> dict[str, Any]:
    """Return the part of a spec that says how columns are treated; empty if it says nothing."""
    known = (*OPTIONS, "decimal", "day_first", "lags", "windows", "time")
    if not isinstance(columns, dict) or not set(columns) <= set(known):
        raise Refused(422, f"columns must be a JSON object with {', '.join(known)}, all of them optional")
    names = [columns.get(option, []) for option in OPTIONS]
    if not all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in names):
        raise Refused(422, f"{', '.join(OPTIONS)} must be lists of names")
    try:
        given_treatments(Encode(missing="impute", **columns))
    except (TypeError, ValueError) as error:
        raise Refused(422, first_line(error)) from None
    return {"columns": columns} if columns else {}


def _estimator_class(name: Any) -> Any:
    names = registry.public_names(main=True) | registry.public_names(main=False)
    entry = next((one for one in registry.METHODS.values() if name in one.estimators), None)
    found = registry.estimator(entry.name, name) if entry else None
    if found is None or found.task not in TASKS:
        raise Refused(422, f"estimator must be a classifier or regressor of kernling, such as {next(iter(names))}")
    return found


def new_pipeline(spec: dict[str, Any], task: str) -> StreamPipeline:
    """Return an unfitted pipeline."""
    model = _estimator_class(spec["estimator"])(**spec["parameters"]) if spec.get("estimator") else None
    pipeline = StreamPipeline.auto(model, task=task, **spec.get("columns", {}))
    last = pipeline.steps[-1][1]
    given = last.get_params(deep=False)
    if given.get("random_state", SEED) is None:
        last.set_params(random_state=SEED)
    for name in ("calibrate", "watch"):  # answers have intervals or sets, facts have alarms
        if name in given and name not in spec.get("parameters", {}):
            last.set_params(**{name: True})
    return pipeline


def targets_of(model: Any) -> Targets:
    """Return the kind of targets of a fitted model."""
    if last_step(model).task not in TASKS:
        raise Refused(422, "the file must hold a classifier or a regressor")
    if model.task == "regression":
        return Targets("regression")
    labels = model.classes_.tolist()
    kind = {float: "whole numbers"}.get(type(labels[0])) or KINDS.get(type(labels[0]))
    if kind is None:
        raise Refused(422, "the labels of the model must be text, booleans or whole numbers")
    return Targets("classification", kind)


def layout_of(model: Any) -> Layout:
    """Return the columns of a fitted model."""
    schema = schema_of(model)
    if schema is None:
        names = getattr(model, "feature_names_in_", None)
        found = [f"x{place}" for place in range(model.n_features_in_)] if names is None else names.tolist()
        return Layout(dict.fromkeys(found, "numbers"), gaps=False)
    kinds = {
        "number": "numbers",
        "boolean": "booleans",
        "category": "text or numbers",
        "date": "text or numbers",
        "text": "text or numbers",
    }
    encode = model.steps_[0][1]
    given = [column for column in schema if column.name not in encode.past_names]
    columns = {column.name: kinds[column.treatment] for column in given if column.treatment != "ignore"}
    return Layout(dict(columns), gaps=encode.missing == "impute")


def check_file(layout: Layout, model: Any, settings: Settings) -> None:
    """Raise if a model from a file has more columns or classes than a model that was created here could have."""
    for count, most, what in (
        (len(layout.columns), settings.columns, "columns"),
        (len(getattr(model, "classes_", ())), settings.classes, "classes"),
    ):
        if count > most:
            raise Refused(422, f"the model of the file has {count:,} {what}, and at most {most:,} are allowed")


def schema_of(model: Any) -> Schema | None:
    """Return the schema of a model for tables; None for a model that only takes numbers."""
    steps = getattr(model, "steps_", None)
    return getattr(steps[0][1], "schema_", None) if steps else None
