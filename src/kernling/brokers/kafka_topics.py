"""Topics of Kafka, and of what speaks its protocol.

Alone, a source reads all partitions of a topic from offsets that the caller stores: Kafka remembers nothing.  Members of a
group divide the partitions; one that gets a partition goes on where the group or itself has come, whichever is farther.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..extras import need
from . import Address, Batch, BrokerError, Sink, Source

TIMEOUT = 5.0  # seconds for an answer about the topic
LOOK = 10.0  # seconds after which partitions that were added are looked for
GATHER = 0.005  # seconds in which more messages join the first one
WRITE = 30.0  # seconds for the broker to take messages
CONSUMER = "consumer"  # key of the offsets; the others are partitions


def _settings(address: Address, known: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Return the client library, and its settings: those of the URL, where options with a dot are the library's own."""
    kafka = need("kafka:// needs confluent-kafka", "kafka", "confluent_kafka")
    given = {name: value for name, value in address.options.items() if "." in name}
    address._replace(options={name: value for name, value in address.options.items() if name not in given}).check_options(known)
    settings = {"bootstrap.servers": address.hosts, "log_level": 0, **given}
    if address.user is not None:
        settings |= {"sasl.username": address.user, "sasl.password": address.password or ""}
        settings = {"sasl.mechanism": "PLAIN", "security.protocol": "SASL_SSL"} | settings
    return kafka, settings


class _Client:
    """What sources and sinks share."""

    def __init__(self, address: Address, known: Sequence[str]):
        self.kafka, self.settings = _settings(address, known)
        self.topic, self.shown = address.topic, str(address)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what the client raises as a BrokerError."""
        try:
            yield
        except self.kafka.KafkaException as error:
            raise BrokerError(f"{self.shown}: {error.args[0].str() if error.args else error}") from None

    def partitions(self, client: Any) -> list[int]:
        """Return the partitions of the topic; raise if there are none."""
        with self.errors():
            found = client.list_topics(self.topic, timeout=TIMEOUT).topics[self.topic]
        if found.error is not None or not found.partitions:
            reason = "there are no partitions" if found.error is None else found.error.str()
            raise BrokerError(f"{self.shown}: {reason}")
        return sorted(found.partitions)


def open_source(address: Address, also: Sequence[str]) -> Source:
    """Return a source that reads a topic alone, or as a member of a group."""
    known = ("group", "start", *also)
    return _Member(address, known) if "group" in address.options else _Alone(address, known)


class _Reader(_Client):
    """Reads messages, and counts how far it has come in each partition."""

    def __init__(self, address: Address, known: Sequence[str]):
        super().__init__(address, known)
        self._start = address.options.get("start", "beginning")
        self.settings |= {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": False}
        self.settings |= {"group.id": address.options.get("group", "kernling")}
        self._at: dict[str, int] = {}  # by partition: the offset of the next message
        self._taken: set[int] = set()  # partitions that others of a group read now
        self._notes: list[str] = []
        self._consumer: Any = None
        self._failure: Any = None  # of the client, which goes on trying
        self._looked = 0.0
        self.settings["error_cb"] = self._note_failure

    def _note_failure(self, error: Any) -> None:
        self._failure = error

    def _look(self) -> list[int]:
        """Return the partitions of the topic; raise if it is gone, which the client would not tell."""
        self._looked = time.monotonic()
        return self.partitions(self._consumer)

    def _place(self, partition: int, offset: int) -> Any:
        return self.kafka.TopicPartition(self.topic, partition, offset)

    def _beginning(self, partition: int, stored: int | None) -> int:
        """Return where to read a partition, given the next offset that was stored, if any; note what is missing."""
        with self.errors():
            low, high = self._consumer.get_watermark_offsets(self._place(partition, 0), timeout=TIMEOUT)
        if stored is None:
            return high if self._start == "end" else low
        if stored > high:
            self._notes.append(
                f"partition {partition} begins anew, since it ends at {high:,} and was read up to {stored:,}: read from {low:,}"
            )
            return low
        if stored < low:
            self._notes.append(f"{low - stored:,} messages of partition {partition} were deleted before they were read")
        return max(stored, low)

    def read(self, most: int, seconds: float) -> Batch:
        """See Source."""
        if time.monotonic() - self._looked > LOOK:
            self._look()
        with self.errors():
            first = self._consumer.poll(seconds)
            found = [] if first is None else [first, *self._consumer.consume(most - 1, GATHER)] if most > 1 else [first]
        events, places, failure = [], [], self._failure
        for message in found:
            error = message.error()
            if error is not None:
                failure = error
                continue
            partition, offset = message.partition(), message.offset()
            if offset < self._at.get(str(partition), 0) or partition in self._taken:
                continue  # asked for before this partition was assigned anew, or to another member
            self._at[str(partition)] = offset + 1
            events.append(message.value() or b"")
            places.append(f"{partition}:{offset}")
        if failure is not None and not events:
            raise BrokerError(f"{self.shown}: {failure.str()}")
        notes, self._notes = self._notes, []
        return Batch(events, places, self._offsets(), notes)

    def _offsets(self) -> dict[str, Any]:
        return dict(self._at)

    def after(self, offsets: dict[str, Any], places: Sequence[str]) -> dict[str, Any]:
        """See Source."""
        ends = (place.split(":") for place in places)
        return {**offsets, **{partition: int(offset) + 1 for partition, offset in ends}}

    def behind(self) -> int | None:
        """See Source."""
        total = 0
        with self.errors():
            for one in self._consumer.assignment() if self._consumer else ():
                known = self._consumer.get_watermark_offsets(one, cached=True)
                if known is None or known[1] < 0:
                    known = self._consumer.get_watermark_offsets(one, timeout=TIMEOUT)
                total += max(known[1] - self._at.get(str(one.partition), known[0]), 0)
        return total

    def close(self) -> None:
        """See Source."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class _Alone(_Reader):
    """Reads all partitions of a topic."""

    def begin(self, offsets: dict[str, Any]) -> dict[str, Any]:
        """See Source."""
        self._at = dict(offsets)
        self._failure = None
        if self._consumer is None:
            self._consumer = self.kafka.Consumer(self.settings)
        self._consumer.unassign()
        self._look()
        return self._offsets()

    def _look(self) -> list[int]:
        """Read all partitions that the topic has now, each from where it is."""
        own = super()._look()
        assigned = {one.partition for one in self._consumer.assignment()}
        if assigned != set(own):
            self._at |= {str(one): self._beginning(one, self._at.get(str(one))) for one in own}
            with self.errors():
                self._consumer.assign([self._place(one, self._at[str(one)]) for one in own])
        return own

    def done(self, offsets: dict[str, Any]) -> None:
        """See Source."""


