"""The command that checks the folder of a service."""

import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kernling.cli.commands import app
from kernling.serve.blocks import Block
from kernling.serve.dead import DeadLetters
from kernling.serve.letters import Letter
from kernling.serve.settings import Settings
from kernling.serve.waiting import Waiting
from serving import abandon, events, send


def run(*arguments):
    told = CliRunner().invoke(app, ["check", *map(str, arguments)])
    return told.exit_code, told.output


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name}


def test_a_whole_folder(start, tmp_path):
    service = start()
    send(service, events(60), 10)
    send(service, events(1), 1, name="few")
    assert run(tmp_path / "service") == (
        1,
        f"error: another service uses {tmp_path / 'service'}: stop it, or choose another folder with --data\n",
    )
    service.stop()
    before = files_of(tmp_path / "service")
    assert run(tmp_path / "service") == (0, "flights: 60 events, none is missing\nfew: 1 event, none is missing\n")
    assert files_of(tmp_path / "service") == before
    assert run(tmp_path / "none") == (
        1,
        f"error: there is no folder {tmp_path / 'none'}: give the --data folder of kernling serve\n",
    )


def test_damage_is_reported_without_changes_and_repaired(start, tmp_path):
    service = start()
    send(service, events(60), 10)
    service._snapshot(service.models["flights"])
    send(service, events(20, seed=1), 10)
    send(service, events(5, seed=2), 5, name="few")
    abandon(service)
    shutil.rmtree(tmp_path / "service/journal")
    before = files_of(tmp_path / "service")
    code, told = run(tmp_path / "service")
    assert code == 1
    assert "flights: 60 events, 20 more are lost\n  20 events (60 to 79) are lost, since " in told
    assert "few: 0 events, 5 more are lost" in told
    assert told.endswith("\nthe journal is missing\n")
    assert files_of(tmp_path / "service") == before
    code, repaired = run(tmp_path / "service", "--repair")
    assert code == 0
    assert repaired.startswith(told)
    assert "repaired" in repaired
    assert run(tmp_path / "service") == (0, "flights: 60 events, none is missing\nfew: 0 events, none is missing\n")
    again = start()
    assert again.health() == {"status": "ok"}
    assert again.learn("flights", events(60)).result()["learned"] == 0
    assert again.learn("flights", events(20, seed=1)).result()["learned"] == 20
    assert again.learn("few", events(5, seed=2)).result()["learned"] == 5


def test_dead_letters_are_listed(start, tmp_path):
    service = start()
    send(service, events(30), 30)
    service.stop()
    rows = Block({"km": np.array([1.0, 2.0])}, ["late", "late"], (2,))
    path = (
        tmp_path / "service" / DeadLetters(tmp_path / "service/dead").add(1, 30, rows, [], "brought the process down")["file"]
    )
    code, told = run(tmp_path / "service")
    assert code == 0
    assert "2 events were set aside, since learning them brought the process down: see dead/1-30.json" in told
    whole = path.read_bytes()
    odd = whole.replace(b"brought the", b"\\ud800")  # half of a surrogate pair, which no answer could hold
    for content in (b"{", b'{"model": 1}', b"[" * 200_000, odd, whole.replace(b"digest", b"DIGEST")):
        path.write_bytes(content)
        assert run(tmp_path / "service") == (
            1,
            "flights: 30 events, none is missing\n"
            "dead/1-30.json is damaged: rows that brought the process down may be learned again\n",
        )
    assert start().models["flights"].published.events == 30


def test_events_of_a_source_that_were_set_aside_are_counted(start, tmp_path):
    service = start()
    send(service, events(30), 30)
    service.letters.add(1, "redis://localhost/flights", [Letter("7-0", "it is not JSON", b"{")])
    service.stop()
    code, told = run(tmp_path / "service")
    assert code == 0
    assert "1 event of a source could not be used: see letters.sqlite" in told
    (tmp_path / "service" / "letters.sqlite").write_bytes(b"not a database" * 100)
    code, told = run(tmp_path / "service")
    assert code == 1
    assert "letters.sqlite is damaged" in told
    assert run(tmp_path / "service", "--repair")[0] == 0
    assert run(tmp_path / "service")[0] == 0
    assert (tmp_path / "service" / "letters.sqlite.damaged").exists()


def test_letters_whose_text_is_damaged_are_shown_as_far_as_they_can_be_read(start, tmp_path):
    """SQLite notices no damage to values."""
    service = start()
    send(service, events(30), 30)
    service.letters.add(1, "redis://localhost/flights", [Letter("7-0", "it is not JSON", b"{")])
    service.letters.add(1, "redis://localhost/flights", [Letter("7-1", "it has no target", b"{}")])
    service.stop()
    with sqlite3.connect(tmp_path / "service" / "letters.sqlite") as database:
        database.execute("UPDATE letters SET reason = CAST(x'ff20c3' AS TEXT) WHERE place = '7-0'")
        database.execute("UPDATE letters SET event = 'text', time = x'ff' WHERE place = '7-1'")
    database.close()
    again = start()
    last = again.facts(again.models["flights"])["letters"]["last"]
    assert [one["event"] for one in last] == ["text", "{"]
    assert (last[0]["reason"], last[0]["time"]) == ("it has no target", 0.0)
    assert last[1]["reason"] == "\ufffd \ufffd"


def test_a_damaged_lock_is_no_obstacle(start, tmp_path):
    service = start()
    send(service, events(30), 30)
    service.stop()
    (tmp_path / "service/lock.sqlite").write_bytes(b"nonsense" * 100)
    assert start().models["flights"].published.events == 30


def test_a_folder_in_the_place_of_the_lock(start, tmp_path):
    (tmp_path / "service/lock.sqlite").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"lock.sqlite must be a file, .* remove it"):
        start()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no device without an end")
