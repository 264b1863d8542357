"""SIGKILL at random moments while events arrive from a broker: each is learned once, by nothing but the offsets."""

import ctypes
import random
import signal
import threading
import time

import httpx
import pytest

from brokering import Kafka, Redis
from kernling.serve.live import LiveModel
from serving import Removed, blocks_of, contents, learned_again, model_of, served

TOPIC = "m"
PIECE, PAUSE = 20, 0.02  # events that are sent at once, and seconds until the next
LATE = 5  # one in so many is sent without its label, which follows
BAD = 50  # one in so many events is bad
POISON = 666.0


class Producer:
    """Sends numbered events in a thread: most without ids, some with late labels, a few of them bad."""

    def __init__(self, broker):
        self.broker = broker
        self.good, self.bad = 0, 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        late = []
        while not self.stopping.wait(PAUSE):
            sent, late = late, []
            for _ in range(PIECE):
                number = self.good
                row, target = {"n": float(number), "b": number % 7 - 3.0}, "yes" if number % 7 > 3 else "no"
                if number % LATE == 3:
                    sent.append(row | {"id": f"late {number}"})
                    late.append({"id": f"late {number}", "target": target})
                else:
                    sent.append(row | {"target": target})
                self.good += 1
                if self.good % BAD == 0:
                    sent.append('{"n": "bad"')
                    self.bad += 1
            self.broker.send(TOPIC, sent)
        self.broker.send(TOPIC, late)


def facts_of(server):
    return httpx.get(f"{server.address}/models/{TOPIC}", timeout=60.0).json()


def wait_for(server, events, seconds):
    """Wait until so many events were learned, or until it takes too long."""
    end = time.monotonic() + seconds
    while (found := facts_of(server)).get("events", 0) < events and time.monotonic() < end:
        time.sleep(0.02)
    return found


def kill_often(broker, folder, kills, removing=False):
    """Kill a service again and again while events arrive; then compare what it has learned with what was sent.

    ``removing``: other models are deleted or renamed meanwhile.
    """
    chance = random.Random(0)
    source = broker.url(TOPIC, estimator="AVMClassifier")
    producer = Producer(broker)
    with served(folder, uncut=True, snapshot_seconds=0.3, sources=[source]) as (server, _):
        removed = Removed(server)
        for _ in range(kills):
            wait_for(server, facts_of(server).get("events", 0) + chance.randrange(10 * PIECE), 30.0)
            time.sleep(chance.uniform(0.0, 0.05))
            if removing:
                removed.turn()
            else:
                server.kill()
                server.start()
        producer.stopping.set()
        producer.thread.join()
        facts = wait_for(server, producer.good, 60.0)
        time.sleep(0.5)  # more would be too many
        assert facts_of(server)["events"] == producer.good
        assert facts["letters"]["count"] == producer.bad
        content = httpx.get(f"{server.address}/models/{TOPIC}/file").content
        assert server.stop() == 0
    dead = len(list((folder / "dead").glob("*")))  # blocks that were learned at three kills in a row
    numbers = [number for *_, block, _ in blocks_of(folder) for number in block.columns["n"].tolist()]
    if not dead:
        assert sorted(numbers) == list(range(producer.good))
        assert contents(learned_again(folder)[0].model) == contents(model_of(content, folder))
    assert set(numbers) == set(range(producer.good))
    return producer.good, producer.bad, dead


@pytest.fixture(params=["redis", pytest.param("kafka", marks=pytest.mark.long)])
def broker(request, tmp_path):
    found = Redis(tmp_path / "redis") if request.param == "redis" else Kafka()
    yield found
    found.stop()


def test_two_kills(broker, tmp_path):
    kill_often(broker, tmp_path / "service", 2)


def test_two_kills_while_other_models_are_deleted_and_renamed(broker, tmp_path):
    kill_often(broker, tmp_path / "service", 2, removing=True)


@pytest.mark.long
def test_fifty_kills_while_other_models_are_deleted_and_renamed(broker, tmp_path):
    good, bad, dead = kill_often(broker, tmp_path / "service", 50, removing=True)
    print(f"{good:,} events and {bad:,} bad ones over 50 kills, {dead} blocks set aside and read again")


@pytest.mark.long
def test_a_hundred_kills(broker, tmp_path):
    good, bad, dead = kill_often(broker, tmp_path / "service", 100)
    print(f"{good:,} events and {bad:,} bad ones over 100 kills, {dead} blocks set aside and read again")


def crash_in_learning():
    """Let this process crash when it learns a certain row."""
    replaying = LiveModel._replaying

    def crashes(self, position, block):
        if POISON in block.columns["n"].tolist():
            ctypes.string_at(0)
        return replaying(self, position, block)

    LiveModel._replaying = crashes


def test_an_event_that_crashes_the_process_is_set_aside_alone(broker, tmp_path):
    """The batch brings the process down, then the event among its events, which are read again one by one; the rest goes on."""
    rows = [{"n": float(place), "b": place % 7 - 3.0, "target": "yes" if place % 7 > 3 else "no"} for place in range(120)]
    source, folder = broker.url(TOPIC, estimator="AVMClassifier"), tmp_path / "service"
    rows[70]["n"] = POISON
    broker.send(TOPIC, rows)
    starts, facts, end = 0, {}, time.monotonic() + 120.0
    with served(folder, uncut=True, crash=crash_in_learning, first_rows=20, sources=[source]) as (server, _):
        while facts.get("events", 0) < len(rows) - 1:
            assert time.monotonic() < end
            try:
                facts = facts_of(server)
                time.sleep(0.1)
            except httpx.HTTPError:
                server.process.join()
                assert server.process.exitcode == -signal.SIGSEGV
                starts += 1
                server.start()
        dead = facts_of(server)["dead"]
        assert facts_of(server)["events"] == len(rows) - 1
    assert starts == 2
    assert [one["events"] for one in dead][-1] == 1
    learned = [number for first, _, block, _ in blocks_of(folder) for number in block.columns["n"].tolist()]
    assert set(learned) == {row["n"] for row in rows}
