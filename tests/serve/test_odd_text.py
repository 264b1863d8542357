"""Requests that cannot be stored, answered and exported again: they hurt only themselves."""

import json
from concurrent.futures import wait

import pytest

from kernling.serve.refusal import Refused
from kernling.serve.rows import parse
from kernling.serve.settings import Settings
from serving import events, send, served

GOOD = {"km": 1.0, "city": "Oslo", "rush": True, "target": "late"}
POISON = {
    "a label with half of a pair": GOOD | {"target": "late\ud800"},
    "a label that ends in NUL": GOOD | {"target": "late\0"},
    "an id with half of a pair": GOOD | {"id": "\udc00"},
    "an id with NUL": GOOD | {"id": "a\0"},
    "a category with half of a pair": GOOD | {"city": "Oslo\ud800"},
    "a category with NUL": GOOD | {"city": "Oslo\0"},
}


@pytest.mark.parametrize("what", POISON)
def test_a_poisonous_row_hurts_no_stranger(start, what):
    service = start()
    send(service, events(40), 40)
    send(service, events(40, seed=1), 40, name="others")
    jobs = [("flights", GOOD), ("flights", POISON[what]), ("others", GOOD), ("new", POISON[what]), ("flights", GOOD)]
    futures = [service.learn(name, [row]) for name, row in jobs]
    wait(futures)
    assert [future.exception() is None for future in futures] == [True, False, True, False, True]
    for place in (1, 3):
        refused = futures[place].exception()
        assert isinstance(refused, Refused)
        assert (refused.status, refused.row) == (422, 0)
        assert str(refused).endswith(": remove it")
    assert list(service.models) == ["flights", "others"]


def test_names_of_columns(start):
    service = start()
    for name in ("km\0", "km\ud800"):
        with pytest.raises(Refused, match="the name of a column contains"):
            service.learn("flights", [{name: 1.0, "target": "late"}]).result()
    assert not service.models


@pytest.mark.parametrize("what", ["a category with half of a pair", "a category with NUL"])
def test_predictions_of_poisonous_rows_are_refused(start, what):
    service = start()
    send(service, events(40), 40)
    model = service.model("flights")
    for predict in (model.published.predict, model.published.predict_few):
        with pytest.raises(Refused, match="row 1: the text in column 'city' contains"):
            predict([GOOD, POISON[what]], model.traits.layout)


BODIES = {
    "half of a pair": (b'{"city": "\\ud800"}', "half of a surrogate pair"),
    "half of a pair beside NaN": (b'{"city": "\\ud800", "km": NaN}', "half of a surrogate pair"),
    "half of a pair in lines": (b'{"km": 1}\n{"city": "\\ud800"}', "row 1 is not JSON: .*half of a surrogate pair"),
    "half of a pair in bytes": (b'{"city": "\xed\xa0\x80"}', "UTF-8"),
    "half of a pair as a name": (b'{"\\ud800": 1}', "half of a surrogate pair"),
    "UTF-16": ('{"km": 1}'.encode("utf-16"), "UTF-8"),
    "UTF-32": ('{"km": 1}'.encode("utf-32"), "UTF-8"),
    "deep": (b'{"km": ' + b"[" * 900_000, "nested too deeply"),
}


@pytest.mark.parametrize("what", BODIES)
def test_both_parsers_refuse_the_same(what):
    body, sentence = BODIES[what]
    with pytest.raises(Refused, match=sentence) as refused:
        parse(body, Settings())
    assert refused.value.status == 400


@pytest.mark.parametrize("number", ["1.0", "NaN"])  # which another parser reads
def test_of_a_key_that_comes_twice_the_last_value_counts(number):
    body = f'{{"id": "a", "km": {number}, "km": 2.0, "id": "b", "target": "late", "target": "on time"}}'
    assert parse(body.encode(), Settings()) == [{"id": "b", "km": 2.0, "target": "on time"}]


def test_http(tmp_path):
    """Every odd body gets an answer below 500, and the model goes on predicting."""
    deep = [b"[" * depth + b"]" * depth for depth in (500, 900, 1000, 1020, 1024, 5000, 200_000)]
    bodies = [body for body, _ in BODIES.values()]
    for depth in deep:
        bodies += [depth, b'{"km": ' + depth + b', "target": "late"}', b'{"parameters": ' + depth + b"}"]
    with served(tmp_path) as (_, client):
        assert client.post("/models/flights/learn", json=events(200)).json()["learned"] == 200
        for body in bodies:
            for method, path in (("PUT", ""), ("POST", "/learn"), ("POST", "/predict"), ("POST", "/predict?keep=false")):
                headers = {"content-type": "application/json"}
                answer = client.request(method, f"/models/flights{path}", content=body, headers=headers)
                assert 400 <= answer.status_code < 500, (method, path, body[:50], answer.text)
                assert json.loads(answer.text)["error"]
        for origin in ("http://[x", "http://[::1", "http://]", "null", "http://a]b", "\xff"):
            answer = client.get("/models/flights", headers={"origin": origin.encode("latin-1")})
            assert answer.status_code == 403, origin
        answer = client.get("/models", headers={"host": "[x"})
        assert answer.status_code in (400, 403)
        assert "label" in client.post("/models/flights/predict", json={"km": 1.0, "city": "Oslo", "rush": True}).json()[0]
