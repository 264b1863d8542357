"""Services in processes of their own, which tests can end as they like."""

import multiprocessing
import os
import random
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

import kernling as kl
from kernling.serve.journal import DEFINITION, block_of, blocks, definition_of
from kernling.serve.live import LiveModel, Traits
from kernling.serve.log import Log
from kernling.serve.run import serve
from kernling.serve.settings import Settings

_CONTEXT = multiprocessing.get_context("forkserver")  # whose processes have imported everything when they begin
_CONTEXT.set_forkserver_preload(["kernling.serve.run", "kernling.methods.avm"])


def _serve(folder, port, options, uncut, crash, sources, sinks, pipe):
    if uncut:
        Log.cut = lambda *_: None  # so that all of it can be learned again
    if crash:
        crash()
    serve(folder, "127.0.0.1", port, settings=Settings(**options), sources=sources, sinks=sinks, tell=pipe.send)


class Server:
    """A service on a free port."""

    def __init__(self, folder: Path, uncut: bool = False, crash=None, sources=(), sinks=(), **options):
        self.folder, self.uncut, self.crash, self.options = folder, uncut, crash, options
        self.sources, self.sinks = sources, sinks
        self.start()

    def start(self, port: int = 0) -> None:
        """Start it, for the first time or again."""
        there, here = _CONTEXT.Pipe()
        given = (self.folder, port, self.options, self.uncut, self.crash, self.sources, self.sinks, here)
        self.process = _CONTEXT.Process(target=_serve, args=given, daemon=True)
        self.process.start()
        here.close()
        self.address = there.recv().split()[-1]

    def kill(self) -> None:
        """End it without a warning."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> int:
        """Ask it to stop; returns its exit code."""
        self.process.terminate()
        self.process.join(60)
        return self.process.exitcode

    def client(self, **options) -> httpx.Client:
        """Return a client for it."""
        return httpx.Client(base_url=self.address, timeout=60.0, **options)


def events(n, seed=0, ids=True):
    """Rows with a number, a text and a boolean, whose label follows from them."""
    rng = np.random.default_rng(seed)
    found = []
    for place in range(n):
        km, city = round(float(rng.normal()), 3), str(rng.choice(["Oslo", "Rome"]))
        late = (km > 0.0) == (city == "Oslo")
        row = {"km": km, "city": city, "rush": bool(rng.random() < 0.5), "target": "late" if late else "on time"}
        found.append(row | ({"id": f"{seed}-{place}"} if ids else {}))
    return found


def send(service, rows, size, name="flights"):
    """Learn rows in requests of this size, each after the one before."""
    for first in range(0, len(rows), size):
        service.learn(name, rows[first : first + size]).result()


def blocks_of(folder: Path, number: int = 1):
    """The blocks of a model in the journal of a folder, with the number of events before and after them and their ids."""
    return [(one.first, one.end, *block_of(one.read())) for one in blocks(Log(folder / "journal").scan(), number)]


def learned_again(folder, gone=None):
    """The model that learns the whole journal, without one of its blocks, in a process that never died; and all ids."""
    own = (one for one in Log(folder / "journal").scan() if one.kind == DEFINITION and one.model == 1)
    defined = max(own, key=lambda one: one.first)
    _, spec, traits, *_ = definition_of(defined.read())
    model = LiveModel(1, "m", spec, Traits.from_plain(traits), Settings())
    known = []
    for first, end, block, ids in blocks_of(folder):
        if first != gone:
            model.learn(end, block)
            known += ids
    return model.published, known


def abandon(service):
    """Leave a service as a crash would: nothing is saved."""
    service._snapshot = lambda model: None
    service.stop()


def contents(model):
    """A model as plain numbers, to be compared bit by bit; the bytes of files differ in the order of their header."""
    held = model.to_contents()
    return held.header, {name: array.tobytes() for name, array in held.arrays.items()}


def contents_of(service, name):
    """A model of a service as plain numbers, and its progress."""
    state = service.models[name].published
    return *contents(state.model), state.progress.to_plain(), state.position


def model_of(content: bytes, folder: Path):
    """The model of a file's bytes."""
    path = folder / "model.kern"
    path.write_bytes(content)
    return kl.load(path)


@contextmanager
def served(folder: Path, **options):
    """A server, and a client for it, that end with the block."""
    server = Server(folder, **options)
    try:
        with server.client() as client:
            yield server, client
    finally:
        if server.process.is_alive():
            server.kill()


class Removed:
    """Models of a server that is killed while one of them is deleted or renamed, and what they have to know."""

    def __init__(self, server):
        self.server, self.rows, self.chance, self.turns = server, {}, random.Random(0), 0
        self.answered = {"delete": 0, "rename": 0}

    def turn(self):
        """Make a model, delete or rename it, kill the server meanwhile and start it again; then look at all models."""
        name, new, rows = f"m{self.turns}", f"new{self.turns}", events(self.chance.randrange(10, 60), seed=self.turns)
        self.turns += 1
        with self.server.client() as client:
            client.put(f"/models/{name}", json={"estimator": "AVMClassifier", "parameters": {"calibrate": True}})
            assert client.post(f"/models/{name}/learn", json=rows).json()["learned"] == len(rows)
        self.rows[name] = rows
        kind, answers = self.chance.choice(["delete", "rename"]), []
        with self.server.client() as client:  # which takes longer to make than the answer
            asking = threading.Thread(target=self.ask, args=(client, kind, name, new, answers))
            asking.start()
            time.sleep(self.chance.uniform(0.0, 0.06))
            self.server.kill()
            asking.join()
        self.server.start()
        self.answered[kind] += len(answers)
        with self.server.client() as client:
            self.compare(client, kind, name, new, bool(answers))

    def ask(self, client, kind, name, new, answers):
        """Ask for it; what was answered before the kill is kept."""
        try:
            if kind == "delete":
                found = client.delete(f"/models/{name}")
            else:
                found = client.patch(f"/models/{name}", json={"name": new})
            answers.append(found.raise_for_status())
        except httpx.TransportError:
            pass

    def compare(self, client, kind, name, new, is_answered):
        """What was answered has happened, and otherwise all of it or nothing."""
        found = {one["name"] for one in client.get("/models").json()}
        if kind == "delete" and name not in found:
            rows = self.rows.pop(name)
            assert client.post(f"/models/{name}/learn", json=rows).json()["learned"] == len(rows)  # ids are forgotten
            self.rows[name] = rows
        elif kind == "rename" and new in found:
            self.rows[new] = self.rows.pop(name)
        else:
            assert not is_answered, (kind, name)
        assert client.get("/healthz").json()["status"] == "ok"
        known = {one["name"]: one for one in client.get("/models").json()}
        assert self.rows.keys() <= known.keys()
        for one, rows in self.rows.items():
            facts = client.get(f"/models/{one}").json()
            assert facts.get("events", 0) + facts.get("collected", 0) == len(rows), one
        latest = next(reversed(self.rows))
        assert client.post(f"/models/{latest}/learn", json=self.rows[latest]).json()["learned"] == 0
        if len(self.rows) > 8:
            first = next(iter(self.rows))
            assert client.delete(f"/models/{first}").json()["deleted"] == len(self.rows.pop(first))
