"""The first rows of a model: what was acknowledged is kept, also if the model cannot start with it."""

import pytest

from kernling.serve.refusal import Refused
from kernling.serve.settings import Settings
from serving import abandon, contents_of

SETTINGS = Settings(first_rows=100, snapshot_seconds=3600.0, collected_rows=500)


def unique(first, last):
    """Rows whose only column never repeats its text, so that nothing can be learned from it."""
    return [{"name": f"unique {place} {place**3}", "target": "ab"[place % 2], "id": place} for place in range(first, last)]


def repeating(first, last):
    """Rows whose text repeats."""
    return [{"name": "xy"[place % 2], "target": "ab"[place % 2], "id": place} for place in range(first, last)]


def facts_of(service):
    facts = service.facts(service.models["m"])
    return facts["events"], facts["collected"], facts["obstacle"]


def test_rows_with_which_a_model_cannot_start_are_kept_and_learned_when_it_can(start):
    service = start(SETTINGS)
    for first in range(0, 120, 30):  # the last request has the hundredth, with which models start
        assert service.learn("m", unique(first, first + 30)).result()["learned"] == 30
    events, collected, obstacle = facts_of(service)
    assert (events, collected) == (0, 120)
    assert obstacle.startswith("the model cannot start with its first 100 rows: ")
    abandon(service)
    again = start(SETTINGS)
    assert facts_of(again) == (0, 120, obstacle)
    assert again.learn("m", unique(0, 120)).result()["learned"] == 0  # their ids are known
    assert again.learn("m", repeating(120, 500)).result()["learned"] == 380
    assert facts_of(again) == (500, 0, None)
    expected = contents_of(again, "m")
    abandon(again)
    assert contents_of(start(SETTINGS), "m") == expected


def test_rows_with_which_a_model_cannot_start_are_bounded(start):
    service = start(SETTINGS)
    for first in range(0, 500, 50):
        assert service.learn("m", unique(first, first + 50)).result()["learned"] == 50
    with pytest.raises(
        Refused, match="they are kept, and there is no room for more: create a model with another name"
    ) as refused:
        service.learn("m", unique(500, 501)).result()
    assert refused.value.status == 422
    assert facts_of(service)[:2] == (0, 500)
    service.stop()
    assert facts_of(start(SETTINGS))[:2] == (0, 500)


def test_rows_with_which_a_model_cannot_start_are_bounded_in_bytes(start):
    service = start(Settings(first_rows=100, collected_bytes=10_000))
    rows = [row | {"name": row["name"] + "x" * 1000} for row in unique(0, 120)]
    service.learn("m", rows[:100]).result()
    with pytest.raises(Refused, match="no room for more"):
        service.learn("m", rows[100:]).result()
    assert facts_of(service)[:2] == (0, 100)
