"""Redis Streams.

Alone, a source reads with XREAD after an id that the caller stores: Redis remembers nothing.  A member of a group reads with
XREADGROUP, and Redis remembers what it has got until XACK.  The caller stores the ids of the last batch, so that it is known
which of the entries that Redis still waits for are safe.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..extras import need
from . import EVENT, Address, Batch, BrokerError, Sink, Source

PORT = 6379
TIMEOUT = 5.0  # seconds for an answer, beyond those that were asked for
FIRST = "0-0"  # is before all ids


class _Connection:
    """A client for one stream."""

    def __init__(self, address: Address):
        self._redis = need("redis:// needs redis", "redis", "redis")
        host, _, port = address.hosts.partition(":")
        self.stream = address.topic
        self.shown = str(address)
        self.client = self._redis.Redis(
            host,
            address.number("port", port or PORT),
            db=address.number("db", address.options.get("db", 0)),
            username=address.user,
            password=address.password,
            ssl=address.scheme == "rediss",
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            protocol=2,
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what the client raises as a BrokerError."""
        try:
            yield
        except (self._redis.RedisError, OSError) as error:
            raise BrokerError(f"{self.shown}: {error}") from None

    def call(self, *words: Any) -> Any:
        """Send a command."""
        with self.errors():
            return self.client.execute_command(*words)

    def facts(self) -> dict[str, Any]:
        """Return what XINFO says about the stream; nothing if there is no such stream."""
        with self.errors():
            try:
                return _named(self.client.execute_command("XINFO", "STREAM", self.stream))
            except self._redis.ResponseError as error:
                if "no such key" in str(error):
                    return {}
                raise

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


