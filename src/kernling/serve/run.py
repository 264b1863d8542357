"""The server process: sockets, signals and limits."""

from __future__ import annotations

import errno
import gc
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from ..core.blas import one_thread
from .app import create_app
from .demo import Demo
from .guard import find_token
from .heads import HEAD_BYTES, PROTOCOL
from .locking import usable
from .service import Service
from .settings import Settings
from .stopping import Stopping
from .warmup import warm_up
from .webhook import Address, Webhook

GRACE = 10  # seconds for open requests when the service stops
SWITCH = 0.0001  # seconds after which a computing thread yields to others: Python's default lets predictions wait for 0.005
FILES = 65_536


class Server(uvicorn.Server):
    """A server whose event streams end when a signal stops it, and that closes connections without a whole request head."""

    def __init__(self, config: uvicorn.Config, stopping: Stopping, head_seconds: float):
        super().__init__(config)
        self.stopping, self.head_seconds = stopping, head_seconds
        self._quiet: dict[Any, tuple[Any, float]] = {}  # connections: their last request, and since when there is no other

    async def on_tick(self, counter: int) -> bool:
        """Look for connections to close; uvicorn calls this ten times a second."""
        if counter % 10 == 0:
            self._close_quiet()
        return await super().on_tick(counter)

    def _close_quiet(self) -> None:
        now, before, self._quiet = time.monotonic(), self._quiet, {}
        for connection in self.server_state.connections:
            last = getattr(connection, "cycle", self)  # None before the first request
            if last is None or getattr(last, "response_complete", False):
                known, since = before.get(connection, (self, now))
                self._quiet[connection] = last, since if known is last else now
                if now - self._quiet[connection][1] > self.head_seconds:
                    connection.transport.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections when their requests have been answered; bodies that are still arriving are not waited for."""
        self.stopping.hurry()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop the server, immediately if Ctrl-C is pressed twice.

        Unlike uvicorn's method, it does not raise the signal again at the end: snapshots are written after that.
        """
        self.stopping.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(  # the arguments are options of the command
    folder: Path,
    host: str,
    port: int,
    *,
    token_file: Path | None = None,
    settings: Settings | None = None,
    demo: bool = False,
    sources: Sequence[str] = (),
    sinks: Sequence[str] = (),
    alarm_url: str | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve the models in a folder until a signal arrives; accepted requests are finished and saved.

    Events are also read from the URLs ``sources``, and predictions are written to ``sinks``: one for each, or one for all.
    Alarms are posted to ``alarm_url``.
    """
    token = find_token(token_file, host)
    posts_to = None if alarm_url is None else Address.of(alarm_url)
    sys.setswitchinterval(SWITCH)
    _allow_many_files()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with one_thread, _listening(host, port, family) as listener:
        service = _opened(folder, settings)
        service.webhook = None if posts_to is None else Webhook(posts_to, service.remember_error)
        stopping = Stopping()
        demonstration = Demo(service, sources[0] if sources else None) if demo else None
        feeds: list[Any] = []
        try:
            feeds = _fed(service, sources, sinks)
            warm_up(service)
            config = _configured(create_app(service, token, stopping))
            gc.freeze()  # what was loaded by now stays: the collector need not look at it again while predictions wait
            for feed in feeds:
                feed.start()
            count = len(service.models)
            server = Server(config, stopping, service.settings.request_seconds)
            _stop_on_sigterm(server)
            tell(f"kernling serves {count} model{'s' * (count != 1)} on http://{_shown(host)}:{listener.getsockname()[1]}")
            server.run(sockets=[listener])
        finally:
            if demonstration:
                demonstration.stop()
            for feed in feeds:
                feed.stop()
            service.stop()


def _configured(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PROTOCOL,
        h11_max_incomplete_event_size=HEAD_BYTES,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
    )


def _stop_on_sigterm(server: Server) -> None:
    """Let SIGTERM stop the server also before uvicorn listens to signals, and change nothing while models are saved after it.

    uvicorn puts back what it found, and Python's default would end the process in the middle of a snapshot.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, server.handle_exit)


def _listening(host: str, port: int, family: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(f"port {port} of {host} is in use: name another one with --port, or 0 for any that is free") from None


def _opened(folder: Path, settings: Settings | None) -> Service:
    with usable(folder):
        return Service(folder, settings, report_crashes=True)


def _fed(service: Service, sources: Sequence[str], sinks: Sequence[str]) -> list[Any]:
    """Return the feeds of a service, which are not imported if there are none."""
    if not sources and not sinks:
        return []
    from .feeding import Feed

    if (len(sinks) > 1 and len(sinks) != len(sources)) or (sinks and not sources):
        raise ValueError(f"there must be one --to, or one for each of the {len(sources)} --from, not {len(sinks)}")
    each: Sequence[str | None] = sinks if len(sinks) > 1 else [*(sinks or (None,))] * len(sources)
    return [Feed(service, source, sink) for source, sink in zip(sources, each, strict=True)]


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _allow_many_files() -> None:
    """Raise the limit of open files, of which every connection is one, as far as the system allows."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        if soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
