"""Connection to a running cluster, or start of one on this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..extras import need

# For Dask's page, which is not shown, each worker would sample its stack a hundred times a second, and each process its event
# loop's delay fifty times: a tenth of the time of learning with two workers.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}


def need_distributed() -> Any:
    """Import dask.distributed, or raise an error that says how to install it."""
    return need("this needs dask.distributed", "dask", "distributed")


@contextmanager
def connected(where: Any) -> Iterator[Any]:
    """Yield a client: the given one, one for the scheduler at an address, or one for "local:2", two processes on this machine.

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
            raise ValueError(f"a cluster must be 'local:N' (N processes) or an address such as tcp://host:8786, not {where!r}")
        with distributed.Client(where) as client:
            yield client
        return
    count = where.removeprefix("local:")
    if not count.isdigit() or int(count) < 1:
        raise ValueError(f"{where!r} must name a number of processes, such as 'local:2'")
    from dask import config

    with config.set(QUIET):
        cluster = distributed.LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        client.register_plugin(_undisturbed())
        yield client


def _undisturbed() -> Any:
    """Return a plugin that makes local workers ignore Ctrl-C, since their results are still merged."""

    class Undisturbed(need_distributed().WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Undisturbed()
