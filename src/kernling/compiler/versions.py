"""The versions of Numba and llvmlite whose private parts this package uses: those that the tests were run with.

``tests/versions.py`` runs them again, with the oldest and the newest version of each dependency.  Last run with Python 3.11,
on the tests of the compiler, core/ and methods/: Numba 0.62.1 with llvmlite 0.45.1 and NumPy 2.0.2, and 0.65.1 with 0.47.0 and
2.4.6.
"""

from __future__ import annotations

import re

TESTED = {"numba": ("0.62", "0.69"), "llvmlite": ("0.45", "0.51")}  # from the first on, below the second


def check_versions() -> None:
    """Raise an ImportError if code cannot be compiled with the installed versions."""
    import llvmlite
    import numba

    for library in (numba, llvmlite):
        check_version(library.__name__, library.__version__)


def check_version(name: str, version: str) -> None:
    """Raise an ImportError unless a version is in the tested range.

    >>> check_version("numba", "0.68.1")
    >>> check_version("numba", "0.69.0")
    Traceback (most recent call last):
    ImportError: kernling compiles with numba>=0.62,<0.69, but numba 0.69.0 is installed: pip install 'numba>=0.62,<0.69'
    """
    low, high = TESTED[name]
    if not _numbers(low) <= _numbers(version) < _numbers(high):
        raise ImportError(f"kernling compiles with {name}>={low},<{high}, but {name} {version} is installed: {cure(name)}")


def cure(name: str) -> str:
    """Return the command that installs a tested version."""
    low, high = TESTED[name]
    return f"pip install '{name}>={low},<{high}'"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
