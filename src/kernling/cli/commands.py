"""The commands.  Everything but typer is imported where it is used, so that ``kernling --help`` starts quickly."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from . import INTERRUPTED, check, compare, explain, export, learn, methods, papers, serve, tune
from .data import Reading
from .interrupts import CURABLE

FAILED = 1  # 2 is for wrong arguments


class Commands(TyperGroup):
    """Print errors that the user can fix as one line and set the exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _once()  # type: ignore[assignment]
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except CURABLE as error:
            typer.echo(f"error: {_as_options(str(error))}", err=True)
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _as_options(message: str) -> str:
    """Rewrite Python arguments in a message, such as n_features=9 or missing='drop', as command-line options."""
    names = "|".join(field.name for field in fields(Reading))

    def spelled(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"--{name.replace('_', '-')}" + (f" {value}" if value and value != "True" else "")

    message = re.sub(rf"\b({names})='?((?<=')[^']*|[\w.]*)'?", spelled, message)
    return message.replace("sklearn.preprocessing.StandardScaler", "--scale standard")


def _once() -> Callable[..., None]:
    """Show each warning once, however many models it is about."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        line = f"warning: {_as_options(str(message))}"
        if line not in told:
            typer.echo(line, err=True)
        told.add(line)

    return show


app = typer.Typer(
    cls=Commands,
    help="Nonlinear models that learn from a stream, one event at a time, in fixed memory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes show flags as if they took a value
)
for command in (
    learn.run,
    learn.predict,
    explain.explain,
    learn.info,
    compare.compare,
    tune.tune,
    learn.convert,
    export.export,
    papers.papers,
    papers.reproduce,
    serve.serve,
    check.check,
    methods.learners,
    methods.demo,
):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kernling {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
