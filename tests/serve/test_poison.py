"""Blocks and snapshots that bring the process down: the next start serves all other models, and everything else of this one."""

import ctypes
import json
import os
import signal

import httpx
import numpy as np
import pytest

from kernling.serve import snapshots
from kernling.serve.blocks import Block
from kernling.serve.dead import STRIKES, DeadLetters
from kernling.serve.jobs import Job, Jobs
from kernling.serve.live import LiveModel
from kernling.serve.refusal import Refused
from serving import abandon, contents_of, events, send, served

POISON = 666.0
AVM = {"estimator": "AVMClassifier"}


def crash_in_learning(end=lambda: ctypes.string_at(0)):
    """Let this process crash when it learns a certain row."""
    replaying = LiveModel._replaying

    def crashes(self, position, block):
        if POISON in block.columns.get("km", np.empty(0)).tolist():
            end()
        return replaying(self, position, block)

    LiveModel._replaying = crashes


def kill_in_learning():
    """Let this process be killed, as if by the system for its memory, when it learns a certain row."""
    crash_in_learning(lambda: os.kill(os.getpid(), signal.SIGKILL))


def crash_in_reading():
    """Let this process crash when it reads a certain snapshot."""
    read = snapshots._read
    snapshots._read = lambda path: ctypes.string_at(0) if int(path.stem) == 60 else read(path)


def start_again(server):
    """Start a server; return whether it has started."""
    try:
        server.start()
        return True
    except EOFError:
        server.process.join()
        return False


def fill(client):
    for name in ("flights", "trips"):
        client.put(f"/models/{name}", json=AVM).raise_for_status()
        assert client.post(f"/models/{name}/learn", json=events(40)).json()["learned"] == 40


def poisonous():
    return [row | {"km": POISON, "id": f"poison {row['id']}"} for row in events(3)]


def test_a_block_that_crashes_is_set_aside_by_the_next_start(tmp_path):
    with served(tmp_path, crash=crash_in_learning, first_rows=20) as (server, client):
        fill(client)
        with pytest.raises(httpx.HTTPError):
            client.post("/models/flights/learn", json=poisonous())
        server.process.join()
        assert server.process.exitcode == -signal.SIGSEGV
        assert start_again(server)
        with server.client() as client:
            for name in ("flights", "trips"):
                assert client.get(f"/models/{name}").json()["events"] == 40
                assert client.post(f"/models/{name}/learn", json=events(50)).json()["learned"] == 10
            facts = client.get("/models/flights").json()
            assert [(one["first"], one["events"]) for one in facts["dead"]] == [(40, 3)]
            assert "Segmentation fault" in facts["dead"][0]["reason"]
            assert "were set aside" in facts["errors"][0]["error"]
            assert client.get("/healthz").json()["status"] == "degraded"
            assert client.get("/models/trips").json()["dead"] == []
            again = client.post("/models/flights/learn", json=poisonous())
            assert again.status_code == 422
            assert "these rows were set aside, since learning them brought the process down" in again.json()["error"]
        server.kill()
        assert start_again(server)
        with server.client() as client:
            assert client.get("/models/flights").json()["events"] == 50
    letter = json.loads((tmp_path / facts["dead"][0]["file"]).read_text())
    assert [row["km"] for row in letter["rows"]] == [POISON] * 3
    assert letter["ids"] == [row["id"] for row in poisonous()]


def test_a_block_that_crashes_only_when_it_is_learned_again(tmp_path):
    with served(tmp_path, first_rows=20) as (server, client):
        fill(client)
        assert client.post("/models/flights/learn", json=poisonous()).json()["learned"] == 3
        assert client.post("/models/flights/learn", json=events(5, seed=9)).json()["learned"] == 5
        server.kill()
        server.crash = crash_in_learning
        assert not start_again(server)
        assert start_again(server)
        with server.client() as client:
            assert client.get("/models/flights").json()["events"] == 45
            assert len(client.get("/models/flights").json()["dead"]) == 1
            assert client.get("/models/trips").json()["events"] == 40


