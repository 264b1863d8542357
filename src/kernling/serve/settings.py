"""Limits and periods of a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The limits and periods of a service; all have defaults.

    Examples
    --------
    >>> from kernling.serve.settings import Settings
    >>> Settings(waiting_days=1.0).waiting_rows
    100000
    """

    body_bytes: int = 4 * 2**20  # of a request with rows
    file_bytes: int = 64 * 2**20  # of a model file that is sent
    arriving_bytes: int = 256 * 2**20  # of all incomplete requests
    request_seconds: float = 30.0  # for a client to send the head of a request, and as many for its body
    rows: int = 10_000  # in a request
    explained_rows: int = 32  # in a request for explanations
    explained_values: int = 2_048  # of these rows, since the time for a row grows with the square of its columns
    explaining: int = 8  # such requests at once, of which one is worked on
    models: int = 100
    model_bytes: int = 256 * 2**20  # of a model, estimated from its parameters, columns and classes
    memory_bytes: int = 2**30  # of all models together; each may be there three times: to learn, predict and be saved
    columns: int = 1_000
    classes: int = 1_000
    characters: int = 200  # in a label, or the name of a column
    id_bytes: int = 128
    queue_rows: int = 50_000  # waiting to be learned; beyond that, clients are asked to retry
    queue_bytes: int = 256 * 2**20  # of the requests that are waiting to be learned
    block_rows: int = 4_096  # learned at once, unless a single request has more
    first_rows: int = 100  # that determine the treatment of columns before a new model starts
    collected_rows: int = 10_000  # that a model keeps at most while it cannot start with them
    collected_bytes: int = 64 * 2**20
    known_ids: int = 1_000_000  # of learned events, for each model
    waiting_rows: int = 100_000  # predicted and not yet labelled, for each model
    waiting_bytes: int = 64 * 2**20  # of these rows, for each model
    waiting_days: float = 7.0  # during which the service runs
    letters: int = 10_000  # events of sources that were set aside, for each model
    window: int = 1_000  # events of the sliding window
    snapshot_seconds: float = 30.0  # between two snapshots of a model that learns
