"""Compare several methods on the same rows."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..registry import DEFAULT
from . import settings
from .data import Reading, Source, takes_reading
from .interrupts import PIECE, Interrupts
from .learn import Data, Every, Report, Results, WindowSize, check_outputs
from .status import RunProgress, Status

SetOption = Annotated[
    list[str],
    typer.Option("--set", help="Parameter: name=value for all methods, or method.name=value for one; may be repeated."),
]


@takes_reading  # each option of the command is an argument
def compare(
    data: Data,
    reading: Reading,
    learners: Annotated[str, typer.Option(help="Comma-separated methods.")] = f"{DEFAULT},avm,polk,spa,dualsvrg",
    set: SetOption = [],  # noqa: B006 - typer makes a new list
    task: settings.TaskOption = None,
    metrics: settings.MetricsOption = None,
    window: WindowSize = 1000,
    every: Every = 10_000,
    seed: settings.SeedOption = 0,
    permutations: Annotated[
        int, typer.Option(min=1, help="Number of random orders; more than 1 needs memory for all rows.")
    ] = 1,
    results: Results = None,
    report: Report = None,
) -> None:
    """Compare several methods on the same rows, in one pass."""
    check_outputs(None, results, report)
    if permutations > 1 and data == "-":
        raise typer.BadParameter("standard input can be read only once: use 1 or a file", param_hint="--permutations")
    names = settings.names_of(learners) or []
    pairs = settings.split_pairs(set, "--set")
    _check_names(names, pairs)
    from ..evaluate import ProgressiveRuns, feed  # now: errors above come at once
    from ..report import page

    measuring: dict[str, Any] = {"metrics": settings.names_of(metrics), "window": window, "every": every}
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    with Interrupts() as interrupts, Status("starting") as status:
        for order in range(permutations):
            shuffle = reading.shuffle if permutations == 1 else (reading.shuffle or 0) + order
            runs = ProgressiveRuns({})
            with interrupts.held_back():
                source = Source([data], replace(reading, shuffle=shuffle))
                (X, y), chunks = source.begin()
                measuring |= {"extra": {"permutation": order}, "row": source.skip}
                models = _models(names, task or source.task_of(y), pairs, seed + order, failed)
                pipelines = {name: source.pipeline(model, X) for name, model in models.items()}
                runs = _progressive_runs(pipelines, source, measuring, failed)
                runs.begin(X, y)
                progress = partial(status.show, RunProgress(runs.running))
                feed(runs, chunks, cut=PIECE, guard=interrupts.deferred, after=progress)
            failed |= runs.failed
            rows += [row for run in runs.running.values() if run.events for row in run.end()]
            if interrupts.stopped:
                break
    if rows:
        _tell(rows, source.name, permutations, failed, results)
        if report:
            page(rows, report, f"{', '.join(names)} on {source.name}")
    interrupts.let_go()


def _tell(rows: list[dict[str, Any]], data: str, permutations: int, failed: dict[str, str], results: Path | None) -> None:
    from ..evaluate import summary, write_rows
    from ..report import comparison, show

    if results:
        write_rows(rows, results)
    events = f"{rows[-1]['events']:,} events" + (f", {permutations} orders" if permutations > 1 else "")
    notes = [f"{name} cannot run: {why}" for name, why in failed.items()]
    shown = summary(rows) if permutations > 1 else list({row["method"]: row for row in rows}.values())
    show(comparison(shown), f"{data}: {events}", "\n".join(notes) or None)


def _check_names(names: list[str], pairs: dict[str, str]) -> None:
    """Raise for unknown methods and unknown parameters."""
    from .. import registry

    known: dict[str, Any] = {}
    for name in names:
        try:
            known[name] = {one for cls in registry.find(name).classes() for one in cls().get_params(deep=False)}
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--learners") from None
    for pair in pairs:
        method, _, name = pair.rpartition(".")
        if method and method not in names:
            wrong = f"{pair!r} is for a method that is not being compared"
        elif method and name not in known[method]:
            wrong = f"{method} has no parameter {name!r}; it has {', '.join(sorted(known[method]))}"
        elif not any(name in own for own in known.values()):
            wrong = f"none of the compared methods has a parameter {name!r}"
        else:
            continue
        raise typer.BadParameter(wrong, param_hint="--set")


def _models(names: list[str], task: str, pairs: dict[str, str], seed: int, failed: dict[str, str]) -> dict[str, Any]:
    """Return a new model of each method; the reason why one cannot be created is added to ``failed``."""
    from .. import registry

    models = {}
    for name in names:
        try:
            known = registry.estimator_for(name, task)().get_params(deep=False)
            common = {key: value for key, value in pairs.items() if "." not in key and key in known}
            own = {key.removeprefix(f"{name}."): value for key, value in pairs.items() if key.startswith(f"{name}.")}
            models[name] = settings.new_model(name, task, common | own, seed)
        except (ValueError, TypeError) as error:
            failed[name] = str(error)
    return models


def _progressive_runs(models: dict[str, Any], source: Source, measuring: dict[str, Any], failed: dict[str, str]) -> Any:
    """Return a progressive run for each model that can be evaluated."""
    from ..evaluate import ProgressiveRun, ProgressiveRuns

    runs: dict[str, ProgressiveRun] = {}
    for name, model in models.items():
        try:
            runs[name] = ProgressiveRun(model, source.stream.info, linear=not runs, **measuring)  # one is enough
        except (ValueError, TypeError) as error:
            failed[name] = str(error)
    if not runs:
        raise ValueError("; ".join(f"{name} cannot run: {why}" for name, why in failed.items()))
    return ProgressiveRuns(runs)
