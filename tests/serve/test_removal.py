"""Deleting and renaming models: nothing is left of them, whenever the process ends, and the name is free."""

from types import SimpleNamespace

import pytest

from kernling.serve import log
from kernling.serve.letters import Letter
from kernling.serve.refusal import Refused
from serving import Removed, abandon, contents, contents_of, events, model_of, send, served

ROW = {"km": 2.5, "city": "Oslo", "rush": True}


def left(folder, number=1):
    """Files that belong to a model, and its records in all logs."""
    files = [path.name for path in (folder / "snapshots" / str(number)).glob("*")]
    files += [path.name for path in (folder / "dead").glob(f"{number}-*")]
    found = [one for name in ("journal", "ids", "ids-copy") for one in log.Log(folder / name).scan()]
    return files, [one for one in found if one.model == number and one.kind == 1]


def fill(service):
    """Let two models learn, the first with all that a model can leave behind."""
    send(service, events(60), 20)
    send(service, events(30, seed=5), 30, name="other")
    model = service.model("flights")
    service.keep(model, ["w"], [ROW])
    service.letters.add(model.number, "redis://localhost/flights", [Letter("7-0", "it is not JSON", b"{")])
    service._snapshot(model)
    return model


def test_nothing_is_left_of_a_deleted_model_and_its_name_is_free(start, tmp_path):
    service = start()
    number = fill(service).number
    other = contents_of(service, "other")
    assert service.delete("flights").result() == {"name": "flights", "deleted": 60}
    assert list(service.models) == ["other"]
    with pytest.raises(Refused, match="no model is called 'flights'"):
        service.model("flights")
    assert service.waiting.counts[number] == service.letters.counts[number] == 0
    assert service.learn("flights", events(10)).result()["learned"] == 10  # its ids are forgotten
    assert service.model("flights").number != number
    assert service.facts(service.model("flights"))["collected"] == 10
    service.stop()
    again = start()
    assert again.health() == {"status": "ok"}
    assert again.facts(again.models["flights"])["collected"] == 10
    assert contents_of(again, "other") == other
    again.stop()
    assert left(tmp_path / "service", number)[0] == []


@pytest.mark.parametrize("when", ["before anything is removed", "after the snapshots"])
def test_a_process_that_ends_while_it_deletes(start, tmp_path, monkeypatch, when):
    service = start()
    model = fill(service)
    gone = service.snapshots.remove

    def end(*_):
        if when == "after the snapshots":
            gone(model.number)
        raise OSError("the process ends here")

    monkeypatch.setattr(service.snapshots, "remove", end)
    assert service.delete("flights").result() == {"name": "flights", "deleted": 60}
    abandon(service)
    again = start()
    assert list(again.models) == ["other"]
    assert again.health() == {"status": "ok"}
    assert again.waiting.counts[model.number] == again.letters.counts[model.number] == 0
    assert again.learn("flights", events(60)).result()["learned"] == 60
    again.stop()
    assert left(tmp_path / "service", model.number) == ([], [])


def test_a_deletion_that_was_being_written_has_not_happened(start, tmp_path):
    service = start()
    fill(service)
    before = contents_of(service, "flights")
    abandon(service)
    path = sorted((tmp_path / "service" / "journal").glob("*.log"))[-1]
    last = log.Log(path.parent).scan()[-1]
    record = log.Record(4, 1, 60, 0, b"").to_bytes(path.read_bytes()[last.place : last.place + 8], is_last=True)
    with path.open("ab") as file:
        file.write(record[:-3])
    again = start()
    assert contents_of(again, "flights") == before


def test_a_deletion_is_remembered_while_old_files_of_the_journal_are_there(start, monkeypatch):
    monkeypatch.setattr(log, "SEGMENT", 3_000)
    monkeypatch.setattr(log, "SMALL", 0)
    service = start()
    send(service, events(10, seed=9), 10, name="few")  # has no snapshot, so that its files stay
    send(service, events(40), 10)
    service.delete("flights").result()
    for seed in range(8):
        send(service, events(50, seed=seed), 10, name="many")
        service._snapshot(service.models["many"])
    abandon(service)
    again = start()
    assert sorted(again.models) == ["few", "many"]
    assert again.health() == {"status": "ok"}


