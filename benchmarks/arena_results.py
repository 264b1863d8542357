"""Results of benchmarks/arena.py: rows in a JSON lines file, with a learning curve each."""

import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.arena_streams import ArenaStream
from benchmarks.peer_contestants import Contestant, Run
from benchmarks.peer_results import KEY, Row, key, label_facts, read
from benchmarks.peer_streams import Events

POINTS = 50  # of a learning curve


def measure(
    path: Path, streams: dict[str, ArenaStream], contestants: list[Contestant], rows: int | None, seed: int, limit: float
) -> None:
    """Add missing results to a file; versions with uncommitted changes are always run."""
    for name, stream in streams.items():
        events = None
        known = {key(row) for row in read(path) if not row["version"].endswith("+")}
        for contestant in contestants:
            of = min(rows or stream.rows, stream.rows)
            facts: Row = dict(zip(KEY, (name, contestant.name, contestant.version, of, seed), strict=True))
            if stream.task not in contestant.tasks or key(facts) in known:
                continue
            events = events or stream.read(name, rows)
            row = facts | {"limit": limit} | measured(contestant, stream, events, seed, limit)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{time.strftime('%H:%M:%S')} {name}, {contestant.title}: {told(row)}", flush=True)


def told(row: Row) -> str:
    if "failure" in row:
        return row["failure"]
    error = f"accuracy {100 * (1 - row['error']):.2f} %" if "rmse" not in row else f"RMSE {row['rmse']:.5g}"
    loss = f", log-loss {row['log_loss']:.3f}" if row.get("log_loss") is not None else ""
    return f"{error}{loss} on {row['rows']:,} rows, {row['microseconds']:.0f} µs"


def measured(contestant: Contestant, stream: ArenaStream, events: Events, seed: int, limit: float) -> Row:
    """Run a contestant on a stream, on one thread."""
    try:
        with threadpool_limits(1):
            done = contestant.run(events, stream.classes, seed, limit)
        judged = labels_judged(done, events) if stream.classes else values_judged(done, events)
    except Exception as error:  # the error is recorded, and the others are measured
        return {"failure": f"{type(error).__name__}: {error}"[:200]}
    rows = len(done.answers.predicted)
    facts = {"rows": rows, **judged, "bytes": done.nbytes, "points": done.points, "microseconds": 1e6 * done.seconds / rows}
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in facts.items()}


def labels_judged(done: Run, events: Events) -> Row:
    """Return the share of mistakes, in all and along the stream, and what probabilities are worth."""
    wrong, facts = label_facts(done, events)
    return facts | {"curve": curve(wrong.astype(np.float64), len(events.y))}


def values_judged(done: Run, events: Events) -> Row:
    """Return the root of the mean squared error, in all and along the stream."""
    said = done.answers.predicted
    squares = (said - events.y[: len(said)]) ** 2
    if not np.isfinite(squares).all():
        raise OverflowError(f"predictions are not finite from row {int(np.argmin(np.isfinite(squares))) + 1} on")
    means = np.sqrt(curve(squares, len(events.y)))
    return {"rmse": float(np.sqrt(squares.mean())), "curve": [float(f"{mean:.5g}") for mean in means]}


def curve(losses: np.ndarray, rows: int) -> list[float]:
    """Return the mean loss of each fiftieth of the stream that was reached."""
    block = max(1, rows // POINTS)
    whole = len(losses) // block * block
    return [float(f"{mean:.5g}") for mean in losses[:whole].reshape(-1, block).mean(axis=1)]
