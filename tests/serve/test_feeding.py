"""Events from brokers: each is learned once, whatever happens to the broker, to the events or to the service."""

import json
import math
import random
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import kernling as kl
from brokering import Kafka, Redis
from kernling.brokers import Address, kafka_topics, open_sink, open_source
from kernling.papers import dataset
from kernling.serve.feeding import Feed
from kernling.serve.metrics import Metrics
from kernling.serve.service import Service
from kernling.serve.settings import Settings
from kernling.tables import Encode
from serving import abandon, blocks_of, contents_of

QUICK = Settings(first_rows=20, snapshot_seconds=3600.0, block_rows=256)
AVM = {"estimator": "AVMClassifier"}


def running(request, tmp_path):
    """A broker that runs."""
    found = Kafka() if getattr(request, "param", "redis") == "kafka" else Redis(tmp_path / "redis")
    yield found
    found.stop()


redis = pytest.fixture(running)
broker = pytest.fixture(running, params=["redis", pytest.param("kafka", marks=pytest.mark.long)])
either = pytest.fixture(running, params=["redis", "kafka"])


@contextmanager
def fed(folder, source, sink=None, settings=QUICK):
    """A service in this process that reads from a URL; it is left as a crash would leave it."""
    service = Service(folder, settings)
    feed = Feed(service, source, sink)
    try:
        feed.start()
        yield service, feed
    finally:
        feed.stop()
        if service.is_running:
            abandon(service)


def until(condition, seconds=30.0):
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def events(n, first=0, ids=True):
    """Events whose label follows from their columns."""
    found = []
    for place in range(first, first + n):
        a, b = np.random.default_rng(place).normal(size=2).tolist()
        found.append({"a": a, "b": b, "target": "yes" if a * b > 0 else "no"} | ({"id": f"e{place}"} if ids else {}))
    return found


def learned(service, name="flights"):
    return service.facts(service.models[name])["events"] if name in service.models else 0


def test_all_events_are_learned_once_over_restarts(either, tmp_path):
    """Without ids, so nothing but the offsets tells what was learned."""
    url = either.url("flights", **AVM)
    for turn in range(3):
        either.send("flights", events(300, 300 * turn, ids=False))
        with fed(tmp_path / "service", url) as (service, feed):
            until(lambda goal=300 * (turn + 1): learned(service) >= goal)
            time.sleep(0.3)  # more would be too many
            assert learned(service) == 300 * (turn + 1)
            assert feed.counts["read"] == 300
            until(lambda: feed.behind == 0)


def test_a_restart_gives_the_same_model_as_no_restart(redis, tmp_path):
    redis.send("flights", events(500, ids=False))
    with fed(tmp_path / "service", redis.url("flights", **AVM)) as (service, _):
        until(lambda: learned(service) == 500)
        whole = contents_of(service, "flights")
    restarted = Service(tmp_path / "service", QUICK)
    assert contents_of(restarted, "flights") == whole
    restarted.stop()


def test_events_at_the_damaged_end_of_the_journal_are_read_again(redis, tmp_path):
    folder, url = tmp_path / "service", redis.url("flights", **AVM)
    with fed(folder, url) as (service, feed):
        for turn in range(3):
            redis.send("flights", events(100, 100 * turn, ids=False))
            until(lambda goal=100 * (turn + 1): learned(service) == goal)
    *_, log = sorted(folder.glob("journal/*.log"))
    content = bytearray(log.read_bytes())
    content[-50] ^= 1
    log.write_bytes(content)
    with fed(folder, url) as (service, feed):
        until(lambda: learned(service) == 300)
        time.sleep(0.3)
        facts = service.facts(service.models["flights"])
        assert (facts["events"], facts["lost"], feed.counts["read"]) == (300, facts["lost"], facts["lost"])
        assert facts["lost"] > 0


