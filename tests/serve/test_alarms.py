"""Alarms of a service: in the facts and metrics, and posted to an address on this machine."""

import json
import socket
import threading
from collections import deque
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from kernling.serve import webhook
from kernling.serve.app import create_app
from kernling.serve.metrics import Metrics
from kernling.serve.service import Service
from kernling.serve.webhook import Address, Webhook
from serving import contents_of

CHANGE, EVENTS = 4200, 5200


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(EVENTS, 2))
    X[CHANGE:, 1] += 2.0
    labels = np.where(np.arange(EVENTS) < CHANGE, X[:, 0] > 0.0, X[:, 0] < 0.0)
    return [{"km": a, "hours": b, "target": bool(label)} for (a, b), label in zip(X.tolist(), labels.tolist(), strict=True)]


class Receiver:
    """An HTTP server on this machine, whose answers are given; the last one stays."""

    def __init__(self, *statuses):
        self.got, self.statuses, self.arrived = [], deque(statuses), threading.Semaphore(0)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.statuses[0] if len(receiver.statuses) == 1 else receiver.statuses.popleft()
                receiver.got.append((self.path, self.headers["content-type"], json.loads(body)))
                self.send_response(status)
                self.end_headers()
                receiver.arrived.release()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = Address.of(f"http://127.0.0.1:{self.server.server_port}/alarms?team=7")


@pytest.fixture
def receive():
    started = []

    def begin(*statuses):
        started.append(Receiver(*statuses))
        return started[-1]

    yield begin
    for one in started:
        one.server.shutdown()
        one.server.server_close()


def test_alarms_are_facts_metrics_and_posts(tmp_path, receive):
    receiver = receive(200)
    service = Service(tmp_path)
    service.webhook = Webhook(receiver.address, service.remember_error)
    service.create("flights", {"estimator": "AVMClassifier", "parameters": {"gamma": 0.5, "delta": 0.7}}).result()
    for first in range(0, EVENTS, 400):
        service.learn("flights", rows()[first : first + 400]).result()
    assert create_app(service)
    facts, text = service.facts(service.model("flights")), Metrics(service).text().decode()
    found = {one["what"]: one for one in facts["alarms"]}
    assert found["error"]["after"] > 3 * found["error"]["before"]
    assert CHANGE < found["error"]["event"] <= CHANGE + 600
    assert found["columns"]["said"] == f"changed at event {found['columns']['event']:,}: hours moved"
    assert facts["alarm_count"] == len(facts["alarms"]) >= 2
    json.dumps(facts, allow_nan=False)
    assert 'kernling_alarms_total{model="flights",what="columns"} 1.0' in text
    before = contents_of(service, "flights")
    service.stop()
    assert service.webhook.counts == {"sent": facts["alarm_count"]}
    path, kind, message = receiver.got[0]
    assert (path, kind, message["model"]) == ("/alarms?team=7", "application/json", "flights")
    assert [one[2]["event"] for one in receiver.got] == [one["event"] for one in facts["alarms"]]
    again = Service(tmp_path)
    assert contents_of(again, "flights") == before  # alarms are saved with the model
    assert again.facts(again.model("flights"))["alarms"] == facts["alarms"]
    again.stop()


def test_what_cannot_be_delivered_is_tried_again_then_lost_and_said(receive):
    receiver, told = receive(503, 500, 204, 404, 200), []
    hook = Webhook(receiver.address, lambda *words: told.append(words), pauses=[0.0, 0.0])
    for number in range(3):
        hook.send("m", {"number": number})
    for _ in range(5):
        assert receiver.arrived.acquire(timeout=30)
    hook.stop()
    assert [one[2]["number"] for one in receiver.got] == [0, 0, 0, 1, 2]
    assert hook.counts == {"sent": 2, "lost": 1}
    assert told == [("m", "an alarm was not delivered: the answer was 404")]


def test_an_answer_that_comes_byte_by_byte_is_none(monkeypatch):
    monkeypatch.setattr(webhook, "SECONDS", 0.3)
    told, lost = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 ")
                while not lost.wait(0.05):
                    connection.sendall(b"0")

        threading.Thread(target=drip, daemon=True).start()

        def tell(*words):
            told.append(words)
            lost.set()

        hook = Webhook(Address.of(f"http://127.0.0.1:{server.getsockname()[1]}/"), tell, pauses=[])
        hook.send("m", {"a": 1})
        assert lost.wait(30.0)
        hook.stop()
    assert told == [("m", "an alarm was not delivered: no answer within 0.3 seconds")]


def test_nobody_listens_and_nothing_waits(receive, monkeypatch):
    receiver, told = receive(200), []
    receiver.server.shutdown()
    receiver.server.server_close()
    monkeypatch.setattr(webhook, "MOST", 3)
    hook = Webhook(receiver.address, lambda *words: told.append(words), pauses=[3600.0])
    for number in range(6):
        hook.send("m", {"number": number})
    assert len(hook._waiting) <= 3
    hook.stop()
    hook.send("m", {"number": 6})
    assert hook.counts["sent"] == 0
    assert hook.counts["lost"] == len(told) == 7
    assert any("3 are waiting" in words for _, words in told)
    assert "the service is stopping" in told[-1][1]


def test_pauses_grow_from_half_a_second_to_half_a_minute(receive):
    hook = Webhook(receive(200).address, lambda *words: None)
    hook.stop()
    assert hook._pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


@pytest.mark.parametrize("url", ["ftp://example.org/", "example.org", "http://", "http://user:word@example.org/"])
def test_addresses_that_cannot_be_used_are_refused(url):
    with pytest.raises(ValueError, match="http://host:port/path"):
        Address.of(url)
