"""A model that learns blocks in one thread, with copies for the others."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np

from ..components.alarms import KEPT, changes
from ..estimators.sizes import bytes_in_use
from ..estimators.tasks import probabilities
from ..pipeline import last_step
from ..tables.schema import names_of
from ..tables.table import Table
from ..tables.telling import telling_columns
from .blocks import Block, farther, joined
from .learners import share
from .progress import RunningLosses
from .refusal import Refused, first_line
from .rows import Layout
from .settings import Settings
from .sizes import Claim, used_by
from .specs import new_pipeline, schema_of
from .targets import Targets

COVERAGE = 0.9  # of the intervals and sets in answers
LEAST = 1e-300  # probability, whose logarithm is finite
PAUSE = 0.1  # seconds between two copies for predictions, at least, while several requests are learned together
QUIET = 1.0  # the same once nothing has asked for a copy for as long


class Traits(NamedTuple):
    """The columns and targets of a model, determined by its first rows."""

    layout: Layout
    targets: Targets

    @classmethod
    def empty(cls, spec: dict[str, Any]) -> Traits:
        """Return the traits of a model without rows."""
        return cls(Layout({}), Targets(spec.get("task")))

    def to_plain(self) -> dict[str, Any]:
        """Return the traits as JSON-compatible data."""
        return {"columns": self.layout.columns, "gaps": self.layout.gaps, "targets": list(self.targets)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Traits:
        """Restore traits from the result of ``to_plain``."""
        return cls(Layout(plain["columns"], plain["gaps"]), Targets(*plain["targets"]))


class State(NamedTuple):
    """A model after a block.  Published states are never modified: predictions, facts and snapshots use them."""

    model: Any = None  # None until enough rows have arrived
    progress: RunningLosses | None = None  # None before the first event
    position: int = 0  # number of events acknowledged up to the last block, whether or not they were learned
    obstacle: str | None = None  # why the model cannot start with the rows that it has
    telling: tuple[str, ...] = ()  # columns each of which predicted the targets of the first rows by itself
    offsets: dict[str, list[Any]] = {}  # how far its sources have been learned: see blocks.py

    @property
    def events(self) -> int:
        """Number of events learned."""
        return self.progress.events if self.progress and self.model is not None else 0

    @property
    def collected(self) -> int:
        """Number of events that wait until the model starts, and are learned then."""
        return self.progress.events if self.progress and self.model is None else 0

    @property
    def room(self) -> int | None:
        """Number of columns that may still come; None before the model starts."""
        if self.model is None:
            return None
        return 0 if schema_of(self.model) is None else self.model.steps_[0][1].free

    @property
    def unused(self) -> frozenset[str]:
        """Names of columns that the model ignores."""
        schema = None if self.model is None else schema_of(self.model)
        return frozenset(() if schema is None else names_of(schema, "ignore"))

    def predict(self, rows: Sequence[dict[str, Any]], layout: Layout) -> list[dict[str, Any]]:
        """Return the label or value of each row, with probabilities if the model has them; a constant answer at first.

        Raises Refused for a row that does not fit the columns.  Several threads may predict at the same time.
        """
        columns = layout.read(rows)
        if self.model is None:
            return [self._constant()] * len(rows)
        X = as_rows(self.model, columns)
        if not hasattr(self.model, "predict_proba"):
            return self._answers(np.asarray(self.model.predict(X)))
        return self._shares(self.model.predict_proba(X))

    def predict_few(self, rows: Sequence[dict[str, Any]], layout: Layout) -> list[dict[str, Any]]:
        """Do the same faster for few rows; only one thread may call this."""
        has_shares = hasattr(self.model, "predict_proba")
        if self.model is None or (has_shares and not hasattr(self.model, "score_one")):
            return self.predict(rows, layout)
        found = [layout.read_one(row, place) for place, row in enumerate(rows)]
        events = found if _takes_tables(self.model) else [np.array(list(row.values())) for row in found]
        if not has_shares:
            return self._answers(np.array([self.model.predict_one(event) for event in events]))
        scores = np.array([np.atleast_1d(self.model.score_one(event)) for event in events])
        return self._shares(probabilities(scores, len(self.model.classes_)))

    def explain(self, rows: Sequence[dict[str, Any]], layout: Layout) -> list[dict[str, Any]]:
        """Return the label or value of each row, its score, the base, and what each column contributes to the difference."""
        if not hasattr(self.model, "explain"):
            cause = "learned too little" if self.model is None else "no scores"
            raise Refused(409, f"there is nothing to explain: the model has {cause}")
        X, key = as_rows(self.model, layout.read(rows)), "value" if self.model.task == "regression" else "label"
        try:
            found = self.model.explain(X)
        except ValueError as error:
            raise Refused(422, first_line(error)) from None
        said = np.asarray(self.model.predict(X)).tolist()
        return [{key: one, **found.row(place)} for place, one in enumerate(said)]

    def _shares(self, shares: np.ndarray) -> list[dict[str, Any]]:
        labels = self.model.classes_.tolist()
        named = [str(label) for label in labels]
        answers = [
            {"label": labels[best], "probabilities": dict(zip(named, row, strict=True))}
            for best, row in zip(shares.argmax(axis=1).tolist(), shares.tolist(), strict=True)
        ]
        if not hasattr(self.model, "set_among"):
            return answers
        sets = self.model.set_among(-np.log(np.maximum(shares, LEAST)), COVERAGE)
        return [answer | {"set": self.model.classes_[own].tolist()} for answer, own in zip(answers, sets, strict=True)]

    def _answers(self, predicted: np.ndarray) -> list[dict[str, Any]]:
        key = "value" if self.model.task == "regression" else "label"
        answers = [{key: one} for one in predicted.tolist()]
        if key == "label" or not hasattr(self.model, "interval_around"):
            return answers
        limits = self.model.interval_around(predicted, COVERAGE)
        known = np.isfinite(limits).all(axis=1)  # JSON has no infinity
        return [
            answer | ({"interval": own} if is_known else {})
            for answer, own, is_known in zip(answers, limits.tolist(), known.tolist(), strict=True)
        ]

    def _constant(self) -> dict[str, Any]:
        if self.progress is None:
            return {"label": None, "note": "nothing learned yet"}
        if self.progress.task == "regression":
            return {"value": self.progress.answer}
        shares = {str(label): share for label, share in self.progress.frequencies().items()}
        return {"label": self.progress.answer, "probabilities": shares}

    def _calibration(self) -> dict[str, float] | None:
        """Return how many targets were within the intervals or sets of answers, and how large these were on average."""
        found = getattr(self.model, "calibration_", None)
        if found is None or math.isnan(found[COVERAGE].inside):
            return None
        return {"coverage": COVERAGE, **found[COVERAGE]._asdict()}

    @property
    def alarm_count(self) -> int:
        """Number of alarms so far; 0 if the model does not watch itself."""
        return 0 if self.model is None else getattr(self.model, "alarm_count_", 0)

    def alarms(self, newest: int = KEPT) -> list[dict[str, Any]]:
        """Return the newest alarms as JSON-compatible data, each with a sentence."""
        found = self.model.alarms_[-newest:] if newest > 0 and self.alarm_count else []
        return [one.to_plain() | {"said": changes([one], self.model.task == "regression")[0]} for one in found]

    def facts(self) -> dict[str, Any]:
        """Return the facts about the model as JSON-compatible data."""
        found: dict[str, Any] = {"task": self.progress.task, **self.progress.summary()} if self.progress else {}
        found |= {"events": self.events, "collected": self.collected, "obstacle": self.obstacle}
        if self.model is None:
            return found
        last = last_step(self.model)
        schema = schema_of(self.model)
        ignored = {} if schema is None else {one.name: one.reason for one in schema if one.treatment == "ignore"}
        weights = getattr(last, "expert_weights_", None)
        return found | {
            "estimator": type(last).__name__,
            "points": last.n_stored_,
            "bytes": last.nbytes_,
            "experts": None if weights is None else {name: float(weight) for name, weight in weights.items()},
            "calibration": self._calibration(),
            "alarms": self.alarms(),
            "alarm_count": self.alarm_count,
            "certificate": {name: value if math.isfinite(value) else None for name, value in last.certificate().items()},
            "schema": None if schema is None else schema.rows(),
            "ignored": ignored,
            "telling": list(self.telling),
            "unread": {} if schema is None else self.model.steps_[0][1].unread_,
        }


def as_rows(model: Any, columns: dict[str, np.ndarray]) -> Any:
    """Convert columns to the input of a model: a table, or an array if it only takes numbers."""
    return Table(columns, keyed=True) if _takes_tables(model) else np.column_stack(list(columns.values()))


def _takes_tables(model: Any) -> bool:
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return getattr(first, "takes_tables", False)


class LiveModel:
    """A model that learns in one thread while others read a copy of it, which is made when it is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from kernling.serve.blocks import Block
    >>> from kernling.serve.live import LiveModel, Traits
    >>> from kernling.serve.rows import Layout
    >>> from kernling.serve.settings import Settings
    >>> from kernling.serve.targets import Targets
    >>> traits = Traits(Layout({"km": "numbers"}), Targets("classification", "text"))
    >>> model = LiveModel(1, "flights", {}, traits, Settings(first_rows=100))
    >>> model.learn(1, Block({"km": np.array([2.5, 3.5])}, ["late", "late"], (2,)))
    [None]
    >>> model.published.predict([{"km": 2.5}], traits.layout)
    [{'label': 'late', 'probabilities': {'late': 1.0}}]
    """

    def __init__(self, number: int, name: str, spec: dict[str, Any], traits: Traits, settings: Settings):
        self.number = number
        self.name = name
        self.spec = spec
        self.traits = traits
        self.settings = settings
        self.from_file = False  # whether it was created from a model file
        self.renamed = 0  # times
        self.lost: list[dict[str, Any]] = []  # what damage has cost: see recovery.py
        self._state = self._published = State()
        self._is_published = True  # whether the copy is one of the model as it is now
        self._published_at = -math.inf
        self._is_crowded = False  # whether the last block was of several requests
        self._is_learning = False
        self._is_asked, self._asked_at = False, -math.inf  # whether something has been predicted since the last copy, and when
        self._size = self._size_of = 0  # bytes of the model, and how many classes it had: 0 if the block needs no turns so far
        self._learning, self._copying = threading.Lock(), threading.Lock()
        self.claim = Claim()
        self._first: list[Block] = []  # rows collected until the model can start with them
        self._tried = 0  # number of rows with which it could not
        self._last: Block | None = None

    @property
    def current(self) -> State:
        """The state itself: for the thread that learns, and for the one that passes it the next block."""
        return self._state

    @property
    def published(self) -> State:
        """The state after the last block; while a block is learned, possibly an older one."""
        if not self._is_published:
            self._asked_at = time.monotonic()
            with self._copying:
                if not self._is_published and self._learning.acquire(blocking=False):
                    try:
                        self._publish()
                    finally:
                        self._learning.release()
        return self._published

    @property
    def is_recent(self) -> bool:
        """Whether the last copy is good enough for predictions: see ``recent``."""
        return self._is_published or self._is_learning or (self._is_crowded and not self._is_due(PAUSE))

    @property
    def recent(self) -> State:
        """The same for predictions: while several requests are learned together, it may be of ``PAUSE`` seconds before."""
        self._is_asked, self._asked_at = True, time.monotonic()
        return self._published if self.is_recent else self.published

    def _is_due(self, pause: float) -> bool:
        return time.monotonic() >= self._published_at + pause

    def set_state(self, state: State) -> None:
        """Continue from a saved state."""
        self._state = state
        self.publish()

    def skip_to(self, position: int, offsets: dict[str, list[Any]] | None = None) -> None:
        """Go on after events that cannot be learned."""
        self._state = self._state._replace(position=position, offsets=farther(self._state.offsets, offsets or {}))
        self._is_published = False

    def check_room(self, rows: int) -> None:
        """Refuse further rows if the model cannot start and has as many as it may keep."""
        most, held = self.settings, sum(block.nbytes for block in self._first)
        if self._state.obstacle and (self._state.collected + rows > most.collected_rows or held > most.collected_bytes):
            raise Refused(
                422,
                f"{self._state.obstacle}; they are kept, and there is no room for more: create a model with another name, "
                "and columns that are numbers or repeat their values",
            )

    @property
    def example(self) -> dict[str, Any]:
        """A recently learned row; without one, as after a start, a typical row."""
        return self._example(self._published.model)

    def _example(self, model: Any) -> dict[str, Any]:
        if self._last is None and model is not None and _takes_tables(model):
            return dict.fromkeys(self.traits.layout.columns) | model.steps_[0][1].typical()
        columns = self._last.columns if self._last else {}
        found = {name: columns[name][0] if name in columns else None for name in self.traits.layout.columns}
        numbers = {name: value.item() for name, value in found.items() if isinstance(value, np.generic)}
        return found | {name: None if math.isnan(value) else value for name, value in numbers.items()}

    def learn(self, position: int, block: Block) -> list[str | None]:
        """Learn a block; return for each of its pieces None, or one sentence that says why it could not be learned.

        The result depends only on the sequence of blocks.
        """
        return _ended(self.learning(position, block))

    def learning(self, position: int, block: Block) -> Generator[None, None, list[str | None]]:
        """Do the same in turns: each item of the generator is a moment at which other models may learn."""
        with self._learning:
            self._is_learning, begun = True, self._state.model is not None
            try:
                outcomes = yield from self._replaying(position, block)
                self._is_crowded = len(block.pieces) > 1
                pause = PAUSE if time.monotonic() < self._asked_at + QUIET else QUIET
                if self._is_due(pause) or not begun or (self._is_asked and not self._is_crowded):
                    self._publish()  # now, so that the next prediction need not wait for it
            finally:
                self._is_learning = False
        return outcomes

    def publish(self) -> None:
        """Copy the current state, ready for predictions: the first would take much longer than others."""
        with self._copying:
            self._publish()

    def _publish(self) -> None:
        published = copy.deepcopy(self._state)
        if published.model is not None:
            with suppress(Exception):  # an example without values is not a row for every model
                published.predict_few([self._example(published.model)], self.traits.layout)
            self.claim = self.claim._replace(bytes=max(self.claim.bytes, used_by(published.model)))
        self._published, self._is_published, self._published_at = published, True, time.monotonic()
        self._is_asked = False

    def replay(self, position: int, block: Block) -> list[str | None]:
        """Learn a block without publishing the result."""
        return _ended(self._replaying(position, block))

    def _replaying(self, position: int, block: Block) -> Generator[None, None, list[str | None]]:
        self._last = block
        progress = self._state.progress or RunningLosses(str(self.traits.targets.task), self.settings.window)
        offsets = farther(self._state.offsets, block.offsets)
        self._state = self._state._replace(progress=progress, position=position, offsets=offsets)
        try:
            yield from self._teach_in_turns(block)
            return [None] * len(block.pieces)
        except Exception:  # such as divergence, which leaves the model unchanged: learn the other requests
            outcomes = []
            for piece in block.split():
                outcomes.append((yield from self._try(piece)))
            return outcomes
        finally:
            self._is_published = False  # the position is another one, even if nothing was learned

    def _gather(self, block: Block) -> None:
        """Collect rows until there are enough for the model to start; if it cannot, try again with twice as many."""
        self._first.append(block)
        self._state.progress.update(block.targets, None)  # type: ignore[union-attr]
        count = sum(len(one.targets) for one in self._first)
        if count < max(self.settings.first_rows, 2 * self._tried):
            return
        rows = joined(self._first)
        model = new_pipeline(self.spec, str(self.traits.targets.task))
        try:
            model.partial_fit(as_rows(model, rows.columns), self.traits.targets.array(rows.targets))
        except Exception as error:  # the rows were acknowledged, so they stay
            self._tried = count
            why = f"the model cannot start with its first {count:,} rows: {first_line(error)}"
            self._state = self._state._replace(obstacle=why)
            return
        self._first = []
        self._state = self._state._replace(model=model, obstacle=None, telling=self._telling(model, rows))

    def _telling(self, model: Any, rows: Block) -> tuple[str, ...]:
        schema = schema_of(model)
        if schema is None:
            return ()
        targets = self.traits.targets.array(rows.targets)
        return tuple(telling_columns(as_rows(model, rows.columns), schema, targets, model.task))

    def _try(self, piece: Block) -> Generator[None, None, str | None]:
        try:
            yield from self._teach_in_turns(piece)
            return None
        except Exception as error:
            return first_line(error)

    def _teach_in_turns(self, block: Block) -> Generator[None, None, None]:
        """Learn a block, a few rows at a time; if that fails, the state is the one before the block."""
        self._size = 0
        rows, done = len(block.targets), self._share(block.targets)
        is_published = self._is_published and self._state.model is not None  # then there is a copy of what learning changes
        is_divided = done < rows
        state = copy.deepcopy(self._state) if is_divided and not is_published else self._state
        before, tried, first = list(self._first), self._tried, 0
        try:
            while True:
                self._teach(block.part(first, done))
                if done == rows:
                    return
                yield
                first, done = done, done + self._share(block.targets[done:])
        except Exception:
            if is_published:
                same = copy.deepcopy(self._published)
                state = state._replace(model=same.model, progress=same.progress)
            if is_published or is_divided:
                self._state, self._first, self._tried, self._is_published = state, before, tried, is_published
            raise

    def _share(self, targets: Sequence[Any]) -> int:
        """Return the number of rows to learn at once: as many as the first rows lack, or as a turn takes."""
        if self._state.model is None:
            lacking = max(self.settings.first_rows, 2 * self._tried) - sum(len(one.targets) for one in self._first)
            return max(1, min(lacking, len(targets)))
        known = None if self.traits.targets.task == "regression" else self._state.progress.counts.keys()  # type: ignore[union-attr]
        last = last_step(self._state.model)
        rows = share(targets, known, self._size or bytes_in_use(last))  # spare capacity included: without it takes a copy
        if rows < len(targets) and (not self._size or len(known or ()) >= 2 * self._size_of):
            self._size, self._size_of = last.nbytes_, max(1, len(known or ()))
            rows = share(targets, known, self._size)
        return rows

    def _teach(self, block: Block) -> None:
        self._is_published = False
        if self._state.model is None:
            self._gather(block)
            return
        model, progress = self._state.model, cast("RunningLosses", self._state.progress)
        last, targets = last_step(model), self.traits.targets.array(block.targets)
        before = copy.copy(last) if hasattr(last, "interval_around") else None  # with its thresholds
        predicted = model.predict_then_learn(as_rows(model, block.columns), targets)
        progress.update(block.targets, predicted.tolist())
        if before is not None:
            progress.add_recent(targets, predicted, before.interval_around(predicted, COVERAGE))


def _ended(turns: Generator[None, None, Any]) -> Any:
    """Run a generator to its end; return its result."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value
