"""Recovery after a restart: the newest intact snapshot of a model, and the journal after it; what is missing is told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from . import marks
from .blocks import Block
from .dead import Attempts, DeadLetters
from .ids import KnownIds, Piece, StoredIds
from .journal import ACCEPTED, BLOCK, DEFINITION, DELETED, Definition, Journal, block_of, blocks, definition_of
from .live import LiveModel, Traits
from .log import Found
from .marks import Mark
from .settings import Settings
from .snapshots import Snapshot, Snapshots

EVENTS, IDS = "events", "ids"  # what can be lost


def loss(what: str, first: int, end: int, why: str) -> dict[str, Any]:
    """Return a loss as JSON-compatible data."""
    return {"what": what, "first": first, "end": end, "why": why, "time": time.time()}


def told(one: dict[str, Any]) -> str:
    """Return a loss as a sentence.

    Examples
    --------
    >>> from kernling.serve.recovery import loss, told
    >>> told(loss("events", 100, 150, "their records are damaged"))
    '50 events (100 to 149) are lost, since their records are damaged: send them again'
    """
    count, where = one["end"] - one["first"], f"{one['first']} to {one['end'] - 1}"
    if one["what"] == IDS:
        return f"the ids of {count:,} events ({where}) are lost, since {one['why']}: sent again, they would be learned twice"
    return f"{count:,} events ({where}) are lost, since {one['why']}: send them again"


class Plan(NamedTuple):
    """How a model is restored."""

    definition: Definition | None  # None if nothing says what it is
    snapshot: Snapshot | None
    blocks: list[Found]  # to be learned after the snapshot
    lost: list[dict[str, Any]]
    total: int  # events acknowledged
    notes: list[str]  # damage that has cost nothing
    offsets: dict[str, list[Any]]  # of batches from sources after which nothing was lost


class Survey:
    """All that is found in the folder of a service.  It only reads, until ``mend`` is called."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.journal = Journal(folder)
        self.log = self.journal.log
        self.log.scan()
        self.marks = marks.read(folder)
        self.snapshots = Snapshots(folder / "snapshots")
        self.ids = StoredIds(folder)
        self._torn = self._leave_torn()
        self.last_number = max([*self.numbers(), *self.deleted(), self.snapshots.last_number(), self.ids.last_number()])

    def _leave_torn(self) -> tuple[Path, int] | None:
        """Leave out a commit that was being written when the process ended, unless a mark says that it was complete."""
        if not self.log.segments:
            return None
        last = self.log.incomplete()
        reached = {one.model: one.end for one in self.log.found if one.kind == BLOCK and one not in last and one.is_whole}
        promised = {number: mark.total for number, mark in self.marks.models.items() if number not in self.deleted()}
        beyond = [number for number, total in promised.items() if total > max(reached.get(number, 0), self._end_of(number))]
        there = {one.model for one in self.log.found if one not in last} | set(self.snapshots.numbers())
        if beyond or not set(promised) <= there:
            return None
        path = self.log.segments[-1].path
        before = self.log.segments[-1].size
        place = self.log.leave_out(last)
        return (path, place) if place < before else None

    def _end_of(self, number: int) -> int:
        return max(self.snapshots.last_end(number), self.ids.last_end(number))

    def deleted(self) -> set[int]:
        """Return the numbers of models that were deleted, of which something may be left."""
        return {one.model for one in self.log.found if one.kind == DELETED and one.is_whole}

    def numbers(self) -> list[int]:
        """Return the numbers of all models."""
        found = {one.model for one in self.log.found} | set(self.marks.models) | set(self.snapshots.numbers())
        return sorted(found - self.deleted())

    def damage(self) -> list[str]:
        """Return a sentence for everything that is damaged or missing, apart from what the models say."""
        found = [*self.log.damage(), *self.ids.damage()]
        if self.numbers() and not self.log.segments:
            found.append("the journal is missing")
        if self.numbers() and self.marks.missing:
            names = " and ".join(self.marks.missing)
            found.append(f"missing or damaged: {names}; events at the end of the journal could be lost without being counted")
        return found

    def enter(self, number: int) -> None:
        """Complete the creation of a model from a file, if the journal has it."""
        if any(one.model == number and one.kind == DEFINITION for one in self.log.found):
            self.snapshots.enter(number)

    def plan(self, number: int, snapshot: Snapshot | None) -> Plan:
        """Return what can be restored of a model, given its newest intact snapshot."""
        mark = self.marks.models.get(number)
        definition = self._definition(number, snapshot, mark)
        found = blocks(self.log.found, number)
        position = snapshot.state.position if snapshot else 0
        lost = list(snapshot.lost) if snapshot else []
        notes, chosen, reached = [], [], position
        is_defined = definition is not None and bool(definition.traits)
        for one in found:
            if one.end <= position:
                if not one.is_whole:
                    notes.append(f"the record of {one.rows:,} events that a snapshot has is damaged")
                continue
            if one.first > reached:
                lost.append(loss(EVENTS, reached, one.first, "their records are missing or damaged"))
            if not one.is_whole:
                lost.append(loss(EVENTS, one.first, one.end, "their record is damaged"))
            elif not is_defined:
                lost.append(loss(EVENTS, one.first, one.end, "the record that says what the model is is damaged"))
            else:
                chosen.append(one)
            reached = max(reached, one.end)
        total = max([reached, mark.total if mark else 0, self._end_of(number)])
        if total > reached:
            lost.append(loss(EVENTS, reached, total, "the end of the journal is missing or damaged"))
        if snapshot:
            lost += [
                loss(IDS, first, end, "both copies are damaged") for first, end in self.ids.pieces(number, *snapshot.ids)[1]
            ]
        # without the end of the journal, its events are read again, from before the batch that the mark knows
        offsets = mark.offsets if mark and mark.total <= reached else {}
        return Plan(definition, snapshot, chosen, self._new(number, lost), total, notes, offsets)

    def _new(self, number: int, lost: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out losses that have been accepted, and repeated ones."""
        accepted = max((one.first for one in self.log.found if one.model == number and one.kind == ACCEPTED), default=0)
        unique = {(one["what"], one["first"], one["end"]): one for one in reversed(lost)}
        return [one for one in reversed(unique.values()) if one["end"] > accepted]

    def _definition(self, number: int, snapshot: Snapshot | None, mark: Mark | None) -> Definition | None:
        """Return the newest definition; without one, what the mark says."""
        held = [one for one in self.log.found if one.model == number and one.kind == DEFINITION and one.is_whole]
        found = [(one.first, definition_of(one.read())) for one in held]
        if snapshot is not None:
            found.insert(0, (snapshot.state.position, snapshot.definition))
        if not found:
            return Definition(mark.name, mark.spec, {}) if mark else None
        last = max(one.renamed for _, one in found)
        name = next(one.name for _, one in found if one.renamed == last)
        newest = max(reversed(found), key=lambda pair: pair[0])[1]  # that of the journal, if the snapshot's is as new
        return newest._replace(name=name, renamed=last)

    def mend(self, plans: dict[int, Plan]) -> None:
        """Remove what must not be found again, and set damaged files aside, once all models are restored in memory."""
        if self._torn is not None:
            path, place = self._torn
            with path.open("r+b") as file:
                file.truncate(place)
                os.fsync(file.fileno())
        ranges = {number: plan.snapshot.ids for number, plan in plans.items() if plan.snapshot}
        self.ids.mend(ranges)
        for number in self.numbers():
            self.log.cut(number, self.snapshots.covered(number) if number in plans else 2**62)
            plan = plans.get(number)
            self.snapshots.set_aside(number, plan.snapshot.state if plan and plan.snapshot else None)
        self.log.clean(self.log.is_needed)


class Restored(NamedTuple):
    """A model as it was, the ids that it knows, how it was restored, and a sentence for everything that could not be."""

    model: LiveModel
    known: KnownIds
    plan: Plan
    told: list[str]
    failed: list[tuple[int, Block, list[str | None]]]  # blocks with the number of events before them, of which some failed


def restored(survey: Survey, number: int, settings: Settings, attempts: Attempts, dead: DeadLetters) -> Restored | None:
    """Restore a model from its newest intact snapshot and the journal after it; None if nothing says what it is."""
    survey.enter(number)
    found = survey.snapshots.newest(number, lambda name: attempts.begin(number, f"snapshot {name}"))
    plan = survey.plan(number, found.newest)
    if plan.definition is None:
        return None
    name, spec, traits, from_file, renamed = plan.definition
    model = LiveModel(number, name, spec, Traits.from_plain(traits) if traits else Traits.empty(spec), settings)
    model.from_file, model.renamed, model.lost = from_file, renamed, plan.lost
    known = KnownIds(settings.known_ids)
    failed: list[tuple[int, Block, list[str | None]]] = []
    if plan.snapshot:
        model.set_state(plan.snapshot.state)
        known.begin(*plan.snapshot.ids, survey.ids.pieces(number, *plan.snapshot.ids)[0])
    for one in plan.blocks:
        block, ids = block_of(one.read())
        reason = attempts.begin(number, f"block {one.first}")
        if reason is not None:
            file = dead.add(number, one.first, block, ids, reason)["file"]
            found.damage.append(
                f"{one.rows:,} events ({one.first} to {one.end - 1}) were set aside, since learning them {reason}: see {file}"
            )
        if dead.has(number, one.first):  # which of several events it was is not known: sources are read again
            model.skip_to(one.end, block.offsets if len(block.pieces) == 1 else None)
        else:
            outcomes = model.replay(one.end, block)
            if any(outcomes):
                failed.append((one.first, block, outcomes))
            known.add(Piece(one.first, one.end, ids))
    model.skip_to(plan.total)
    model.publish()
    return Restored(model, known, plan, [*found.damage, *plan.notes, *map(told, plan.lost)], failed)