def test_predictions_go_to_the_sink_and_late_labels_find_their_rows(broker, tmp_path):
    rows = events(200)
    asked = [{name: row[name] for name in ("a", "b", "id")} for row in rows]
    with fed(tmp_path / "service", broker.url("flights", **AVM), broker.url("answers")) as (service, feed):
        broker.send("flights", events(100, 1000))
        until(lambda: learned(service) == 100)
        broker.send("flights", asked)
        until(lambda: feed.counts["predicted"] == 200)
        assert service.facts(service.models["flights"])["waiting"] == 200
        broker.send("flights", [{"id": row["id"], "target": row["target"]} for row in rows])
        until(lambda: learned(service) == 300)
        assert service.facts(service.models["flights"])["waiting"] == 0
    found = broker.read("answers")
    assert sorted(one["id"] for one in found) == sorted(row["id"] for row in rows)
    assert {one["label"] for one in found} == {"yes", "no"}
    assert {one["model"] for one in found} == {"flights"}


def test_redelivered_and_reordered_events_are_learned_once(either, tmp_path):
    """Labels before their rows, rows and labels repeated, all of it shuffled, over a restart."""
    rows = events(200)
    late = [[{name: row[name] for name in ("a", "b", "id")}, {"id": row["id"], "target": row["target"]}] for row in rows[:80]]
    sent = [one for pair in late for one in pair] * 2 + rows[80:] * 3
    random.Random(0).shuffle(sent)
    url = either.url("flights", **AVM)
    count = 0
    for part in (sent[:300], sent[300:]):
        either.send("flights", part)
        count += len(part)
        with fed(tmp_path / "service", url) as (service, feed):
            until(lambda part=part: feed.counts["read"] == len(part))
            facts = service.facts(service.models["flights"])
            assert facts["letters"]["count"] == 0
    assert facts["events"] == len(rows)
    assert count == len(sent)


def test_bad_events_are_set_aside_and_the_rest_goes_on(broker, tmp_path):
    """Each kind of bad event in the middle of good ones is a dead letter, once, although it is read twice."""
    good = events(300, ids=False)
    bad = {
        "{": "it is not a JSON object",
        "[1, 2]": "it is not a JSON object",
        '{"a": "\\ud800", "b": 1.0, "target": "no"}': "surrogate",
        '{"a": 1.0, "b": 1e999, "target": "no"}': "",
        '{"a": 1.0, "b": 2.0, "target": 3}': "the target must be a label",
        '{"target": "no"}': "must have columns",
        '{"id": [], "a": 1.0, "b": 1.0, "target": "no"}': "its id must be",
    }
    sent = [json.dumps(one) for one in good]
    for place, text in enumerate(bad):
        sent.insert(50 + 20 * place, text)
    folder = tmp_path / "service"
    with fed(folder, broker.url("flights", **AVM)) as (service, feed):
        broker.send("flights", sent[:50])  # which tell what columns there are
        until(lambda: learned(service) == 50)
        broker.send("flights", sent[50:])
        until(lambda: feed.counts["read"] == len(sent))
        facts = service.facts(service.models["flights"])
        assert (facts["events"], facts["letters"]["count"]) == (len(good), len(bad))
        until(lambda: feed.behind == 0)
        metrics, named = Metrics(service).text().decode(), f'{{model="flights",source="{feed.address}"'
        for line in (f"kernling_source_behind{named}}} 0.0", f"kernling_source_up{named}}} 1.0"):
            assert line in metrics
        assert f'kernling_source_events_total{named},what="failed"}} {len(bad)}.0' in metrics
        assert f'kernling_dead_letters{{model="flights"}} {len(bad)}.0' in metrics
        held = service.letters._database.execute("SELECT event, reason FROM letters ORDER BY number").fetchall()
    reasons = {event.decode(): reason for event, reason in held}
    for text, reason in bad.items():
        assert reason in reasons[text]
    service = Service(folder, QUICK)
    model = service.models["flights"]
    batch, offsets = service.taken(model, str(Address.parse(broker.url("flights"))))
    assert batch > 0
    assert offsets
    assert service.facts(model)["letters"]["count"] == len(bad)
    service.stop()


