"""Requests that the service refuses: nothing changes."""

from concurrent.futures import wait
from contextlib import contextmanager

import pytest

from kernling.serve.refusal import Refused
from kernling.serve.settings import Settings
from kernling.serve.targets import Targets
from serving import abandon, contents_of, events, send

GOOD = {"km": 1.0, "city": "Oslo", "rush": True, "target": "late"}
BAD = {
    "no column": ({"town": "Oslo", "target": "late"}, "there is no column 'km'"),
    "nested": (GOOD | {"km": [1.0]}, "column 'km' holds text, numbers or booleans, not a list"),
    "an object": (GOOD | {"city": {"name": "Oslo"}}, "column 'city' holds text, numbers or booleans, not an object"),
    "NaN": (GOOD | {"km": float("nan")}, "NaN in column 'km'"),
    "infinity": (GOOD | {"km": float("inf")}, "Infinity in column 'km'"),
    "too large": (GOOD | {"km": 10**400}, "in column 'km' cannot be learned"),
    "no target": ({"km": 1.0, "city": "Oslo", "rush": True}, "there is no 'target'"),
    "a target of another kind": (GOOD | {"target": 1}, "must be a label, here text"),
    "a value": (GOOD | {"target": 1.5}, "create the model with task regression"),
    "an empty label": (GOOD | {"target": ""}, "a label must have 1 to"),
    "a strange id": (GOOD | {"id": [1]}, "its id must be"),
    "nothing but a target": ({"target": "late"}, "must have columns, or the id"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_is_refused_with_its_index_and_nothing_changes(start, what):
    service = start()
    send(service, events(40), 40)
    before = contents_of(service, "flights")
    row, sentence = BAD[what]
    with pytest.raises(Refused, match="row 2") as refused:
        service.learn("flights", [GOOD | {"id": "new"}, GOOD, row, GOOD]).result()
    assert refused.value.row == 2
    assert sentence in str(refused.value)
    assert contents_of(service, "flights") == before
    assert service.learn("flights", [GOOD | {"id": "new"}]).result()["learned"] == 1


def test_labels_that_are_whole_numbers_fit_into_64_bits():
    labels = Targets("classification", "whole numbers")
    assert labels.array(labels.read([2**63 - 1, -(2**63)], [0, 1], Settings())).tolist() == [2**63 - 1, -(2**63)]
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(Refused, match="must fit into 64 bits"):
            labels.read([value], [0], Settings())


def test_the_index_counts_rows_that_were_repeated(start):
    service = start()
    rows = events(3)
    send(service, rows, 3)
    with pytest.raises(Refused) as refused:
        service.learn("flights", [rows[0], rows[1], GOOD | {"km": [1]}]).result()
    assert refused.value.row == 2


def test_a_gap_is_imputed(start):
    service = start()
    send(service, events(40), 40)
    assert service.learn("flights", [GOOD | {"km": None}]).result()["learned"] == 1
    model = service.model("flights")
    for predict in (model.published.predict, model.published.predict_few):
        assert predict([{"km": None, "city": None, "rush": None}], model.traits.layout)[0]["label"] in ("late", "on time")


def test_one_bad_request_does_not_spoil_the_block_of_others(start):
    service = start()
    send(service, events(40), 40)
    rows = [GOOD, GOOD | {"km": [1]}, GOOD] * 10
    futures = [service.learn("flights", [row]) for row in rows]
    wait(futures)
    assert [future.exception() is None for future in futures] == [True, False, True] * 10
    assert service.models["flights"].published.events == 60


def test_limits(start):
    service = start(Settings(models=2, columns=3, classes=2, characters=10, queue_rows=10))
    service.learn("a", [{"x": 1.0, "target": "p"}, {"x": 1.0, "target": "q"}]).result()
    for name, rows, sentence in (
        ("a", [{"x": 1.0, "target": "r"}], "more than 2 classes"),
        ("b", [{"x": 1.0, "y": 1.0, "z": 1.0, "u": 1.0, "target": "p"}], "1 to 3 columns"),
        ("b", [{"x" * 11: 1.0, "target": "p"}], "at most 10 characters"),
        ("b/..", [{"x": 1.0, "target": "p"}], "name of a model"),
        ("", [{"x": 1.0, "target": "p"}], "name of a model"),
    ):
        with pytest.raises(Refused, match=sentence):
            service.learn(name, rows).result()
    assert list(service.models) == ["a"]
    service.create("b").result()
    with pytest.raises(Refused, match="2 models already"):
        service.create("c").result()
    with pytest.raises(Refused, match="is a model called 'b' already"):
        service.create("b").result()


def test_a_full_queue_asks_to_come_back_and_loses_nothing(start, monkeypatch):
    service = start(Settings(first_rows=20, queue_rows=25))
    send(service, events(20), 20)
    rows, sent, refused = events(400, seed=3), [], []
    for first in range(0, 400, 10):
        try:
            sent.append(service.learn("flights", rows[first : first + 10]))
        except Refused as error:
            refused.append((error.status, error.retry_after))
    wait(sent)
    assert set(refused) == {(429, 1)}
    assert service.models["flights"].published.events == 20 + 10 * len(sent)


@contextmanager
def files_of_at_most(size):
    """Let no file of this process become larger."""
    resource = pytest.importorskip("resource", reason="files cannot be limited here")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_and_changes_nothing(start):
    service = start()
    send(service, events(60), 20)
    before = contents_of(service, "flights")
    rows = events(4000, seed=1)
    with files_of_at_most(100_000):  # so that a part of the block is written
        with pytest.raises(Refused, match=r"nothing can be written: .*File too large") as refused:
            service.learn("flights", rows).result()
        assert refused.value.status == 507
        with pytest.raises(Refused, match="File too large"):
            service.learn("another", rows).result()
        assert service.failures
        assert service.health()["status"].startswith("nothing can be written")
        assert contents_of(service, "flights") == before
        assert list(service.models) == ["flights"]
    assert service.learn("flights", rows).result()["learned"] == 4000  # their ids were not taken
    assert not service.failures
    after = contents_of(service, "flights")
    abandon(service)
    again = start()
    assert contents_of(again, "flights") == after
    assert again.health() == {"status": "ok"}


def test_a_block_that_cannot_be_learned_is_refused_the_same_way_again(start, monkeypatch):
    service = start()
    send(service, events(40), 40)
    live = service.models["flights"]
    taught = live._teach

    def refuses(block):
        if any(value == 7.0 for value in block.columns["km"].tolist()):
            raise ValueError("the scores have grown beyond all bounds")
        taught(block)

    monkeypatch.setattr(live, "_teach", refuses)
    futures = [service.learn("flights", [GOOD | {"km": km}]) for km in (1.0, 7.0, 2.0)]
    wait(futures)
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert live.published.events == 42


def test_a_full_disk_refuses_rows_that_would_wait(start):
    service = start()
    send(service, events(40), 40)
    model, row = service.model("flights"), {"km": 1.0, "city": "Oslo" * 2000, "rush": True}
    database = service.waiting._database
    database.execute(f"PRAGMA max_page_count={database.execute('PRAGMA page_count').fetchone()[0] + 4}")
    with pytest.raises(Refused, match="disk is full") as refused:
        service.keep(model, [str(place) for place in range(100)], [row] * 100)
    assert refused.value.status == 507
    assert service.failures
    assert service.facts(model)["waiting"] == 0
    database.execute("PRAGMA max_page_count=1000000")
    service.keep(model, ["one"], [row])
    assert (service.failures, service.facts(model)["waiting"]) == ({}, 1)
