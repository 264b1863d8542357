"""The command that checks the folder of a service."""

# No "from __future__ import annotations" here: typer needs the types themselves.
from pathlib import Path
from typing import Annotated

import typer


def check(
    folder: Annotated[Path, typer.Argument(help="Folder of a service that is not running.", file_okay=False)],
    repair: Annotated[
        bool, typer.Option("--repair", help="Restore all that is intact, set damaged files aside and accept the losses.")
    ] = False,
) -> None:
    """Report damage and losses in the folder of a service.

    The exit code is 1 if anything is damaged or lost.
    """
    try:
        from ..serve.check import check as run
    except ImportError as error:
        raise ImportError(f"checking needs {error.name}: pip install 'kernling[serve]'") from error
    if not run(folder, repair, typer.echo):
        raise typer.Exit(1)
