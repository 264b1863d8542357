"""SIGKILL at random moments while events arrive from a broker: each is learned once, by nothing but the offsets."""

import random
import threading
import time

import httpx
import pytest

from brokering import Kafka, Redis
from serving import blocks_of, contents, learned_again, model_of, served

TOPIC = "m"
PIECE, PAUSE = 20, 0.02  # events that are sent at once, and seconds until the next
LATE = 5  # one in so many is sent without its label, which follows
BAD = 50  # one in so many events is bad


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


def kill_often(broker, folder, kills):
    """Kill a service again and again while events arrive; then compare what it has learned with what was sent."""
    chance = random.Random(0)
    source = broker.url(TOPIC, estimator="AVMClassifier")
    producer = Producer(broker)
    with served(folder, uncut=True, snapshot_seconds=0.3, sources=[source]) as (server, _):
        for _ in range(kills):
            wait_for(server, facts_of(server).get("events", 0) + chance.randrange(10 * PIECE), 30.0)
            time.sleep(chance.uniform(0.0, 0.05))
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


@pytest.fixture(params=["redis", "kafka"])
def broker(request, tmp_path):
    found = Redis(tmp_path / "redis") if request.param == "redis" else Kafka()
    yield found
    found.stop()


def test_three_kills(broker, tmp_path):
    kill_often(broker, tmp_path / "service", 3)


@pytest.mark.long
def test_a_hundred_kills(broker, tmp_path):
    good, bad, dead = kill_often(broker, tmp_path / "service", 100)
    print(f"{good:,} events and {bad:,} bad ones over 100 kills, {dead} blocks set aside and read again")
