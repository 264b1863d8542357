"""The command that exports models to other programs."""

# No "from __future__ import annotations" here: typer needs the types themselves.
from pathlib import Path
from typing import Annotated

import typer

from .learn import Model


def export(
    model: Model,
    output: Annotated[Path, typer.Argument(help="A .onnx or .json file.")],
) -> None:
    """Write a model for other programs, as ONNX or JSON."""
    from .. import models
    from ..export import to_json, to_onnx

    formats = {".onnx": to_onnx, ".json": to_json}
    if output.suffix not in formats:
        raise typer.BadParameter("must end in .onnx or .json", param_hint="OUTPUT")
    formats[output.suffix](models.load(model), output)
    typer.echo(f"{output} written: {output.stat().st_size:,} bytes", err=True)
