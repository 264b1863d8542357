"""The service behind the endpoints: one thread writes the journal, a few learn, one writes snapshots, all others read."""

from __future__ import annotations

import gc
import json
import logging
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import Block, farther
from .dead import Attempts, DeadLetters, rows_of, told_letter
from .drafts import Draft
from .history import History
from .ids import KnownIds, Piece
from .jobs import Job, Jobs, Taken
from .journal import Definition
from .learners import Learners
from .letters import Letter, Letters
from .live import LiveModel, State, Traits
from .locking import locked
from .recovery import EVENTS, Plan, Survey, restored, told
from .refusal import Refused, first_line
from .removal import change, forget
from .rows import check_name
from .settings import Settings
from .sizes import claimed
from .snapshots import NEW
from .specs import check_file, checked_spec, layout_of, targets_of
from .waiting import Waiting, early
from .webhook import Webhook

TICK = 1.0  # seconds between two records of the histories
ERRORS = 20  # stored for each model
NONE_KNOWN = KnownIds(0)
_LOG = logging.getLogger(__name__)
LABEL_ONLY = "no model is called {!r}: send a row with its target first, or create it"


class Service:
    """Models in a folder, which predict and learn.

    With ``report_crashes``, Python's fault handler of this process writes to the folder, so that a block that crashes is known.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernling.serve.service import Service
    >>> service = Service(Path("service"))
    >>> service.learn("flights", [{"km": 2.5, "target": "late", "id": 7}]).result()
    {'learned': 1, 'repeated': [], 'unknown': []}
    >>> service.learn("flights", [{"km": 2.5, "target": "late", "id": 7}]).result()
    {'learned': 0, 'repeated': ['7'], 'unknown': []}
    >>> service.stop()
    """

    def __init__(self, folder: Path, settings: Settings | None = None, *, report_crashes: bool = False):
        self.settings = settings or Settings()
        self.jobs = Jobs(self.settings.queue_rows, self.settings.queue_bytes)
        self.models: dict[str, LiveModel] = {}
        self.known: dict[int, KnownIds] = {}
        self.histories: dict[int, History] = {}
        self.errors: dict[str, deque[dict[str, Any]]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()  # (model, what) since the start: learned, repeated, unknown, refused
        self.alarms: Counter[tuple[str, str]] = Counter()  # (model, what) since the start
        self.webhook: Webhook | None = None  # where alarms are posted
        self.failures: dict[str, str] = {}  # why nothing can be written at the moment
        self._saved: dict[int, tuple[int, float]] = {}  # position and time of the last snapshot
        self.damage: list[str] = []  # found at the start, apart from what the models have lost
        self.feeds: list[Any] = []  # sources that are being read: see feeding.py
        self._taken: dict[int, dict[str, list[Any]]] = {}  # how far they are in the journal, by model
        self._stopping = threading.Event()
        self.keeping = threading.Lock()  # held while snapshots are written, or a model is deleted or renamed
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = locked(folder)
        self.waiting = Waiting(folder / "waiting.sqlite", self.settings)
        self.attempts = Attempts(folder, report_crashes)
        self.dead = DeadLetters(folder / "dead")
        self.letters = Letters(folder / "letters.sqlite", self.settings.letters)
        self._recover(Survey(folder))
        self._learners = Learners()
        self._writer = threading.Thread(target=self._write_forever, name="writer")
        self._keeper = threading.Thread(target=self._keep_forever, name="keeper")
        self._writer.start()
        self._keeper.start()

    def _recover(self, survey: Survey) -> None:
        """Restore all models, then set damaged files aside."""
        self.journal, self.snapshots, self.ids = survey.journal, survey.snapshots, survey.ids
        self.damage = [
            *survey.damage(),
            *self.dead.damage,
            *self.letters.damage,
            *self.waiting.damage(is_new=not survey.numbers()),
        ]
        plans: dict[int, Plan] = {}
        for number in survey.numbers():
            found = restored(survey, number, self.settings, self.attempts, self.dead)
            if found is None:
                self.damage.append(f"the name of model {number} is lost, and so are its events: send them again")
                continue
            model, plans[number] = found.model, found.plan
            if model.name in self.models:  # the record that one of them was renamed is lost
                model.name, other = f"{model.name}-{number}", model.name
                self.damage.append(f"two models are called {other}: one of them is {model.name} now")
            snapshot = found.plan.snapshot
            self._enter(model, found.known, snapshot.state.position if snapshot else 0)
            self.histories[number] = History(snapshot.history if snapshot else (), model.published.events)
            self.journal.enter(number, _definition(model, model.traits), found.plan.total, found.plan.offsets)
            self._taken[number] = farther(model.published.offsets, found.plan.offsets)
            for first, block, outcomes in found.failed:
                self._set_aside(model, first, block, outcomes)
            for sentence in found.told:
                self.remember_error(model.name, sentence)
                _LOG.warning("%s: %s", model.name, sentence)
        for sentence in self.damage:
            _LOG.warning("%s", sentence)
        self.journal.last_number = max(survey.last_number, *self.waiting.counts, 0)
        deleted = survey.deleted()
        survey.mend(plans)
        for number in deleted:
            forget(self, number)
        for model in self.models.values():
            self._snapshot(model)  # so that the next start does not learn the same blocks again
        self.attempts.end()

    def stop(self) -> None:
        """Finish accepted requests, write snapshots and close all files."""
        self.jobs.close()
        self._writer.join()
        self._learners.stop()
        if self.webhook is not None:
            self.webhook.stop()
        self._stopping.set()
        self._keeper.join()
        for model in self.models.values():
            self._snapshot(model)
        self.journal.log.tidy()
        self.waiting.close()
        self.letters.close()
        self.journal.close()
        self.ids.close()
        self.attempts.close()
        self._lock.close()

    @property
    def is_running(self) -> bool:
        """Whether the service has not been stopped."""
        return self._keeper.is_alive()

    # ------------------------------------------------------------------ requests

    def learn(self, name: str, rows: list[dict[str, Any]], bytes: int = 0) -> Future:
        """Queue the rows of a request of this size; the result counts those learned, and lists repeated and unknown ids."""
        if name not in self.models and all(row.keys() <= {"id", "target"} for row in rows):
            raise Refused(404, LABEL_ONLY.format(check_name(name)))
        return self.jobs.put(Job(name, rows, bytes=bytes))

    def take(self, name: str, rows: list[dict[str, Any]], taken: Taken) -> Future:
        """Queue the events of a batch from a source; the result also has the reasons of those that failed, by their places."""
        return self.jobs.put(Job(name, rows, bytes=sum(map(len, taken.events)), taken=taken))

    def taken(self, model: LiveModel, source: str) -> tuple[int, dict[str, Any]]:
        """Return how far a source is in the journal: the number of the last batch, and where to go on after it."""
        batch, offsets = self._taken.get(model.number, {}).get(source, (0, {}))
        return batch, offsets

    def create(self, name: str, spec: Any = None, model: Any = None) -> Future:
        """Queue the creation of a model, from a spec or from a fitted model."""
        traits = None if model is None else Traits(layout_of(model), targets_of(model))
        if traits is not None:
            check_file(traits.layout, model, self.settings)
        return self.jobs.put(Job(name, spec=checked_spec({} if spec is None else spec), model=model, traits=traits))

    def delete(self, name: str) -> Future:
        """Queue the deletion of a model with all that was stored for it, after the events that were sent before."""
        self.model(name)
        return self.jobs.put(Job(name, deletes=True))

    def rename(self, name: str, new_name: str) -> Future:
        """Queue a new name for a model."""
        self.model(name)
        return self.jobs.put(Job(name, new_name=check_name(new_name)))

    def model(self, name: str) -> LiveModel:
        """Return a model by name."""
        try:
            return self.models[name]
        except KeyError:
            raise Refused(404, LABEL_ONLY.format(check_name(name))) from None

    def keep(self, model: LiveModel, ids: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Store predicted rows until their labels arrive, except those that have been learned."""
        known, layout, unused = self.known.get(model.number), model.traits.layout, model.recent.unused
        if known is None:
            raise Refused(404, f"{model.name!r} has just been deleted")
        new = [place for place, one in enumerate(ids) if one not in known]
        try:
            self.waiting.keep(model.number, [ids[place] for place in new], [layout.kept(rows[place], unused) for place in new])
        except sqlite3.Error as error:
            raise self._unwritten("waiting", error) from None
        self.failures.pop("waiting", None)

    def facts(self, model: LiveModel) -> dict[str, Any]:
        """Return the facts about a model."""
        return {
            "name": model.name,
            "task": model.traits.targets.task,
            **model.published.facts(),
            "waiting": self.waiting.counts[model.number],
            "waiting_bytes": self.waiting.bytes[model.number],
            "evicted": self.waiting.evicted[model.number] + self.waiting.evicted[early(model.number)],
            "refused": self.counts[model.name, "refused"],
            "lost": sum(one["end"] - one["first"] for one in model.lost if one["what"] == EVENTS),
            "losses": [{"time": one["time"], "loss": told(one)} for one in model.lost],
            "dead": self.dead.of(model.number),
            "letters": self.letters.of(model.number),
            "sources": [feed.facts() for feed in self.feeds if feed.name == model.name],
            "example": model.example,
            "errors": list(self.errors.get(model.name, ())),
        }

    def health(self) -> dict[str, Any]:
        """Return the status: ok, why nothing can be written, or what damage has cost."""
        failure = next(iter(self.failures.values()), None)
        if failure:
            return {"status": failure}
        models = {
            model.name: [*map(told, model.lost), *map(told_letter, self.dead.of(model.number))]
            for model in list(self.models.values())
            if model.lost or self.dead.of(model.number)
        }
        if not models and not self.damage:
            return {"status": "ok"}
        return {"status": "degraded", "damage": self.damage, "models": models}

    def accept_losses(self) -> None:
        """Note that all losses so far have been seen: the service is no longer degraded."""
        with self.journal.commit():
            for model in self.models.values():
                self.journal.accept(model.number)
                model.lost = []
        self.damage = []

    def remember_error(self, name: str, sentence: str) -> None:
        """Store an error, which the page shows."""
        self.errors.setdefault(name, deque(maxlen=ERRORS)).append({"time": time.time(), "error": sentence})

    def _unwritten(self, where: str, error: Exception) -> Refused:
        self.failures[where] = f"nothing can be written: {first_line(error)}"
        return Refused(507, f"{self.failures[where]}; nothing was changed", retry_after=10)

    # ------------------------------------------------------------------ the thread that writes

    def _write_forever(self) -> None:
        while taken := self.jobs.take(self.settings.block_rows, self._is_risky):
            jobs = [job for job in taken if job.is_wanted()]
            written: list[tuple[int, Draft]] = []
            try:
                written = self._write_all([job for job in jobs if not job.is_change])
                for job in jobs:
                    if job.is_change:
                        self._change(job)
            except Exception as error:  # the thread has to continue in any case
                refused = self._unwritten("journal", error) if isinstance(error, (sqlite3.Error, OSError)) else error
                _fail([job for job in jobs if not job.future.done()], refused)
            for name in {job.name for job in taken} - {draft.model.name for _, draft in written}:
                self.jobs.release(name)
            for first, draft in written:
                self._learners.add(self._teach(first, draft))

    def _change(self, job: Job) -> None:
        try:
            job.future.set_result(change(self, job))
        except (sqlite3.Error, OSError) as error:
            job.future.set_exception(self._unwritten("journal", error))
        except Exception as error:
            job.future.set_exception(error)

    def _is_risky(self, name: str) -> bool:
        """Return whether requests are learned alone, since some have crashed: if one does again, it is known which."""
        return name in self.models and bool(self.dead.of(self.models[name].number))

    def _write_all(self, jobs: Sequence[Job]) -> list[tuple[int, Draft]]:
        """Write the changes of the jobs to the journal; return those that are to be learned, and answer the others."""
        drafts: dict[str, Draft] = {}
        created: list[tuple[Job, LiveModel]] = []
        with self.journal.commit():
            for job in jobs:
                try:
                    if job.spec is not None:
                        created.append((job, self._create(job, drafts)))
                    else:
                        draft = self._draft(job, drafts)
                        self._keep_letters(draft.model, job, draft.add(job, self.waiting, self.dead))
                except Refused as refused:
                    if job.name in self.models:
                        self.counts[job.name, "refused"] += 1
                        self.remember_error(job.name, str(refused))
                    job.future.set_exception(refused)
            written = [(self._write(draft), draft) for draft in drafts.values() if draft.pieces]
            for draft in drafts.values():
                if draft.offsets and not draft.pieces:
                    self.journal.note(draft.model.number, draft.offsets)
        self.failures.pop("journal", None)
        if self.journal.unmarked:
            self.failures["mark"] = f"the journal cannot be marked: {self.journal.unmarked}"
        else:
            self.failures.pop("mark", None)
        for job, model in created:
            self.snapshots.enter(model.number)
            self._enter(model, KnownIds(self.settings.known_ids))
            job.future.set_result({"name": model.name})
        for first, draft in written:
            model = draft.model
            model.traits, model.claim = draft.traits, draft.claim
            if model.name not in self.models:
                self._enter(model, KnownIds(self.settings.known_ids))
            self.known[model.number].add(Piece(first, first + len(draft.block.targets), draft.ids))
        for draft in drafts.values():
            self._taken[draft.model.number] = farther(self._taken.get(draft.model.number, {}), draft.offsets)
            for job, answer in draft.empty:
                self._answer(job, answer)
        return written

    def _keep_letters(self, model: LiveModel, job: Job, answer: dict[str, Any]) -> None:
        """Write the events of a batch that cannot be learned, before the journal says that the batch is done."""
        taken = job.taken
        if taken is not None and answer["failed"]:
            failed = answer["failed"].items()
            letters = [Letter(taken.places[place], reason, taken.events[place]) for place, reason in failed]
            self.letters.add(model.number, taken.source, letters)

    def _set_aside(self, model: LiveModel, first: int, block: Block, outcomes: Sequence[str | None]) -> None:
        """Write the events of sources that the model could not learn, such as one with which it would diverge."""
        if not block.offsets or not any(outcomes):
            return
        ends = np.cumsum(block.pieces).tolist()
        letters = [
            Letter(f"event {first + end - 1}", outcome, json.dumps(rows_of(block.part(end - 1, end))[0]).encode())
            for end, size, outcome in zip(ends, block.pieces, outcomes, strict=True)
            if outcome is not None and size == 1
        ]
        self.letters.add(model.number, ", ".join(block.offsets), letters)

    def _draft(self, job: Job, drafts: dict[str, Draft]) -> Draft:
        """Return the draft for the rows of a job; an unknown name gets a new model once a row is valid."""
        if job.name not in drafts:
            model = self.models.get(job.name)
            if model is None:
                check_name(job.name)
                self._check_room(drafts)
                model = self._new_model(0, job.name, checked_spec({}))
            drafts[job.name] = Draft(model, self.known.get(model.number, NONE_KNOWN), self.settings, self._free(model))
        return drafts[job.name]

    def _create(self, job: Job, drafts: dict[str, Draft]) -> LiveModel:
        check_name(job.name)
        if job.name in self.models or (job.name in drafts and drafts[job.name].is_used):
            raise Refused(409, f"there is a model called {job.name!r} already")
        self._check_room(drafts)
        model = self._new_model(0, job.name, job.spec or {})
        model.traits = job.traits or model.traits
        model.from_file = job.model is not None
        if job.model is not None:
            model.set_state(State(job.model))
        classes = len(getattr(job.model, "classes_", ())) or 1
        model.claim = claimed(model, model.traits, classes, 0, self._free(model))
        self._number(model, model.traits)
        if job.model is not None:
            self.snapshots.write(model, model.published, (), (0, 0), suffix=NEW)
        drafts[job.name] = Draft(model, NONE_KNOWN, self.settings, self._free(model))
        return model

    def _number(self, model: LiveModel, traits: Traits) -> None:
        """Add a new model to the journal."""
        model.number = self.journal.add_model(_definition(model, traits))
        self.snapshots.remove(model.number)  # of a model whose entry could not be written

    def _new_model(self, number: int, name: str, spec: dict[str, Any]) -> LiveModel:
        return LiveModel(number, name, spec, Traits.empty(spec), self.settings)

    def _free(self, model: LiveModel) -> int:
        """Return the bytes that the other models leave for this one."""
        return self.settings.memory_bytes - sum(one.claim.bytes for one in list(self.models.values()) if one is not model)

    def _check_room(self, drafts: dict[str, Draft]) -> None:
        if len(self.models.keys() | {name for name, draft in drafts.items() if draft.is_used}) >= self.settings.models:
            raise Refused(507, f"there are {self.settings.models} models already, which is the maximum")

    def _write(self, draft: Draft) -> int:
        """Add a draft to the journal; return the number of the model's events before it."""
        model = draft.model
        if not model.number:
            self._number(model, draft.traits)
        elif draft.traits != model.traits:
            self.journal.define(model.number, _definition(model, draft.traits), len(draft.block.targets))
        return self.journal.append(model.number, draft.block, draft.ids)

    def _enter(self, model: LiveModel, known: KnownIds, saved: int = 0) -> None:
        self.known[model.number] = known
        self.histories[model.number] = History()
        self.errors.setdefault(model.name, deque(maxlen=ERRORS))
        self._saved[model.number] = (saved, time.monotonic())
        self.models[model.name] = model

    # ------------------------------------------------------------------ the threads that learn

    def _teach(self, first: int, draft: Draft) -> Iterator[None]:
        """Learn a draft that has been written to the journal, and answer; other models get their turn at each item."""
        model = draft.model
        try:
            with suppress(sqlite3.Error):  # the ids are known now, so a row that is not removed does no harm
                self.waiting.remove(model.number, draft.labelled)
            begun, alarms = model.current.model is not None, model.current.alarm_count
            block = draft.block
            turns = model.learning(first + len(block.targets), block)
            while True:
                self.attempts.begin(model.number, f"block {first}")
                try:
                    next(turns)
                except StopIteration as end:
                    outcomes = end.value
                    break
                finally:
                    self.attempts.end()
                yield
            if not begun and model.current.model is not None:
                gc.freeze()  # the code that it loaded stays: looking for garbage there would stop predictions for 20 ms each
            self._set_aside(model, first, block, outcomes)
            self._answer_all(draft, outcomes)
            self._raise_alarms(model, model.current.alarm_count - alarms)
        except Exception as error:  # the thread has to continue in any case
            _fail([job for job, _, _ in draft.answers if not job.future.done()], error)
        finally:
            self.jobs.release(model.name)

    def _raise_alarms(self, model: LiveModel, new: int) -> None:
        """Count the newest alarms of a model, and post them."""
        for alarm in model.current.alarms(new):
            self.alarms[model.name, alarm["what"]] += 1
            if self.webhook is not None:
                self.webhook.send(model.name, {"model": model.name, "time": time.time(), **alarm})

    def _answer_all(self, draft: Draft, outcomes: Sequence[str | None]) -> None:
        rest = iter(outcomes)
        for job, answer, pieces in draft.answers:
            failed = [outcome for outcome in islice(rest, pieces) if outcome is not None]
            if failed:
                self.remember_error(job.name, failed[0])
            if failed and job.taken is None:
                job.future.set_exception(Refused(422, failed[0]))
            else:
                self._answer(job, answer | {"learned": answer["learned"] - len(failed)})

    def _answer(self, job: Job, answer: dict[str, Any]) -> None:
        self.counts[job.name, "learned"] += answer["learned"]
        for what in ("repeated", "unknown"):
            self.counts[job.name, what] += len(answer[what])
        job.future.set_result(answer)

    # ------------------------------------------------------------------ the thread that keeps

    def _keep_forever(self) -> None:
        while not self._stopping.wait(TICK):
            for model in list(self.models.values()):
                try:
                    self._look_after(model)
                except Exception as error:  # the thread has to continue in any case
                    self.remember_error(model.name, f"the service has a defect: {first_line(error)}")
            with suppress(sqlite3.Error, OSError):  # tried again soon
                self.waiting.evict_old()
                self.waiting.merge_log()
                self.journal.marks.flush()

    def _look_after(self, model: LiveModel) -> None:
        with self.keeping:
            if model.number in self.known:  # it may have been deleted meanwhile
                self._record(model)

    def _record(self, model: LiveModel) -> None:
        self.histories[model.number].add(model.published.facts(), self.waiting.counts[model.number])
        if time.monotonic() - self._saved[model.number][1] >= self.settings.snapshot_seconds:
            self._snapshot(model)

    def _snapshot(self, model: LiveModel) -> None:
        """Save a model that has learned since the last snapshot; after a failure, report it and try again later."""
        state = model.published
        position = self._saved[model.number][0]
        if state.model is not None and state.position > position:
            known = self.known[model.number]
            try:
                self.ids.write(model.number, known.to_store(state.position), known.oldest_stored)
                known.set_stored(state.position)
                self.snapshots.write(model, state, self.histories[model.number].moments, known.range())
                self.journal.log.cut(model.number, self.snapshots.covered(model.number))
                position = state.position
            except (OSError, TypeError, ValueError) as error:
                self.remember_error(model.name, f"no snapshot could be written: {first_line(error)}")
        self._saved[model.number] = (position, time.monotonic())


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        job.future.set_exception(error)


def _definition(model: LiveModel, traits: Traits) -> Definition:
    return Definition(model.name, model.spec, traits.to_plain(), model.from_file, model.renamed)
