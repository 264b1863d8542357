"""Predictions use a copy of the model, which is made when something asks for it."""

import copy
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kernling.serve import live
from kernling.serve.blocks import Block
from kernling.serve.live import LiveModel, Traits
from kernling.serve.refusal import Refused
from kernling.serve.rows import Layout
from kernling.serve.settings import Settings
from kernling.serve.specs import checked_spec
from kernling.serve.targets import Targets
from serving import abandon, contents_of, events, send

TRAITS = Traits(Layout({"km": "numbers"}), Targets("classification", "text"))


def nothing_asks(monkeypatch):
    """Let no copy be made because of its age, and nothing ask for one but the test."""
    monkeypatch.setattr(live, "PAUSE", 1e9)
    monkeypatch.setattr("kernling.serve.service.TICK", 1e6)


def block(rows, requests=1):
    km = np.arange(rows) / rows
    return Block({"km": km}, ["late" if one > 0.5 else "early" for one in km.tolist()], (rows // requests,) * requests)


@pytest.fixture
def model(monkeypatch):
    """A model that has learned 20 events, and whose copies are never too old."""
    found = LiveModel(1, "trips", checked_spec({"estimator": "AVMClassifier"}), TRAITS, Settings(first_rows=20))
    found.learn(20, block(20))
    monkeypatch.setattr(live, "PAUSE", 1e9)
    assert found.recent.events == 20
    return found


def test_a_prediction_sees_the_request_before_it(model):
    for count in (21, 22, 23):
        model.learn(count, block(1))
        assert model.recent.events == model.recent.model.t_ == count


def test_a_copy_is_made_after_events_that_were_skipped(model):
    model.skip_to(30, {"source": [1, {}]})
    assert (model.published.position, model.published.offsets) == (30, {"source": [1, {}]})


def test_while_requests_are_learned_together_predictions_may_use_an_older_copy(model, monkeypatch):
    model.learn(60, block(40, requests=4))
    assert model.recent.events == 20, "it is young enough"
    monkeypatch.setattr(live, "PAUSE", 0.0)
    assert model.recent.events == model.recent.model.t_ == 60, "it is too old"
    model.learn(80, block(20, requests=2))
    assert model._published.events == 80, "a copy that is too old is replaced after the block"


def test_a_copy_is_made_with_the_block_if_something_has_predicted_since_the_last(model):
    model.learn(21, block(1))
    assert model._published.events == 21, "the fixture has asked for a prediction"
    model.learn(22, block(1))
    assert model._published.events == 21, "nothing has"
    assert model.recent.events == 22


def test_nobody_waits_for_a_copy_that_is_made_with_the_block(model, monkeypatch):
    found = []

    def copying(state):
        thread = threading.Thread(target=lambda: found.append((model.is_recent, model.published)))
        thread.start()
        thread.join(5.0)
        return copy.deepcopy(state)

    before = model.published
    monkeypatch.setattr(live, "copy", SimpleNamespace(copy=copy.copy, deepcopy=copying))
    model.learn(21, block(1))
    assert found == [(True, before)]


def test_facts_and_snapshots_use_the_newest_block(model):
    model.learn(60, block(40, requests=4))
    assert model.published.facts()["events"] == 60
    assert model.recent is model.published, "no other copy is made"


def test_nobody_waits_for_a_block_or_sees_a_part_of_it(model, monkeypatch):
    monkeypatch.setattr("kernling.serve.learners.ROWS", 10)
    turns = model.learning(60, block(40, requests=4))
    next(turns)
    assert model.current.model.t_ == 30
    assert model.published.model.t_ == model.recent.model.t_ == 20
    for _ in turns:
        pass
    assert model.published.model.t_ == 60


def test_several_threads_that_ask_get_the_same_copy(model):
    model.learn(60, block(40))
    found = []
    threads = [threading.Thread(target=lambda: found.append(model.published)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(one) for one in found} == {id(model.published)}
    assert found[0].events == 60


def test_a_block_that_fails_is_taken_back_with_and_without_a_copy(model, monkeypatch):
    """The copy that predictions use is also what the model goes back to, but only while it is one of the model as it is."""
    teach = live.LiveModel._teach

    def fails(self, part):
        if 2.0 in part.columns["km"].tolist():
            raise ValueError("no")
        teach(self, part)

    monkeypatch.setattr(live.LiveModel, "_teach", fails)
    monkeypatch.setattr("kernling.serve.learners.ROWS", 10)
    bad = Block({"km": np.r_[np.arange(30) / 30, 2.0]}, ["late"] * 31, (31,))
    assert model._is_published
    assert model.learn(51, bad) == ["no"]
    assert (model.published.model.t_, model.published.position) == (20, 51)
    model.learn(71, block(20, requests=2))
    assert not model._is_published
    assert model.learn(102, bad) == ["no"]
    assert (model.published.model.t_, model.published.position) == (40, 102)


def test_requests_are_checked_against_the_model_itself_not_its_copy(start, monkeypatch):
    nothing_asks(monkeypatch)
    service = start(Settings(first_rows=20, snapshot_seconds=3600.0, classes=4))
    send(service, events(40), 40)
    held = service.models["flights"]
    known = len(held.published.progress.counts)
    row = events(1)[0] | {"id": None}
    for place in range(4 - known):
        service.learn("flights", [row | {"target": f"new {place}"}]).result()
    assert len(held._published.progress.counts) == known, "the copy does not have them yet"
    with pytest.raises(Refused, match="more than 4 classes"):
        service.learn("flights", [row | {"target": "another"}]).result()


def test_a_kill_before_the_copy_is_made_loses_nothing(start, monkeypatch):
    nothing_asks(monkeypatch)
    service = start()
    send(service, events(60), 30)
    send(service, events(60, seed=1), 20)
    service._snapshot(service.models["flights"])
    send(service, events(60, seed=2), 15)
    assert not service.models["flights"]._is_published
    abandon(service)
    again = start()
    assert again.models["flights"].published.events == 180
    assert contents_of(again, "flights") == contents_of(service, "flights")
