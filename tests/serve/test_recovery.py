"""Restarts, with whole and with damaged files."""

import shutil
from concurrent.futures import wait

import numpy as np
import pytest

from kernling import models, registry, text
from kernling.serve import log
from kernling.serve import rows as rows_of_requests
from kernling.serve.blocks import Block
from kernling.serve.refusal import Refused
from kernling.tables import table as raw_tables
from serving import abandon, blocks_of, contents_of, events, send


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
    assert third.snapshots.newest(1).newest.state.position == expected[-1]
    assert contents_of(third, "flights") == expected
    send(third, events(30, seed=2), 10)


def test_blocks_are_learned_again_once_only(start):
    service = start()
    send(service, events(70), 7)
    expected = contents_of(service, "flights")
    abandon(service)
    again = start()  # learns the journal, and saves the result
    abandon(again)
    found = start().snapshots.newest(1).newest.state
    assert found.position == expected[-1] == 70


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


def test_blocks_are_learned_again_as_they_were(start, tmp_path):
    service = start()
    futures = [service.learn("flights", [row]) for row in events(60)]  # blocks of whatever waited
    wait(futures)
    expected = contents_of(service, "flights")
    abandon(service)
    assert sum(len(block.pieces) for _, _, block, _ in blocks_of(tmp_path / "service")) == 60
    assert contents_of(start(), "flights") == expected


def test_a_model_that_has_not_begun_survives(start):
    service = start()
    send(service, events(10), 1)
    service.stop()
    again = start()
    facts = again.facts(again.models["flights"])
    assert (facts["events"], facts["collected"]) == (0, 10)
    send(again, events(15, seed=1), 15)
    facts = again.facts(again.models["flights"])
    assert (facts["events"], facts["collected"]) == (25, 0)


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
    assert "is damaged" in again.facts(again.models["flights"])["errors"][0]["error"]
    assert again.learn("flights", events(50, seed=3)).result()["learned"] == 0