class _Member(_Reader):
    """Reads the partitions that a group gives to this member."""

    _name = ""

    def begin(self, offsets: dict[str, Any]) -> dict[str, Any]:
        """See Source."""
        self._at = {name: value for name, value in offsets.items() if name != CONSUMER}
        self._name = offsets.get(CONSUMER) or f"kernling-{secrets.token_hex(6)}"
        self._failure = None
        if self._consumer is None:
            # a member of a known name that comes back soon gets the same partitions, and nobody else has read them meanwhile
            self._consumer = self.kafka.Consumer({"group.instance.id": self._name, **self.settings})
        self._look()
        with self.errors():
            self._consumer.unsubscribe()
            self._consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        return self._offsets()

    def _offsets(self) -> dict[str, Any]:
        return {CONSUMER: self._name, **self._at}

    def _assigned(self, consumer: Any, given: list[Any]) -> None:
        for one in consumer.committed(given, timeout=TIMEOUT):
            own = self._at.get(str(one.partition))
            known = [place for place in (own, one.offset) if place is not None and place >= 0]
            self._at[str(one.partition)] = self._beginning(one.partition, max(known, default=None))
        self._taken -= {one.partition for one in given}
        consumer.assign([self._place(one.partition, self._at[str(one.partition)]) for one in given])

    def _revoked(self, consumer: Any, taken: list[Any]) -> None:
        """Tell the group how far this member has come: all that it has read is safe, since it asks for the next batch."""
        self._taken |= {one.partition for one in taken}
        if not self._commit({str(one.partition): self._at.get(str(one.partition)) for one in taken}):
            names = ", ".join(str(one.partition) for one in taken)
            self._notes.append(
                f"the group could not be told how far partitions {names} were read: others may learn the last events again"
            )
        consumer.unassign()

    def _lost(self, consumer: Any, taken: list[Any]) -> None:
        self._taken |= {one.partition for one in taken}
        names = ", ".join(str(one.partition) for one in taken)
        self._notes.append(
            f"the group gave partitions {names} to others, since this member did not answer: both may learn the last events"
        )
        consumer.unassign()

    def done(self, offsets: dict[str, Any]) -> None:
        """See Source."""
        assigned = {str(one.partition) for one in self._consumer.assignment()}
        self._commit({one: offsets.get(one) for one in assigned})  # if this fails, the next one says it as well

    def _commit(self, offsets: dict[str, int | None]) -> bool:
        """Tell the group how far partitions were read; return whether it knows."""
        places = [self._place(int(one), offset) for one, offset in offsets.items() if offset is not None]
        try:
            if places:
                self._consumer.commit(offsets=places, asynchronous=False)
        except self.kafka.KafkaException:
            return False
        return True


def open_sink(address: Address) -> Sink:
    """Return a sink that writes to a topic."""
    return _Writer(address, ())


class _Writer(_Client):
    """Writes messages, of which the broker keeps each once, however often the client has to repeat it."""

    def __init__(self, address: Address, known: Sequence[str]):
        super().__init__(address, known)
        self._producer = self.kafka.Producer({"enable.idempotence": True, "message.timeout.ms": 1000 * WRITE, **self.settings})

    def send(self, messages: Sequence[bytes]) -> None:
        """See Sink."""
        failures: list[Any] = []

        def told(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        with self.errors():
            for message in messages:
                try:
                    self._producer.produce(self.topic, message, on_delivery=told)
                except BufferError:  # wait for some to be taken
                    self._producer.poll(1.0)
                    self._producer.produce(self.topic, message, on_delivery=told)
            left = self._producer.flush(WRITE)
        if failures or left:
            raise BrokerError(f"{self.shown}: {failures[0].str() if failures else 'the broker did not answer in time'}")

    def close(self) -> None:
        """See Sink."""
        self._producer.flush(TIMEOUT)
