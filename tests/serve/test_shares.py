"""Each model has its share of time and memory."""

import threading

import numpy as np
import pytest

import kernling as kl
from kernling.serve import learners
from kernling.serve.jobs import Job, Jobs
from kernling.serve.learners import share
from kernling.serve.refusal import Refused
from kernling.serve.settings import Settings
from serving import abandon, contents_of, events, send

GOOD = {"km": 1.0, "city": "Oslo", "rush": True, "target": "late"}


def watched(monkeypatch, service, name, before):
    """Call a function before a model learns a part of a block."""
    live = service.models[name]
    taught = live._teach

    def teach(block):
        before(name, len(block.targets))
        taught(block)

    monkeypatch.setattr(live, "_teach", teach)


def test_a_model_learns_while_another_one_is_busy(start, monkeypatch):
    service, goes_on = start(), threading.Event()
    for name in ("slow", "quick"):
        send(service, events(40), 40, name=name)
    watched(monkeypatch, service, "slow", lambda *_: goes_on.wait(60))
    slow = service.learn("slow", [GOOD])
    try:
        assert service.learn("quick", [GOOD]).result(timeout=30)["learned"] == 1
        assert service.learn("new", [GOOD]).result(timeout=30)["learned"] == 1
        assert not slow.done()
    finally:
        goes_on.set()
    assert slow.result()["learned"] == 1


def test_models_take_turns_when_all_threads_are_busy(start, monkeypatch):
    monkeypatch.setattr(learners, "ROWS", 10)
    service, turns, goes_on = start(), [], threading.Event()
    slow = [f"slow {place}".replace(" ", "-") for place in range(learners.THREADS)]
    for name in (*slow, "quick"):
        send(service, events(40), 40, name=name)

    def note(name, rows):
        turns.append((name, rows))
        goes_on.wait(60)

    for name in (*slow, "quick"):
        watched(monkeypatch, service, name, note)
    jobs = [service.learn(name, events(500, seed=1)) for name in slow]
    while len(turns) < len(slow):  # all threads are busy
        assert not any(job.done() for job in jobs)
    waits, add = threading.Event(), service._learners.add
    monkeypatch.setattr(service._learners, "add", lambda one: (add(one), waits.set()))
    quick = service.learn("quick", [GOOD])
    assert waits.wait(60)  # until it is written, and waits for its turn
    goes_on.set()
    quick.result(timeout=60)
    assert [job.result(timeout=60)["learned"] for job in jobs] == [500] * len(slow)
    assert max(rows for _, rows in turns) == 10
    place = turns.index(("quick", 1))
    assert place < 25 * len(slow)  # not after all of their turns
    assert len(turns) == 50 * len(slow) + 1


def test_a_thousand_classes_are_learned_in_many_turns(start, monkeypatch):
    service, turns = start(), []
    send(service, events(40), 40)
    watched(monkeypatch, service, "flights", lambda _, rows: turns.append(rows))
    classes = [f"class {place}" for place in range(60)] * 2
    live = service.models["flights"]
    monkeypatch.setattr(learners, "WORK", 500 * live.published.model.nbytes_)
    assert service.learn("flights", [GOOD | {"target": one} for one in classes]).result()["learned"] == 120
    assert sum(turns) == 120
    assert max(turns[:10]) <= 500 // learners.NEW  # new classes
    assert len(live.published.model.classes_) == 62


