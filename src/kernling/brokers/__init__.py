"""Events from brokers, and to them: one file for each broker, which is imported only when a URL names it.

A broker needs two classes, a :class:`Source` and a :class:`Sink`, and an entry in ``BROKERS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

BROKERS = {"redis": "redis_streams", "rediss": "redis_streams", "kafka": "kafka_topics"}
EVENT = "event"  # the field of an entry that holds the JSON of an event, where entries have fields
STARTS = ("beginning", "end")


class BrokerError(Exception):
    """A broker cannot be reached, or does not have what was asked for; it is worth trying again later."""


class Address(NamedTuple):
    """A stream of a broker, as a URL names it.

    Examples
    --------
    >>> from kernling.brokers import Address
    >>> address = Address.parse("redis://me:secret@localhost/flights?group=night")
    >>> address.topic, address.options["group"], str(address)
    ('flights', 'night', 'redis://localhost/flights?group=night')
    """

    scheme: str
    hosts: str  # host:port, or several of them with commas
    topic: str
    options: dict[str, str]
    user: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the parts of a URL; raise ValueError if it is not one of a broker."""
        try:
            found = urlsplit(url)
            options = dict(parse_qsl(found.query, keep_blank_values=True, strict_parsing=bool(found.query)))
        except ValueError:
            raise ValueError(f"{url.partition('?')[0]!r} is not a URL such as redis://localhost/stream") from None
        user, _, hosts = found.netloc.rpartition("@")
        name, has_password, password = user.partition(":")
        topic = unquote(found.path.removeprefix("/"))
        if found.scheme not in BROKERS:
            known = ", ".join(f"{scheme}://" for scheme in BROKERS)
            raise ValueError(
                f"a URL of a broker begins with {known}, not {found.scheme + '://' if found.scheme else 'nothing'}"
            )
        if not hosts or not topic:
            raise ValueError(f"a URL must name a host and a stream or topic, as {found.scheme}://localhost/flights does")
        if options.get("start", STARTS[0]) not in STARTS:
            raise ValueError(f"start must be one of {', '.join(STARTS)}, not {options['start']!r}")
        return cls(found.scheme, hosts, topic, options, unquote(name) or None, unquote(password) if has_password else None)

    def __str__(self) -> str:
        """The URL without what is secret: it names the source in journals, logs and on the page."""
        group = self.options.get("group")
        return f"{self.scheme}://{self.hosts}/{self.topic}{f'?group={group}' if group else ''}"

    def number(self, name: str, value: Any) -> int:
        """Return a part of the URL that must be a whole number."""
        try:
            return int(value)
        except ValueError:
            raise ValueError(f"{self}: {name} must be a whole number, not {value!r}") from None

    def check_options(self, known: Sequence[str]) -> None:
        """Raise ValueError for an option that nobody reads."""
        for name in self.options:
            if name not in known:
                raise ValueError(f"the URL has the option {name!r}; known are {', '.join(known)}")


class Batch(NamedTuple):
    """Some events, in the order of the broker."""

    events: list[bytes]  # JSON
    places: list[str]  # where each of them is; the same for an event that is read again
    offsets: dict[str, Any]  # JSON-compatible: where to go on after them
    notes: list[str]  # a sentence for everything that is missing before them


class Source(Protocol):
    """Events that are read in batches, from where it is told to begin."""

    def begin(self, offsets: dict[str, Any]) -> dict[str, Any]:
        """Go on after these offsets, or begin if there are none; return offsets to be stored before anything is read.

        After any failure this is called again.
        """

    def read(self, most: int, seconds: float) -> Batch:
        """Return the next events; none if there are none within this time."""

    def done(self, offsets: dict[str, Any]) -> None:
        """Note that all events up to these offsets are safe: members of a group tell the broker so."""

    def after(self, offsets: dict[str, Any], places: Sequence[str]) -> dict[str, Any]:
        """Return the offsets after events at these places, which follow the given offsets; for sources without a group."""

    def behind(self) -> int | None:
        """Return the number of events that are there and have not been read; None if it is not known."""

    def close(self) -> None:
        """Leave the broker."""


class Sink(Protocol):
    """Messages that are written."""

    def send(self, messages: Sequence[bytes]) -> None:
        """Write messages; when this returns, the broker has all of them.  After a BrokerError, send all of them again."""

    def close(self) -> None:
        """Leave the broker."""


def _module(address: Address) -> Any:
    return import_module(f".{BROKERS[address.scheme]}", __name__)


def open_source(address: Address, also: Sequence[str] = ()) -> Source:
    """Return the source of an address; ``also`` are options that the caller reads."""
    return _module(address).open_source(address, also)


def open_sink(address: Address) -> Sink:
    """Return the sink of an address."""
    return _module(address).open_sink(address)


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a broker, rather than a file.

    Examples
    --------
    >>> from kernling.brokers import is_url
    >>> is_url("redis://localhost/flights"), is_url("flights.csv")
    (True, False)
    """
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme in BROKERS