def test_an_event_that_the_model_cannot_learn_is_set_aside_alone(redis, tmp_path, monkeypatch):
    """A failure while learning, which is known only after the events are in the journal, also if the process ends before."""
    from kernling.serve import live

    teach = live.LiveModel._teach

    def fail(self, block):
        if 13.0 in block.columns["a"]:
            raise ValueError("it diverges")
        teach(self, block)

    monkeypatch.setattr(live.LiveModel, "_teach", fail)
    sent = events(100, ids=False)
    sent[70] = {"a": 13.0, "b": 0.0, "target": "no"}
    redis.send("flights", sent)
    with fed(tmp_path / "service", redis.url("flights", **AVM)) as (service, feed):
        until(lambda: feed.counts["read"] == 100)
        facts = service.facts(service.models["flights"])
        assert (facts["events"], facts["letters"]["count"], facts["letters"]["last"][0]["reason"]) == (99, 1, "it diverges")
        assert feed.counts["learned"] == 99
    (tmp_path / "service" / "letters.sqlite").unlink()  # as if it had ended before they were written
    for end in ("-wal", "-shm"):
        (tmp_path / "service" / f"letters.sqlite{end}").unlink(missing_ok=True)
    service = Service(tmp_path / "service", QUICK)
    letters = service.facts(service.models["flights"])["letters"]
    assert [(one["place"], json.loads(one["event"])["a"]) for one in letters["last"]] == [("event 70", 13.0)]
    service.stop()


def test_a_broker_that_goes_away_is_waited_for(either, tmp_path):
    with fed(tmp_path / "service", either.url("flights", **AVM)) as (service, feed):
        either.send("flights", events(200, ids=False))
        until(lambda: learned(service) == 200)
        either.stop() if isinstance(either, Redis) else either.tell("down")
        until(lambda: feed.status.startswith("waits"))
        assert not service.facts(service.models["flights"])["sources"][0]["is_read"]
        either.start() if isinstance(either, Redis) else either.tell("up")
        either.send("flights", events(200, 200, ids=False))
        until(lambda: learned(service) == 400)
        time.sleep(0.3)
        assert learned(service) == 400
        assert list(feed.notes) == []


