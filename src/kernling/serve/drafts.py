"""Requested changes, all checked before any of them is made: refused requests change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

from .blocks import Block, farther, joined
from .dead import DeadLetters
from .ids import KnownIds
from .jobs import Job
from .live import LiveModel, Traits
from .refusal import Refused, bad_row, divide
from .rows import ID, has_columns, ids_of, targets_of
from .settings import Settings
from .sizes import claimed
from .waiting import Waiting


class Draft:
    """The rows of several requests for one model, to be learned as one block."""

    def __init__(self, model: LiveModel, known: KnownIds, settings: Settings, free: int):
        self.model = model
        self.known = known
        self.settings = settings
        self.free = free  # bytes that the model may take
        self.claim = model.claim
        self.traits = model.traits
        self.classes = set(model.current.progress.counts) if model.current.progress else set()
        self.pieces: list[Block] = []
        self.ids: list[str] = []  # of events that have one
        self.labelled: list[str] = []  # ids of rows that were waiting for their label
        self.offsets: dict[str, list[Any]] = {}  # of the sources of some jobs
        self.answers: list[tuple[Job, dict[str, Any], int]] = []  # with the number of pieces of the block
        self.empty: list[tuple[Job, dict[str, Any]]] = []  # answers to requests with nothing to learn
        self._taken: set[str] = set()

    def add(self, job: Job, waiting: Waiting, dead: DeadLetters) -> dict[str, Any]:
        """Add the rows of a request and return the answer; if one of them is invalid, raise and change nothing.

        Of a batch from a source, events that are invalid are left out, and the answer says why.
        """
        before = len(self.pieces)
        answer = self._add(job.rows, waiting, dead) if job.taken is None else self._add_events(job, waiting, dead)
        if job.taken is not None:
            self.offsets = farther(self.offsets, job.taken.to_plain())
        if len(self.pieces) > before:
            self.answers.append((job, answer, sum(len(block.pieces) for block in self.pieces[before:])))
        else:
            self.empty.append((job, answer))
        return answer

    def _add_events(self, job: Job, waiting: Waiting, dead: DeadLetters) -> dict[str, Any]:
        before = {name: copy(value) if isinstance(value, (list, set)) else value for name, value in vars(self).items()}
        answer: dict[str, Any] = {"learned": 0, "repeated": [], "unknown": [], "failed": {}}

        def attempt(first: int, last: int) -> None:
            found = self._add(job.rows[first:last], waiting, dead, is_source=True)
            for name, value in found.items():
                answer[name] += value

        try:
            divide(0, len(job.rows), attempt, answer["failed"])
        except Refused:
            vars(self).update(before)
            raise
        return answer

    def _add(
        self, rows: Sequence[dict[str, Any]], waiting: Waiting, dead: DeadLetters, is_source: bool = False
    ) -> dict[str, Any]:
        rows = list(rows)
        ids, targets = ids_of(rows, self.settings), targets_of(rows)
        full = list(map(has_columns, rows))
        late = [one for one, whole in zip(ids, full, strict=True) if one is not None and not whole]
        found = waiting.find(self.model.number, late) if late else {}
        places, repeated, unknown = [], [], []
        own: set[str] = set()
        for place, (one, whole) in enumerate(zip(ids, full, strict=True)):
            if one is not None and (one in own or one in self._taken or one in self.known):
                repeated.append(one)
            elif not whole and one not in found:
                if one is None:
                    raise bad_row(place, f"must have columns, or the {ID} of a row that was predicted before")
                unknown.append(one)
            else:
                if not whole:
                    rows[place] = self.traits.layout.restored(found[one])  # type: ignore[index]
                places.append(place)
                if one is not None:
                    own.add(one)
        answer: dict[str, Any] = {"learned": len(places), "repeated": repeated, "unknown": unknown}
        if not places:
            return answer
        self.model.check_room(len(places) + sum(len(piece.targets) for piece in self.pieces))
        block, traits, classes = self._block([rows[place] for place in places], [targets[place] for place in places], places)
        claim = claimed(
            self.model, traits, len(classes), sum(len(piece.targets) for piece in self.pieces) + len(places), self.free
        )
        dead.check(self.model.number, block)
        self.claim = claim
        self.traits, self.classes = traits, classes
        self.pieces.append(block._replace(pieces=(1,) * len(places)) if is_source else block)
        self._taken |= own
        self.ids += [one for one in (ids[place] for place in places) if one is not None]
        self.labelled += own if waiting.counts[self.model.number] else []
        ignored = traits.layout.unknown([rows[place] for place in places])
        answer |= {"ignored": ignored} if ignored else {}
        return answer

    def _block(
        self, rows: Sequence[dict[str, Any]], targets: Sequence[Any], places: Sequence[int]
    ) -> tuple[Block, Traits, set[Any]]:
        """Return the checked rows, and the traits and classes of the model after them."""
        try:
            layout = self.traits.layout.widened(rows, self.settings, self.model.current.room)
            columns = layout.read(rows)
        except Refused as error:  # its index counts new rows only
            place = places[error.row or 0]
            raise bad_row(place, str(error).partition(": ")[2]) from None
        kinds = self.traits.targets.widened(targets)
        labels = kinds.read(targets, places, self.settings)
        classes = self.classes if kinds.task == "regression" else self.classes | set(labels)
        if len(classes) > self.settings.classes:
            raise Refused(422, f"there would be more than {self.settings.classes:,} classes: labels must repeat")
        return Block(columns, labels, (len(labels),)), Traits(layout, kinds), classes

    @property
    def is_used(self) -> bool:
        """Whether its model exists or will be created."""
        return bool(self.model.number or self.pieces)

    @cached_property
    def block(self) -> Block:
        """All rows, in the order of the requests, which are complete when this is first read."""
        return joined(self.pieces)._replace(offsets=self.offsets)
