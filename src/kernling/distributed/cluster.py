"""Where the work is done: a cluster that is there, or one on this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def need_distributed() -> Any:
    """dask.distributed, or an error that says how to get it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("this needs dask.distributed: pip install 'kernling[dask]'") from error
    return distributed


@contextmanager
def connected(where: Any) -> Iterator[Any]:
    """A client of a cluster: one that is given, of the scheduler at an address, or of "local:2", two processes here.

    Examples
    --------
    >>> from kernling.distributed import connected
    >>> with connected("local:1") as client:
    ...     print(client.submit(sum, [1, 2]).result())
    3
    """
    distributed = need_distributed()
    if not isinstance(where, str):
        yield where
        return
    if not where.startswith("local:"):
        if "://" not in where:
            raise ValueError(f"a cluster is 'local:N', N processes here, or an address such as tcp://host:8786, not {where!r}")
        with distributed.Client(where) as client:
            yield client
        return
    count = where.removeprefix("local:")
    if not count.isdigit() or int(count) < 1:
        raise ValueError(f"{where!r} must name a number of processes, such as 'local:2'")
    with (
        distributed.LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(_undisturbed())
        yield client


def _undisturbed() -> Any:
    """Makes workers here ignore Ctrl-C, which a terminal sends to them too: they still hold what is merged then."""

    class Undisturbed(need_distributed().WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Undisturbed()