def test_a_topic_that_disappears_is_waited_for(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(kafka_topics, "LOOK", 0.2)
    with fed(tmp_path / "service", broker.url("flights", **AVM)) as (service, feed):
        broker.send("flights", events(200, ids=False))
        until(lambda: learned(service) == 200)
        broker.client.delete("flights") if isinstance(broker, Redis) else broker.tell("gone", "flights")
        until(lambda: feed.status.startswith("waits"))
        if isinstance(broker, Kafka):
            broker.tell("back", "flights")
        broker.send("flights", events(100, 200, ids=False))
        until(lambda: learned(service) == 300)
        until(lambda: feed.behind == 0)


def test_a_stream_that_begins_anew_is_said(redis, tmp_path):
    """With ids before those that were read: nothing would ever arrive after them."""
    with fed(tmp_path / "service", redis.url("flights", **AVM)) as (service, feed):
        redis.send("flights", events(100, ids=False))
        until(lambda: learned(service) == 100)
        redis.client.delete("flights")
        for place, event in enumerate(events(50, 100, ids=False)):
            redis.client.xadd("flights", {"event": json.dumps(event)}, id=f"5-{place + 1}")
        until(lambda: learned(service) == 150)
        assert "begins anew" in feed.notes[0]
        assert "begins anew" in service.facts(service.models["flights"])["errors"][-1]["error"]


def test_entries_that_were_deleted_before_they_were_read_are_said(redis, tmp_path):
    url = redis.url("flights", **AVM)
    redis.send("flights", events(100, ids=False))
    with fed(tmp_path / "service", url) as (service, _):
        until(lambda: learned(service) == 100)
    redis.send("flights", events(100, 100, ids=False))
    redis.client.xtrim("flights", maxlen=40, approximate=False)
    with fed(tmp_path / "service", url) as (service, feed):
        until(lambda: learned(service) == 140)
        assert "were deleted before they were read" in feed.notes[0]


def divide_the_events(broker, folder, **options):
    """Two members learn each event once between them, also over a restart of both."""
    url = broker.url("flights", group="night", **AVM, **options)
    broker.send("flights", events(40, ids=False))  # which creates it
    count = 40
    begin = [partial(fed, folder / name, url) for name in "ab"]

    def both():
        return learned(one) + learned(other)

    with begin[0]() as (one, first), begin[1]() as (other, second):
        end = time.monotonic() + 60.0
        while min(learned(one), learned(other)) < 50:
            until(lambda goal=count: both() >= goal, seconds=60.0)
            assert time.monotonic() < end, (learned(one), learned(other), first.status, second.status)
            broker.send("flights", events(40, count, ids=False))
            count += 40
        until(lambda: both() >= count)
        assert both() == count
    broker.send("flights", events(100, count, ids=False))
    with begin[0]() as (one, _), begin[1]() as (other, _):
        until(lambda: both() >= count + 100, seconds=60.0)
        time.sleep(0.3)
        assert both() == count + 100


def test_members_of_a_group_divide_the_events_of_redis(redis, tmp_path):
    divide_the_events(redis, tmp_path)


@pytest.mark.long  # the mock cluster waits for seconds before it gives partitions to members
def test_members_of_a_group_divide_the_partitions_of_kafka(tmp_path):
    kafka = Kafka()
    try:
        divide_the_events(kafka, tmp_path, **{"session.timeout.ms": "6000", "heartbeat.interval.ms": "200"})
    finally:
        kafka.stop()


class GivesAway:
    """A consumer of two partitions, of which the group gives away the second while a batch is read."""

    def __init__(self, member, place):
        self.member, self.place, self.committed_at = member, place, {}

    def message(self, partition, offset):
        fields = {"error": None, "partition": partition, "offset": offset, "value": b"{}"}
        return SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})

    def poll(self, _seconds):
        return self.message(1, 7)

    def consume(self, _most, _seconds):
        self.member._revoked(self, [self.place(1, 7)])
        return [self.message(0, 3)]

    def assignment(self):
        return [self.place(0, 4)]

    def commit(self, offsets, asynchronous):
        self.committed_at |= {one.partition: one.offset for one in offsets}

    def unassign(self):
        """Give all back."""


def test_what_is_read_while_a_partition_is_given_away_is_left_to_the_next_member():
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install 'kernling[kafka]'")
    member = open_source(Address.parse("kafka://127.0.0.1:1/flights?group=two"))
    member._consumer = consumer = GivesAway(member, member._place)
    member._at, member._looked = {"0": 3, "1": 7}, math.inf
    batch = member.read(10, 0.1)
    assert batch.places == ["0:3"]
    assert consumer.committed_at == {1: 7}
    member._at["0"] = 9  # read since, but not learned yet
    member.done(batch.offsets)
    assert consumer.committed_at == {0: 4, 1: 7}


def test_a_member_learns_what_it_was_given_before_a_crash(redis, tmp_path):
    """Redis gives entries once, and remembers to whom; those in the journal are not learned again, the others are."""
    url = redis.url("flights", group="night", **AVM)
    redis.send("flights", events(100, ids=False))
    with fed(tmp_path / "service", url) as (service, feed):
        until(lambda: learned(service) == 100 and redis.client.xpending("flights", "night")["pending"] == 0)
        feed._source.done = lambda offsets: None  # the end comes before Redis is told
        redis.send("flights", events(50, 100, ids=False))
        until(lambda: learned(service) == 150)
        consumer = feed._source._consumer
    redis.send("flights", events(30, 150, ids=False))
    redis.client.xreadgroup("night", consumer, {"flights": ">"})  # given, and the end comes before it is in the journal
    assert redis.client.xpending("flights", "night")["pending"] >= 30
    with fed(tmp_path / "service", url) as (service, feed):
        until(lambda: learned(service) == 180)
        until(lambda: redis.client.xpending("flights", "night")["pending"] == 0)
        assert learned(service) == 180


