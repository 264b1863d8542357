"""Deleting and renaming models.

The journal says first that a model is deleted, then its files are removed: a start that finds the record removes what is left.
The record stays, since older files of the journal may still have events of the model.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .refusal import Refused
from .rows import check_name

if TYPE_CHECKING:
    from .jobs import Job
    from .live import LiveModel
    from .service import Service

ALL = 2**62  # events


def change(service: Service, job: Job) -> dict[str, Any]:
    """Delete or rename the model of a job, which learns nothing meanwhile; return the answer."""
    model = service.model(job.name)
    feed = next((feed for feed in service.feeds if feed.name == model.name), None)
    if feed is not None:
        raise Refused(409, f"{model.name!r} learns from {feed.address}: start the service without this source first")
    with service.keeping:  # no snapshot is being written
        return _renamed(service, model, job.new_name) if job.new_name is not None else _deleted(service, model)


def _deleted(service: Service, model: LiveModel) -> dict[str, Any]:
    with service.journal.commit():
        service.journal.delete(model.number)
    del service.models[model.name]
    for held in (service.known, service.histories):
        held.pop(model.number, None)
    service.errors.pop(model.name, None)
    for counts in (service.counts, service.alarms):
        for key in [key for key in counts if key[0] == model.name]:
            del counts[key]
    with suppress(OSError, sqlite3.Error):  # it is deleted in any case, and the next start removes what is left
        forget(service, model.number)
        service.ids.write(model.number, (), ALL)
    return {"name": model.name, "deleted": model.current.position}


def forget(service: Service, number: int) -> None:
    """Remove what a deleted model has left; to do so again has no effect."""
    service.journal.log.cut(number, ALL)
    service.snapshots.remove(number)
    service.waiting.forget(number)
    service.letters.forget(number)
    service.dead.forget(number)


def _renamed(service: Service, model: LiveModel, name: str) -> dict[str, Any]:
    check_name(name)
    if name in service.models:
        raise Refused(409, f"there is a model called {name!r} already")
    before = model.name
    with service.journal.commit():
        service.journal.rename(model.number, name)
    model.name, model.renamed = name, model.renamed + 1
    service.models = {one.name: one for one in service.models.values()}
    service.errors[name] = service.errors.pop(before)
    for counts in (service.counts, service.alarms):
        for key in [key for key in counts if key[0] == before]:
            counts[name, key[1]] = counts.pop(key)
    return {"name": name}
