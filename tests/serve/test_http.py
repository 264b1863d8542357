"""The endpoints, in a process of their own."""

import asyncio
import json
import re
import socket
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import kernling as kl
from forgery import forged
from kernling.cli.commands import app
from kernling.serve.app import create_app
from kernling.serve.guard import find_token
from kernling.serve.service import Service
from kernling.serve.settings import Settings
from kernling.serve.specs import new_pipeline
from serving import served

ROW = {"km": 1.0, "city": "Oslo"}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    km, oslo = rng.normal(size=n), rng.random(n) < 0.5
    return [
        {"km": float(a), "city": "Oslo" if b else "Rome", "target": "late" if (a > 0) == b else "on time"}
        for a, b in zip(km, oslo.tolist(), strict=True)
    ]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service"), body_bytes=200_000, rows=500, request_seconds=1.0) as (_, client):
        assert client.post("/models/flights/learn", json=rows(300)).json()["learned"] == 300
        yield client


def test_predict_then_label_late(client):
    said = client.post("/models/flights/predict", json=[ROW | {"id": "mine"}, ROW]).json()
    assert said[0]["id"] == "mine"
    assert said[0]["label"] in ("late", "on time")
    made = said[1]["id"]
    answer = client.post(
        "/models/flights/learn", json=[{"id": made, "target": "late"}, {"id": "none", "target": "late"}]
    ).json()
    assert answer == {"learned": 1, "repeated": [], "unknown": ["none"]}
    assert client.get("/models/flights").json()["waiting"] == 1
    client.post("/models/flights/predict", params={"keep": False}, json=ROW)
    assert client.get("/models/flights").json()["waiting"] == 1


def test_few_and_many_rows_are_predicted_alike(client):
    asked = [{key: value for key, value in row.items() if key != "target"} for row in rows(20, seed=5)]
    options = {"params": {"keep": False}}
    many = client.post("/models/flights/predict", json=asked, **options).json()
    few = [client.post("/models/flights/predict", json=row, **options).json()[0] for row in asked]
    assert [one["label"] for one in many] == [one["label"] for one in few]
    for one, other in zip(many, few, strict=True):
        assert other["probabilities"] == pytest.approx(one["probabilities"], rel=1e-9)


def test_rows_are_explained_and_nothing_is_stored(client):
    before = client.get("/models/flights").json()["waiting"]
    asked = [ROW, {"km": -1.0, "city": "Oslo", "id": "7", "target": "late"}]
    found = client.post("/models/flights/explain", json=asked).json()
    said = client.post("/models/flights/predict", params={"keep": False}, json=asked).json()
    for one, other in zip(found, said, strict=True):
        assert one["label"] == other["label"]
        assert one["score_of"] == "on time"
        assert one["contributions"].keys() == {"km", "city"}
        assert one["base"] + sum(one["contributions"].values()) == pytest.approx(one["score"], rel=1e-9)
        assert 1.0 / (1.0 + np.exp(-one["score"])) == pytest.approx(other["probabilities"]["on time"], rel=1e-6)
    assert client.get("/models/flights").json()["waiting"] == before
    client.post("/models/begun/learn", json=rows(3)).raise_for_status()
    refused = client.post("/models/begun/explain", json=ROW)
    assert (refused.status_code, "learned too little" in refused.json()["error"]) == (409, True)
    client.delete("/models/begun").raise_for_status()