def test_a_crash_sets_one_event_aside_and_the_others_are_learned(redis, tmp_path):
    """Of a batch that brought the process down, each event is read again alone; only the poisonous one is a dead letter."""
    from kernling.serve.dead import DeadLetters

    url, folder = redis.url("flights", **AVM), tmp_path / "service"
    redis.send("flights", events(100, ids=False))
    with fed(folder, url) as (service, _):
        until(lambda: learned(service) == 100)
        model = service.models["flights"]
    first, end, block, ids = blocks_of(folder)[-1]
    DeadLetters(folder / "dead").add(model.number, first, block, ids, "brought the process down")
    with fed(folder, url) as (service, feed):
        until(lambda: learned(service) == 100)
        until(lambda: feed.counts["read"] == end - first)  # counted after it has been learned
        assert {len(block.pieces) for one, _, block, _ in blocks_of(folder) if one >= end} == {1}


def test_sinks_say_when_the_broker_is_away(tmp_path):
    found = Redis(tmp_path / "redis")
    sink = open_sink(Address.parse(found.url("answers", maxlen="5")))
    sink.send([b"{}"] * 20)
    assert found.client.xlen("answers") <= 20
    found.stop()
    with pytest.raises(Exception, match="redis://127"):
        sink.send([b"{}"])
    sink.close()


@pytest.mark.long
def test_two_members_and_a_merge_are_as_good_as_one_learner(broker, tmp_path):
    """On cod-rna, a public data set: accuracy on later rows within one per cent of a model that has learned all rows itself."""
    try:
        X, y = dataset("cod-rna").stream().load()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    order = np.random.default_rng(0).permutation(len(y))[:38_000]  # the file is sorted
    X, y = X[order], y[order]
    X = np.clip((X - X[:1000].mean(axis=0)) / X[:1000].std(axis=0), -5.0, 5.0)
    rows = [{f"c{place}": value for place, value in enumerate(row)} for row in X.tolist()]
    labels = np.where(y > 0, "coding", "other").tolist()
    steps = [("encode", Encode()), ("model", kl.AVMClassifier(gamma=0.125, random_state=0))]
    begun = kl.StreamPipeline(steps).partial_fit(rows[:1000], labels[:1000])
    kl.save(begun, tmp_path / "begun.kern")
    options = {} if isinstance(broker, Redis) else {"session.timeout.ms": "6000", "heartbeat.interval.ms": "200"}
    sent, services, feeds = 1000, [], []
    try:
        for name in "ab":
            services.append(Service(tmp_path / name, Settings(block_rows=256)))
            services[-1].create("rna", model=kl.load(tmp_path / "begun.kern")).result()
            feeds.append(Feed(services[-1], broker.url("rna", group="night", **options)))
            feeds[-1].start()
        if isinstance(broker, Kafka):  # it refuses to be told how far members have come while it gives partitions to others
            until(lambda: "rna" in broker.producer.list_topics("rna").topics)  # which creates it
            until(lambda: all(feed._source._at for feed in feeds), 60.0)
            time.sleep(1.0)
        while sent < 30_000:
            part = slice(sent, min(sent + 500, 30_000))
            broker.send("rna", [row | {"target": one} for row, one in zip(rows[part], labels[part], strict=True)])
            sent = part.stop
        until(lambda: sum(feed.counts["learned"] for feed in feeds) >= 29_000, seconds=120.0)
    finally:
        for feed in feeds:
            feed.stop()
        replicas = [service.models["rna"].published.model for service in services]
        for service in services:
            service.stop()
    assert sum(feed.counts["learned"] for feed in feeds) == 29_000
    assert min(feed.counts["learned"] for feed in feeds) > 5_000
    merged = begun.with_model(kl.merge([one.model_ for one in replicas], start=begun.model_))
    alone = kl.load(tmp_path / "begun.kern").partial_fit(rows[1000:30_000], labels[1000:30_000])
    found = [float((one.predict(rows[30_000:]) == np.array(labels[30_000:])).mean()) for one in (merged, alone, begun)]
    print(f"accuracy: merged {found[0]:.4f}, one learner {found[1]:.4f}, at the beginning {found[2]:.4f}")
    assert merged.t_ == alone.t_ == 30_000
    assert found[0] > found[1] - 0.01
    assert found[0] > found[2]
