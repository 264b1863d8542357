"""The contract: which estimator has passed which check, written down by the tests themselves.

A test that goes over estimators carries the mark ``contract``, with the name of its check unless that is a parameter called
``check``; the estimator is found among the test's parameters, as a class or an instance.  The name must be one of ``CHECKS``.

    pytest --contract                     # the default run
    pytest --contract -m long             # the checks that take minutes

write what came out into docs/contract.json, where results of tests that were not run stay as they were, and make
docs/contract.md of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import kernling
from kernling import registry
from kernling.estimators.learner import Learner

DOCS = Path(__file__).parent.parent / "docs"
RESULTS, PAGE = DOCS / "contract.json", DOCS / "contract.md"
WORST_FIRST = ("failed", "expected", "passed", "skipped")
SIGNS = {"failed": "✗", "expected": "(✓)", "passed": "✓", "skipped": "–"}
NOT_RUN = "·"

CHECKS = {
    "oracle": "300 events of several weights agree with a slow reference: outputs before learning, the final function.",
    "bound": "The number of stored points never exceeds the declared bound.",
    "memory": "Once the space is covered, memory does not grow with the stream (unless points do, as published).",
    "chunks": "The model does not depend on the size of chunks, nor on whether events are learned one by one.",
    "block_size": "The block size only affects speed.",
    "pure": "Prediction changes nothing; read-only arrays are accepted and left unchanged.",
    "support": "The output is the kernel with the support vectors, times their coefficients.",
    "interrupted": "Pickled, memory-mapped or saved in mid-stream, a model continues bit for bit.",
    "repeatable": "The same seed gives the same model.",
    "degenerate": "Constant, repeated and zero rows leave everything finite.",
    "before_learning": "predict_then_learn returns what was predicted just before each row was learned.",
    "sample_weight": "A row of weight 0 has no effect; other weights do, also for single events.",
    "float32": "Single precision stays close to double precision.",
    "csr": "CSR rows give the same model as dense rows.",
    "compiled": "Plain Python, without the compiler, gives the same numbers.",
    "scikit_learn": "All of scikit-learn's estimator checks, with default parameters.",
    "river": "All of River's estimator checks, with default parameters, by kernling.compat.to_river.",
    "rows": "Hostile rows: a clear error that changes nothing, or a valid model and finite results.",
    "same_rows": "The same rows in other memory layouts, types, frames and sparse formats give the same results.",
    "targets": "Hostile targets: a clear error that changes nothing, or a valid model.",
    "weights": "Hostile sample weights: a clear error that changes nothing, or a valid model.",
    "events": "Hostile single events and labels: a clear error that changes nothing, or a valid model.",
    "parameters": "Hostile values of every parameter: a clear error that changes nothing, or a valid model.",
    "random_calls": "Random sequences of calls with random settings and hostile input.",
    "forged_files": "Model files with a correct checksum and malicious contents: refused, or a usable model.",
    "false_claims": "Small model files that claim to be huge are refused before memory is allocated.",
    "threads": "Two models that learn in parallel threads are the same as learned one after the other.",
    "soak": "20 million events, unless points grow with them: memory and speed stay constant, running quantities exact.",
}


def estimator_of(item) -> str | None:
    """The name of the registered estimator that a test is about."""
    for value in getattr(getattr(item, "callspec", None), "params", {}).values():
        cls = value if isinstance(value, type) else type(value)
        if isinstance(getattr(cls, "learner", None), Learner):
            return cls.__name__
    return None


def check_of(item) -> str | None:
    """The name of the check that a test makes; None if it is not part of the contract."""
    mark = item.get_closest_marker("contract")
    if mark is None:
        return None
    name = mark.args[0] if mark.args else item.callspec.params["check"].__name__.removeprefix("check_")
    if name not in CHECKS:
        raise pytest.UsageError(f"{item.nodeid}: say in tests/contract.py what the check {name!r} is")
    return name


class Recorder:
    """Gathers results while tests run, in one process or several."""

    def __init__(self):
        self.found: dict[str, dict[str, Counter]] = {}

    def pytest_runtest_logreport(self, report):
        place = dict(report.user_properties).get("contract")
        if place is None or (report.when != "call" and report.passed):
            return
        outcome = "expected" if hasattr(report, "wasxfail") else report.outcome
        estimator, check = place
        self.found.setdefault(estimator, {}).setdefault(check, Counter())[outcome] += 1

    def pytest_sessionfinish(self):
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        for estimator, checks in self.found.items():
            results.setdefault(estimator, {}).update({check: dict(counts) for check, counts in checks.items()})
        known = {name: results[name] for name in estimator_names() if name in results}
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(known))


def estimator_names() -> list[str]:
    """All registered estimators, in the registry's order."""
    return [cls.__name__ for entry in registry.METHODS.values() for cls in entry.classes()]


def rows_of(text: str) -> list[str]:
    """The estimators that a page lists."""
    return re.findall(r"^\| (\w+) \| [^0-9]", text, re.MULTILINE)


def sign(counts: dict[str, int]) -> str:
    """What a cell of the table says."""
    return SIGNS[next(outcome for outcome in WORST_FIRST if counts.get(outcome))] if counts else NOT_RUN


def page(results: dict[str, dict[str, dict[str, int]]]) -> str:
    """The table of every estimator against every check."""
    tests = sum(sum(counts.values()) for checks in results.values() for counts in checks.values())
    lines = [
        "# The contract",
        "",
        "The results of every check for every estimator; `pytest --contract` writes this page. A cell stands",
        f"for all cases of an estimator, {tests:,} tests in all, with kernling {kernling.__version__}.",
        "",
        "✓ passed; (✓) passed except for expected failures, whose reasons are in the tests; ✗ failed;",
        f"– does not apply; {NOT_RUN} not run yet.",
        "",
        *(f"{place}. **{name.replace('_', ' ')}**: {words}" for place, (name, words) in enumerate(CHECKS.items(), 1)),
        "",
        f"| estimator | {' | '.join(map(str, range(1, len(CHECKS) + 1)))} |",
        "|---" * (len(CHECKS) + 1) + "|",
    ]
    for estimator in estimator_names():
        cells = (sign(results.get(estimator, {}).get(check, {})) for check in CHECKS)
        lines.append(f"| {estimator} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
