"""The parts of the journal, of the ids and of the queue, one by one."""

import os

import numpy as np
import pytest

import kernling
from kernling.pipeline import last_step
from kernling.serve import jobs as queue
from kernling.serve import live
from kernling.serve import log as logs
from kernling.serve.blocks import Block
from kernling.serve.dead import Attempts, DeadLetters
from kernling.serve.ids import IDS, KnownIds, Piece, StoredIds
from kernling.serve.jobs import Job, Jobs
from kernling.serve.journal import BLOCK, DEFINITION, Definition, Journal, blocks
from kernling.serve.learners import share
from kernling.serve.live import LiveModel, Traits
from kernling.serve.log import Found, Log, Record
from kernling.serve.marks import NAMES, Mark, Marks, read
from kernling.serve.recovery import Survey
from kernling.serve.refusal import Refused
from kernling.serve.rows import Layout
from kernling.serve.settings import Settings
from kernling.serve.snapshots import NEW
from kernling.serve.targets import Targets
from kernling.serve.waiting import OVERHEAD, Waiting
from serving import abandon, events, send


def written(folder):
    """What the records of a log say: model, first event and end."""
    return [(one.model, one.first, one.end) for one in Log(folder).scan() if one.is_whole]


# ---------------------------------------------------------------------- the log


def test_only_records_that_are_needed_are_copied_before_a_file_is_removed(tmp_path):
    log = Log(tmp_path / "log")
    log.append([Record(1, 1, 0, 10, b"a"), Record(1, 2, 0, 5, b"b"), Record(1, 1, 10, 10, b"c"), Record(1, 2, 5, 5, b"d")])
    log._end_file()
    log.append([Record(1, 3, 0, 1, b"e")])
    log.cut(1, 20)
    log.cut(2, 5)
    log.tidy()
    log.close()
    assert written(tmp_path / "log") == [(3, 0, 1), (2, 5, 10)]


def test_a_file_with_much_that_is_needed_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "SMALL", 0)
    log = Log(tmp_path / "log")
    log.append([Record(1, 1, 0, 10, bytes(500)), Record(1, 2, 0, 5, bytes(500))])
    log._end_file()
    log.append([Record(1, 3, 0, 1, b"e")])
    log.cut(1, 10)
    log.cut(2, 3)  # in the middle of its record
    log.tidy()
    assert len(list((tmp_path / "log").glob("*.log"))) == 2
    log.cut(2, 5)
    log.tidy()
    log.close()
    assert written(tmp_path / "log") == [(3, 0, 1)]


def test_another_file_is_begun_when_one_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "SEGMENT", 200)
    log = Log(tmp_path / "log", lambda: [Record(2, 9, 0, 0, b"opening")])
    for place in range(6):
        log.append([Record(1, 1, place, 1, bytes(100))])
    log.close()
    assert len(list((tmp_path / "log").glob("*.log"))) == 3
    assert [found.model for found in Log(tmp_path / "log").scan()] == [9, 1, 1, 9, 1, 1, 9, 1, 1]


@pytest.mark.parametrize("truncated", [True, False])
def test_a_commit_that_could_not_be_flushed_is_not_there(tmp_path, monkeypatch, truncated):
    log = Log(tmp_path / "log")
    log.append([Record(1, 1, 0, 10, b"a")])

    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(logs, "_flush_data", fail)
        if not truncated:  # a disk that fails wholly
            broken.setattr(os, "ftruncate", fail)
        with pytest.raises(OSError, match="Input/output"):
            log.append([Record(1, 1, 10, 10, b"b")])
    log.append([Record(1, 1, 10, 10, b"c")])
    log.close()
    found = Log(tmp_path / "log").scan()
    assert [one.read().content for one in found if one.path != found[0].path] == [b"c"]
    assert len(found) == (2 if truncated else 3)


