"""The command that checks the folder of a service."""

import shutil

import numpy as np
from typer.testing import CliRunner

from kernling.cli.commands import app
from kernling.serve.blocks import Block
from kernling.serve.dead import DeadLetters
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
        f"error: there is no folder {tmp_path / 'none'}: give the one that --data of kernling serve names\n",
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
    assert "2 more were set aside, since learning them brought the process down: see dead/1-30.json" in told
    for content in (b"{", b'{"model": 1}', path.read_bytes().replace(b"digest", b"DIGEST")):
        path.write_bytes(content)
        assert run(tmp_path / "service") == (
            1,
            "flights: 30 events, none is missing\n"
            "dead/1-30.json is damaged: rows that brought the process down may be learned again\n",
        )
    assert start().models["flights"].published.events == 30


def test_a_damaged_lock_is_no_obstacle(start, tmp_path):
    service = start()
    send(service, events(30), 30)
    service.stop()
    (tmp_path / "service/lock.sqlite").write_bytes(b"nonsense" * 100)
    assert start().models["flights"].published.events == 30