@pytest.mark.parametrize("name", ["mark-1", "journal/{}", "attempt", "dead/1-30.json"])
def test_files_without_an_end_are_not_read(start, tmp_path, name):
    service = start()
    send(service, events(30), 30)
    service.stop()
    segment = next((tmp_path / "service/journal").glob("*.log"))
    path = tmp_path / "service" / name.format(segment.name)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")
    service = start()
    assert service.models["flights"].published.events == 30
    assert name == "attempt" or service.health()["status"] == "degraded"


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A folder of rows that wait, most of them in the log of the database, as a killed process leaves it."""
    folder = tmp_path_factory.mktemp("logged")
    waiting = Waiting(folder / "waiting.sqlite", Settings())
    for first in range(0, 200, 20):
        waiting.keep(1, [f"w{place}" for place in range(first, first + 20)], 20 * [{"km": 1.5}])
    copied = folder / "copied"
    copied.mkdir()
    for name in ("waiting.sqlite", "waiting.sqlite-wal"):
        shutil.copy(folder / name, copied)
    waiting.close()
    return copied


def waiting_rows(folder):
    """How many rows are found in a folder, and what is said about it."""
    waiting = Waiting(folder / "waiting.sqlite", Settings())
    found = waiting.find(1, [f"w{place}" for place in range(200)])
    waiting.close()
    return len(found), waiting.damage(is_new=False)


def test_damage_to_the_log_of_waiting_rows_is_told(logged, tmp_path):
    shutil.copytree(logged, tmp_path / "whole")
    assert waiting_rows(tmp_path / "whole") == (200, [])
    content, chance = (logged / "waiting.sqlite-wal").read_bytes(), random.Random(0)
    places = [*range(0, 56, 5), *(chance.randrange(len(content)) for _ in range(30))]
    for place in places:
        folder = tmp_path / str(place)
        shutil.copytree(logged, folder)
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        (folder / "waiting.sqlite-wal").write_bytes(damaged)
        found, told = waiting_rows(folder)
        assert found < 200
        assert told == ["waiting.sqlite has a damaged log: rows that waited for labels are lost, predict them again"]


def test_a_commit_that_was_not_finished_is_no_damage(logged, tmp_path):
    shutil.copytree(logged, tmp_path / "cut")
    path = tmp_path / "cut/waiting.sqlite-wal"
    path.write_bytes(path.read_bytes()[:-100])  # a part of the last page, with which a commit ends
    found, told = waiting_rows(tmp_path / "cut")
    assert 0 < found < 200
    assert not told


def waiting_folder(start, tmp_path):
    """A folder with a model that has learned 30 events, and a hundred rows that wait for labels."""
    service = start()
    send(service, events(30), 30)
    rows = [{"km": 1.5, "city": f"city number {n}"} for n in range(100)]
    service.keep(service.model("flights"), [f"w{n}" for n in range(100)], rows)
    service.stop()
    return tmp_path / "service/waiting.sqlite"


@pytest.mark.parametrize("kind", ["noise", "cut", "pages", "gone", "empty"])
def test_lost_waiting_rows_are_told(start, tmp_path, kind):
    path = waiting_folder(start, tmp_path)
    content = path.read_bytes()
    if kind == "gone":
        path.unlink()
    else:
        half = len(content) // 2 // 4096 * 4096
        damaged = {
            "noise": b"noise" * 999,
            "cut": content[:half],
            "pages": content[:4096] + bytes(len(content) - 4096),
            "empty": b"",
        }
        path.write_bytes(damaged[kind])
    before = {one: one.read_bytes() for one in path.parent.glob("waiting*")}
    code, told = run(path.parent)
    assert code == 1
    assert told.startswith("flights: 30 events, none is missing\nwaiting.sqlite is ")
    assert told.endswith(": rows that waited for labels are lost, predict them again\n")
    assert {one: one.read_bytes() for one in path.parent.glob("waiting*")} == before
    service = start()
    assert service.health()["status"] == "degraded"
    assert service.health()["damage"] == [told.splitlines()[1]]
    assert service.facts(service.model("flights"))["waiting"] == 0
    aside = Path(f"{path}.damaged")
    assert aside.exists() == (kind not in ("gone", "empty"))
    assert not aside.exists() or aside.read_bytes() == before[path]
    service.stop()
    assert run(path.parent) == (0, "flights: 30 events, none is missing\n")


@pytest.mark.parametrize("changed", [b"\xff\xff", b'"x', b"on"])
def test_a_waiting_row_whose_bytes_have_changed_is_unknown(start, tmp_path, changed):
    path = waiting_folder(start, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'ty number 7"', changed + b' number 7"'))
    assert path.read_bytes() != content
    service = start()
    answer = service.learn("flights", [{"id": "w7", "target": "late"}, {"id": "w8", "target": "late"}]).result()
    assert answer == {"learned": 1, "repeated": [], "unknown": ["w7"]}


def test_folders_that_are_not_of_a_service_are_no_success(start, tmp_path):
    (tmp_path / "other").mkdir()
    code, told = run(tmp_path / "other")
    assert code == 1
    assert told == f"error: {tmp_path / 'other'} is not the folder of a service: give the --data folder of kernling serve\n"
    assert not list((tmp_path / "other").iterdir())
    start().stop()
    assert run(tmp_path / "service") == (0, "there are no models\n")
    (tmp_path / "service/lock.sqlite").unlink()
    (tmp_path / "service/lock.sqlite").mkdir()
    code, told = run(tmp_path / "service")
    assert code == 1
    assert told.startswith(f"error: {tmp_path / 'service/lock.sqlite'} must be a file")
