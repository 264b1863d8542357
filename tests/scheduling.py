"""Which tests the same process runs: all of a method, so that it is compiled once, and otherwise all of a file.

Two processes that meet a function at the same time both compile it, and each makes its own of what a file's tests share.
xdist's own marks for this (``--dist loadgroup``) have no effect with pytest 9.2, which no longer reads what they change.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

from kernling import registry

METHOD_OF = {estimator: entry.name for entry in registry.METHODS.values() for estimator in entry.estimators}
NAMED = re.compile(rf"\[.*?(?<![A-Za-z])({'|'.join(METHOD_OF)})(?![A-Za-z])")
PLACES = {name: place for place, name in enumerate(registry.METHODS)}


def scope_of(nodeid: str) -> str:
    """The method whose estimator is among a test's parameters, or that its file is about; else the file."""
    path = PurePosixPath(nodeid.split("::")[0])
    named = NAMED.search(nodeid)
    if named:
        return METHOD_OF[named[1]]
    method = path.stem.removeprefix("test_")
    return method if path.parent.name in ("methods", "baselines") and method in PLACES else str(path)


def turn_of(nodeid: str) -> tuple[int, int]:
    """What sorts tests: methods in the registry's order, whose tests take longest, then the others, and examples at the end."""
    scope = scope_of(nodeid)
    return (0, PLACES[scope]) if scope in PLACES else (2 if scope.startswith("src/") else 1, 0)


class ByMethod(LoadScopeScheduling):
    """Gives a process the next tests of one scope, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """How many tests a process has still to run; it is asked after each, so scopes that are done are forgotten."""
        for scope in [scope for scope, tests in workload.items() if all(tests.values())]:
            del workload[scope]
        return super()._pending_of(workload)
