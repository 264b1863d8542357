"""Restarts, with whole and with damaged files."""

import sqlite3
from concurrent.futures import wait

import numpy as np
import pytest

from kernling import models, registry
from kernling.serve.blocks import Block
from kernling.serve.refusal import Refused
from serving import abandon, contents_of, events, send


def test_starting_again_gives_the_same_model_with_and_without_snapshots(start):
    service = start()
    send(service, events(70), 7)
    service._snapshot(service.models["flights"])
    send(service, events(95, seed=1), 19)
    expected = contents_of(service, "flights")
    abandon(service)
    again = start()
    assert contents_of(again, "flights") == expected
    again.stop()  # with a snapshot
    third = start()
    assert not list(third.journal.blocks(1, after=expected[-1]))
    assert contents_of(third, "flights") == expected
    send(third, events(30, seed=2), 10)


def test_blocks_are_learned_again_once_only(start):
    service = start()
    send(service, events(70), 7)
    expected = contents_of(service, "flights")
    abandon(service)
    again = start()  # learns the journal, and saves the result
    abandon(again)
    found = start().snapshots.newest(1).state
    assert found.position == expected[-1]


MAIN = [name for name in registry.public_names(main=True) if name.endswith(("Classifier", "Regressor"))]


@pytest.mark.parametrize(
    "estimator", ["SPAClassifier", *(pytest.param(name, marks=pytest.mark.long) for name in MAIN if name != "SPAClassifier")]
)
def test_coins_are_tossed_again_as_they_fell(start, estimator):
    service = start()
    service.create("m", {"estimator": estimator}).result()
    for seed in range(4):
        rows = [row | {"target": float(row["target"] == "late")} for row in events(50, seed=seed)]
        service.learn("m", rows).result()
        if seed == 1:
            service._snapshot(service.models["m"])
    expected = contents_of(service, "m")
    abandon(service)
    assert contents_of(start(), "m") == expected


def test_blocks_are_learned_again_as_they_were(start):
    service = start()
    futures = [service.learn("flights", [row]) for row in events(200)]  # blocks of whatever waited
    wait(futures)
    expected = contents_of(service, "flights")
    sizes = [len(record.block.pieces) for record in service.journal.blocks(1, after=0)]
    assert sum(sizes) == 200
    abandon(service)
    assert contents_of(start(), "flights") == expected


def test_a_model_that_has_not_begun_survives(start):
    service = start()
    send(service, events(10), 1)
    service.stop()
    again = start()
    assert again.models["flights"].published.events == 10
    send(again, events(15, seed=1), 15)
    assert again.models["flights"].published.model is not None


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_a_damaged_snapshot_is_left_out_for_the_one_before(start, tmp_path):
    service = start()
    for seed in range(4):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    expected = contents_of(service, "flights")
    abandon(service)
    snapshots = sorted((tmp_path / "service/snapshots/1").glob("*.kern"))
    assert len(snapshots) == 2
    damage(snapshots[-1], -1)
    again = start()
    assert contents_of(again, "flights") == expected
    assert "a damaged snapshot was skipped" in again.facts(again.models["flights"])["errors"][0]["error"]


def test_without_any_snapshot_the_events_that_were_cut_are_told(start, tmp_path):
    service = start()
    for seed in range(4):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    abandon(service)
    for path in (tmp_path / "service/snapshots/1").glob("*.kern"):
        damage(path, -1)
    again = start()
    assert any("events in between are lost" in one["error"] for one in again.errors["flights"])
    send(again, events(50, seed=9), 50)


def test_a_damaged_record_is_told_and_left_out(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    abandon(service)
    with sqlite3.connect(tmp_path / "service/journal.sqlite") as database:
        database.execute("UPDATE blocks SET content = zeroblob(length(content)) WHERE position = 5")
    database.close()
    again = start()
    assert again.models["flights"].published.events == 40
    assert "its 10 events are lost" in again.errors["flights"][0]["error"]


def test_a_damaged_tail_of_the_log_costs_its_last_commits_only(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    log = (tmp_path / "service/journal.sqlite-wal").read_bytes()
    database = (tmp_path / "service/journal.sqlite").read_bytes()
    abandon(service)
    (tmp_path / "service/journal.sqlite").write_bytes(database)
    (tmp_path / "service/journal.sqlite-wal").write_bytes(log[:-100])  # a torn write
    again = start()
    left = again.models["flights"].published.events
    assert left == 40
    assert again.learn("flights", events(50)).result()["learned"] == 50 - left


def test_events_learned_after_the_journal_was_lost_are_not_taken_for_old_ones(start, tmp_path):
    service = start()
    send(service, events(100), 10)
    service.stop()
    for path in (tmp_path / "service").glob("journal.sqlite*"):
        path.unlink()
    again = start()
    assert not again.models  # the journal has their names
    send(again, events(40, seed=1), 10)
    expected = contents_of(again, "flights")
    abandon(again)
    third = start()
    assert third.models["flights"].number == 2
    assert contents_of(third, "flights") == expected


def test_a_damaged_database_is_put_aside_and_read_as_far_as_possible(start, tmp_path):
    service = start()
    send(service, events(2000), 100)
    service.stop()
    path = tmp_path / "service/journal.sqlite"
    content = bytearray(path.read_bytes())
    content[-3 * 4096 :] = b"\xff" * (3 * 4096)
    path.write_bytes(content)
    again = start()
    assert again.models["flights"].published.events == 2000  # the snapshot has them
    assert "the journal was damaged" in again.errors["flights"][0]["error"]
    assert (tmp_path / "service/journal.sqlite.damaged").exists()
    send(again, events(50, seed=1), 50)
    abandon(again)
    assert start().models["flights"].published.events == 2050


def test_a_snapshot_that_cannot_be_written_is_told_and_tried_again(start, monkeypatch):
    service = start()
    send(service, events(60), 20)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(models, "save", full)
        service._snapshot(service.models["flights"])
    assert "No space left" in service.errors["flights"][-1]["error"]
    service._snapshot(service.models["flights"])
    assert service.snapshots.newest(1).state.events == 60


def test_the_journal_is_cut_behind_the_last_two_snapshots(start):
    service = start()
    for seed in range(5):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    send(service, events(10, seed=9), 10)
    assert min(record.position for record in service.journal.blocks(1, after=0)) == 16 + 5


def test_a_model_that_could_not_be_entered_leaves_nothing_behind(start, tmp_path, monkeypatch):
    service = start()
    send(service, events(60), 20)
    models.save(service.models["flights"].published.model, tmp_path / "model.kern")
    uploaded = models.load(tmp_path / "model.kern")

    def full():
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as context:
        context.setattr(service.journal, "_cut_some", full)  # the last thing before a commit
        with pytest.raises(Refused, match="disk is full"):
            service.create("other", model=uploaded).result()
    assert list((tmp_path / "service/snapshots/2").glob("*.kern"))  # of the model that is not there
    send(service, events(30, seed=1), 30, name="other")
    abandon(service)
    assert start().models["other"].published.events == 30


def test_blocks_keep_numbers_bit_by_bit():
    column = np.array([0.1, 1e-300, np.nan, -0.0])
    block = Block({"a": column, "b": np.array(["x", None, "é", ""], dtype=object)}, [0.1, 0.2, 1 / 3, 1e-17], (1, 3))
    again = Block.from_bytes(block.to_bytes())
    assert again.columns["a"].tobytes() == column.tobytes()
    assert again.columns["b"].tolist() == ["x", None, "é", ""]
    assert again.targets == block.targets
    assert [piece.targets for piece in again.split()] == [[0.1], [0.2, 1 / 3, 1e-17]]
