"""SIGKILL at random moments under load: nothing acknowledged is lost, nothing is learned twice, the model is the same."""

import random
import threading
import time

import httpx
import numpy as np
import pytest

from serving import contents, learned_again, model_of, served

CLIENTS = 3
SIZE = 20  # rows of a request
AVM = {"estimator": "AVMClassifier"}  # which every process has ready sooner than the default


class Client:
    """Sends events, some with labels at once and some with late ones, each until it is acknowledged."""

    def __init__(self, server, number):
        self.server, self.number = server, number
        self.http = httpx.Client(timeout=30.0)  # one for all requests: it reads the certificates of the system
        self.acknowledged, self.repeated, self.lost = 0, 0, 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)  # it insists, also where a test has failed
        self.thread.start()

    def run(self):
        rng = np.random.default_rng(self.number)
        turn = 0
        while not self.stopping.is_set():
            X = rng.normal(size=(SIZE, 3))
            ids = [f"{self.number}-{turn}-{place}" for place in range(SIZE)]
            rows = [{"id": one, "a": a, "b": b, "c": c} for one, (a, b, c) in zip(ids, X.tolist(), strict=True)]
            labels = ["yes" if a * b > 0 else "no" for a, b, _ in X.tolist()]
            if turn % 3 == 2:
                self.insist("predict", rows)
                rows = [{"id": one} for one in ids]
            answer = self.insist("learn", [row | {"target": label} for row, label in zip(rows, labels, strict=True)])
            self.acknowledged += answer["learned"] + len(answer["repeated"])
            self.repeated += len(answer["repeated"])
            self.lost += len(answer["unknown"])
            turn += 1

    def insist(self, what, rows):
        """Send until there is an answer; what was sent before a kill may have been learned, which the ids tell."""
        while True:
            try:
                answer = self.http.post(f"{self.server.address}/models/m/{what}", json=rows)
                answer.raise_for_status()
                return answer.json()
            except httpx.HTTPError:
                time.sleep(0.02)


def wait_for_more(clients, events):
    """Wait until so many further events were acknowledged, or until it takes too long."""
    goal, end = sum(client.acknowledged for client in clients) + events, time.monotonic() + 30.0
    while sum(client.acknowledged for client in clients) < goal and time.monotonic() < end:
        time.sleep(0.005)


def wait_for_snapshot(folder):
    """Wait until a snapshot is written; a machine under load may have had no time for it between two kills."""
    end = time.monotonic() + 30.0
    while not list(folder.glob("snapshots/1/*.kern")):
        assert time.monotonic() < end, "no snapshot was written"
        time.sleep(0.05)


def kill_often(folder, kills):
    """Kill a service again and again while clients send; then compare."""
    chance = random.Random(0)
    with served(folder, uncut=True, snapshot_seconds=0.3) as (server, _):
        httpx.put(f"{server.address}/models/m", json=AVM, timeout=60.0).raise_for_status()
        httpx.post(
            f"{server.address}/models/m/learn",
            timeout=60.0,
            json=[{"a": 0.1, "b": 0.1, "c": 0.1, "target": "yes", "id": "first"}],
        )
        clients = [Client(server, number) for number in range(CLIENTS)]
        for _ in range(kills):
            wait_for_more(clients, chance.randrange(10 * SIZE))
            time.sleep(chance.uniform(0.0, 0.05))
            server.kill()
            server.start()
        wait_for_snapshot(folder)  # so that the last start does not only read the journal
        wait_for_more(clients, 10 * SIZE)
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.thread.join()
            client.http.close()
        before = httpx.get(f"{server.address}/models/m").json()
        server.kill()
        server.start()
        after = httpx.get(f"{server.address}/models/m").json()
        content = httpx.get(f"{server.address}/models/m/file").content
        for name in ("events", "overall", "lately", "constant", "points", "certificate", "schema"):
            assert after[name] == before[name]
        assert server.stop() == 0
    acknowledged = 1 + sum(client.acknowledged for client in clients)
    state, ids = learned_again(folder)
    assert sum(client.lost for client in clients) == 0
    assert len(ids) == len(set(ids)) == acknowledged == after["events"] == state.events
    assert acknowledged > kills * SIZE
    assert contents(state.model) == contents(model_of(content, folder))
    return acknowledged, sum(client.repeated for client in clients)


def test_five_kills(tmp_path):
    kill_often(tmp_path, 5)


@pytest.mark.long
def test_two_hundred_kills(tmp_path):
    acknowledged, repeated = kill_often(tmp_path, 200)
    print(f"{acknowledged:,} events acknowledged, {repeated:,} of them learned before a kill and sent again")


def test_the_check_would_notice_a_lost_block(tmp_path):
    """The journal without one of its blocks gives another model."""
    with served(tmp_path, uncut=True) as (server, client):
        rng = np.random.default_rng(0)
        client.put("/models/m", json=AVM)
        for _ in range(10):
            rows = [{"a": a, "b": b, "target": "yes" if a * b > 0 else "no"} for a, b in rng.normal(size=(20, 2)).tolist()]
            client.post("/models/m/learn", json=rows)
        content = client.get("/models/m/file").content
        server.stop()
    for gone in (None, 180):
        same = contents(learned_again(tmp_path, gone)[0].model) == contents(model_of(content, tmp_path))
        assert same == (gone is None)
