"""The service behind the endpoints: one thread writes the journal, a few learn, one writes snapshots, all others read."""

from __future__ import annotations

import gc
import logging
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from .drafts import Draft
from .history import History
from .ids import KnownIds
from .jobs import Job, Jobs
from .journal import opened
from .learners import Learners
from .live import LiveModel, State, Traits
from .recovery import recovered
from .refusal import Refused, first_line
from .rows import Layout, check_name
from .settings import Settings
from .sizes import claimed
from .snapshots import Snapshots
from .specs import check_file, checked_spec, layout_of, targets_of
from .targets import Targets
from .waiting import Waiting

TICK = 1.0  # seconds between two records of the histories
ERRORS = 20  # stored for each model
NONE_KNOWN = KnownIds(0)
_LOG = logging.getLogger(__name__)
LABEL_ONLY = "no model is called {!r}: send a row with its target first, or create it"


class Service:
    """Models in a folder, which predict and learn.

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

    def __init__(self, folder: Path, settings: Settings | None = None):
        self.settings = settings or Settings()
        self.jobs = Jobs(self.settings.queue_rows, self.settings.queue_bytes)
        self.models: dict[str, LiveModel] = {}
        self.known: dict[int, KnownIds] = {}
        self.histories: dict[int, History] = {}
        self.errors: dict[str, deque[dict[str, Any]]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()  # (model, what) since the start: learned, repeated, unknown, refused
        self.failures: dict[str, str] = {}  # why nothing can be written at the moment
        self._saved: dict[int, tuple[int, float]] = {}  # position and time of the last snapshot
        self._stopping = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder / "lock.sqlite")
        self.snapshots = Snapshots(folder / "snapshots")
        self.journal, damage = opened(folder / "journal.sqlite")
        self.waiting = Waiting(folder / "waiting.sqlite", self.settings)
        self.journal.go_on_after(*self.snapshots.last())
        self._recover(damage)
        self._learners = Learners()
        self._writer = threading.Thread(target=self._write_forever, name="writer")
        self._keeper = threading.Thread(target=self._keep_forever, name="keeper")
        self._writer.start()
        self._keeper.start()

    def _recover(self, damage: str | None) -> None:
        for entry in self.journal.models():
            model, saved, history, told = recovered(entry, self.journal, self.snapshots, self.settings)
            known = KnownIds(self.settings.known_ids, self.journal.ids(entry.number, self.settings.known_ids))
            self._enter(model, known, saved)
            self.histories[model.number] = History(history)
            self._snapshot(model)  # so that the next start does not learn the same blocks again
            for sentence in [*([damage] if damage else []), *told]:
                self.remember_error(model.name, sentence)
                _LOG.warning("%s: %s", model.name, sentence)

    def stop(self) -> None:
        """Finish accepted requests, write snapshots and close all files."""
        self.jobs.close()
        self._writer.join()
        self._learners.stop()
        self._stopping.set()
        self._keeper.join()
        for model in self.models.values():
            self._snapshot(model)
        self.waiting.close()
        self.journal.close()
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

    def create(self, name: str, spec: Any = None, model: Any = None) -> Future:
        """Queue the creation of a model, from a spec or from a fitted model."""
        traits = None if model is None else Traits(layout_of(model), targets_of(model))
        if traits is not None:
            check_file(traits.layout, model, self.settings)
        return self.jobs.put(Job(name, spec=checked_spec({} if spec is None else spec), model=model, traits=traits))

    def model(self, name: str) -> LiveModel:
        """Return a model by name."""
        try:
            return self.models[name]
        except KeyError:
            raise Refused(404, LABEL_ONLY.format(check_name(name))) from None

    def keep(self, model: LiveModel, ids: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Store predicted rows until their labels arrive, except those that have been learned."""
        known, layout, unused = self.known[model.number], model.traits.layout, model.published.unused
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
            "evicted": self.waiting.evicted[model.number],
            "refused": self.counts[model.name, "refused"],
            "example": model.example,
            "errors": list(self.errors[model.name]),
        }

    def remember_error(self, name: str, sentence: str) -> None:
        """Store an error, which the page shows."""
        self.errors.setdefault(name, deque(maxlen=ERRORS)).append({"time": time.time(), "error": sentence})

    def _unwritten(self, where: str, error: Exception) -> Refused:
        self.failures[where] = f"nothing can be written: {first_line(error)}"
        return Refused(507, f"{self.failures[where]}; nothing was changed", retry_after=10)

    # ------------------------------------------------------------------ the thread that writes

    def _write_forever(self) -> None:
        while taken := self.jobs.take(self.settings.block_rows):
            jobs = [job for job in taken if job.is_wanted()]
            written: list[tuple[int, Draft]] = []
            try:
                written = self._write_all(jobs)
            except Exception as error:  # the thread has to continue in any case
                refused = self._unwritten("journal", error) if isinstance(error, (sqlite3.Error, OSError)) else error
                _fail([job for job in jobs if not job.future.done()], refused)
            for name in {job.name for job in taken} - {draft.model.name for _, draft in written}:
                self.jobs.release(name)
            for position, draft in written:
                self._learners.add(self._teach(position, draft))

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
                        self._draft(job, drafts).add(job, self.waiting)
                except Refused as refused:
                    if job.name in self.models:
                        self.counts[job.name, "refused"] += 1
                        self.remember_error(job.name, str(refused))
                    job.future.set_exception(refused)
            written = [(self._write(draft), draft) for draft in drafts.values() if draft.pieces]
        self.failures.pop("journal", None)
        for job, model in created:
            self._enter(model, KnownIds(self.settings.known_ids))
            job.future.set_result({"name": model.name})
        for _, draft in written:
            draft.model.traits, draft.model.claim = draft.traits, draft.claim
            if draft.model.name not in self.models:
                self._enter(draft.model, KnownIds(self.settings.known_ids))
            self.known[draft.model.number].add(draft.ids)
        for draft in drafts.values():
            for job, answer in draft.empty:
                self._answer(job, answer)
        return written

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
        if job.model is not None:
            model.set_state(State(job.model))
        classes = len(getattr(job.model, "classes_", ())) or 1
        model.claim = claimed(model, model.traits, classes, 0, self._free(model))
        self._number(model, model.traits)
        if job.model is not None:
            self.snapshots.write(model.number, model.published, ())
        drafts[job.name] = Draft(model, NONE_KNOWN, self.settings, self._free(model))
        return model

    def _number(self, model: LiveModel, traits: Traits) -> None:
        """Add a new model to the journal."""
        model.number = self.journal.add_model(model.name, model.spec, traits.to_plain())
        self.snapshots.remove(model.number)  # of a model whose entry could not be written

    def _new_model(self, number: int, name: str, spec: dict[str, Any]) -> LiveModel:
        traits = Traits(Layout({}), Targets(spec.get("task")))
        return LiveModel(number, name, spec, traits, self.settings)

    def _free(self, model: LiveModel) -> int:
        """Return the bytes that the other models leave for this one."""
        return self.settings.memory_bytes - sum(one.claim.bytes for one in list(self.models.values()) if one is not model)

    def _check_room(self, drafts: dict[str, Draft]) -> None:
        if len(self.models.keys() | {name for name, draft in drafts.items() if draft.is_used}) >= self.settings.models:
            raise Refused(507, f"there are {self.settings.models} models already, which is the maximum")

    def _write(self, draft: Draft) -> int:
        """Add a draft to the journal."""
        model = draft.model
        if not model.number:
            self._number(model, draft.traits)
        elif draft.traits != model.traits:
            self.journal.set_traits(model.number, draft.traits.to_plain())
        surplus = len(draft.known) + len(draft.ids) - self.settings.known_ids
        if surplus > 0 and draft.ids:
            self.journal.forget_ids(model.number, surplus)
        return self.journal.append(model.number, draft.block, draft.ids)

    def _enter(self, model: LiveModel, known: KnownIds, saved: int = 0) -> None:
        self.known[model.number] = known
        self.histories[model.number] = History()
        self.errors.setdefault(model.name, deque(maxlen=ERRORS))
        self._saved[model.number] = (saved, time.monotonic())
        self.models[model.name] = model

    # ------------------------------------------------------------------ the threads that learn

    def _teach(self, position: int, draft: Draft) -> Iterator[None]:
        """Learn a draft that has been written to the journal, and answer; other models get their turn at each item."""
        model = draft.model
        try:
            with suppress(sqlite3.Error):  # the ids are known now, so a row that is not removed does no harm
                self.waiting.remove(model.number, draft.labelled)
            begun = model.published.model is not None
            outcomes = yield from model.learning(position, draft.block)
            if not begun and model.published.model is not None:
                gc.freeze()  # the code that it loaded stays: looking for garbage there would stop predictions for 20 ms each
            for (job, answer), outcome in zip(draft.answers, outcomes, strict=True):
                if outcome is None:
                    self._answer(job, answer)
                else:
                    self.remember_error(model.name, outcome)
                    job.future.set_exception(Refused(422, outcome))
        except Exception as error:  # the thread has to continue in any case
            _fail([job for job, _ in draft.answers if not job.future.done()], error)
        finally:
            self.jobs.release(model.name)

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

    def _look_after(self, model: LiveModel) -> None:
        self.histories[model.number].add(model.published.facts(), self.waiting.counts[model.number])
        if time.monotonic() - self._saved[model.number][1] >= self.settings.snapshot_seconds:
            self._snapshot(model)

    def _snapshot(self, model: LiveModel) -> None:
        """Save a model that has learned since the last snapshot; after a failure, report it and try again later."""
        state = model.published
        position = self._saved[model.number][0]
        if state.model is not None and state.position > position:
            try:
                self.journal.cut(model.number, self.snapshots.write(model.number, state, self.histories[model.number].moments))
                position = state.position
            except (OSError, TypeError, ValueError) as error:
                self.remember_error(model.name, f"no snapshot could be written: {first_line(error)}")
        self._saved[model.number] = (position, time.monotonic())


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        job.future.set_exception(error)


def _locked(path: Path) -> sqlite3.Connection:
    """Lock a folder, so that no other process can use it."""
    database = sqlite3.connect(path, isolation_level=None, timeout=0.0, check_same_thread=False)
    try:
        database.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        database.close()
        raise ValueError(f"another service uses {path.parent}: stop it, or choose another folder with --data") from None
    return database
