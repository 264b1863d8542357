"""The service on loopback: events per second, and the latency of predictions meanwhile.  Run with python -m benchmarks.serve.

The clients are two other processes on the same machine, one that learns and one that predicts, so they share its cores with
the service.  Predictions are sent at fixed times, whether or not earlier ones have been answered, and their latency counts from
those times.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

COLUMNS, ROWS = 20, 100  # of a row, and of a request to learn
CENTRES = 400  # number of clusters, and of points of the model
SPREAD = 0.02
CLIENTS = 16  # connections of one process
AHEAD = 20_000  # events that are sent before they are learned; the mock cluster keeps 5 MB of a partition
MODELS = {
    "avm": {"estimator": "AVMClassifier", "parameters": {"gamma": 0.05, "delta": 2.0, "random_state": 0}},
    "default": {},
}


class Service:
    """A service in a separate process, with a temporary folder or a given one, which is kept."""

    def __init__(self, *further: str, folder: Any = None) -> None:
        self.is_kept = folder is not None
        self.folder = folder or tempfile.TemporaryDirectory()
        options = ("serve", "--port", "0", "--data", self.folder.name, *further)
        self.process = subprocess.Popen([sys.executable, "-m", "kernling", *options], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]  # type: ignore[union-attr]

    @property
    def megabytes(self) -> float:
        """Current memory of the process."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def seconds(self) -> float:
        """Processor time of the process so far, on all cores."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        if not self.is_kept:
            self.folder.cleanup()


def rows(n: int, seed: int) -> list[dict]:
    """Return rows of two classes, drawn from well separated clusters."""
    centres = np.random.default_rng(0).normal(size=(CENTRES, COLUMNS))
    rng = np.random.default_rng(seed)
    which = rng.integers(CENTRES, size=n)
    X = centres[which] + SPREAD * rng.normal(size=(n, COLUMNS))
    names = [f"c{place}" for place in range(COLUMNS)]
    return [dict(zip(names, x, strict=True)) | {"target": f"class {w % 2}"} for x, w in zip(X.tolist(), which, strict=True)]


def bodies(seed: int, count: int, size: int = ROWS) -> list[bytes]:
    """Return requests of so many rows each."""
    found = rows(size * count, seed)
    return [json.dumps(found[first : first + size]).encode() for first in range(0, len(found), size)]


class Connection:
    """A persistent connection with little overhead, since the client shares the cores with the service."""

    def __init__(self, address: str, path: str):
        place = urlsplit(address)
        self.place = (place.hostname, place.port)
        self.head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: ".encode()

    async def __aenter__(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection(*self.place)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def post(self, body: bytes) -> int:
        """Send a body; return the status of the response."""
        self.writer.write(self.head + str(len(body)).encode() + b"\r\n\r\n" + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self.reader.readexactly(int(length.split(b":")[1]))
        return int(head.split(None, 2)[1])


async def learn(
    address: str, name: str, requests: list[bytes], seconds: float, rate: float | None, size: int = ROWS
) -> dict[str, float]:
    """Send requests of ``size`` rows as fast as they are accepted, or at a given number of events per second."""
    sent = refused = 0
    begin = time.perf_counter()

    async def client(first: int) -> None:
        nonlocal sent, refused
        place = first
        async with Connection(address, f"/models/{name}/learn") as connection:
            while (now := time.perf_counter()) < begin + seconds:
                due = begin + place * size / rate if rate else now
                if due > now:
                    await asyncio.sleep(due - now)
                status = await connection.post(requests[place % len(requests)])
                sent += status == 200
                refused += status == 429
                place += CLIENTS

    await asyncio.gather(*map(client, range(CLIENTS)))
    return {"events": sent * size / (time.perf_counter() - begin), "refused": refused}


async def predict(address: str, name: str, seconds: float, rate: float) -> dict[str, float]:
    """Request predictions of single rows at a constant rate, without waiting for earlier responses."""
    found = [json.dumps({key: value for key, value in row.items() if key != "target"}).encode() for row in rows(500, 1)]
    times: list[float] = []
    free: asyncio.Queue[Connection] = asyncio.Queue()

    async def one(place: int, due: float) -> None:
        connection = await free.get()
        assert await connection.post(found[place % len(found)]) == 200
        times.append(time.perf_counter() - due)
        free.put_nowait(connection)

    async with AsyncExitStack() as stack:
        for _ in range(2 * CLIENTS):
            free.put_nowait(await stack.enter_async_context(Connection(address, f"/models/{name}/predict")))
        begin, tasks = time.perf_counter(), []
        for place in range(int(seconds * rate)):
            due = begin + place / rate
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            tasks.append(asyncio.create_task(one(place, due)))
        await asyncio.gather(*tasks)
    return {f"p{share:g}": 1e3 * float(np.percentile(times, share)) for share in (50, 99, 99.9)}


def _run(task, arguments, results) -> None:
    gc.disable()  # a pause of the client is not one of the service
    results.put(asyncio.run(task(*arguments)))


def aside(task, *arguments):
    """Run a client in a separate process; return a function that waits for its result."""
    results = multiprocessing.Queue()
    process = multiprocessing.Process(target=_run, args=(task, arguments, results))
    process.start()

    def result() -> dict[str, float]:
        found = results.get()
        process.join()
        return found

    return result


def measure(name: str, seconds: float, rate: float, predictions: float) -> None:
    """Print the figures of one model."""
    with Service() as service:
        httpx.put(f"{service.address}/models/{name}", json=MODELS[name]).raise_for_status()
        for body in bodies(0, 40):
            httpx.post(f"{service.address}/models/{name}/learn", content=body, timeout=300.0).raise_for_status()
        facts = httpx.get(f"{service.address}/models/{name}").json()
        print(f"{name}: {facts['estimator']}, {facts['points']} points, {COLUMNS} columns, mistakes {facts['lately']:.1%}")
        for size in (ROWS, 1):
            measure_learning(service, name, size, seconds, rate, predictions)
        times = aside(predict, service.address, name, seconds, predictions)()
        print(f"  predicting single rows, {predictions:g} requests a second, alone: {_shown(times)}")


def measure_learning(service: Service, name: str, size: int, seconds: float, rate: float, predictions: float) -> None:
    """Print how fast requests of so many rows are learned, and how long predictions take meanwhile, at half of that rate."""
    before, requests = service.seconds, bodies(1, 20_000 // size, size)
    fast = aside(learn, service.address, name, requests, seconds, None, size)()
    used = 1e6 * (service.seconds - before) / (fast["events"] * seconds)
    print(
        f"  learning alone, requests of {size} rows from {CLIENTS} clients: {fast['events']:,.0f} events a second, "
        f"{used:.1f} µs of the processor for each"
    )
    learning = aside(learn, service.address, name, requests, seconds + 1.0, min(rate, fast["events"] / 2.0), size)
    times, learned = aside(predict, service.address, name, seconds, predictions)(), learning()
    print(f"  predicting single rows meanwhile, {learned['events']:,.0f} events a second: {_shown(times)}")


def _shown(times: dict[str, float]) -> str:
    return ", ".join(f"{share} {value:.1f} ms" for share, value in times.items())


def soak(minutes: float, rate: float, predictions: float) -> None:
    """Print the memory of a service that learns and predicts, once a minute.

    Predicted rows get no labels, so the maximum number of them is waiting: memory must not depend on the duration.
    """
    with Service("--waiting-rows", "5000") as service:
        name, part, requests = "avm", 60.0, bodies(1, 200)
        httpx.put(f"{service.address}/models/{name}", json=MODELS[name]).raise_for_status()
        for _ in range(max(round(minutes), 1)):
            learning = aside(learn, service.address, name, requests, part, rate)
            aside(predict, service.address, name, part, predictions)()
            learning()
            facts = httpx.get(f"{service.address}/models/{name}", timeout=60.0).json()
            print(
                f"  {facts['events']:>12,} events, {facts['points']} points, {facts['waiting']:,} rows wait: "
                f"{service.megabytes:.1f} MB",
                flush=True,
            )


def broker(kind: str) -> Any:
    """Return a broker of the tests, in a process of its own."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    import brokering

    return brokering.Redis(Path(tempfile.mkdtemp())) if kind == "redis" else brokering.Kafka()


