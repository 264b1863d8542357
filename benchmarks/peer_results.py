"""Results of benchmarks/peers.py: rows in a JSON lines file, and comparisons on common rows."""

import base64
import json
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.peer_contestants import Contestant, Run
from benchmarks.peer_streams import Events, PeerStream

Row = dict[str, Any]
KEY = ("stream", "contestant", "version", "of", "seed")  # what was measured
BINS = 15  # of the calibration error
LEAST = 1e-15  # probability, so that a log-loss is finite
BLOCKS = 200  # number of means of squared errors stored for a whole stream


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def key(row: Row) -> tuple:
    return tuple(row[name] for name in KEY)


def latest(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """Return the last row of each stream and contestant."""
    return {(row["stream"], row["contestant"]): row for row in rows}


def measure(
    path: Path, streams: dict[str, PeerStream], contestants: list[Contestant], rows: int, seed: int, limit: float
) -> None:
    """Add missing results to a file; versions with uncommitted changes are always run."""
    for name, stream in streams.items():
        events = None
        known = {key(row) for row in read(path) if not row["version"].endswith("+")}
        for contestant in contestants:
            facts: Row = dict(zip(KEY, (name, contestant.name, contestant.version, min(rows, stream.rows), seed), strict=True))
            if stream.task not in contestant.tasks or key(facts) in known:
                continue
            events = events or stream.read(rows)
            row = facts | {"limit": limit} | measured(contestant, stream, events, seed, limit)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            shown = row.get("failure") or f"{row['error']:.4f} on {row['rows']:,} rows, {row['microseconds']:.0f} µs"
            print(f"{time.strftime('%H:%M:%S')} {name}, {contestant.title}: {shown}", flush=True)


def measured(contestant: Contestant, stream: PeerStream, events: Events, seed: int, limit: float) -> Row:
    """Run a contestant on a stream, on one thread."""
    try:
        with threadpool_limits(1):
            done = contestant.run(events, stream.classes, seed, limit)
    except Exception as error:  # the error is recorded, and the others are measured
        return {"failure": f"{type(error).__name__}: {error}"[:200]}
    judged = labels_judged(done, events) if stream.classes else values_judged(done, events)
    rows = len(done.answers.predicted)
    facts = {"rows": rows, **judged, "bytes": done.nbytes, "points": done.points, "microseconds": 1e6 * done.seconds / rows}
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in facts.items()}


def labels_judged(done: Run, events: Events) -> Row:
    wrong, facts = label_facts(done, events)
    return facts | {"mistakes": base64.b64encode(zlib.compress(np.packbits(wrong).tobytes(), 9)).decode()}


def label_facts(done: Run, events: Events) -> tuple[np.ndarray, Row]:
    """Return the mistakes, their share, and what probabilities are worth."""
    predicted, score, shares = done.answers
    y = events.y[: len(predicted)]
    wrong = predicted != y
    two = score is not None and len(np.unique(y)) == 2
    return wrong, {
        "error": float(wrong.mean()),
        "auc": float(roc_auc_score(y, score)) if two else None,
        "ece": None if shares is None else calibration_error(~wrong, shares.max(axis=1)),
        "log_loss": None if shares is None else log_loss(y, shares),
    }


def values_judged(done: Run, events: Events) -> Row:
    """Return squared errors divided by the variance of the targets, without the first row, whose scale is unknown."""
    said = done.answers.predicted
    part = slice(1, len(said))
    values = events.shift[part] + events.width[part] * said[part]
    squares = (values - events.values[part]) ** 2 / events.values.var()
    if not np.isfinite(squares).all():
        raise OverflowError(f"predictions are not finite from row {int(np.argmin(np.isfinite(squares))) + 2} on")
    block = block_size(len(events.y))
    means = squares[: len(squares) // block * block].reshape(-1, block).mean(axis=1)
    return {"error": float(np.sqrt(squares.mean())), "squares": [float(f"{mean:.5g}") for mean in means]}


def block_size(rows: int) -> int:
    """Return the number of squared errors per stored mean."""
    return max(1, rows // BLOCKS)


def calibration_error(right: np.ndarray, confidence: np.ndarray) -> float:
    """Return the expected calibration error of the top label."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - confidence, BINS)
    return float(np.abs(gaps).sum() / len(right))


def log_loss(y: np.ndarray, shares: np.ndarray) -> float:
    """Return the mean logarithmic loss; a label that was thought impossible costs 34.5."""
    return float(-np.log(np.maximum(shares[np.arange(len(y)), y], LEAST)).mean())


def losses(row: Row) -> np.ndarray:
    """Return the mistakes of each row, or squared errors in blocks."""
    if "squares" in row:
        return np.array(row["squares"])
    packed = np.frombuffer(zlib.decompress(base64.b64decode(row["mistakes"])), np.uint8)
    return np.unpackbits(packed, count=row["rows"]).astype(np.float64)


class Comparison(NamedTuple):
    """Comparison of one contestant with another on common rows."""

    ratio: float  # of errors
    behind: float  # difference of mean losses
    error: float  # the standard error of that


def compare(one: Row, other: Row) -> Comparison:
    a, b = losses(one), losses(other)
    common = min(len(a), len(b))
    a, b = a[:common], b[:common]
    ratio = a.mean() / max(b.mean(), np.finfo(float).tiny)
    difference = a - b
    return Comparison(
        float(np.sqrt(ratio) if "squares" in one else ratio),
        float(difference.mean()),
        float(difference.std() / np.sqrt(max(common - 1, 1))),
    )


def geometric_mean(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))
