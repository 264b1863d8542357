"""Commands that list and demonstrate the methods."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    events: Annotated[int, typer.Option(min=10, help="Maximum number of events per stream.")] = 20_000,
    everything: Annotated[bool, typer.Option("--all", help="Include all baselines, each of which is compiled first.")] = False,
) -> None:
    """Compare the main methods on two small streams."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .. import demo
    from ..compiler import compiling

    console = Console()
    console.print("Each event is first predicted, then learned.  The first run compiles each method for this processor, once.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    for stream in demo.streams(events):
        results: dict[str, demo.ProgressiveRun | Exception] = {}
        before = compiling.seconds
        with Progress(*columns, console=console, transient=True) as progress:
            for name, make in demo.contenders(everything).items():
                what = f"{stream.name}: {name}"
                task = progress.add_task(f"{what}, preparing", total=len(stream.y))

                def advance(events: int, task=task, what=what) -> None:
                    progress.update(task, completed=events, description=what)

                def tell(words: str, task=task, what=what) -> None:
                    progress.update(task, description=f"{what}, {words}")

                try:
                    with compiling.heard_by(tell):
                        results[name] = demo.run(make(), stream, advance)
                except Exception as error:  # any error: the other methods still run, and the table shows it
                    results[name] = error
        console.print(_comparison(stream, results, compiling.seconds - before))


def _comparison(stream, results, compiled):
    """Return the table of results on one stream; ``compiled`` is how long compilation took, in seconds."""
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
    for name, run in results.items():
        if isinstance(run, Exception):
            table.add_row(name, "cannot run")
            notes.append(f"{name} cannot run: {run}")
            continue
        points = getattr(run.model, "n_stored_", None)
        table.add_row(
            name,
            f"{run.value('mistakes'):.1%}",
            "none" if points is None else f"{points:,}",
            f"{run.events / run.seconds:,.0f}",
            f"{run.seconds:.2f}",
        )
    if compiled >= 0.1:
        notes.append(f"Compilation took another {compiled:.1f} s; it happens once, and the next run loads the compiled code.")
    table.caption = "\n".join(notes)
    return table


def learners() -> None:
    """List the methods and the papers to cite."""
    from .. import registry
    from ..report import show
    from ..report.tables import Cells

    rows = []
    for name, entry in registry.METHODS.items():
        learner = entry.learner()
        rows.append([name, learner.title, ", ".join(cls.__name__ for cls in entry.classes()), learner.citation])
    show(Cells(["name", "method", "estimators", "citation"], rows, [False] * 4))
