"""Recovery after a restart: the newest intact snapshot of a model, and the journal after it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .journal import Entry, Journal
from .live import LiveModel, Traits
from .settings import Settings
from .snapshots import Snapshots


class Recovered(NamedTuple):
    """A model as it was, with a sentence for everything that could not be recovered."""

    model: LiveModel
    saved: int  # position of the snapshot
    history: list[Any]
    told: list[str]


def recovered(entry: Entry, journal: Journal, snapshots: Snapshots, settings: Settings) -> Recovered:
    """Restore a model from its newest intact snapshot and the journal after it."""
    traits = Traits.from_plain(entry.traits)
    model = LiveModel(entry.number, entry.name, entry.spec, traits, settings)
    state, history, told = snapshots.newest(entry.number)
    if state is not None:
        model.set_state(state)
    position = state.position if state else 0
    if position < entry.cut:
        told.append("no intact snapshot reaches up to the journal's first record: the events in between are lost")
    for record in journal.blocks(entry.number, after=position):
        if record.block is None:
            told.append(f"a damaged record of the journal was skipped: its {record.rows} events are lost")
        else:
            model.replay(record.position, record.block)
    model.publish()
    return Recovered(model, position, history, told)
