"""Drifting streams that demonstrate the page."""

from __future__ import annotations

import json
import secrets
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from ..brokers import Address, BrokerError, open_sink
from .refusal import Refused
from .service import Service

SECONDS = 0.25  # between two requests
ROWS = 60  # in each
LATE = 8  # requests after which labels are sent
TURN = 6_000  # events per rotation of the rule


class Demo:
    """Two models trained by a thread: orders, whose labels are sent with them, and trips, whose labels are sent later.

    With the URL of a source, orders are sent there instead, one in ten with a late label.
    """

    def __init__(self, service: Service, source: str | None = None):
        self.service = service
        self._sink = None if source is None else open_sink(Address.parse(source)._replace(options={}))
        self._labels: list[dict[str, Any]] = []  # of orders that were sent without
        self._rng = np.random.default_rng(0)
        self._events = 0
        self._run = secrets.token_hex(4)  # ids of an earlier demonstration in the same folder are not used again
        self._late: deque[list[dict[str, Any]]] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="demo", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending."""
        self._stopping.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._stopping.wait(SECONDS):
            with suppress(Refused, BrokerError):
                if self._sink is None:
                    self.service.learn("orders", self._orders()).result()
                else:
                    self._sink.send(list(self._messages()))
                self._send_trips()
            self._events += ROWS

    def _messages(self) -> Iterator[bytes]:
        """Return orders as JSON; one in ten comes without its label, which follows with the next ones."""
        labels, self._labels = self._labels, []
        for place, row in enumerate(self._orders()):
            if place % 10 == 0:
                row["id"] = f"{self._run}-{self._events + place}"
                self._labels.append({"id": row["id"], "target": row.pop("target")})
            yield json.dumps(row).encode()
        yield from (json.dumps(label).encode() for label in labels)

    def _orders(self) -> list[dict[str, Any]]:
        """Return orders that are returned or kept, by a rule that rotates slowly."""
        angle = 2.0 * np.pi * (self._events % TURN) / TURN
        direction = np.array([np.cos(angle), np.sin(angle)])
        X = self._rng.normal(size=(ROWS, 2))
        shop = self._rng.integers(3, size=ROWS)
        side = X @ direction + 0.8 * (shop == 2) + 0.3 * self._rng.normal(size=ROWS) > 0.0
        return [
            {
                "price": round(float(20.0 + 5.0 * x), 2),
                "days": round(float(4.0 + z), 2),
                "shop": ("north", "south", "web")[place],
                "target": "returned" if yes else "kept",
            }
            for (x, z), place, yes in zip(X.tolist(), shop.tolist(), side.tolist(), strict=True)
        ]

    def _send_trips(self) -> None:
        """Store trips as if they had been predicted, and send the durations of earlier ones."""
        km = self._rng.gamma(2.0, 3.0, size=ROWS)
        hour = self._rng.uniform(0.0, 24.0, size=ROWS)
        rush = 1.0 + 0.8 * np.exp(-0.5 * ((hour - 17.0 - 3.0 * np.sin(self._events / TURN)) / 1.5) ** 2)
        minutes = 4.0 + 2.0 * km * rush + self._rng.normal(size=ROWS)
        rows = [{"km": round(a, 2), "hour": round(b, 2)} for a, b in zip(km.tolist(), hour.tolist(), strict=True)]
        targets = [round(value, 3) + 0.0005 for value in minutes.tolist()]
        if "trips" not in self.service.models:
            self.service.create("trips", {"task": "regression"}).result()
        model = self.service.model("trips")
        ids = [f"{self._run}-{self._events + place}" for place in range(ROWS)]
        self.service.keep(model, ids, rows)
        self._late.append([{"id": one, "target": value} for one, value in zip(ids, targets, strict=True)])
        if len(self._late) > LATE:
            self.service.learn("trips", self._late.popleft()).result()
