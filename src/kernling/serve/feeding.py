"""Feeds: threads that read events from brokers and pass them to the service, one batch after the other.

The next batch is read when the last one has been learned.  The journal has the offsets of a batch together with its events, so
after any failure, of the broker or of this process, reading begins again at the offsets that the journal has.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..brokers import Address, Batch, BrokerError, Sink, open_sink, open_source
from .dead import STRIKES
from .jobs import Taken
from .letters import Letter
from .live import LiveModel
from .refusal import Refused, divide, first_line
from .rows import ID, TARGET, check_name, has_columns, ids_of, loads
from .service import Service
from .specs import checked_spec
from .waiting import early

SECONDS = 0.25  # for which a source may wait for events before it is asked again
SHORTEST, LONGEST = 0.1, 5.0  # seconds between two attempts to reach a broker
TICK = 1.0  # seconds after which the lag is measured again
SMOOTH = 5  # such moments over which the rate is measured
OPTIONS = ("model", "estimator", "task")  # of a URL
NOTES = 20
READS = "is read"  # a status; all others say why not
COUNTED = ("read", "learned", "repeated", "predicted", "early", "failed")
_LOG = logging.getLogger(__name__)


class Read(NamedTuple):
    """An event of a batch."""

    place: str
    event: bytes
    row: dict[str, Any]


class Feed:
    """A source that feeds one model, and the sink of its predictions, in a thread of its own."""

    def __init__(self, service: Service, source: str, sink: str | None = None):
        self.service, self.settings = service, service.settings
        self.address = Address.parse(source)
        options = self.address.options
        self.name = check_name(options.get("model", self.address.topic))
        self._spec = checked_spec({name: options[name] for name in OPTIONS[1:] if name in options})
        self._source = open_source(self.address, OPTIONS)
        self._sink: Sink | None = None if sink is None else open_sink(Address.parse(sink))
        self.counts: Counter[str] = Counter()  # since the start
        self.status = "begins"
        self.behind: int | None = None
        self.notes: deque[str] = deque(maxlen=NOTES)  # what was missing
        self._moments = deque([(time.monotonic(), 0)], maxlen=SMOOTH)  # times, and events read
        self._batch = 0
        self._careful: int | None = None  # events to be read one by one: one of them may bring the process down
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feed {self.address}")
        service.feeds.append(self)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch at hand, and read no more."""
        self._stopping.set()
        self._thread.join()
        self._source.close()
        if self._sink is not None:
            self._sink.close()

    def facts(self) -> dict[str, Any]:
        """Return how it is going as JSON-compatible data."""
        before, read = self._moments[0]
        rate = (self.counts["read"] - read) / max(time.monotonic() - before, 1e-3)
        return {
            "source": str(self.address),
            "status": self.status,
            "is_read": self.status == READS,
            "behind": self.behind,
            "rate": rate,
            "counts": {name: self.counts[name] for name in COUNTED},
            "notes": list(self.notes),
        }

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause = SHORTEST
        while not self._stopping.is_set():
            try:
                self._begin()
                while not self._stopping.is_set():
                    self._turn()
                    pause = SHORTEST
            except (BrokerError, Refused) as error:
                self._tell(f"waits: {error}")
            except Exception as error:  # the thread has to continue in any case
                _LOG.exception("%s: reading failed", self.address)
                self._tell(f"waits: the service has a defect: {type(error).__name__}: {first_line(error)}")
            self._stopping.wait(pause)
            pause = min(2.0 * pause, LONGEST)

    def _tell(self, status: str) -> None:
        if status != self.status:
            self.status = status
            _LOG.warning("%s: %s", self.address, status)

    def _begin(self) -> None:
        """Go to where the journal says."""
        if self.name not in self.service.models:
            self.service.create(self.name, self._spec).result()
        model = self.service.model(self.name)
        self._batch, stored = self.service.taken(model, str(self.address))
        if self._careful is None:
            self._careful = self.settings.block_rows if self.service.dead.of(model.number) else 0
        offsets = self._source.begin(stored)
        if not stored:  # such as the name under which a group knows this member: all that it gives is given to this name
            self._learn([], offsets)

    def _turn(self) -> None:
        """Read and learn one batch."""
        model = self.service.model(self.name)
        self._check(model)
        batch = self._source.read(1 if self._careful else self.settings.block_rows, SECONDS)
        self.status = READS
        for note in batch.notes:
            self.notes.append(note)
            self.service.remember_error(self.name, f"{self.address}: {note}")
            _LOG.warning("%s: %s", self.address, note)
        if batch.events:
            self._take(model, batch)
            self._source.done(batch.offsets)
            self._careful = max((self._careful or 0) - len(batch.events), 0)
        now = time.monotonic()
        if now - self._moments[-1][0] >= TICK:
            self._moments.append((now, self.counts["read"]))
            self.behind = self._source.behind()

    def _check(self, model: LiveModel) -> None:
        """Raise if the model can learn no event at all: then they are better off where they are."""
        dead = self.service.dead.of(model.number)
        if len(dead) >= STRIKES:
            raise Refused(422, f"the model has brought the process down {len(dead)} times, and learns no more")
        model.check_room(1)

    def _take(self, model: LiveModel, batch: Batch) -> None:
        """Predict what has no label, then learn what has one."""
        failed: list[Letter] = []
        found = self._parsed(batch, failed)
        unlabelled = [one for one in found if one.row.get(TARGET) is None]
        labelled = [one for one in found if one.row.get(TARGET) is not None]
        joined = self._predict(model, unlabelled, failed) if unlabelled else {}
        self._keep_early(model, labelled)
        if failed:
            self.service.letters.add(model.number, str(self.address), failed)
        answer = self._learn([*joined.values(), *labelled], batch.offsets)
        if joined:
            self.service.waiting.remove(early(model.number), list(joined))
        counted = {"read": len(batch.events), "learned": answer["learned"], "repeated": len(answer["repeated"])}
        self.counts.update(counted | {"failed": len(failed) + len(answer["failed"])})

    def _learn(self, events: Sequence[Read], offsets: dict[str, Any]) -> dict[str, Any]:
        """Pass events to the service, and wait until they are in the journal, with the offsets after them, and learned."""
        taken = Taken(str(self.address), self._batch + 1, offsets, [one.place for one in events], [one.event for one in events])
        answer = self.service.take(self.name, [one.row for one in events], taken).result()
        self._batch += 1
        return answer

    def _parsed(self, batch: Batch, failed: list[Letter]) -> list[Read]:
        found = []
        for place, event in zip(batch.places, batch.events, strict=True):
            try:
                row = loads(event)
                if type(row) is not dict:
                    raise ValueError("not an object of columns and values")
                found.append(Read(place, event, row))
            except (ValueError, RecursionError) as error:
                failed.append(Letter(place, f"it is not a JSON object: {first_line(error)}", event))
        return found

    # ------------------------------------------------------------------ rows without labels, labels without rows

    def _predict(self, model: LiveModel, events: Sequence[Read], failed: list[Letter]) -> dict[str, Read]:
        """Send predictions, and let the rows wait for their labels; return those whose labels came first, by id."""
        wrong: dict[int, str] = {}
        rows = [{name: value for name, value in one.row.items() if name not in (ID, TARGET)} for one in events]
        ids: dict[int, str] = {}
        answers: dict[int, dict[str, Any]] = {}
        state, layout = model.published, model.traits.layout

        def attempt(first: int, last: int) -> None:
            own = ids_of([one.row for one in events[first:last]], self.settings)
            readable = layout if layout.columns else layout.widened(rows[first:last], self.settings)
            if self._sink is None or not layout.columns:
                readable.read(rows[first:last])
            if self._sink is not None:
                answers.update(enumerate(state.predict(rows[first:last], layout), first))
            ids.update({first + place: one or events[first + place].place for place, one in enumerate(own)})

        divide(0, len(events), attempt, wrong)
        failed += [Letter(events[place].place, reason, events[place].event) for place, reason in wrong.items()]
        if self._sink is not None:
            self._send([(ids[place], events[place].place, answers[place]) for place in sorted(ids)])
        kept = [place for place in sorted(ids) if self._sink is not None or ID in events[place].row]
        known = self._early(model, [ids[place] for place in kept])
        waiting = [place for place in kept if ids[place] not in known]
        self.service.keep(model, [ids[place] for place in waiting], [rows[place] for place in waiting])
        self.counts["predicted"] += len(ids)
        return {
            ids[place]: events[place]._replace(row={**rows[place], ID: ids[place], **known[ids[place]]})
            for place in kept
            if ids[place] in known
        }

    def _send(self, predicted: Sequence[tuple[str, str, dict[str, Any]]]) -> None:
        messages = [json.dumps({"model": self.name, "id": one, "place": place, **answer}) for one, place, answer in predicted]
        if messages and self._sink is not None:
            self._sink.send([message.encode() for message in messages])

    def _early(self, model: LiveModel, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the labels that have arrived before these rows."""
        number = early(model.number)
        return self.service.waiting.find(number, ids) if self.service.waiting.counts[number] else {}

    def _keep_early(self, model: LiveModel, events: Sequence[Read]) -> None:
        """Let labels wait whose rows have not arrived."""
        labels: dict[str, Any] = {}
        for one in events:
            if not has_columns(one.row) and one.row.get(ID) is not None:
                try:
                    labels[str(ids_of([one.row], self.settings)[0])] = one.row[TARGET]
                except Refused:  # set aside when it is learned
                    continue
        if not labels:
            return
        whole = {str(one.row[ID]) for one in events if has_columns(one.row) and ID in one.row}
        known, there = self.service.known[model.number], self.service.waiting.find(model.number, list(labels))
        new = [one for one in labels if one not in known and one not in there and one not in whole]
        self.service.waiting.keep(early(model.number), new, [{TARGET: labels[one]} for one in new])
        self.counts["early"] += len(new)
