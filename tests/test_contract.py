"""The contract: what the tests find ends up on its page, in the right cell, and the page lists what there is."""

from types import SimpleNamespace

import pytest

import contract
from kernling.baselines import RBPClassifier


def reported(when="call", outcome="passed", place=("RBPClassifier", "oracle"), **more):
    """What pytest reports of a test."""
    return SimpleNamespace(
        user_properties=[("contract", place)], when=when, outcome=outcome, passed=outcome == "passed", **more
    )


def asked(mark, **params):
    """A test with this mark and these parameters."""
    return SimpleNamespace(nodeid="test", get_closest_marker=lambda name: mark, callspec=SimpleNamespace(params=params))


def test_the_page_lists_every_estimator_and_every_check():
    assert contract.rows_of(contract.PAGE.read_text()) == contract.estimator_names(), "run pytest --contract"
    assert all(f"**{name.replace('_', ' ')}**" in contract.PAGE.read_text() for name in contract.CHECKS), (
        "run pytest --contract"
    )


def test_a_failure_shows():
    results = {"AVMClassifier": {"oracle": {"passed": 4, "failed": 1}, "bound": {"passed": 2}, "chunks": {"skipped": 1}}}
    row = next(line for line in contract.page(results).splitlines() if line.startswith("| AVMClassifier |"))
    assert row.split(" | ")[1:5] == ["✗", "✓", "·", "–"]


def test_reports_are_counted_once_by_their_outcome():
    recorder = contract.Recorder()
    for report in (
        reported("setup"),
        reported(),
        reported("teardown"),
        reported("setup", "failed"),
        reported(outcome="skipped", wasxfail="known"),
        reported("setup", "skipped", ("RBPClassifier", "soak")),
    ):
        recorder.pytest_runtest_logreport(report)
    assert recorder.found == {"RBPClassifier": {"oracle": {"passed": 1, "failed": 1, "expected": 1}, "soak": {"skipped": 1}}}


def test_results_are_written_and_those_of_other_tests_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(contract, "RESULTS", tmp_path / "contract.json")
    monkeypatch.setattr(contract, "PAGE", tmp_path / "contract.md")
    for check, outcome in (("oracle", "failed"), ("bound", "passed"), ("oracle", "passed")):
        recorder = contract.Recorder()
        recorder.pytest_runtest_logreport(reported(outcome=outcome, place=("RBPClassifier", check)))
        recorder.pytest_sessionfinish()
    row = next(line for line in contract.PAGE.read_text().splitlines() if line.startswith("| RBPClassifier |"))
    assert row.split(" | ")[1:4] == ["✓", "✓", "·"]


def test_a_test_says_its_check_and_its_estimator():
    by_name = asked(SimpleNamespace(args=("soak",)), cls=RBPClassifier)
    by_parameter = asked(SimpleNamespace(args=()), check=test_a_failure_shows, model=RBPClassifier())
    assert contract.check_of(by_name) == "soak"
    assert contract.estimator_of(by_name) == contract.estimator_of(by_parameter) == "RBPClassifier"
    assert contract.estimator_of(asked(None, n=3)) is None
    with pytest.raises(pytest.UsageError, match="test_a_failure_shows"):
        contract.check_of(by_parameter)
