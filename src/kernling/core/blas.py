"""SciPy's BLAS and LAPACK, and a limit of one thread while our code runs.

Several BLAS threads split a sum differently than one does, so a model's last digits would depend on the machine, and our
products are too small to gain by them.  ``one_thread`` limits every BLAS library of the process to one thread, as a decorator
or in a ``with`` statement.  Entries of each Python thread are counted: the first of a thread sets the limit, and the last of
all restores the user's setting, so nesting costs almost nothing.  Single events call no BLAS and need no guard, except the one
that completes a mini-batch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

from scipy.linalg import blas as blas
from scipy.linalg import lapack as lapack
from threadpoolctl import ThreadpoolController


class _Library(NamedTuple):
    """A BLAS library: its number of threads, and the function that sets it."""

    threads: Callable[[], int]
    set: Callable[[int], Any]


@cache
def _libraries() -> tuple[list[_Library], list[_Library]]:
    """Return the BLAS libraries with one setting for the process, and those with a setting for each thread.

    NumPy and SciPy may each have their own library.
    """
    shared: list[_Library] = []
    by_thread: list[_Library] = []
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            with_openmp = getattr(library, "threading_layer", None) == "openmp"
            (by_thread if with_openmp else shared).append(_library(library, with_openmp))
    return shared, by_thread


def _library(found: Any, with_openmp: bool) -> _Library:
    """Return OpenBLAS's own functions, if they can be found: those around them take ten times longer."""
    symbol: Callable = getattr(found, "_get_symbol", lambda name: None)
    threads, put = symbol("openblas_get_num_threads"), symbol("openblas_set_num_threads")
    if with_openmp or threads is None or put is None:
        return _Library(found.get_num_threads, partial(_set, found))
    return _Library(threads, put)


def _set(library: Any, threads: int) -> None:
    # Newer versions of threadpoolctl let one Python thread control OpenBLAS and silently ignore the others.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


class _Limit:
    """One thread for some libraries, and the settings that they had before."""

    def __init__(self, by_thread: int):
        self.by_thread = by_thread
        self.settings: list[tuple[_Library, int]] = []  # of libraries that had more than one thread

    def begin(self) -> None:
        for library in _libraries()[self.by_thread]:
            if (threads := library.threads()) != 1:
                self.settings.append((library, threads))
                library.set(1)

    def restore(self) -> None:
        for library, threads in self.settings:
            library.set(threads)
        self.settings.clear()


_NO_LIMIT = nullcontext()


class _OneThread(ContextDecorator):
    """A reentrant context manager and decorator, shared by all Python threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depths: dict[int, int] = {}  # of each thread inside
        self._shared = _Limit(0)
        self._threads = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_child)

    @property
    def _own(self) -> _Limit:
        """Return the limit of this thread."""
        try:
            return self._threads.limit
        except AttributeError:
            self._threads.limit = _Limit(1)
            return self._threads.limit

    def where_needed(self) -> AbstractContextManager:
        """Return this limit, or one that does nothing and takes less time, while all libraries have one thread anyway."""
        shared, by_thread = _libraries()
        if self._shared.settings or by_thread:
            return self
        for library in shared:
            if library.threads() != 1:
                return self
        return _NO_LIMIT

    def _start_child(self) -> None:
        """Reset in a forked process, which has only the thread that forked."""
        me = threading.get_ident()
        self._lock = threading.Lock()
        self._depths = {me: self._depths[me]} if me in self._depths else {}
        if not self._depths:
            self._shared.restore()

    def __enter__(self) -> None:
        me = threading.get_ident()
        depth = self._depths.get(me, 0)
        try:
            if depth == 0:
                with self._lock:
                    self._depths[me] = 1
                    self._shared.begin()
                self._own.begin()
            else:
                self._depths[me] = depth + 1
        except BaseException:  # such as that of a signal handler
            self._return_to(depth)
            raise

    def __exit__(self, *_error: object) -> None:
        depth = self._depths[threading.get_ident()] - 1
        try:
            self._return_to(depth)
        except BaseException:
            self._return_to(depth)
            raise

    def _return_to(self, depth: int) -> None:
        """Leave all but the first entries of this thread; doing it again changes nothing."""
        me = threading.get_ident()
        if depth:
            self._depths[me] = depth
            return
        self._own.restore()
        with self._lock:
            self._depths.pop(me, None)
            if not self._depths:
                self._shared.restore()


one_thread = _OneThread()
