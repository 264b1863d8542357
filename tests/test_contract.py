"""The page with the contract is the one that its results make, and no estimator and no check is missing from it."""

import json

import contract


def test_the_page_is_made_of_the_results():
    assert contract.PAGE.read_text() == contract.page(json.loads(contract.RESULTS.read_text())), "run pytest --contract"


def test_results_are_of_estimators_and_checks_that_are_there():
    results = json.loads(contract.RESULTS.read_text())
    assert set(results) <= set(contract.estimator_names())
    assert {check for checks in results.values() for check in checks} <= set(contract.CHECKS)


def test_every_estimator_and_every_check_is_listed():
    text = contract.PAGE.read_text()
    assert all(f"| {name} |" in text for name in contract.estimator_names()), "run pytest --contract"
    assert all(f"**{name.replace('_', ' ')}**" in text for name in contract.CHECKS), "run pytest --contract"


def test_nothing_has_failed():
    results = json.loads(contract.RESULTS.read_text())
    assert not [(name, check) for name, checks in results.items() for check, counts in checks.items() if counts.get("failed")]


def test_a_failure_shows():
    results = {"AVMClassifier": {"oracle": {"passed": 4, "failed": 1}, "bound": {"passed": 2}, "chunks": {"skipped": 1}}}
    row = next(line for line in contract.page(results).splitlines() if line.startswith("| AVMClassifier |"))
    assert row.split(" | ")[1:5] == ["✗", "✓", "·", "–"]
