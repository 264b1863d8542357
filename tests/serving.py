"""Services in processes of their own, which tests can end as they like."""

import multiprocessing
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import httpx

import kernling as kl
from kernling.serve.journal import Journal
from kernling.serve.run import serve
from kernling.serve.settings import Settings

_CONTEXT = multiprocessing.get_context("forkserver")  # whose processes have imported everything when they begin
_CONTEXT.set_forkserver_preload(["kernling.serve.run", "kernling.methods.avm"])


def _serve(folder, port, options, uncut, pipe):
    if uncut:
        Journal.cut = lambda *_: None  # so that all of it can be learned again
    serve(folder, "127.0.0.1", port, settings=Settings(**options), tell=pipe.send)


class Server:
    """A service on a free port."""

    def __init__(self, folder: Path, uncut: bool = False, **options):
        self.folder, self.uncut, self.options = folder, uncut, options
        self.start()

    def start(self, port: int = 0) -> None:
        """Start it, for the first time or again."""
        there, here = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(self.folder, port, self.options, self.uncut, here), daemon=True)
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


def contents(model):
    """A model as plain numbers, to be compared bit by bit; the bytes of files differ in the order of their header."""
    held = model.to_contents()
    return held.header, {name: array.tobytes() for name, array in held.arrays.items()}


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