@pytest.mark.parametrize("removed", [0, 20])
def test_records_after_a_damaged_one_are_found(tmp_path, removed):
    log = Log(tmp_path / "log")
    for place in range(3):
        log.append([Record(1, 1, place, 1, b"content" * 10)])
    log.close()
    path = next((tmp_path / "log").glob("*.log"))
    content = bytearray(path.read_bytes())
    place = content.index(b"content")
    content[place] ^= 1
    del content[place : place + removed]
    path.write_bytes(content)
    log = Log(tmp_path / "log")
    assert [one.is_whole for one in log.scan()] == [False, True, True]
    assert len(log.damage()) == 1
    log.clean(lambda found: found.is_whole)
    log.close()
    again = Log(tmp_path / "log")
    assert [one.first for one in again.scan()] == [1, 2]
    assert again.damage() == []
    assert len(list((tmp_path / "log").glob("*.damaged"))) == 1


def test_only_commits_without_their_end_are_incomplete(tmp_path):
    log = Log(tmp_path / "log")
    log.append([Record(1, 1, 0, 1, b"a"), Record(1, 2, 0, 1, b"b")])
    log.append([Record(1, 1, 1, 1, b"c"), Record(1, 2, 1, 1, b"d")])
    log.close()
    path = next((tmp_path / "log").glob("*.log"))
    whole = path.read_bytes()
    for cut, expected in ((0, []), (1, [(1, 1), (2, 1)]), (len(whole) // 4 + 1, [(1, 1)])):
        path.write_bytes(whole[: len(whole) - cut])
        log = Log(tmp_path / "log")
        log.scan()
        assert [(one.model, one.first) for one in log.incomplete()] == expected


# ---------------------------------------------------------------------- marks


def test_marks_are_written_in_turn_and_the_highest_counts(tmp_path):
    marks = Marks(tmp_path)
    for total in (10, 20, 30):
        marks.write({1: Mark("a", {}, total), 2: Mark("b", {}, 5)})
    marks.close()
    first, second = ((tmp_path / name).read_bytes() for name in NAMES)
    assert {b"20, {}]" in one for one in (first, second)} == {b"30, {}]" in one for one in (first, second)} == {True, False}
    for contents in ((first, second), (second, first)):
        for name, content in zip(NAMES, contents, strict=True):
            (tmp_path / name).write_bytes(content)
        found = read(tmp_path)
        assert {number: mark.total for number, mark in found.models.items()} == {1: 30, 2: 5}
        assert found.missing == []
    (tmp_path / NAMES[0]).write_bytes(b"damaged")
    assert read(tmp_path).missing == [NAMES[0]]
    assert read(tmp_path).models[1].total in (20, 30)


# ---------------------------------------------------------------------- ids


def test_the_last_ids_are_known_and_where_they_begin():
    known = KnownIds(3)
    for first, ids in ((0, ["a", "b"]), (2, ["c"]), (5, ["d", "e"])):
        known.add(Piece(first, first + len(ids), ids))
    assert [one in known for one in "abcde"] == [False, False, True, True, True]
    assert (known.oldest, len(known)) == (2, 3)


def test_ids_are_stored_in_pieces_up_to_a_number_of_events():
    known = KnownIds(100)
    known.begin(0, 0, [])
    for first in range(0, 8, 2):
        known.add(Piece(first, first + 2, [str(first), str(first + 1)]))
    assert known.to_store(5) == [Piece(0, 4, ["0", "1", "2", "3"])]
    known.set_stored(5)
    assert (known.stored, [piece.first for piece in known.new]) == (4, [4, 6])
    assert known.range() == (0, 4)
    known.oldest = 6  # the ids of events that are not stored yet have been forgotten
    assert known.range() == (4, 4)
    assert known.to_store(8) == [Piece(4, 8, ["4", "5", "6", "7"])]


def test_of_stored_ids_the_last_ones_are_known():
    known = KnownIds(2)
    known.begin(0, 6, [Piece(0, 2, ["a", "b"]), Piece(2, 4, ["c", "a"]), Piece(4, 6, ["d", "e"])])
    assert [one in known for one in "abcde"] == [False, False, False, True, True]
    known = KnownIds(3)
    known.begin(0, 6, [Piece(0, 1, ["x"]), Piece(1, 3, ["a", "b"]), Piece(3, 6, ["c", "a", "d"])])
    assert [one in known for one in "xabcd"] == [False, True, False, True, True]  # "a" was learned again


def test_pieces_of_stored_ids(tmp_path):
    stored = StoredIds(tmp_path)
    stored.logs[0].append([Record(IDS, 1, 0, 2, b'["a", "b"]'), Record(IDS, 1, 2, 1, b'["c"]')])
    stored.logs[1].append(
        [Record(IDS, 1, 2, 2, b'["c", "d"]'), Record(IDS, 1, 6, 2, b'["g", "h"]'), Record(IDS, 2, 0, 9, b"[]")]
    )
    stored.close()
    stored = StoredIds(tmp_path)
    assert stored.pieces(1, 0, 9) == (
        [Piece(0, 2, ["a", "b"]), Piece(2, 4, ["c", "d"]), Piece(6, 8, ["g", "h"])],
        [(4, 6), (8, 9)],
    )
    assert stored.pieces(1, 2, 4) == ([Piece(2, 4, ["c", "d"])], [])  # those up to event 2 may be forgotten
    assert stored.pieces(1, 0, 7)[1] == [(4, 7)]
    stored.mend({1: (2, 4)})
    stored.close()
    assert [written(log.folder) for log in stored.logs] == [[(1, 2, 4), (1, 2, 3)], [(1, 2, 4)]]


# ---------------------------------------------------------------------- the queue


def test_a_model_rests_as_long_as_it_learned_unless_a_whole_block_waits(monkeypatch):
    clock = [1.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
    jobs = Jobs(rows=1000, bytes=1000)
    jobs.put(Job("a", rows=[{}] * 10))
    assert [job.name for job in jobs.take(10)] == ["a"]
    clock[0] = 1.05
    jobs.release("a")
    lane = jobs._lanes["a"]
    jobs.put(Job("a"))
    assert [lane.is_ready(10, now) for now in (1.05, 1.09, 1.11)] == [False, False, True]
    jobs.put(Job("a", rows=[{}] * 9))
    assert lane.is_ready(10, 1.05)
    clock[0] = 1.2
    jobs.take(10)
    clock[0] = 9.0
    jobs.release("a")
    assert lane.rests_until == 9.0 + queue.REST


@pytest.mark.parametrize(("learned", "enough"), [(16, 16), (1, 1), (1600, queue.ENOUGH)])
def test_a_model_rests_no_longer_once_as_many_rows_wait_as_it_has_just_learned(monkeypatch, learned, enough):
    clock = [1.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
    jobs = Jobs(rows=10_000, bytes=1000)
    for _ in range(learned):
        jobs.put(Job("a"))
    assert len(jobs.take(4096)) == learned
    clock[0] = 1.05
    jobs.release("a")
    for _ in range(enough - 1):
        jobs.put(Job("a"))
    lane = jobs._lanes["a"]
    assert not jobs._lanes["a"].is_ready(4096, 1.05)
    jobs.put(Job("a"))
    assert lane.is_ready(4096, 1.05)


def test_a_model_rests_also_if_nothing_waits_yet(monkeypatch):
    """Otherwise the first request that arrives would be learned alone, and all others after it."""
    clock = [1.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
    jobs = Jobs(rows=100, bytes=1000)
    jobs.put(Job("a"))
    jobs.put(Job("a"))
    assert len(jobs.take(10)) == 2
    clock[0] = 1.05
    jobs.release("a")
    monkeypatch.setattr(jobs._changed, "wait", lambda seconds: jobs.put(Job("a")))
    assert len(jobs.take(10)) == 2


def test_a_queue_that_is_closed_does_not_rest(monkeypatch):
    clock = [1.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
    jobs = Jobs(rows=100, bytes=1000)
    for _ in range(4):
        jobs.put(Job("a"))
    assert len(jobs.take(3)) == 3
    clock[0] = 1.05
    jobs.release("a")
    monkeypatch.setattr(jobs._changed, "wait", lambda seconds: pytest.fail("it rests"))
    jobs.close()
    assert len(jobs.take(3)) == 1


def test_what_was_left_in_the_queue_is_no_part_of_the_last_block(monkeypatch):
    """A model that learns one request at a time has no reason to rest while others wait."""
    clock = [1.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: clock[0])
    jobs = Jobs(rows=100, bytes=1000)
    for _ in range(3):
        jobs.put(Job("a"))
    assert len(jobs.take(10, alone=lambda name: True)) == 1
    clock[0] = 1.05
    jobs.release("a")
    assert jobs._lanes["a"].is_ready(10, 1.05)


def test_a_queue_waits_no_time_for_a_model_that_is_learning(monkeypatch):
    """Otherwise it would look again and again."""
    jobs, waits = Jobs(rows=100, bytes=1000), []
    jobs.put(Job("a"))
    jobs.take(3)
    monkeypatch.setattr(jobs._changed, "wait", lambda seconds: (waits.append(seconds), jobs.put(Job("b"))))
    assert [job.name for job in jobs.take(3)] == ["b"]
    assert waits == [None]


def test_models_take_turns_in_the_queue_and_some_learn_alone():
    jobs = Jobs(rows=1000, bytes=1000)
    for name in "aaabbb":
        jobs.put(Job(name, rows=[{}] * 2))
    assert [job.name for job in jobs.take(4)] == ["a", "a"]
    jobs.release("a")
    jobs._lanes["a"].rests_until = 0.0
    assert [job.name for job in jobs.take(4, alone=lambda name: name == "b")] == ["b", "a"]
    assert jobs.waiting == 4


def test_a_model_leaves_half_of_the_queue_to_others():
    jobs = Jobs(rows=8, bytes=1000)
    for _ in range(4):
        jobs.put(Job("a"))
    with pytest.raises(Refused, match="too many rows"):
        jobs.put(Job("a"))
    jobs.put(Job("b"))
    jobs.put(Job("b", bytes=400))
    with pytest.raises(Refused, match="too many rows"):
        jobs.put(Job("b", bytes=300))


def test_a_request_that_is_larger_than_the_queue_waits_alone():
    jobs = Jobs(rows=8, bytes=1000)
    jobs.put(Job("a", rows=[{}] * 20))
    with pytest.raises(Refused, match="too many rows"):
        jobs.put(Job("b"))
    assert len(jobs.take(10)) == 1


def test_new_classes_make_turns_shorter():
    rows = [str(place) for place in range(1000)]
    assert share(rows, {"a", "b"}, 2**22) < share(["a"] * 1000, {"a", "b"}, 2**22) // 10
    assert share(rows, set(), 2**40) == 1


@pytest.mark.parametrize("is_published", [True, False])
def test_a_block_that_fails_in_a_later_turn_is_forgotten_but_for_the_pieces_that_can_be_learned(monkeypatch, is_published):
    monkeypatch.setattr(live, "share", lambda targets, known, size: min(10, len(targets)))
    rng, teach = np.random.default_rng(0), LiveModel._teach

    def fails(self: LiveModel, part: Block) -> None:
        if (part.columns["km"] > 1e9).any():
            raise ValueError("too far")
        teach(self, part)

    monkeypatch.setattr(LiveModel, "_teach", fails)

    def block(pieces: int, bad: int | None = None) -> Block:
        km = rng.normal(size=20 * pieces)
        targets = np.where(km > 0.0, "late", "on time").tolist()
        if bad is not None:
            km[20 * bad] = 1e10
        return Block({"km": km}, targets, (20,) * pieces)

    traits = Traits(Layout({"km": "numbers"}), Targets("classification", "text"))
    spec = {"estimator": "AVMClassifier", "parameters": {"random_state": 0}}
    model, twin = (LiveModel(1, "trips", spec, traits, Settings(first_rows=40)) for _ in range(2))
    first, second = block(3), block(4, bad=2)
    for each in (model, twin):
        (each.learn if is_published else each.replay)(60, first)
    assert [outcome is None for outcome in model.learn(140, second)] == [True, True, False, True]
    for place, piece in enumerate(second.split()):
        if place != 2:
            twin.learn(140, piece)
    assert model.published.events == twin.published.events == 120
    probes = [{"km": value} for value in (-1.0, 0.1, 2.0)]
    assert model.published.predict(probes, traits.layout) == twin.published.predict(probes, traits.layout)
    assert last_step(model.published.model).t_ == 120


# ---------------------------------------------------------------------- what brought the process down


def died(attempts):
    """The next start after a process that ended without closing its files."""
    folder = attempts._attempt.parent
    attempts._file.close()
    return Attempts(folder, report=False)


def test_a_block_is_tried_three_times(tmp_path):
    attempts = Attempts(tmp_path, report=False)
    for _ in range(3):
        assert attempts.begin(1, "block 5") is None
        attempts = died(attempts)
    assert attempts.begin(1, "block 6") is None
    assert attempts.begin(1, "block 5") == "was at work 3 times when the process ended"
    attempts.close()


def test_what_was_done_is_not_blamed(tmp_path):
    attempts = Attempts(tmp_path, report=False)
    for _ in range(4):
        assert attempts.begin(1, "block 5") is None
        attempts.end()
        attempts = died(attempts)
    attempts.close()


def test_rows_that_were_set_aside(tmp_path):
    def block(*values, pieces):
        return Block({"x": np.array(values)}, ["a"] * len(values), pieces)

    dead = DeadLetters(tmp_path / "dead")
    alone, together = block(1.0, pieces=(1,)), block(2.0, 3.0, pieces=(1, 1))
    dead.add(1, 0, alone, [], "crashed")
    dead.add(1, 1, together, [], "crashed")
    for held in (dead, DeadLetters(tmp_path / "dead")):
        held.check(1, block(2.0, 3.0, pieces=(2,)))  # one of two requests: it is not known which
        held.check(2, alone)
        assert [held.has(1, first) for first in (0, 1, 2)] == [True, True, False]
        with pytest.raises(Refused, match="set aside"):
            held.check(1, alone)
    dead.add(1, 3, block(4.0, pieces=(1,)), [], "crashed")
    with pytest.raises(Refused, match="3 times, and learns no more"):
        dead.check(1, block(9.0, pieces=(1,)))


# ---------------------------------------------------------------------- rows that wait


def test_bytes_of_rows_that_wait_count_each_id_once(tmp_path):
    waiting = Waiting(tmp_path / "waiting.sqlite", Settings())
    waiting.keep(1, ["a", "b"], [{"km": 1.5}] * 2)
    size = waiting.bytes[1]
    waiting.keep(1, ["b", "c"], [{"km": 1.5}] * 2)
    assert (waiting.counts[1], waiting.bytes[1]) == (3, size * 3 // 2)
    waiting.close()


# ---------------------------------------------------------------------- recovery


def test_a_snapshot_under_the_name_of_another_is_damaged(start, tmp_path):
    service = start()
    send(service, events(60), 20)
    service.stop()
    path = max((tmp_path / "service/snapshots/1").glob("*.kern"))
    path.rename(path.with_name(f"{70:016d}.kern"))
    service = start()
    assert any("it is of 60 events" in one["error"] for one in service.facts(service.model("flights"))["errors"])


def test_accepted_losses_stay_accepted(start, tmp_path):
    service = start()
    send(service, events(60), 20)
    abandon(service)
    path = next((tmp_path / "service/journal").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # the last 20 events
    path.write_bytes(content)
    service = start()
    assert service.facts(service.model("flights"))["lost"] == 20
    assert service.model("flights").published.position == 60, "the lost events count: the next ones come after them"
    service.accept_losses()
    abandon(service)
    service = start()
    assert service.health()["status"] == "ok"
    assert service.learn("flights", events(60)).result()["learned"] == 20


def test_a_model_from_a_file_survives_damage_to_the_end_of_the_journal(start, tmp_path):
    """Its commit looks as if it was being written, but the marks say that it was complete."""
    service = start()
    model = kernling.StreamPipeline.auto(kernling.AVMClassifier(), categorical=[])
    model.partial_fit([{"km": float(place % 7)} for place in range(60)], ["late", "on time"] * 30)
    service.create("begun", model=model).result()
    abandon(service)
    path = next((tmp_path / "service/journal").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-1])
    snapshot = next((tmp_path / "service/snapshots/1").glob("*.kern"))
    snapshot.rename(snapshot.with_suffix(NEW))  # as if the process had ended before it was entered
    service = start()
    assert service.models["begun"].from_file
    assert service.models["begun"].published.model.t_ == 60


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_copies_of_a_block_the_whole_one_is_learned(tmp_path, order):
    """A start that was killed while it copied records leaves both, and damage may hit one of them."""
    copies = [Found(tmp_path / name, 0, BLOCK, True, 1, 0, 10, 5, is_whole=name == "whole") for name in ("whole", "damaged")]
    others = [copies[0]._replace(model=2), copies[0]._replace(first=10), copies[0]._replace(kind=DEFINITION, first=20)]
    found = blocks([*others, *copies[::order]], 1)
    assert [(one.first, one.is_whole) for one in found] == [(0, True), (10, True)]
    assert blocks(copies[1:], 1) == copies[1:], "what is damaged is told, even if a snapshot has its events"


def test_what_a_model_is_survives_damage_to_one_of_its_records(tmp_path):
    journal = Journal(tmp_path)
    with journal.commit():
        journal.add_model(Definition("flights", {}, {"columns": {}}))
    journal.close()
    path = next((tmp_path / "journal").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[content.index(b"columns")] ^= 1
    path.write_bytes(content)
    assert Survey(tmp_path).plan(1, None).definition == Definition("flights", {}, {"columns": {}})


def journal_of_three(folder):
    """A model of which three events were learned from a source, with a column that came with them."""
    journal = Journal(folder)
    with journal.commit():
        journal.add_model(Definition("flights", {}, {"columns": {}}))
    with journal.commit():
        journal.define(1, Definition("flights", {}, {"columns": {"km": "numbers"}}), 3)
        journal.append(1, Block({"km": np.arange(3.0)}, ["late"] * 3, (3,)), list("abc"))
        journal.note(1, {"source": [7, {"place": 3}]})
    journal.close()
    return journal


def test_what_a_model_became_with_a_block_is_needed_until_a_snapshot_has_the_block(tmp_path):
    log = journal_of_three(tmp_path).log
    definitions = [one for one in log.scan() if one.kind == DEFINITION]
    for end, needed in ((0, [False, False, True, True]), (3, [False] * 4)):
        log.cut(1, end)
        assert [log.is_needed(one) for one in definitions[-4:]] == needed


def test_a_source_is_read_again_from_before_what_was_lost(tmp_path):
    journal_of_three(tmp_path)
    assert Survey(tmp_path).plan(1, None).offsets == {"source": [7, {"place": 3}]}
    path = next((tmp_path / "journal").glob("*.log"))
    place = next(one.place for one in Log(tmp_path / "journal").scan() if one.kind == BLOCK)
    path.write_bytes(path.read_bytes()[:place])
    plan = Survey(tmp_path).plan(1, None)
    assert (plan.total, [(one["first"], one["end"]) for one in plan.lost], plan.offsets) == (3, [(0, 3)], {})


def test_a_number_whose_commit_failed_is_given_again(tmp_path):
    journal = Journal(tmp_path)

    def fail():
        with journal.commit():
            assert journal.add_model(Definition("flights", {}, {})) == 1
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    with journal.commit():
        assert journal.add_model(Definition("trips", {}, {})) == 1
    journal.close()


def test_no_more_rows_are_dropped_than_needed(tmp_path):
    size = 1 + len(b'{"km": 1.5}') + OVERHEAD
    waiting = Waiting(tmp_path / "waiting.sqlite", Settings(waiting_bytes=3 * size))
    waiting.keep(1, list("abcd"), 4 * [{"km": 1.5}])
    assert (waiting.bytes[1], waiting.evicted[1], list(waiting.find(1, list("abcd")))) == (3 * size, 1, list("bcd"))
    waiting.close()


def test_a_large_row_takes_the_place_of_several(tmp_path):
    waiting = Waiting(tmp_path / "waiting.sqlite", Settings(waiting_bytes=1000))
    waiting.keep(1, [str(place) for place in range(10)], 10 * [{"km": 1.5}])
    waiting.keep(1, ["large"], [{"km": "x" * 600}])
    assert waiting.bytes[1] == waiting._size(1) <= 1000
    assert list(waiting.find(1, ["large", "0", "9"])) == ["large", "9"]
    waiting.close()