def test_a_block_with_which_the_process_is_killed_is_tried_three_times(tmp_path):
    with served(tmp_path, crash=kill_in_learning, first_rows=20) as (server, client):
        fill(client)
        with pytest.raises(httpx.HTTPError):
            client.post("/models/flights/learn", json=poisonous())
        server.process.join()
        assert [start_again(server) for _ in range(3)] == [False, False, True]
        with server.client() as client:
            assert client.get("/models/flights").json()["dead"][0]["reason"] == "was at work 3 times when the process ended"
            assert client.get("/models/trips").json()["events"] == 40


def test_a_snapshot_that_crashes_is_set_aside_for_the_one_before(tmp_path):
    with served(tmp_path, first_rows=20, snapshot_seconds=3600.0) as (server, client):
        fill(client)
        for place in range(2):  # a snapshot at every stop
            client.post("/models/flights/learn", json=events(10, seed=place + 1))
            server.stop()
            server.crash = crash_in_reading if place else None
            assert start_again(server) == (not place)
            client.base_url = server.address
        assert start_again(server)
        with server.client() as client:
            facts = client.get("/models/flights").json()
            assert facts["events"] == 60
            assert "snapshot 0000000000000060.kern brought the process down" in facts["errors"][0]["error"]
            assert client.post("/models/flights/learn", json=events(10, seed=2)).json()["learned"] == 0


def crashed_at(folder, what, thread=5, crash="Fatal Python error: Segmentation fault"):
    """Leave a folder as a process does that has crashed."""
    held = {"model": 1, "what": what, "thread": 5, "deaths": 0}
    (folder / "attempt").write_text(json.dumps(held) + "\n")
    (folder / "fault").write_text(f"{crash}\n\nCurrent thread 0x{thread:016x} (most recent call first):\n")


@pytest.mark.parametrize("what", ["another thread", "killed", "damaged"])
def test_a_block_is_not_blamed_for_what_others_did(start, tmp_path, what):
    service = start()
    send(service, events(60), 10)
    expected = contents_of(service, "flights")
    abandon(service)
    crashed_at(tmp_path / "service", "block 30", thread=6 if what == "another thread" else 5)
    if what != "another thread":
        (tmp_path / "service/fault").unlink()
    if what == "damaged":
        (tmp_path / "service/attempt").write_bytes(b'{"model": 1, "what": "blo\xff\0')
    again = start()
    assert contents_of(again, "flights") == expected
    assert again.health() == {"status": "ok"}


def test_requests_that_were_learned_with_others_may_be_sent_again_and_are_learned_alone(start, tmp_path):
    service = start()
    send(service, events(40), 40)
    requests = [events(3, seed=seed) for seed in (1, 2)]
    with service.jobs._changed:  # so that they arrive at the same time
        futures = [service.learn("flights", rows) for rows in requests]
    for future in futures:
        assert future.result()["learned"] == 3
    abandon(service)
    crashed_at(tmp_path / "service", "block 40")
    again = start()
    assert again.facts(again.models["flights"])["dead"][0]["events"] == 6
    assert again.models["flights"].published.events == 40
    jobs = Jobs(rows=100, bytes=100)
    for rows in requests:
        jobs.put(Job("flights", rows))
    assert len(jobs.take(100, again._is_risky)) == 1
    for rows in requests:
        assert again.learn("flights", rows).result()["learned"] == 3


def test_a_model_that_crashes_again_and_again_learns_no_more(tmp_path):
    dead = DeadLetters(tmp_path / "dead")
    blocks = [Block({"km": np.array([float(place)])}, ["late"], (1,)) for place in range(STRIKES)]
    for place, block in enumerate(blocks):
        dead.check(1, block)
        dead.add(1, place, block, ["a"], "brought the process down")
        with pytest.raises(Refused, match="brought the process down"):
            dead.check(1, block)
    again = DeadLetters(tmp_path / "dead")
    other = Block({"km": np.array([9.0])}, ["late"], (1,))
    with pytest.raises(Refused, match="learns no more"):
        again.check(1, other)
    again.check(2, blocks[0])
