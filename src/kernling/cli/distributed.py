"""Training on a Dask cluster from the command line."""

# No "from __future__ import annotations" here: typer needs the annotations as types.
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .data import Reading, Source
from .interrupts import Interrupts
from .status import Status

PANEL = "Several machines"
Dask = Annotated[
    str | None,
    typer.Option(help="Train on a Dask cluster: local:N, or an address such as tcp://host:8786.", rich_help_panel=PANEL),
]
Rounds = Annotated[int, typer.Option(min=1, help="Number of passes over all files.", rich_help_panel=PANEL)]
MergeEvery = Annotated[
    int | None,
    typer.Option(min=1, help="Number of files that each part learns between merges (default: all).", rich_help_panel=PANEL),
]
Parts = Annotated[
    int | None,
    typer.Option(min=1, help="Number of models trained in parallel (default: one per file, up to 64).", rich_help_panel=PANEL),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip files that cannot be read, with a warning.", rich_help_panel=PANEL)
]
ALONE = ("scale", "shuffle", "skip", "rows")  # options that need all rows in one process, in order


@dataclass
class Cluster:
    """Options of a run on a cluster."""

    address: str
    rounds: int
    merge_every: int | None
    parts: int | None
    skip_bad: bool


def check(reading: Reading, others: dict[str, Any]) -> None:
    """Raise for options that cannot be combined with --dask."""
    usual = Reading()
    given = [name for name in ALONE if getattr(reading, name) != getattr(usual, name)]
    given += [name for name, value in others.items() if value is not None]
    if given:
        raise typer.BadParameter("cannot be combined with --dask", param_hint=f"--{given[0].replace('_', '-')}")


def check_unused(rounds: int, merge_every: int | None, parts: int | None, skip_bad: bool) -> None:
    """Raise for options that need --dask if it is not given."""
    given = {"--rounds": rounds != 1, "--merge-every": merge_every, "--parts": parts, "--skip-bad": skip_bad}
    for name in (name for name, value in given.items() if value):
        raise typer.BadParameter("needs --dask, such as --dask local:2", param_hint=name)


def learn(data: list[str], reading: Reading, cluster: Cluster, make: Any, saved: Any, save: Path | None) -> None:
    """Train on a cluster and save the merged model, even if some files cannot be read."""
    from .. import distributed as scale
    from .. import models

    there = next((path for path in data if Path(path).exists()), data[0])
    source = Source([there], reading, saved=saved)
    model = make(source, *source.begin()[0])
    begun, failure = time.perf_counter(), ""
    with Interrupts() as interrupts, Status("starting") as line:
        try:
            model = scale.fit(
                cluster.address,
                model,
                data,
                rounds=cluster.rounds,
                merge_every=cluster.merge_every,
                parts=cluster.parts,
                skip_bad=cluster.skip_bad,
                progress=line.show,
                **source.options(),
            )
        except scale.BadPartitions as error:
            named = "; ".join(f"{name}: {cause}" for name, cause in error.failures)
            failure, model = f"cannot be read: {named}; use --skip-bad to skip such files", error.model
        except scale.Interrupted as stopped:
            model = stopped.model
        except KeyboardInterrupt as stopped:  # before anything was learned
            raise typer.Exit(interrupts.exit_code) from stopped
    if save:
        models.save(model, save, source.kept())
    _tell(model, time.perf_counter() - begun, cluster)
    if failure:
        raise ValueError(failure)
    if interrupts.received:
        where = f"; the model is in {save}: continue with --resume {save}" if save else ""
        typer.echo(f"learned {model.t_:,} events before it stopped{where}", err=True)
        raise typer.Exit(interrupts.exit_code)


def _tell(model: Any, seconds: float, cluster: Cluster) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..pipeline import last_step

    table = Table(show_header=False, title=f"{type(last_step(model)).__name__} on {cluster.address}")
    facts = {
        "events": f"{model.t_:,}",
        "seconds": f"{seconds:.1f}",
        "points": f"{model.n_stored_:,}",
        "merge error": f"{model.certificate().get('merge_error', 0.0):.4g}",
    }
    for name, value in facts.items():
        table.add_row(name, value)
    Console().print(table)
