"""The service on loopback: events a second, and how long predictions take meanwhile.  Run with python -m benchmarks.serve.

The clients are other processes on the same machine, so that they share its cores with the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time

import httpx
import numpy as np

COLUMNS, ROWS = 20, 100  # of a row, and of a request to learn
CENTRES = 400  # of the clusters that rows come from: points of the model
SPREAD = 0.02
MODELS = {
    "avm": {"estimator": "AVMClassifier", "parameters": {"gamma": 0.05, "delta": 2.0, "random_state": 0}},
    "default": {},
}


class Service:
    """A service in a process of its own, with a folder that is thrown away."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        command = "from kernling.cli import main; main()"
        options = ("serve", "--port", "0", "--data", self.folder.name)
        self.process = subprocess.Popen([sys.executable, "-c", command, *options], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]  # type: ignore[union-attr]

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.folder.cleanup()


def rows(n: int, seed: int) -> list[dict]:
    """Rows of two classes, from clusters that are far from one another."""
    centres = np.random.default_rng(0).normal(size=(CENTRES, COLUMNS))
    rng = np.random.default_rng(seed)
    which = rng.integers(CENTRES, size=n)
    X = centres[which] + SPREAD * rng.normal(size=(n, COLUMNS))
    names = [f"c{place}" for place in range(COLUMNS)]
    return [dict(zip(names, x, strict=True)) | {"target": f"class {w % 2}"} for x, w in zip(X.tolist(), which, strict=True)]


def bodies(seed: int, count: int) -> list[bytes]:
    """Requests of 100 rows each."""
    found = rows(ROWS * count, seed)
    return [json.dumps(found[first : first + ROWS]).encode() for first in range(0, len(found), ROWS)]


async def learn(address: str, name: str, seconds: float, rate: float | None, clients: int) -> dict[str, float]:
    """Send rows as fast as they are taken, or at a rate of events a second."""
    requests = bodies(os.getpid(), 200)
    sent = refused = 0
    begin = time.perf_counter()

    async def client(first: int, http: httpx.AsyncClient) -> None:
        nonlocal sent, refused
        place = first
        while (now := time.perf_counter()) < begin + seconds:
            due = begin + place * ROWS / rate if rate else now
            if due > now:
                await asyncio.sleep(due - now)
            answer = await http.post(f"{address}/models/{name}/learn", content=requests[place % len(requests)])
            sent += answer.status_code == 200
            refused += answer.status_code == 429
            place += clients

    async with httpx.AsyncClient(timeout=60.0) as http:
        await asyncio.gather(*(client(first, http) for first in range(clients)))
    return {"events": sent * ROWS / (time.perf_counter() - begin), "refused": refused}


async def predict(address: str, name: str, seconds: float, rate: float) -> dict[str, float]:
    """Ask for single rows at a rate, each when it is due, whether or not the ones before were answered."""
    found = [json.dumps({key: value for key, value in row.items() if key != "target"}).encode() for row in rows(500, 1)]
    times: list[float] = []

    async def one(place: int, due: float, http: httpx.AsyncClient) -> None:
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        answer = await http.post(f"{address}/models/{name}/predict", content=found[place % len(found)])
        assert answer.status_code == 200, answer.text
        times.append(time.perf_counter() - due)

    begin = time.perf_counter() + 0.2
    async with httpx.AsyncClient(timeout=60.0) as http:
        await asyncio.gather(*(one(place, begin + place / rate, http) for place in range(int(seconds * rate))))
    return {f"p{share:g}": 1e3 * float(np.percentile(times, share)) for share in (50, 99, 99.9)}


def _run(task, arguments, results) -> None:
    results.put(asyncio.run(task(*arguments)))


def aside(task, *arguments):
    """Run a client in a process of its own; returns what gives its result."""
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
        fast = aside(learn, service.address, name, seconds, None, 8)()
        print(f"  learning alone, requests of {ROWS} rows: {fast['events']:,.0f} events a second")
        alone = aside(predict, service.address, name, seconds, predictions)()
        learning = aside(learn, service.address, name, seconds + 1.0, rate, 8)
        beside = aside(predict, service.address, name, seconds, predictions)()
        learned = learning()
        for what, times in (("alone", alone), (f"while {learned['events']:,.0f} events a second are learned", beside)):
            shown = ", ".join(f"{share} {value:.1f} ms" for share, value in times.items())
            print(f"  predicting single rows, {predictions:g} requests a second, {what}: {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=10_000.0, help="events a second that are learned beside predictions")
    parser.add_argument("--predictions", type=float, default=300.0, help="requests a second")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    for chosen in given.models:
        measure(chosen, given.seconds, given.rate, given.predictions)