@pytest.mark.parametrize("body", [json.dumps(ROW), json.dumps([ROW, ROW]), f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n"])
def test_rows_are_an_object_a_list_or_lines(client, body):
    said = client.post("/models/flights/predict", content=body)
    assert said.status_code == 200
    assert len(said.json()) == body.count("Oslo")


@pytest.mark.parametrize(
    ("request_line", "body", "status", "sentence"),
    [
        ("POST /models/flights/predict", "{", 400, "not JSON"),
        ("POST /models/flights/predict", '{"km": 1}\n{', 400, "row 1 is not JSON"),
        ("PUT /models/new", '{"estimator": AVMClassifier}', 400, "the body is not JSON: Expecting value"),
        ("POST /models/flights/predict", "[]", 400, "must be a JSON object"),
        ("POST /models/flights/predict", "[1]", 422, "row 0: must be a JSON object"),
        ("POST /models/flights/predict", b"\xff\xfe\xfd", 400, "UTF-8"),
        ("POST /models/flights/predict", "[" * 100_000, 400, "nested too deeply"),
        ("POST /models/flights/predict", '[{"town": 1}]', 422, "there is no column 'km'"),
        ("POST /models/flights/predict", '[{"km": NaN, "city": "Oslo"}]', 422, "NaN in column 'km'"),
        ("POST /models/flights/predict?keep=maybe", '[{"km": 1}]', 422, "keep"),
        ("POST /models/flights/predict", "x" * 200_001, 413, "at most 200,000 bytes"),
        ("POST /models/flights/predict", json.dumps([ROW] * 501), 413, "at most 500"),
        ("POST /models/flights/explain", json.dumps([ROW] * 33), 413, "at most 32"),
        ("POST /models/flights/explain", '[{"town": 1}]', 422, "there is no column 'km'"),
        ("POST /models/nobody/explain", json.dumps(ROW), 404, "no model is called 'nobody'"),
        ("POST /models/nobody/predict", '{"id": 1}', 404, "no model is called 'nobody'"),
        ("POST /models/nobody/learn", '{"id": 1, "target": "late"}', 404, "no model is called 'nobody'"),
        ("POST /models/a%2F..%2Fb/learn", json.dumps(ROW | {"target": 1}), 404, "Not Found"),
        ("POST /models/a%20b/learn", json.dumps(ROW | {"target": 1}), 422, "name of a model"),
        ("PUT /models/flights", "{}", 409, "already"),
        ("PUT /models/new", '{"estimator": "os.system"}', 422, "estimator must be"),
        ("PUT /models/new", '{"estimator": "SPAOneClass"}', 422, "estimator must be"),
        ("PUT /models/new", '{"estimator": "AVMClassifier", "parameters": {"gamma": -1}}', 422, "gamma"),
        ("PUT /models/new", '{"estimator": "AVMClassifier", "parameters": {"nonsense": 1}}', 422, "no others"),
        ("PUT /models/new", '{"task": "ranking"}', 422, "task must be"),
        ("PUT /models/new", "[]", 422, "JSON object with"),
        ("PUT /models/new", b"\x10\x00\x00\x00\x00\x00\x00\x00nonsense", 422, "the body is not a kernling model"),
        ("PUT /models/new", b" {\x00\x00\x00\x00\x00\x00nonsense", 422, "the body is not a kernling model"),
        ("GET /models/nobody", "", 404, "no model"),
        ("GET /nowhere", "", 404, "/docs"),
        ("DELETE /models/flights/file", "", 405, "/docs"),
    ],
)
def test_errors_are_json_with_one_sentence(client, request_line, body, status, sentence):
    method, path = request_line.split()
    answer = client.request(method, path, content=body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_a_body_without_a_length_is_limited_too(client):
    parts = (b"x" * 1000 for _ in range(300))
    assert client.post("/models/flights/predict", content=parts).status_code == 413


def test_models_are_created_by_name_and_parameters(client):
    spec = {"estimator": "AVMRegressor", "parameters": {"gamma": 0.5}}
    assert client.put("/models/created", json=spec).status_code == 201
    assert client.post("/models/created/predict", json={"a": 1}).json()[0]["label"] is None
    answer = client.post("/models/created/learn", json=[{"a": place / 50, "target": place} for place in range(120)])
    assert answer.json()["learned"] == 120
    facts = client.get("/models/created").json()
    assert (facts["task"], facts["estimator"]) == ("regression", "AVMRegressor")
    assert isinstance(client.post("/models/created/predict", json={"a": 1}).json()[0]["value"], float)


def test_probabilities_where_a_model_has_some(client):
    client.put("/models/sure", json={"estimator": "AVMClassifier", "parameters": {"loss": "logistic"}})
    client.post("/models/sure/learn", json=[row | {"target": int(row["km"] > 0)} for row in rows(150)])
    for count in (1, 20):
        said = client.post("/models/sure/predict", json=[ROW] * count).json()
        assert len(said) == count
        shares = said[0]["probabilities"]
        assert sum(shares.values()) == pytest.approx(1.0)
        assert str(said[0]["label"]) == max(shares, key=shares.get)


def test_the_file_is_the_model_and_makes_another(client, tmp_path):
    content = client.get("/models/flights/file").content
    (tmp_path / "flights.kern").write_bytes(content)
    model = kl.load(tmp_path / "flights.kern")
    said = client.post("/models/flights/predict", json=ROW).json()[0]["label"]
    assert model.predict_one(ROW) == said
    assert client.put("/models/copied", content=content).status_code == 201
    assert client.post("/models/copied/predict", json=ROW).json()[0]["label"] == said
    assert client.post("/models/copied/learn", json=rows(10)).json()["learned"] == 10
    assert client.get("/models/copied/file").status_code == 200


def test_a_forged_file_is_refused(client, tmp_path):
    """Fewer points allowed than there are: learning them would end the process, and every one that is started after it."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    kl.save(kl.KRLSRegressor(points=40, novelty=0.0).partial_fit(X, X[:, 0]), tmp_path / "model.kern")

    def shrink(header, arrays):
        header["params"]["points"] = header["resolved"]["points"] = 10

    told = client.put("/models/forged", content=forged((tmp_path / "model.kern").read_bytes(), shrink))
    assert told.status_code == 422
    assert "the parameters allow from 0 to 10 points" in told.text
    assert client.get("/models/forged").status_code == 404


def test_a_model_of_plain_numbers_takes_named_columns(client, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    model = kl.SPAClassifier(random_state=0).fit(X, X[:, 0] > 0)
    kl.save(model, tmp_path / "plain.kern")
    assert client.put("/models/plain", content=(tmp_path / "plain.kern").read_bytes()).status_code == 201
    asked = [{"x0": a, "x1": b} for a, b in X[:20].tolist()]
    said = [one["label"] for one in client.post("/models/plain/predict", json=asked).json()]
    assert said == model.predict(X[:20]).tolist()
    assert client.post("/models/plain/predict", json=asked[0]).json()[0]["label"] == said[0]
    refused = client.post("/models/plain/learn", json={"x0": None, "x1": 1.0, "target": True})
    assert refused.status_code == 422
    assert client.post("/models/plain/learn", json={"x0": 0.5, "x1": 1.0, "target": True}).json()["learned"] == 1


def test_events_are_sent_as_they_come(client):
    with client.stream("GET", "/models/flights/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        messages = (json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:"))
        first = next(messages)
        client.post("/models/flights/learn", json=rows(10, seed=8))
        later = next(message for message in messages if message["events"] >= first["events"] + 10)
        assert later["name"] == "flights"


def test_metrics_pages_and_health(client):
    text = client.get("/metrics").text
    assert 'kernling_rows_total{model="flights",what="learned"}' in text
    assert 'kernling_events{model="flights"}' in text
    assert client.get("/healthz").json() == {"status": "ok"}
    assert "<html" in client.get("/").text
    assert set(client.get("/openapi.json").json()["paths"]) >= {"/models/{name}/learn", "/models/{name}/predict"}
    assert "flights" in [one["name"] for one in client.get("/models").json()]


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_slow_clients_do_not_hold_up_others(client, count):
    host = urlsplit(str(client.base_url))
    head = f"POST /models/flights/predict HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Length: 1000\r\n\r\n".encode()
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host.hostname, host.port))) for _ in range(count)]
        for place, one in enumerate(slow):
            one.sendall(head + b"{" if place % 2 == 0 else head[:20])  # and nothing more
        for _ in range(5):
            assert client.post("/models/flights/predict", json=ROW).status_code == 200
            assert client.post("/models/flights/learn", json=ROW | {"target": "late"}).status_code == 200
        for one in slow[:2]:
            one.settimeout(30.0)
        assert b"408" in slow[0].recv(100)
        assert slow[1].recv(100) == b""  # closed: there is no request that could be answered


CHUNKS = "POST /models/flights/predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"


@pytest.mark.parametrize("begin", ["GET /healthz?", "GET /healthz HTTP/1.1\r\nX: ", CHUNKS + "X: "])
def test_headers_without_an_end_are_refused(client, begin):
    host = urlsplit(str(client.base_url))
    with socket.create_connection((host.hostname, host.port)) as endless:
        endless.settimeout(30.0)
        endless.sendall(begin.encode())
        with pytest.raises(ConnectionError):
            endless.sendall(b"a" * 2**25)
    with socket.create_connection((host.hostname, host.port)) as long:
        for part in (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"a" * 30_000, b"a" * 30_000, b"\r\n\r\n"):
            long.sendall(part)
            time.sleep(0.05)  # so that they are read one by one
        assert b" 200 " in long.recv(100)
    parts = [b"[", b" " * 40_000, b" " * 40_000, json.dumps(ROW).encode(), b"]"]
    assert client.post("/models/flights/predict?keep=false", content=iter(parts)).status_code == 200


def test_a_connection_lasts_while_requests_arrive(client):
    host = urlsplit(str(client.base_url))
    connection = HTTPConnection(host.hostname, host.port)
    connection.connect()
    first, end = connection.sock, time.monotonic() + 2.5  # longer than a request may take
    while time.monotonic() < end:
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
        assert connection.sock is first  # and not another one
        time.sleep(0.2)
    connection.close()


def test_the_client_of_the_guide_works(client, capsys):
    page = (Path(__file__).parents[2] / "docs/guide/serve.md").read_text()
    program = re.search(r"^```python\n(import httpx\n.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    exec(program.replace("http://127.0.0.1:8042/models/flights", str(client.base_url.join("/models/guide"))), {})
    label, answer = capsys.readouterr().out.splitlines()
    assert label in ("late", "on time")
    assert answer == "{'learned': 1, 'repeated': [], 'unknown': []}"


# ---------------------------------------------------------------------- who may ask


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path, Settings(queue_rows=1))
    yield service
    service.stop()


def answers(app, *requests):
    """The answers to requests, each a path and its headers, to an application in this process."""

    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8042") as client:
            return [await client.get(path, headers=headers) for path, headers in requests]

    return asyncio.run(ask())


def statuses(app, *requests) -> list[int]:
    """The statuses of such requests."""
    return [answer.status_code for answer in answers(app, *requests)]


def test_a_token_is_demanded(service):
    app = create_app(service, token="a secret of some length")
    wrong, right = {"Authorization": "Bearer another"}, {"Authorization": "Bearer a secret of some length"}
    asked = [("/models", {}), ("/metrics", wrong), ("/models", right), ("/healthz", {}), ("/", {})]
    assert statuses(app, *asked) == [401, 401, 200, 200, 200]


def test_what_is_damaged_is_told_to_those_who_have_the_token(service):
    service.damage.append("a mark is missing")
    right = {"Authorization": "Bearer a secret of some length"}
    anybody, trusted = answers(create_app(service, token="a secret of some length"), ("/healthz", {}), ("/healthz", right))
    assert anybody.json() == {"status": "degraded"}
    assert trusted.json() == {"status": "degraded", "damage": ["a mark is missing"], "models": {}}


def test_without_a_token_requests_come_from_this_machine(service):
    headers = [{}, {"Host": "example.org"}, {"Origin": "https://example.org"}, {"Origin": "http://localhost:8042"}]
    assert statuses(create_app(service), *(("/models", one) for one in headers)) == [200, 403, 403, 200]
    others = [{"Origin": f"http://{name}"} for name in ("localhost:8043", "localhost", "127.0.0.1:8042", "localhost:8042.org")]
    assert statuses(create_app(service), *(("/models", one) for one in others)) == [403, 403, 403, 403]


def test_others_than_this_machine_need_a_token(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNLING_TOKEN", raising=False)
    assert find_token(None, "::1") is None
    with pytest.raises(ValueError, match="KERNLING_TOKEN"):
        find_token(None, "0.0.0.0")
    (tmp_path / "token").write_text("a secret of some length\n")
    assert find_token(tmp_path / "token", "0.0.0.0") == "a secret of some length"
    monkeypatch.setenv("KERNLING_TOKEN", "short")
    with pytest.raises(ValueError, match="at least 16"):
        find_token(None, "0.0.0.0")


def test_the_command_says_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNLING_TOKEN", raising=False)
    told = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0", "--data", str(tmp_path)])
    assert told.exit_code == 1
    assert told.output.startswith("error: others can reach 0.0.0.0: give a token with --token-file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = CliRunner().invoke(app, ["serve", "--port", str(taken.getsockname()[1]), "--data", str(tmp_path)])
    assert (told.exit_code, "in use" in told.output) == (1, True)


def test_a_full_queue_says_when_to_come_back(service):
    async def ask():
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await asyncio.gather(*(client.post("/models/a/learn", json=rows(100)) for _ in range(20)))

    refused = [answer for answer in asyncio.run(ask()) if answer.status_code != 200]
    assert refused
    assert all(answer.status_code == 429 and answer.headers["retry-after"] == "1" for answer in refused)
    assert service.models["a"].published.events == 100 * (20 - len(refused))


def test_a_defect_is_told_as_json(service, monkeypatch):
    def broken(*_):
        raise RuntimeError("no idea")

    async def ask():
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/models/a/learn", json=rows(1))

    monkeypatch.setattr(service, "learn", broken)
    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()) == (500, {"error": "the service has a defect: RuntimeError: no idea"})


def test_a_signal_stops_it_after_what_was_acknowledged(tmp_path):
    with served(tmp_path) as (server, client):
        with client.stream("GET", "/healthz"):
            client.post("/models/flights/learn", json=rows(150))
        begin = time.monotonic()
        with server.client() as watching, watching.stream("GET", "/models/flights/events") as answer:
            next(answer.iter_lines())
            assert server.stop() == 0
        assert time.monotonic() - begin < 30.0
        with pytest.raises(httpx.TransportError):
            client.get("/healthz")
    assert len(list(tmp_path.glob("snapshots/1/*.kern"))) == 1
    assert not (tmp_path / "journal.sqlite-wal").exists()  # closed in order


def test_facts_have_the_latest_values_with_their_intervals(client):
    """Intervals are those that the service would have answered before the events were learned; classifiers have none."""
    rng = np.random.default_rng(0)
    events = [{"km": a, "target": 3.0 * a + 0.2 * b} for a, b in rng.normal(size=(700, 2)).tolist()]
    client.put("/models/arrivals", json={"estimator": "AVMRegressor"}).raise_for_status()
    for first in range(0, 600, 100):
        client.post("/models/arrivals/learn", json=events[first : first + 100]).raise_for_status()
    said = client.post("/models/arrivals/predict?keep=false", json={"km": events[600]["km"]}).json()[0]
    client.post("/models/arrivals/learn", json=events[600:]).raise_for_status()
    recent = client.get("/models/arrivals").json()["recent"]
    assert recent["value"] == [event["target"] for event in events[-100:]]
    assert recent["predicted"][0] == pytest.approx(said["value"], rel=0.02)
    assert [recent["low"][0], recent["high"][0]] == pytest.approx(said["interval"], rel=0.02)
    inside = sum(low <= y <= high for y, low, high in zip(recent["value"], recent["low"], recent["high"], strict=True))
    assert 75 <= inside <= 100


def test_answers_have_intervals_or_sets(client):
    events = [{"a": place % 50 / 50, "target": place % 50 + place % 3 / 10} for place in range(300)]
    client.put("/models/minutes", json={"estimator": "AVMRegressor", "parameters": {"gamma": 5.0, "delta": 0.1}})
    client.post("/models/minutes/learn", json=events)
    for count in (1, 20):
        said = client.post("/models/minutes/predict", json=[{"a": 0.5}] * count).json()[0]
        low, high = said["interval"]
        assert low < said["value"] < high
    facts = client.get("/models/minutes").json()
    assert facts["calibration"]["coverage"] == 0.9
    assert facts["calibration"]["inside"] > 0.85
    said = client.post("/models/flights/predict", json=ROW).json()[0]
    assert said["label"] in said["set"]
    for parameters, calibrates in (({}, True), ({"calibrate": False}, False)):
        spec = {"estimator": "AVMRegressor", "parameters": parameters}
        assert new_pipeline(spec, "regression").steps[-1][1].calibrate is calibrates
