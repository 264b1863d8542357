"""What waits is bounded, ids are short, the clock may jump, and the service stops at once."""

import asyncio
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

from kernling.cli.commands import app
from kernling.serve.app import create_app
from kernling.serve.dead import Attempts
from kernling.serve.live import State
from kernling.serve.refusal import Refused
from kernling.serve.service import Service
from kernling.serve.settings import Settings
from serving import Server, abandon, events, send, served

ROW = {"km": 1.0, "city": "Oslo", "rush": True}


def test_waiting_rows_are_bounded_in_bytes(start):
    service = start(Settings(first_rows=20, waiting_bytes=10_000))
    send(service, events(40), 40)
    model = service.model("flights")
    for place in range(50):
        service.keep(model, [f"{place}"], [ROW | {"city": "Oslo" * 200}])
        assert service.facts(model)["waiting_bytes"] <= 10_000
    facts = service.facts(model)
    assert facts["waiting"] + facts["evicted"] == 50
    assert 5 <= facts["waiting"] < 15
    service.keep(model, ["49", "49", "short"], [ROW] * 3)  # repeated ids keep their first row
    found = service.waiting.find(model.number, ["0", "49", "short"])
    assert found == {"49": ROW | {"city": "Oslo" * 200}, "short": ROW}
    bytes = service.facts(model)["waiting_bytes"]
    service.learn("flights", [{"id": "49", "target": "late"}]).result()
    assert service.facts(model)["waiting_bytes"] < bytes - 800
    service.stop()
    again = start(Settings(first_rows=20, waiting_bytes=10_000))
    assert again.facts(again.model("flights"))["waiting_bytes"] == again.waiting._size(model.number) > 0


def test_only_columns_that_the_model_uses_wait(start):
    service = start(Settings(first_rows=100))
    rows = [row | {"note": f"unique {place}"} for place, row in enumerate(events(120))]
    service.learn("flights", rows[:1]).result()
    model = service.model("flights")
    service.keep(model, ["early"], [ROW | {"note": "a", "new": 1.0}])  # a column that may be learned
    assert service.waiting.find(model.number, ["early"]) == {"early": ROW | {"note": "a", "new": 1.0}}
    send(service, rows[1:], 120)
    assert model.published.unused == {"note"}  # text of its own in every row
    service.keep(model, ["later"], [ROW | {"note": "x" * 100_000}])
    assert service.waiting.find(model.number, ["later"]) == {"later": ROW}
    late = [{"id": one, "target": "late"} for one in ("early", "later")]
    assert service.learn("flights", late).result() == {"learned": 2, "repeated": [], "unknown": []}


def test_rows_that_could_not_be_learned_do_not_wait(tmp_path):
    with served(tmp_path, columns=3) as (_, client):
        assert client.put("/models/flights", json={}).status_code == 201
        for row in (dict.fromkeys("abcd", 1.0), {"a": [1.0]}, {"a": {"b": 1.0}}, {}):
            assert client.post("/models/flights/predict", json=row).status_code == 422, row
        assert client.get("/models/flights").json()["waiting"] == 0


def test_ids_are_limited_in_bytes(start):
    service = start()
    for bad in ("x" * 129, "\u20ac" * 43, 10**128, -(10**200), 10**5000, "", True, 1.5):
        with pytest.raises(Refused, match="its id must be a whole number or a text of 1 to 128 bytes"):
            service.learn("flights", [events(1)[0] | {"id": bad}]).result()
    for good in ("x" * 128, "\u20ac" * 42, 10**127, -5):
        assert service.learn("flights", [events(1)[0] | {"id": good}]).result()["learned"] == 1


def test_a_clock_that_jumps_drops_nothing(start, monkeypatch):
    service = start()
    send(service, events(40), 40)
    model = service.model("flights")
    service.keep(model, ["mine"], [ROW])
    real = time.time
    for days in (8, 800, -800):
        monkeypatch.setattr(time, "time", lambda days=days: real() + 86_400 * days)
        service.waiting.evict_old()
        assert service.facts(model)["waiting"] == 1
        abandon(service)
        service = start()
        model = service.model("flights")
        service.waiting.evict_old()
        assert service.facts(model)["waiting"] == 1