def produce(source: Any, name: str, address: str, seconds: float) -> float:
    """Send events as fast as they are learned, never many ahead; return how many were learned in a second."""
    found = [json.dumps(row).encode() for row in rows(AHEAD, 1)]
    sent, begin, before = 0, time.perf_counter(), httpx.get(f"{address}/models/{name}").json()["events"]
    while (passed := time.perf_counter() - begin) < seconds:
        learned = httpx.get(f"{address}/models/{name}").json()["events"] - before
        if sent - learned < AHEAD // 2:
            source.send(name, found[: AHEAD // 2])
            sent += AHEAD // 2
        else:
            time.sleep(0.05)
    return learned / passed


def measure_source(kind: str, seconds: float) -> None:
    """Print the figures of events that arrive from a broker, each of them a message of its own."""
    source, name = broker(kind), "avm"
    with tempfile.TemporaryDirectory() as path:
        folder = SimpleNamespace(name=path)
        with Service(folder=folder) as service:
            httpx.put(f"{service.address}/models/{name}", json=MODELS[name]).raise_for_status()
            for body in bodies(0, 40):
                httpx.post(f"{service.address}/models/{name}/learn", content=body, timeout=300.0).raise_for_status()
        with Service("--from", source.url(name), folder=folder) as service:
            produce(source, name, service.address, 2.0)
            before = service.seconds
            rate = produce(source, name, service.address, seconds)
            used = 1e6 * (service.seconds - before) / (rate * seconds)
            print(f"{kind}: {rate:,.0f} events a second, one a message, {used:.1f} µs of the processor for each")
    source.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument(
        "--rate",
        type=float,
        default=10_000.0,
        help="events per second that are learned during predictions, at most half of what is possible",
    )
    parser.add_argument("--predictions", type=float, default=300.0, help="requests per second")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--sources", nargs="*", choices=("redis", "kafka"), default=["redis", "kafka"])
    parser.add_argument("--soak", type=float, help="minutes; only measure memory over time")
    given = parser.parse_args()
    if given.soak:
        soak(given.soak, given.rate, given.predictions)
        given.models = given.sources = []
    for chosen in given.models:
        measure(chosen, given.seconds, given.rate, given.predictions)
    for chosen in given.sources:
        measure_source(chosen, given.seconds)
