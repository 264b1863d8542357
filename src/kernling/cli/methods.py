"""What there is: every method, listed and shown at work."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    events: Annotated[int, typer.Option(min=10, help="Events per stream, at most.")] = 20_000,
    everything: Annotated[bool, typer.Option("--all", help="With all baselines, each of which is compiled first.")] = False,
) -> None:
    """Learn two small streams with the main methods and a linear one, and compare."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .. import demo

    console = Console()
    console.print(
        "Every event is predicted first and learned then.  The first run compiles each method for this processor, once."
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    for stream in demo.streams(events):
        results: dict[str, demo.ProgressiveRun | Exception] = {}
        with Progress(*columns, console=console, transient=True) as progress:
            for name, make in demo.contenders(everything).items():
                what = f"{stream.name}: {name}"
                task = progress.add_task(f"{what}, getting ready", total=len(stream.y))

                def advance(events: int, task=task, what=what) -> None:
                    progress.update(task, completed=events, description=what)

                try:
                    results[name] = demo.run(make(), stream, advance)
                except Exception as error:  # whatever it is, the others go on and the table says it
                    results[name] = error
        console.print(_comparison(stream, results))


def _comparison(stream, results):
    """The table of one stream."""
    from rich.table import Table

    table = Table(
        "learner",
        title=f"{stream.name}: {len(stream.y):,} events, {stream.X.shape[1]} columns, {len(set(stream.y.tolist()))} classes",
        title_justify="left",
        caption_justify="left",
    )
    for column in ("mistakes", "points stored", "events per second", "seconds"):
        table.add_column(column, justify="right")
    table.add_row("majority class", f"{stream.majority:.1%}")
    notes = []
    for name, course in results.items():
        if isinstance(course, Exception):
            table.add_row(name, "cannot run")
            notes.append(f"{name} cannot run: {course}")
            continue
        points = getattr(course.model, "n_stored_", None)
        table.add_row(
            name,
            f"{course.value('mistakes'):.1%}",
            "none" if points is None else f"{points:,}",
            f"{course.events / course.seconds:,.0f}",
            f"{course.seconds:.2f}",
        )
    warmup = sum(course.warmup for course in results.values() if not isinstance(course, Exception))
    table.caption = "\n".join([*notes, f"Getting ready, which includes compiling, took {warmup:.1f} s more."])
    return table


def learners() -> None:
    """List the methods, with the papers to cite."""
    from .. import registry
    from ..report import show
    from ..report.tables import Cells

    rows = []
    for name, entry in registry.METHODS.items():
        learner = entry.learner()
        rows.append([name, learner.title, ", ".join(cls.__name__ for cls in entry.classes()), learner.citation])
    show(Cells(["name", "method", "estimators", "citation"], rows, [False] * 4))
