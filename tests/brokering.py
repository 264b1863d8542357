"""Brokers for tests: a real redis-server, and librdkafka's mock cluster in a process of its own."""

import ctypes
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

MOCK = Path(__file__)
UNKNOWN_TOPIC = 3  # Kafka's code of a topic that is not there


class Redis:
    """A redis-server on a free port of the loopback interface, which can be stopped and started again with what it had."""

    def __init__(self, folder: Path):
        self.library = pytest.importorskip("redis", reason="needs redis: pip install 'kernling[redis]'")
        if shutil.which("redis-server") is None:
            pytest.skip("needs redis-server: apt install redis-server")
        self.folder = folder
        folder.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start it, for the first time or again."""
        options = f"--port {self.port} --bind 127.0.0.1 --dir {self.folder} --save '' --appendonly yes".split(" ")
        options[options.index("''")] = ""
        self.process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        self.client = self.library.Redis(port=self.port, protocol=2)
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            try:
                self.client.ping()
                return
            except self.library.RedisError:
                time.sleep(0.02)
        raise AssertionError("redis-server did not answer")

    def stop(self) -> None:
        """Stop it; what was written is kept."""
        self.client.close()
        self.process.terminate()
        self.process.wait(20)

    def url(self, topic: str, **options: str) -> str:
        """The URL of a stream."""
        return _url("redis", f"127.0.0.1:{self.port}", topic, options)

    def send(self, topic: str, events) -> None:
        """Append events, objects or texts."""
        pipe = self.client.pipeline(transaction=True)  # all of them are there at once
        for event in events:
            pipe.xadd(topic, {"event": event if isinstance(event, str | bytes) else json.dumps(event)})
        pipe.execute()

    def read(self, topic: str):
        """All entries of a stream, as objects."""
        return [json.loads(fields[b"event"]) for _, fields in self.client.xrange(topic)]


class Kafka:
    """A mock cluster; its topics have four partitions."""

    def __init__(self):
        self.library = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install 'kernling[kafka]'")
        self.process = subprocess.Popen([sys.executable, str(MOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            pytest.skip("librdkafka's mock cluster cannot be had from this confluent-kafka")
        self.producer = self.library.Producer({"bootstrap.servers": self.address, "log_level": 0})

    def tell(self, *words) -> None:
        """Give a command to the process: see _mock."""
        print(*words, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"

    def stop(self) -> None:
        """End the cluster."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def url(self, topic: str, **options: str) -> str:
        """The URL of a topic."""
        return _url("kafka", self.address, topic, options)

    def send(self, topic: str, events, partition=None) -> None:
        """Append events, objects or texts: to the partitions in turn, unless one is named."""
        for place, event in enumerate(events):
            text = event if isinstance(event, str | bytes) else json.dumps(event)
            while True:
                try:
                    self.producer.produce(topic, text, partition=place % 4 if partition is None else partition)
                    break
                except BufferError:
                    self.producer.poll(0.1)
        assert self.producer.flush(30) == 0

    def read(self, topic: str):
        """All messages of a topic, as objects."""
        from kernling.brokers import Address, open_source

        source = open_source(Address.parse(self.url(topic)))
        source.begin({})
        found = []
        while batch := source.read(1000, 1.0).events:
            found += map(json.loads, batch)
        source.close()
        return found


def _url(scheme, host, topic, options):
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{scheme}://{host}/{topic}{'?' * bool(query)}{query}"


def _mock():
    """Hold a mock cluster until the end of standard input; commands make its broker or a topic go away and come back."""
    import confluent_kafka

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    place = Path(confluent_kafka.__file__).parent
    found = glob.glob(str(place.with_name("confluent_kafka.libs") / "librdkafka*"))
    library = ctypes.CDLL(found[0] if found else "librdkafka.so.1")
    for name in ("rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    text = ctypes.create_string_buffer(512)
    handle = ctypes.c_void_p(library.rd_kafka_new(0, None, text, 512))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(handle, 1))
    print(library.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["down"]:
                library.rd_kafka_mock_broker_set_down(cluster, 1)
            case ["up"]:
                library.rd_kafka_mock_broker_set_up(cluster, 1)
            case ["gone", topic]:
                library.rd_kafka_mock_topic_set_error(cluster, topic.encode(), UNKNOWN_TOPIC)
            case ["back", topic]:
                library.rd_kafka_mock_topic_set_error(cluster, topic.encode(), 0)
        print("done", flush=True)


if __name__ == "__main__":
    _mock()