def test_rows_age_over_restarts(start, monkeypatch):
    service = start()
    send(service, events(40), 40)
    service.keep(service.model("flights"), ["mine"], [ROW])
    for _ in range(2):  # four days each
        service.waiting._begun -= 4 * 86_400
        service.stop()
        service = start()
    service.waiting.evict_old()
    facts = service.facts(service.model("flights"))
    assert (facts["waiting"], facts["evicted"]) == (0, 1)


def test_a_half_sent_request_does_not_hold_up_the_end(tmp_path):
    server = Server(tmp_path / "service")
    with server.client() as client:
        assert client.post("/models/flights/learn", json=events(3)).json()["learned"] == 3
    address = urlsplit(server.address)
    with socket.create_connection((address.hostname, address.port)) as half:
        half.sendall(b"POST /models/flights/learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        time.sleep(0.5)
        begin = time.monotonic()
        server.process.terminate()
        answer = half.makefile("rb").read()
        assert server.stop() == 0  # asked twice
        assert time.monotonic() - begin < 8.0  # it took the ten seconds of grace
    assert b"503 Service Unavailable" in answer
    assert json.loads(answer.rpartition(b"\r\n")[2])["error"] == "the service is stopping: try again"


def _stop_slowly():
    stop = Service.stop

    def slow(service):
        time.sleep(1.0)
        stop(service)

    Service.stop = slow


def test_a_second_signal_does_not_end_the_saving(tmp_path):
    server = Server(tmp_path / "service", crash=_stop_slowly)
    with server.client() as client:
        assert client.post("/models/flights/learn", json=events(3)).json()["learned"] == 3
    server.process.terminate()
    time.sleep(0.7)  # the server has stopped, the service is stopping
    assert server.stop() == 0


def test_a_client_that_goes_away_is_no_defect(tmp_path):
    with served(tmp_path) as (server, client):
        address = urlsplit(server.address)
        with socket.create_connection((address.hostname, address.port)) as gone:
            gone.sendall(b"POST /models/flights/learn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
            time.sleep(0.3)
        end = time.monotonic() + 20.0
        while 'status="400"' not in (metrics := client.get("/metrics").text) and time.monotonic() < end:
            assert 'status="500"' not in metrics
        assert 'status="400"' in metrics


def test_attempts_of_several_threads_are_all_remembered(tmp_path):
    attempts = Attempts(tmp_path, report=False)
    attempts.begin(1, "block 10")
    other = threading.Thread(target=lambda: (attempts.begin(2, "block 20"), attempts.end(), attempts.begin(2, "block 30")))
    other.start()
    other.join()
    again = Attempts(tmp_path, report=False)
    assert set(again.before) == {(1, "block 10"), (2, "block 30")}
    assert again.before[1, "block 10"]["thread"] == threading.get_ident()
    for one in (attempts, again):
        one.close()


@pytest.mark.parametrize("what", ["below a file", "a folder in place of a database"])
def test_a_folder_that_cannot_be_used(tmp_path, what):
    folder = tmp_path / "service"
    if what == "below a file":
        folder.write_text("")
        folder = folder / "data"
    else:
        (folder / "waiting.sqlite").mkdir(parents=True)
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--data", str(folder)])
    assert result.exit_code == 1
    assert f"the folder {folder} cannot be used" in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_explanations_are_bounded_in_values_and_requests(start, monkeypatch):
    service = start(Settings(first_rows=20, explained_values=7, explaining=2))
    send(service, events(40), 40)
    release = threading.Event()

    def explain(*_):
        release.wait()
        return []

    monkeypatch.setattr(State, "explain", explain)

    async def ask():
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            path = "/models/flights/explain"
            wide = await client.post(path, json=[ROW] * 3)
            tasks = [asyncio.create_task(client.post(path, json=[ROW] * 2)) for _ in range(3)]
            (refused,), _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            release.set()
            return [
                wide.status_code,
                refused.result().status_code,
                *sorted(one.status_code for one in await asyncio.gather(*tasks)),
            ]

    assert asyncio.run(ask()) == [413, 429, 200, 200, 429]