def test_a_new_name_is_kept_and_the_old_one_is_free(start):
    service = start()
    fill(service)
    before = contents_of(service, "flights")
    assert service.rename("flights", "departures").result() == {"name": "departures"}
    assert service.models["departures"].renamed == 1  # as in the journal: of two names, that which was given later counts
    assert contents_of(service, "departures") == before
    assert service.learn("departures", events(60)).result()["learned"] == 0  # its ids are known
    assert service.learn("flights", events(5)).result()["learned"] == 5
    abandon(service)
    again = start()
    assert sorted(again.models) == ["departures", "flights", "other"]
    assert contents_of(again, "departures") == before
    assert again.rename("departures", "arrivals").result() == {"name": "arrivals"}
    assert again.facts(again.model("arrivals"))["waiting"] == 1
    again.rename("flights", "departures").result()
    again.stop()
    third = start()
    assert sorted(third.models) == ["arrivals", "departures", "other"]
    assert third.models["arrivals"].published.events == 60


def test_what_was_sent_before_is_learned_first(start):
    service = start()
    send(service, events(40), 40)
    asked = [service.learn("flights", [row]) for row in events(50, seed=3)]
    renamed = service.rename("flights", "departures")
    later = service.learn("flights", events(3, seed=4))
    assert all(one.result()["learned"] == 1 for one in asked)
    assert renamed.result() == {"name": "departures"}
    assert later.result()["learned"] == 3
    assert service.models["departures"].published.position == 90
    assert service.models["flights"].published.position == 3


def test_refusals(start):
    service = start()
    fill(service)
    with pytest.raises(Refused, match="no model is called 'trains'"):
        service.delete("trains")
    with pytest.raises(Refused, match="there is a model called 'other' already"):
        service.rename("flights", "other").result()
    with pytest.raises(Refused, match="name"):
        service.rename("flights", "a/b")
    service.feeds.append(SimpleNamespace(name="flights", address="redis://localhost/flights"))
    with pytest.raises(Refused, match="learns from redis"):
        service.delete("flights").result()
    service.feeds.clear()
    assert service.models["flights"].published.events == 60


def test_over_http(tmp_path):
    with served(tmp_path) as (_, client):
        client.post("/models/flights/learn", json=events(5))
        assert client.patch("/models/flights", json={"name": "departures"}).json() == {"name": "departures"}
        assert client.patch("/models/departures", json={"title": "x"}).status_code == 422
        assert client.patch("/models/departures", content=b"{").status_code == 400
        assert client.get("/models/flights").status_code == 404
        assert client.delete("/models/departures").json() == {"name": "departures", "deleted": 5}
        assert client.delete("/models/departures").status_code == 404
        assert client.get("/models").json() == []


# ---------------------------------------------------------------------- SIGKILL


def kill_often(folder, kills):
    """Kill a service while models are deleted and renamed; then compare one of them with one that was never killed."""
    with served(folder, snapshot_seconds=0.3, first_rows=20) as (server, _):
        removed = Removed(server)
        for _ in range(kills):
            removed.turn()
        with server.client() as client:
            name, rows = max(removed.rows.items(), key=lambda one: len(one[1]))
            client.put("/models/straight", json={"estimator": "AVMClassifier", "parameters": {"calibrate": True}})
            client.post("/models/straight/learn", json=rows)
            files = [client.get(f"/models/{one}/file").content for one in (name, "straight")]
        assert server.stop() == 0
    killed, straight = (contents(model_of(file, folder)) for file in files)
    assert killed == straight
    return removed.answered


def test_kills_while_models_are_deleted_and_renamed(tmp_path):
    kill_often(tmp_path, 4)


@pytest.mark.long
def test_two_hundred_kills_while_models_are_deleted_and_renamed(tmp_path):
    print(kill_often(tmp_path, 200), "of 200 had been answered")
