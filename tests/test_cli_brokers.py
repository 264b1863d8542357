"""kernling run redis://...: rows of a stream that goes on, each learned once over runs that continue each other."""

import json
import subprocess
import sys

import pytest

from brokering import Kafka, Redis
from kernling import models
from kernling.brokers import Address
from kernling.io import stream


def rows(n, first=0):
    found = []
    for place in range(first, first + n):
        a, b = place % 7 - 3.0, place % 5 - 2.0
        found.append({"a": a, "b": b, "id": place, "target": "yes" if a * b > 0 else "no"})
    return found


@pytest.mark.parametrize("kind", ["redis", pytest.param("kafka", marks=pytest.mark.long)])
def test_a_stream_is_learned_in_parts_that_continue_each_other(kind, tmp_path):
    broker = Redis(tmp_path / "redis") if kind == "redis" else Kafka()
    try:
        sent = rows(500)
        sent[100:100] = ["{", {"id": 7, "target": "no"}]  # neither is a row
        broker.send("flights", sent, **({} if kind == "redis" else {"partition": 0}))
        model = tmp_path / "model.kern"
        for count, events, more in ((180, 182, ()), (320, 502, ("--resume", str(model)))):
            command = ["run", broker.url("flights"), "--rows", str(count), "--save", str(model), "--learner", "avm", *more]
            done = subprocess.run([sys.executable, "-m", "kernling", *command], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            assert ("are left out" in done.stderr) == (not more)
            offsets = models.read(model).place["offsets"][str(Address.parse(broker.url("flights")))]
            assert offsets["count" if kind == "redis" else "0"] == events
    finally:
        broker.stop()
    assert models.load(model).t_ == 500


def test_no_client_is_imported_without_its_url():
    """Nor are the parts that feed a service."""
    program = """
import sys, json
import kernling.io, kernling.cli.learn, kernling.cli.serve, kernling.brokers
import kernling.serve.run
print(json.dumps([name for name in sys.modules if name.split('.')[0] in ("redis", "hiredis", "confluent_kafka")
    or name in ("kernling.brokers.redis_streams", "kernling.brokers.kafka_topics", "kernling.serve.feeding")]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://localhost", "must name a host and a stream"),
        ("redis:///flights", "must name a host and a stream"),
        ("redis://localhost/flights?start=middle", "start must be one of"),
        ("redis://localhost/flights?group=night", "need a journal"),
    ],
)
def test_urls_that_name_nothing_are_refused(url, message):
    with pytest.raises(ValueError, match=message):
        stream(url)