def test_turns_depend_only_on_the_model_and_the_rows():
    labels = [f"label {place}" for place in range(3000)]
    assert share(labels[:1] * 5000, {labels[0]}, size=1000) == learners.ROWS
    assert share([1.0] * 5000, None, size=1000) == learners.ROWS
    assert share([1.0] * 5000, None, size=learners.WORK // 7) == 7
    assert share([1.0] * 5000, None, size=2 * learners.WORK) == 1
    few = share(labels, {labels[0]}, size=learners.WORK // 10_000)
    assert 2 <= few <= 20
    assert share(labels, set(labels[:100]), size=learners.WORK // 10_000) > 100


@pytest.mark.parametrize("kind", ["killed", "snapshot between"])
def test_a_restart_repeats_the_turns(start, monkeypatch, kind):
    """The same turns after a restart give the same model, bit for bit."""
    monkeypatch.setattr(learners, "ROWS", 7)
    service = start()
    send(service, events(300, seed=2), 100)
    if kind == "snapshot between":
        service._snapshot(service.models["flights"])
    send(service, events(300, seed=3), 150)
    after = contents_of(service, "flights")
    abandon(service)
    assert contents_of(start(), "flights") == after


def test_a_request_that_fails_in_a_later_turn_leaves_nothing_behind(start, monkeypatch):
    monkeypatch.setattr(learners, "ROWS", 10)
    service = start()
    send(service, events(60), 60)
    live = service.models["flights"]
    before = live.published
    taught = live._teach

    def refuses(block):
        if 7.0 in block.columns["km"].tolist():
            raise ValueError("the scores have grown beyond all bounds")
        taught(block)

    monkeypatch.setattr(live, "_teach", refuses)
    rows = [*events(35, ids=False), GOOD | {"km": 7.0}]
    with pytest.raises(Refused, match="beyond all bounds"):
        service.learn("flights", rows).result()
    asked = [{"km": km / 10.0, "city": "Oslo", "rush": True} for km in range(-20, 20)]
    layout = live.traits.layout
    assert live.published.predict(asked, layout) == before.predict(asked, layout)
    assert live.published.model.t_ == live.published.events == 60
    assert live.published.progress.to_plain() == before.progress.to_plain()


@pytest.mark.parametrize(("rows", "bytes"), [(10, 0), (1, 100)], ids=["rows", "bytes"])
def test_a_queue_leaves_room_for_others(rows, bytes):
    jobs = Jobs(rows=100, bytes=1000)

    def put(name):
        jobs.put(Job(name, [{}] * rows, bytes=bytes))

    for _ in range(5):
        put("greedy")
    with pytest.raises(Refused, match="too many rows") as refused:
        put("greedy")
    assert refused.value.status == 429
    put("modest")
    put("modest")
    assert [{job.name for job in jobs.take(rows)} for _ in range(2)] == [{"greedy"}, {"modest"}]


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        ("KRLSClassifier", {"points": 15_000}),
        ("KRLSRegressor", {"points": 10**9, "features": "fourier"}),
        ("FOGDClassifier", {"n_components": 10**9}),
        ("AutoClassifier", {"points": 20_000}),
        ("BSGDClassifier", {"budget": 10**10}),
        ("NOGDClassifier", {"budget": 50_000, "rank": 50_000}),
    ],
)
def test_large_parameters_are_refused_when_a_model_is_created(start, estimator, parameters):
    service = start()
    with pytest.raises(Refused) as refused:
        service.create("large", {"estimator": estimator, "parameters": parameters}).result()
    assert refused.value.status == 422
    assert not service.models


def test_a_model_cannot_grow_beyond_its_limit(start):
    few = {"estimator": "KRLSClassifier", "parameters": {"points": 100}}
    service = start(Settings(first_rows=20, model_bytes=3 * 2**20))
    service.create("few", few).result()
    service.learn("few", [{"x": float(n), "target": n % 3} for n in range(40)]).result()
    many = [{"x": float(n), "target": n} for n in range(900)]
    with pytest.raises(Refused, match="outputs and up to 100 points takes more than 3 MiB: choose smaller") as refused:
        service.learn("few", many).result()
    assert refused.value.status == 422
    with pytest.raises(Refused, match=r"AutoClassifier with 1 columns.* takes more than 3 MiB"):
        service.learn("other", [{"x": 1.0, "target": "a"}]).result()
    assert service.learn("few", [{"x": 1.0, "target": 2}]).result()["learned"] == 1


def test_a_method_without_a_limit_of_points_is_checked_before_it_grows(start):
    rng = np.random.default_rng(0)
    service = start(Settings(first_rows=20, model_bytes=2**20))
    service.create("all", {"estimator": "OGDClassifier"}).result()
    outcomes = []
    for _ in range(20):
        rows = [{f"x{c}": v for c, v in enumerate(x)} for x in rng.normal(size=(1000, 10)).tolist()]
        outcomes.append(service.learn("all", [row | {"target": bool(rng.random() < 0.5)} for row in rows]).exception())
    learned = outcomes.index(next(outcome for outcome in outcomes if outcome))
    assert "OGDClassifier with 26 columns, 1 outputs and up to" in str(outcomes[learned])
    assert 1 <= learned < 12
    assert service.models["all"].published.model.t_ == 1000 * learned
    assert service.models["all"].published.model.nbytes_ < 2**20


def test_all_models_share_the_memory(start):
    service = start(Settings(first_rows=20, memory_bytes=53 * 2**20))
    for name in ("a", "b"):
        service.create(name, {"estimator": "AutoClassifier", "parameters": {"memory": 0}}).result()
        send(service, events(40), 40, name=name)
    with pytest.raises(Refused, match=r"MiB, of which .* are left") as refused:
        service.create("c").result()
    assert refused.value.status == 507
    assert service.learn("a", [GOOD]).result()["learned"] == 1


def test_a_file_is_held_to_the_same_limits(start):
    service = start(Settings(classes=3, columns=4))
    X = np.random.default_rng(0).normal(size=(60, 5))
    wide = kl.AVMClassifier(gamma=1.0, delta=0.5).fit(X, np.arange(60) % 2)
    many = kl.AVMClassifier(gamma=1.0, delta=0.5).fit(X[:, :2], np.arange(60) % 4)
    for model, sentence in ((wide, "has 5 columns, and at most 4"), (many, "has 4 classes, and at most 3")):
        with pytest.raises(Refused, match=sentence):
            service.create("file", model=model)