def test_without_any_snapshot_the_events_that_were_cut_are_told(start, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SEGMENT", 1)  # a file for every commit
    service = start()
    for seed in range(4):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    send(service, events(1, seed=9), 1)
    abandon(service)
    for path in (tmp_path / "service/snapshots/1").glob("*.kern"):
        damage(path, -1)
    again = start()
    assert "150 events (0 to 149) are lost" in again.facts(again.models["flights"])["losses"][0]["loss"]
    rows = [row for seed in range(4) for row in events(50, seed=seed)]
    assert again.learn("flights", rows).result()["learned"] == 150  # their ids are forgotten, those of the others are not
    assert again.facts(again.models["flights"])["events"] == 201


def journal_of(folder):
    """The files of a journal, oldest first."""
    return sorted((folder / "journal").glob("*.log"))


def test_a_damaged_record_is_told_and_left_out_and_its_events_can_be_sent_again(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    abandon(service)
    path = journal_of(tmp_path / "service")[0]
    last = log.Log(path.parent).scan()[-2]  # the fourth block
    damage(path, last.place + log.SIZE + last.length // 2)
    again = start()
    facts = again.facts(again.models["flights"])
    assert (facts["events"], facts["lost"]) == (40, 10)
    assert facts["losses"][0]["loss"].startswith("10 events (30 to 39) are lost, since their record is damaged")
    assert again.health()["status"] == "degraded"
    assert again.learn("flights", events(50)).result()["learned"] == 10
    assert (path.parent / f"{path.name}.damaged").exists()
    again.stop()
    third = start()  # does not forget what was lost
    assert third.facts(third.models["flights"])["lost"] == 10
    assert third.health()["models"] == {"flights": [facts["losses"][0]["loss"]]}
    third.accept_losses()
    third.stop()
    assert start().health() == {"status": "ok"}


@pytest.mark.parametrize("what", ["head", "content", "cut"])
def test_the_end_of_the_journal_does_not_vanish_unnoticed(start, tmp_path, what):
    service = start()
    send(service, events(50), 10)
    abandon(service)
    path = journal_of(tmp_path / "service")[0]
    last = log.Log(path.parent).scan()[-1]
    if what == "cut":
        path.write_bytes(path.read_bytes()[: last.place])  # exactly between two records
    else:
        damage(path, last.place + (9 if what == "head" else log.SIZE))
    again = start()
    facts = again.facts(again.models["flights"])
    assert (facts["events"], facts["lost"]) == (40, 10)
    assert again.learn("flights", events(50)).result()["learned"] == 10


def test_a_commit_that_was_being_written_is_left_out_without_a_word(start, tmp_path):
    service = start()
    send(service, events(50), 10)
    abandon(service)
    path = journal_of(tmp_path / "service")[0]
    content = path.read_bytes()
    last = log.Log(path.parent).scan()[-1]
    record = last.read()._replace(first=50)
    salt = content[last.place : last.place + 8]
    path.write_bytes(content + record.to_bytes(salt, is_last=False) + record.to_bytes(salt, is_last=True)[:-20])
    again = start()
    assert again.models["flights"].published.events == 50
    assert again.health() == {"status": "ok"}
    send(again, events(20, seed=1), 10)
    abandon(again)
    third = start()
    assert third.models["flights"].published.events == 70
    assert third.health() == {"status": "ok"}


def test_without_a_journal_the_snapshots_have_the_models(start, tmp_path):
    service = start()
    send(service, events(100), 10)
    service._snapshot(service.models["flights"])
    send(service, events(30, seed=1), 10)
    abandon(service)
    shutil.rmtree(tmp_path / "service/journal")
    again = start()
    facts = again.facts(again.models["flights"])
    assert (facts["events"], facts["lost"], facts["task"]) == (100, 30, "classification")
    assert "the journal is missing" in again.health()["damage"]
    assert again.learn("flights", events(100)).result()["learned"] == 0
    assert again.learn("flights", events(30, seed=1)).result()["learned"] == 30
    expected = contents_of(again, "flights")
    abandon(again)
    assert contents_of(start(), "flights") == expected


def test_ids_survive_damage_to_one_of_their_copies_and_are_told_if_both_are(start, tmp_path):
    service = start()
    send(service, events(100), 10)
    service.stop()
    copies = [path for name in ("ids", "ids-copy") for path in (tmp_path / "service" / name).glob("*.log")]
    damage(copies[0], -5)
    again = start()
    assert again.learn("flights", events(100)).result()["learned"] == 0
    again.stop()
    copies = [path for name in ("ids", "ids-copy") for path in (tmp_path / "service" / name).glob("*.log")]
    damage(copies[1], -5)  # the first has been mended
    third = start()
    assert third.learn("flights", events(100)).result()["learned"] == 0
    third.stop()
    for name in ("ids", "ids-copy"):
        shutil.rmtree(tmp_path / "service" / name)
    fourth = start()
    facts = fourth.facts(fourth.models["flights"])
    assert (facts["events"], facts["lost"]) == (100, 0)
    assert "the ids of 100 events (0 to 99) are lost" in facts["losses"][0]["loss"]


def test_a_row_that_looks_like_a_record_is_none(start, tmp_path, monkeypatch):
    for module in (text, rows_of_requests, raw_tables):
        monkeypatch.setattr(module, "flaw", lambda _: None)  # it has NUL characters, which are refused
    service = start()
    send(service, events(30), 10)
    path = journal_of(tmp_path / "service")[0]
    forged = log.Record(1, 1, 30, 1000, b"").to_bytes(bytes(8), is_last=True).decode("latin-1")
    row = events(1)[0] | {"id": "forged", "city": forged}
    service.learn("flights", [row]).result()
    abandon(service)
    last = log.Log(path.parent).scan()[-1]
    damage(path, last.place + 9)  # so that reading goes on within it
    again = start()
    assert again.facts(again.models["flights"])["lost"] == 1


def test_small_rests_of_old_files_are_copied_so_that_files_do_not_pile_up(start, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SEGMENT", 3_000)
    service = start()
    send(service, events(10, seed=9), 10, name="few")  # has no snapshot
    for seed in range(20):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    assert len(journal_of(tmp_path / "service")) <= 7
    abandon(service)
    again = start()
    assert again.health() == {"status": "ok"}
    assert again.models["few"].published.collected == 10
    assert again.models["flights"].published.events == 1000
    assert again.learn("few", events(10, seed=9)).result()["learned"] == 0


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
    assert service.snapshots.newest(1).newest.state.events == 60


def test_the_journal_is_cut_behind_the_last_two_snapshots(start, tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SEGMENT", 1)  # a file for every commit
    service = start()
    for seed in range(5):
        send(service, events(50, seed=seed), 10)
        service._snapshot(service.models["flights"])
    send(service, events(10, seed=9), 10)
    assert [first for first, *_ in blocks_of(tmp_path / "service")] == [200, 210, 220, 230, 240, 250]


def test_a_model_that_could_not_be_entered_leaves_nothing_behind(start, tmp_path, monkeypatch):
    service = start()
    send(service, events(60), 20)
    models.save(service.models["flights"].published.model, tmp_path / "model.kern")
    uploaded = models.load(tmp_path / "model.kern")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(log, "_write", full)
        with pytest.raises(Refused, match="No space left"):
            service.create("other", model=uploaded).result()
    assert list((tmp_path / "service/snapshots/2").glob("*"))  # of the model that is not there
    abandon(service)
    service = start()
    assert list(service.models) == ["flights"]
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
