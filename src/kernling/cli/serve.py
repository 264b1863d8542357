"""The command that serves models."""

# No "from __future__ import annotations" here: typer needs the types themselves.
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

DATA = "Folder for the journal and the models (default: one in your user data folder; with --demo, a temporary one)."

FROM = "Also read events from redis://host/stream or kafka://host/topic, each exactly once; may be repeated."
TO = "Write predictions of these events to a stream or topic: one for each --from, or one for all."


def _limits(pairs: list[str]) -> dict[str, float]:
    """Parse limits by the types of their defaults."""
    from ..serve.settings import Settings
    from .settings import split_pairs

    known: dict[str, Any] = {one.name: type(one.default) for one in fields(Settings)}
    found: dict[str, float] = {}
    for name, text in split_pairs(pairs, "--set").items():
        if name not in known:
            raise typer.BadParameter(f"there is no limit {name!r}; the limits are {', '.join(known)}", param_hint="--set")
        try:
            found[name] = known[name](text)
        except ValueError:
            raise typer.BadParameter(f"{name} must be a number, not {text!r}", param_hint="--set") from None
        if found[name] < 0:
            raise typer.BadParameter(f"{name} must not be negative", param_hint="--set")
    return found


def serve(  # each option of the command is an argument
    data: Annotated[Path | None, typer.Option(help=DATA, file_okay=False)] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; all but loopback addresses need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8042,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that requests need; or set KERNLING_TOKEN.", exists=True)
    ] = None,
    waiting_rows: Annotated[
        int, typer.Option(min=1, help="Maximum number of predicted rows per model that wait for their labels.")
    ] = 100_000,
    waiting_days: Annotated[float, typer.Option(min=0.0, help="Days after which a row no longer waits for its label.")] = 7.0,
    snapshot_seconds: Annotated[float, typer.Option(min=0.0, help="Seconds between snapshots of a model that learns.")] = 30.0,
    memory_mb: Annotated[
        int, typer.Option(min=1, help="Maximum memory of all models together, in MiB; one model may use a quarter of it.")
    ] = 1024,
    set: Annotated[
        list[str], typer.Option("--set", help="Another limit as name=value, such as classes=50; may be repeated.")
    ] = [],  # noqa: B006 - typer makes a new list
    sources: Annotated[
        list[str], typer.Option("--from", envvar="KERNLING_FROM", help=FROM, metavar="URL", show_default=False)
    ] = [],  # noqa: B006 - typer makes a new list
    sinks: Annotated[list[str], typer.Option("--to", envvar="KERNLING_TO", help=TO, metavar="URL", show_default=False)] = [],  # noqa: B006
    alarm_url: Annotated[
        str | None, typer.Option(help="Post alarms of models as JSON to this http or https address.", metavar="URL")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Feed the service with drifting example streams; with --from, through a broker.")
    ] = False,
) -> None:
    """Predict and learn over HTTP, with a live page."""
    import platformdirs

    try:
        from ..serve.run import serve as run
    except ImportError as error:
        raise ImportError(f"serving needs {error.name}: pip install 'kernling[serve]'") from error
    from ..serve.settings import Settings

    named = {"waiting_rows": waiting_rows, "waiting_days": waiting_days, "snapshot_seconds": snapshot_seconds}
    named |= {"memory_bytes": memory_mb * 2**20, "model_bytes": memory_mb * 2**18}
    settings = Settings(**named | _limits(set))  # type: ignore[arg-type]
    with ExitStack() as stack:
        if data is None and demo:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = data or platformdirs.user_data_path("kernling") / "serve"
        run(
            folder,
            host,
            port,
            token_file=token_file,
            settings=settings,
            demo=demo,
            sources=sources,
            sinks=sinks,
            alarm_url=alarm_url,
            tell=typer.echo,
        )
