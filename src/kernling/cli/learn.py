"""Commands that train models on streams and that use trained models."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ..registry import DEFAULT
from . import distributed as spread
from . import settings
from .data import Reading, Source, takes_reading
from .interrupts import Interrupts
from .resume import Keeper, Start, advice, start
from .status import RunProgress, Status

WHAT = "A file, '-' for standard input, a stream of a broker (redis://, kafka://), a named data set or a synthetic stream."
Data = Annotated[str, typer.Argument(help=WHAT)]
Model = Annotated[Path, typer.Argument(help="A model file.", exists=True, dir_okay=False)]
Every = Annotated[int, typer.Option(min=1, help="Number of events between measurements.")]
WindowSize = Annotated[int, typer.Option(min=1, help="Size of the sliding window, in events.")]
CHANGES = 8  # of a stream, the latest of which are shown
Results = Annotated[Path | None, typer.Option(help="Write all measurements to this .csv or .parquet file.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report with figures (needs matplotlib).")]


class Outputs(NamedTuple):
    """The files that a run writes."""

    save: Path | None
    predictions: Path | None
    results: Path | None
    report: Path | None


@takes_reading  # each option of the command is an argument
def run(
    data: Annotated[list[str], typer.Argument(help=f"{WHAT}  Several files are read one after the other.")],
    reading: Reading,
    learner: settings.LearnerOption = DEFAULT,
    set: settings.SetOption = [],  # noqa: B006 - typer makes a new list
    task: settings.TaskOption = None,
    metrics: settings.MetricsOption = None,
    window: WindowSize = 1000,
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Number of events between measurements (default: such that 50 to 100 are shown or written)."),
    ] = None,
    seed: settings.SeedOption = 0,
    save: Annotated[Path | None, typer.Option(help="Save the model to this file, even after Ctrl-C or a bad row.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue training this model.", exists=True, dir_okay=False)] = None,
    checkpoint_every: Annotated[int | None, typer.Option(min=1, help="Also save the model every N events.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Write the prediction of each row before it is learned; '-' for standard output.")
    ] = None,
    results: Results = None,
    report: Report = None,
    interval: settings.IntervalOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how columns would be treated, without training.")] = False,
    dask: spread.Dask = None,
    rounds: spread.Rounds = 1,
    merge_every: spread.MergeEvery = None,
    parts: spread.Parts = None,
    skip_bad: spread.SkipBad = False,
) -> None:
    """Train a model: each row is first predicted, then learned.

    With --dask, models are trained on the files in parallel and merged into one, without test-then-train evaluation.
    """
    if checkpoint_every and not save:
        raise typer.BadParameter("needs --save", param_hint="--checkpoint-every")
    outputs = Outputs(save, predictions, results, report)
    check_outputs(save, results, report)
    check_outputs(predictions)
    given = settings.split_pairs(set, "--set")
    saved = _resumed(resume, learner, given) if resume else None
    if interval and saved:
        settings.check_calibrated(saved.model, resume)
    elif interval:
        given["calibrate"] = "true"
    begin = Start(saved.model) if saved and dask else start(saved, data, reading)  # --dask learns all rows

    def make(source: Source, X: Any, y: Any) -> Any:
        if begin.model is not None:
            return begin.model
        model = settings.new_model(learner, task or source.task_of(y), given, seed, watch=not dask)
        return source.pipeline(model, X)

    if dask:
        others = {"results": results, "report": report, "predictions": predictions}
        spread.check(reading, {"checkpoint_every": checkpoint_every, "metrics": metrics} | others)
        reading = replace(reading, scale="none", missing=reading.missing or "error")  # nothing that adapts to the rows
        cluster = spread.Cluster(dask, rounds, merge_every, parts, skip_bad)
        spread.learn(data, reading, cluster, make, saved, save)
        return
    spread.check_unused(rounds, merge_every, parts, skip_bad)
    source = Source(data, reading, saved=saved, unlabelled=True, start=begin)
    if dry_run:
        _show_treatments(source, make)
        return
    if saved and begin.skip + begin.again:
        typer.echo(f"continuing after row {begin.skip + begin.again:,} of {source.name}", err=True)
    measuring = {"metrics": settings.names_of(metrics), "window": window, "linear": True}
    measuring["every"] = 0 if every is None and (results or report) else every
    measuring |= {"row": source.skip, "again": begin.measured, "summarise": True}
    _learn(source, make, measuring, outputs, checkpoint_every, interval)


def _resumed(path: Path, learner: str, given: dict[str, str]) -> Any:
    """Return the contents of the model file to resume from; raise if options contradict it."""
    if given:
        raise typer.BadParameter("a resumed model keeps its parameters: leave --set out", param_hint="--resume")
    from .. import models  # now: errors above come at once

    saved = models.read(path)
    name = saved.model.learner.name
    if learner not in (DEFAULT, name):
        raise typer.BadParameter(f"the resumed model is a {name} model: leave this option out", param_hint="--learner")
    return saved


def _show_treatments(source: Source, make: Callable[..., Any]) -> None:
    """Print how a run would treat the columns, judging by the first rows."""
    (X, y), _ = source.begin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is ignored is shown below
        model = make(source, X, y).begin(X)
    typer.echo(f"{model.task} of {source.name}")
    typer.echo(str(_schema(model) or f"{X.shape[1]:,} columns of numbers"))


def _schema(model: Any) -> Any:
    """Return how a pipeline treats the columns of tables, or None if it takes only numbers."""
    steps = getattr(model, "steps_", None)
    return getattr(steps[0][1], "schema_", None) if steps else None


def _learn(
    source: Source,
    make: Callable[..., Any],
    measuring: dict[str, Any],
    outputs: Outputs,
    checkpoint_every: int | None,
    interval: float | None,
) -> None:
    """Test and learn the rows; however it ends, the model is saved and the results so far are shown."""
    from ..evaluate import ProgressiveRun, feed
    from .answers import Answers

    course: ProgressiveRun | None = None
    told: list[str] = []
    keeper: Keeper | None = None

    def save_model() -> None:
        if outputs.save and keeper and keeper.events:
            keeper.save(outputs.save)

    def after() -> None:
        status.show(RunProgress({"": course} if course else {}))
        if course and checkpoint_every and course.row % checkpoint_every == 0:
            save_model()

    answers = Answers(outputs.predictions, source.skip, source.again)
    with Interrupts() as interrupts, Status("waiting for rows") as status, answers:
        with interrupts.held_back():
            (X, y), chunks = source.begin()
            course = ProgressiveRun(make(source, X, y), source.stream.info, on_batch=answers.learned, **measuring)
            course.begin(X, y)
            told = _telling(course.model, X, y)
            keeper = Keeper(course, source, checkpoint_every)
            rows = answers.learnable(course.model, chunks)
            feed(keeper, rows, cut=checkpoint_every, start=source.skip, guard=interrupts.deferred, after=after)
            answers.end(source.rows)
        save_model()
    if course and course.events:
        _tell(course, outputs, source, interval)
        for line in told:
            typer.echo(line)
        if interrupts.stopped:
            where_it_stopped(course.events, source, outputs.save, mend=interrupts.failure is not None)
    interrupts.let_go()


def check_outputs(file: Path | None, results: Path | None = None, report: Path | None = None) -> None:
    """Check before training that the output files can be written."""
    for path in (file, results, report):
        if path and not path.absolute().parent.is_dir():
            raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
        if path and path.is_dir():
            raise IsADirectoryError(f"{str(path)!r} is a folder: name a file in it")
    if results and results.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter("must end in .csv or .parquet", param_hint="--results")
    if report and report.suffix not in (".html", ".htm"):
        raise typer.BadParameter("must end in .html: it is a page with figures", param_hint="--report")
    if report:
        from ..report.figures import need_matplotlib

        need_matplotlib()


def where_it_stopped(events: int, source: Source, save: Path | None, mend: bool) -> None:
    """Report how much was learned and how to continue."""
    note = f"learned {_counted(events, 'event')} before it stopped"
    typer.echo(f"{note}; {advice(save, source, mend)}" if save else note, err=True)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tell(course: Any, outputs: Outputs, source: Source, interval: float | None) -> None:
    from ..evaluate import write_rows
    from ..pipeline import last_step
    from ..report import decisions, page, show, surface, upright

    rows = course.end()
    model = last_step(course.model)
    title = f"{type(model).__name__} on {source.name}"
    show(upright(rows[-1]), title)
    for line in (*decisions(course.summary), *_calibration(model, interval), *_changes(course.model)):
        typer.echo(line)
    for line in _remarks(course.model, source):
        typer.echo(line)
    if outputs.results:
        write_rows(rows, outputs.results)
    if outputs.report:
        names = source.stream.names or ("x1", "x2")
        drawable = model.n_features_in_ == 2 and hasattr(model, "support_vectors_") and model.task == "classification"
        figures = [("Decision surface and stored points", surface(model, names=names))] if drawable else []
        page(rows, outputs.report, title, figures, getattr(course.model, "alarms_", ()))


def _calibration(model: Any, interval: float | None) -> list[str]:
    """Return how many targets were within the intervals or sets before they were learned, and how large these were."""
    if interval is None:
        return []
    inside, size = model.calibration_[interval]
    what, how = ("intervals", f"mean width {size:.4g}")
    if model.task == "classification":
        what, how = "sets", f"{size:.2f} labels on average"
    return [f"{interval:.0%} {what}: {inside:.1%} of the targets inside, {how}"]


def _changes(model: Any) -> list[str]:
    """Return the latest changes of the stream, and how many alarms there were if not all of them are shown."""
    from ..components.alarms import changes

    lines = changes(getattr(model, "alarms_", ()), model.task == "regression")
    shown = lines[-CHANGES:]
    all_shown = len(shown) == len(lines) and getattr(model, "alarm_count_", 0) <= len(getattr(model, "alarms_", ()))
    return shown if all_shown else [f"{model.alarm_count_} alarms; the latest changes:", *shown]


def _remarks(model: Any, source: Source) -> list[str]:
    """Return which columns of a table were ignored, and how many rows were dropped, imputed, clipped or not understood."""
    from ..evaluate.references import WIDEST

    schema = _schema(model)
    if schema is None:
        return []
    encode = model.steps_[0][1]
    lines = [f"rows: {source.dropped:,} dropped, {encode.imputed_:,} imputed, {model.clipped_:,} clipped"]
    wide = model.model_.n_features_in_
    if wide > WIDEST:
        lines.append(f"there is no linear model to compare with: it needs at most {WIDEST} columns, and there are {wide:,}")
    for name, count in encode.unread_.items():
        lines.append(f"not understood, and taken as missing: {_counted(count, 'value')} of {name!r}")
    if encode.disordered_:
        lines.append(f"not in order of time: {_counted(encode.disordered_, 'row')} with an earlier time than a row before")
    prose = [column.name for column in schema if column.treatment == "text"]
    lines += [f"prose, scored by words and pairs of words: {', '.join(map(repr, prose))}"] if prose else []
    return [*lines, *([f"ignored: {schema.ignored()}"] if schema.ignored() else [])]


def _telling(model: Any, X: Any, y: Any) -> list[str]:
    """Return questions about columns that alone predict the target."""
    from ..tables import Table
    from ..tables.telling import telling_columns

    schema = _schema(model)
    if schema is None or not isinstance(X, Table):
        return []
    return [f"{name!r} alone predicts the target: is it known in time?" for name in telling_columns(X, schema, y, model.task)]


@takes_reading  # each option of the command is an argument
def predict(
    model: Model,
    data: Data,
    reading: Reading,
    output: Annotated[Path | None, typer.Option(help="Output file (default: standard output).")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write scores instead of labels or values.")] = False,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Write the probability of each class.")] = False,
    interval: Annotated[
        float | None, typer.Option(min=0.5, max=0.99, help="Write two limits for each row; they contain this share of targets.")
    ] = None,
) -> None:
    """Write the prediction for each row, one line per row.

    If the rows have targets, also print how accurate the predictions are.  The line of a row with missing values that the model
    cannot impute is empty.  With --probabilities, the first line names the classes.
    """
    from .. import models
    from ..evaluate import Batch, ConstantAnswer, metric
    from ..evaluate.record import column
    from ..report import tables
    from ..tables.table import missing
    from .answers import STANDARD_OUTPUT, Answers, predictions

    saved = models.read(model)
    method = "predict_proba" if probabilities else "decision_function" if scores else "predict"
    method = method if interval is None else "predict_interval"
    _check_method(saved.model, method, model)
    source = Source([data], reading, saved=saved, every_row=True)
    name = "mistakes" if saved.model.task == "classification" else "rmse"
    measured, beside, constant = metric(name), metric(name), ConstantAnswer(saved.model.task)
    rows = 0
    seen = output is not None or not sys.stdout.isatty()  # a status line would run into predictions on the same terminal
    with Answers(output or STANDARD_OUTPUT) as answers, Status("reading", visible=seen) as status:
        if probabilities:
            answers.write([",".join(map(str, saved.model.classes_.tolist()))])
        for X, y in source.chunks():
            found = predictions(saved.model, X, method, **({} if interval is None else {"coverage": interval}))
            answers.write(found.lines)
            status.show(f"{source.rows:,} rows")
            if y is not None and found.values is not None and saved.model.task != "oneclass" and method == "predict":
                targets = y[found.usable]
                known = ~missing(targets)
                measured.update(Batch(targets[known], found.values[known]))
                beside.update(Batch(targets[known], constant.predict_then_learn(None, targets[known])))
                rows += int(known.sum())
    if rows:
        own, other = (tables.text(name, float(one.value)) for one in (measured, beside))
        typer.echo(f"{_counted(rows, 'row')}, {column(name).label} {own}, constant answer {other}", err=True)


def _check_method(model: Any, method: str, path: Path) -> None:
    """Raise if a model does not have the method that the options ask for."""
    from ..pipeline import last_step

    if hasattr(model, method):
        return
    cause = {
        "predict_interval": "train a regressor with --interval, or --set calibrate=true",
        "predict_proba": "only classifiers have probabilities",
    }.get(method, "a regressor has no scores")
    if method == "predict_proba" and model.task == "classification":
        cause = "train it with --set loss=logistic, or loss=softmax for more than two classes"
    raise ValueError(f"{type(last_step(model)).__name__} in {path} has no {method}: {cause}")


def info(model: Model) -> None:
    """Show the contents of a model file."""
    from rich.console import Console
    from rich.table import Table

    from .. import models
    from ..estimators.facts import facts as about
    from ..pipeline import last_step

    saved = models.read(model)
    whole, header = saved.model, saved.header
    learned = last_step(whole)
    defaults = type(learned)().get_params(deep=False)
    changed = {name: value for name, value in learned.get_params(deep=False).items() if value != defaults[name]}
    facts: dict[str, Any] = {
        "estimator": type(learned).__name__,
        "method": learned.learner.citation,
        "parameters": ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "defaults",
        "columns": f"{whole.n_features_in_:,}",
    }
    if whole is not learned:
        facts = {"pipeline": ", ".join(f"{name}: {step!r}" for name, step in whole.steps[:-1]) or "none", **facts}
    if hasattr(learned, "classes_"):
        shown = [str(one) for one in learned.classes_.tolist()]
        facts["classes"] = ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
    for name in ("gamma", "delta", "theta"):
        if getattr(learned, name, None) in ("scale", "auto"):
            facts[f"{name}, from the data"] = f"{getattr(learned, f'{name}_'):.6g}"
    if saved.reading:
        facts["target column"] = saved.reading.get("target") or "none"
    if saved.place:
        facts["rows consumed"] = f"{saved.place['row']:,} of {', '.join(saved.place['data'])}"
    for row in _schema(whole).rows() if _schema(whole) else ():
        facts[f"column {row['column']}"] = f"{row['treatment']}: {row['becomes']}"
    facts |= about(learned)
    facts["written by"] = ", ".join(f"{name} {number}" for name, number in header["versions"].items())
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, str(value))
    Console().print(table)


@takes_reading
def convert(
    data: Data,
    output: Annotated[Path, typer.Argument(help="A .libsvm, .csv, .parquet or .jsonl file; text also with .gz, .bz2 or .xz.")],
    reading: Reading,
) -> None:
    """Convert data to another format, as numbers.

    Categories and dates become columns of numbers, as for a model.
    """
    from ..io import Stream, write
    from ..tables import Table

    source = Source([data], replace(reading, scale=reading.scale or "none", missing=reading.missing or "error"))
    (X, _), chunks = source.begin()
    steps = [step for _, step in source.steps(X)]
    names = steps[0].begin(X).get_feature_names_out().tolist() if isinstance(X, Table) else None
    pieces = Stream(lambda _: chunks, once=True).through(*steps)
    rows = write(pieces, output, names, str(source.stream.target or "target"))
    typer.echo(f"{rows:,} rows written to {output}", err=True)