def _named(values: Any) -> dict[str, Any]:
    """Return names and values that Redis sends as one list."""
    if isinstance(values, dict):
        return {_text(name): value for name, value in values.items()}
    return {_text(name): value for name, value in zip(values[::2], values[1::2], strict=True)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _order(one: str) -> tuple[int, int]:
    """Return an id as numbers, which compare as Redis compares ids."""
    milliseconds, _, number = one.partition("-")
    return int(milliseconds), int(number or 0)


def _event(fields: Any) -> bytes:
    """Return the JSON of an entry: its field 'event', or its only one."""
    if len(fields) == 1:
        return next(iter(fields.values()))
    found = fields.get(EVENT.encode())
    return f"(no field {EVENT!r} among {len(fields)}) {fields}".encode() if found is None else found  # which is not JSON


def open_source(address: Address, also: Sequence[str]) -> Source:
    """Return a source that reads a stream alone, or as a member of a group."""
    address.check_options(("group", "start", "db", *also))
    return _Member(address) if "group" in address.options else _Alone(address)


class _Alone(_Connection):
    """Reads all entries of a stream."""

    def __init__(self, address: Address):
        super().__init__(address)
        self._start = address.options.get("start", "beginning")
        self._id, self._count = FIRST, 0  # of the last entry read, and how many have ever been added up to it
        self._notes: list[str] = []
        self._is_looked_after = False

    def begin(self, offsets: dict[str, Any]) -> dict[str, Any]:
        """See Source."""
        facts = self.facts()
        added, length = int(facts.get("entries-added", 0)), int(facts.get("length", 0))
        if offsets:
            self._id, self._count = offsets["id"], offsets["count"]
        elif self._start == "end" and facts:
            self._id, self._count = _text(facts["last-generated-id"]), added
        else:
            self._id, self._count = FIRST, added - length
        self._is_looked_after = False
        return self._offsets()

    def _offsets(self) -> dict[str, Any]:
        return {"id": self._id, "count": self._count}

    def after(self, offsets: dict[str, Any], places: Sequence[str]) -> dict[str, Any]:
        """See Source."""
        return {"id": places[-1], "count": offsets["count"] + len(places)} if places else offsets

    def _look_after(self) -> None:
        """Find out whether the stream is another one, or has lost entries that were not read."""
        facts = self.facts()
        if not facts:
            if self._id != FIRST:
                raise BrokerError(f"{self.shown}: the stream is not there")
            return
        self._is_looked_after = True
        if _order(_text(facts["last-generated-id"])) < _order(self._id):
            self._notes.append(
                f"the stream begins anew, since its last id is before {self._id}: it is read from its first entry"
            )
            self._id = FIRST
        added = int(facts.get("entries-added", 0))
        if self._id == FIRST or added < self._count:  # nothing of this stream was read
            self._count = added - int(facts["length"])
        gone = added - int(facts["length"]) - self._count  # more than were read
        if gone > 0:
            self._notes.append(f"{gone:,} entries after {self._id} were deleted before they were read")
            self._count += gone

    def read(self, most: int, seconds: float) -> Batch:
        """See Source."""
        try:
            if not self._is_looked_after:
                self._look_after()
            wait = max(1, int(1000 * seconds))
            found = self.call("XREAD", "COUNT", most, "BLOCK", wait, "STREAMS", self.stream, self._id)
        except BrokerError:
            self._is_looked_after = False  # it may be another server
            raise
        entries = found[0][1] if found else []
        places = [_text(one) for one, _ in entries]
        offsets = self.after(self._offsets(), places)
        self._id, self._count = offsets["id"], offsets["count"]
        if not places:
            self._is_looked_after = False  # nothing arrives: is the stream still the same?
        notes, self._notes = self._notes, []
        return Batch([_event(fields) for _, fields in entries], places, offsets, notes)

    def done(self, offsets: dict[str, Any]) -> None:
        """See Source."""

    def behind(self) -> int | None:
        """See Source."""
        facts = self.facts()
        if facts and "entries-added" not in facts:  # before Redis 7
            return None
        return max(int(facts.get("entries-added", 0)) - self._count, 0)


class _Member(_Connection):
    """Reads the entries that a group gives to this member."""

    def __init__(self, address: Address):
        super().__init__(address)
        self._group = address.options["group"]
        self._start = "$" if address.options.get("start") == "end" else "0"
        self._consumer = ""
        self._last: list[str] = []  # of the last batch: safe, but Redis may not know it yet
        self._notes: list[str] = []
        self._after: str | None = "0"  # entries that this member has got after this id come first; None after all of them

    def begin(self, offsets: dict[str, Any]) -> dict[str, Any]:
        """See Source."""
        self._consumer = offsets.get("consumer") or f"kernling-{secrets.token_hex(6)}"
        self._last, self._after = offsets.get("last", []), "0"
        self._join()
        return self._offsets()

    def _join(self) -> None:
        """Create the group, unless it is there."""
        reached = _text(self.facts().get("last-generated-id", FIRST))
        is_known = bool(self._last) and _order(self._last[-1]) <= _order(reached)
        start = self._last[-1] if is_known else "0" if self._last else self._start
        with self.errors():
            try:
                self.client.xgroup_create(self.stream, self._group, start, mkstream=True)
            except self._redis.ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise
                return
        if self._last:
            self._notes.append(f"the group or its stream was deleted: a new group begins after {start}")

    def _offsets(self) -> dict[str, Any]:
        return {"consumer": self._consumer, "last": self._last}

    def after(self, offsets: dict[str, Any], places: Sequence[str]) -> dict[str, Any]:
        """See Source."""
        return {**offsets, "last": list(places)} if places else offsets

    def read(self, most: int, seconds: float) -> Batch:
        """See Source."""
        notes, self._notes = self._notes, []
        while True:
            after = ">" if self._after is None else self._after
            entries = self._read(after, most, seconds)
            if self._after is None:
                break
            self._after = _text(entries[-1][0]) if entries else None
            known = set(self._last)
            safe = [_text(one) for one, _ in entries if _text(one) in known]
            gone = [_text(one) for one, fields in entries if not fields and _text(one) not in known]
            if gone:
                notes.append(f"{len(gone):,} entries from {gone[0]} to {gone[-1]} were deleted before they were read")
            self._acknowledge([*safe, *gone])
            left = {*safe, *gone}
            entries = [(one, fields) for one, fields in entries if _text(one) not in left]
            if entries:
                break
        places = [_text(one) for one, _ in entries]
        offsets = self.after(self._offsets(), places)
        self._last = offsets["last"]
        return Batch([_event(fields) for _, fields in entries], places, offsets, notes)

    def _read(self, after: str, most: int, seconds: float) -> list[Any]:
        words = ["XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", most]
        words += ["BLOCK", max(1, int(1000 * seconds))] if after == ">" else []
        found = self.call(*words, "STREAMS", self.stream, after)
        return found[0][1] if found else []

    def _acknowledge(self, ids: Sequence[str]) -> None:
        if ids:
            self.call("XACK", self.stream, self._group, *ids)

    def done(self, offsets: dict[str, Any]) -> None:
        """See Source."""
        self._acknowledge(offsets["last"])

    def behind(self) -> int | None:
        """See Source."""
        for one in map(_named, self.call("XINFO", "GROUPS", self.stream)):
            if _text(one["name"]) == self._group:
                return None if one.get("lag") is None else int(one["lag"])
        return None


def open_sink(address: Address) -> Sink:
    """Return a sink that appends to a stream."""
    address.check_options(("db", "maxlen"))
    return _Appender(address)


class _Appender(_Connection):
    """Appends entries with a field that holds the JSON."""

    def __init__(self, address: Address):
        super().__init__(address)
        most = address.options.get("maxlen")
        self._most = None if most is None else address.number("maxlen", most)

    def send(self, messages: Sequence[bytes]) -> None:
        """See Sink."""
        with self.errors():
            pipe = self.client.pipeline(transaction=True)
            for message in messages:
                pipe.xadd(self.stream, {EVENT: message}, maxlen=self._most)
            pipe.execute()
