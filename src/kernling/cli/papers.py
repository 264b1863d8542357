"""Commands that list and reproduce the papers' tables and figures."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
import os
from pathlib import Path
from typing import Annotated, Any

import typer


def papers() -> None:
    """List the papers' tables and figures that can be reproduced."""
    from ..papers.tables import tables
    from ..report import show
    from ..report.tables import Cells

    rows = []
    for one in tables():
        methods = [method["name"] for method in one.facts.get("methods", []) if "learner" in method]
        why = f" (not run: {one.facts['why']})" if "why" in one.facts else ""
        rows.append([one.name, one.facts["title"] + why, ", ".join(methods), ", ".join(one.facts.get("data", {}))])
    show(Cells(["name", "what", "methods run", "data sets"], rows, [False] * 4))


def reproduce(  # each option of the command is an argument
    name: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="A table or figure, such as avm/table4, a paper, or all; see 'kernling papers'."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the data (default: KERNLING_DATA).", exists=True, file_okay=False)
    ] = None,
    permutations: Annotated[
        int | None, typer.Option(min=1, help="Number of random orders of the rows, or folds (default: the table's).")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Comma-separated data sets to run.")] = None,
    methods: Annotated[str | None, typer.Option(help="Comma-separated methods to run.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Store results next to the table, skip stored ones, and write papers/RESULTS.md.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="With --record, rerun stored cells too, and repeat the parameter search.")
    ] = False,
    verdicts: Annotated[
        bool,
        typer.Option("--list", help="Run nothing, but count which stored results reproduce the printed ones and which do not."),
    ] = False,
) -> None:
    """Reproduce a paper's table or figure.

    Shows our result, the paper's, that of a constant answer, the size of the model and the time.  After Ctrl-C, the cells
    that are done are shown.
    """
    from ..papers import page as reports
    from ..papers import tables as tables
    from ..report import show
    from .interrupts import Interrupts
    from .settings import names_of
    from .status import Status

    if verdicts:
        _list(name or "all")
        return
    if name is None:
        raise typer.BadParameter("name a table, such as avm/table4; see 'kernling papers'", param_hint="TABLE")
    if data:
        os.environ["KERNLING_DATA"] = str(data)
    told: Any = lambda method, where: typer.echo(f"{method} on {where}", err=True)  # noqa: E731
    asked: Any = {"permutations": permutations, "only": names_of(only), "methods": names_of(methods), "on_cell": told}
    for chosen in tables.named(name):
        rows: list[dict[str, Any]] = []
        with Interrupts() as interrupts, Status("reading") as status, interrupts.held_back():
            for row in tables.reproduce(chosen, record=record, again=again, on_progress=status.show, **asked):
                rows.append(row)
        if rows:
            show(reports.cells(rows), chosen.facts["title"])
        for line in reports.notes(chosen, rows) if rows or not interrupts.stopped else ():
            typer.echo(line)
        if record:
            tables.tidy(chosen)
            reports.draw(chosen, tables.results(chosen))
        interrupts.let_go()
    if record:
        (tables.folder() / "RESULTS.md").write_text(reports.page(), encoding="utf-8")


def _list(name: str) -> None:
    """Show how the stored results of tables compare with the printed ones."""
    from ..papers.tables import named
    from ..papers.verdicts import FAR, counts, far_worse
    from ..report import show

    chosen = named(name)
    show(counts(chosen))
    lines = far_worse(chosen)
    typer.echo(f"Worse by more than {FAR:g} printed deviations, and why:" if lines else "")
    for line in lines:
        typer.echo(f"- {line}")
