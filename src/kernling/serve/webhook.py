"""Alarms that are posted as JSON to an address which the operator names."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .refusal import first_line

MOST = 1_000  # messages that wait
TRIES = 8
SECONDS = 10.0  # for an answer
PAUSE, LONGEST = 0.5, 60.0  # seconds before the second try, twice as many before each further one, and at most
LAST = 5.0  # seconds for what waits when the service stops
AGAIN = (408, 429, *range(500, 600))  # statuses after which another try may succeed
_LOG = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where messages are posted."""

    is_secure: bool
    host: str
    port: int | None
    path: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Return the address of an http or https URL.

        Examples
        --------
        >>> from kernling.serve.webhook import Address
        >>> print(*Address.of("https://example.org/alarms?team=7"))
        True example.org None /alarms?team=7
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError("the address for alarms must be like http://host:port/path, without a user name")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.scheme == "https", parts.hostname, parts.port, path)


class Webhook:
    """Posts messages in a thread of its own, each once unless an answer is lost; never waits for it, and counts losses.

    Redirections are not followed.

    Parameters
    ----------
    address : Address
    tell : callable
        Called with the name of a model and a sentence if one of its messages is lost.
    pauses : sequence of float, optional
        Seconds before each further try.
    """

    def __init__(self, address: Address, tell: Callable[[str, str], None], pauses: Sequence[float] | None = None):
        self._address = address
        self._pauses = [min(PAUSE * 2.0**n, LONGEST) for n in range(TRIES - 1)] if pauses is None else list(pauses)
        self.counts: Counter[str] = Counter()  # sent and lost
        self._tell = tell
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._post_forever, name="webhook", daemon=True)
        self._thread.start()

    def send(self, model: str, message: dict[str, Any]) -> None:
        """Queue a message about a model; if too many wait, it is lost."""
        with self._changed:
            if not self._stopping and len(self._waiting) < MOST:
                self._waiting.append((model, json.dumps(message).encode()))
                self._changed.notify()
                return
        self._lose(model, f"{MOST} are waiting" if not self._stopping else "the service is stopping")

    def stop(self) -> None:
        """Post what waits, once each and for a few seconds at most; the rest is lost."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(LAST)
        with self._changed:  # the thread may still be there
            left = [model for model, _ in self._waiting]
            self._waiting.clear()
        for model in left:
            self._lose(model, "the service has stopped")

    def _post_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                model, body = self._waiting.popleft()
            why = self._post(body)
            if why is None:
                self.counts["sent"] += 1
            else:
                self._lose(model, why)

    def _post(self, body: bytes) -> str | None:
        """Post a message, several times if necessary; return why it could not be delivered, or None."""
        for pause in (*self._pauses, None):
            why, is_hopeless = self._try(body)
            if why is None or is_hopeless or pause is None:
                return why
            with self._changed:
                if self._changed.wait_for(lambda: self._stopping, pause):
                    return why
        return None

    def _try(self, body: bytes) -> tuple[str | None, bool]:
        """Post a message once; return why it could not be delivered, or None, and whether it is useless to try again."""
        kind = http.client.HTTPSConnection if self._address.is_secure else http.client.HTTPConnection
        connection = kind(self._address.host, self._address.port, timeout=SECONDS)
        is_late = threading.Event()
        timer = threading.Timer(SECONDS, _end, (connection, is_late))  # the timeout above is for each part of an answer
        timer.daemon = True
        timer.start()
        try:
            connection.request("POST", self._address.path, body, {"Content-Type": "application/json"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            why = f"no answer within {SECONDS:g} seconds" if is_late.is_set() else first_line(error) or type(error).__name__
            return why, False
        finally:
            timer.cancel()
            connection.close()
        return (None, False) if 200 <= status < 300 else (f"the answer was {status}", status not in AGAIN)

    def _lose(self, model: str, why: str) -> None:
        self.counts["lost"] += 1
        _LOG.warning("%s: an alarm was not delivered: %s", model, why)
        self._tell(model, f"an alarm was not delivered: {why}")


def _end(connection: http.client.HTTPConnection, is_late: threading.Event) -> None:
    """End a connection that another thread reads from, and tell it why."""
    is_late.set()
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):  # it has just been closed
            sock.shutdown(socket.SHUT_RDWR)
