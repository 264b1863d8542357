"""Requests that schemathesis generates from the OpenAPI description: no answer is above 499, and every status is documented."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from kernling.serve.app import create_app
from serving import events, served

GENERATED = 40  # requests of each kind for each operation


def test_every_refusal_is_documented(start):
    """The statuses that the endpoints answer, by reading what they raise; this needs no schemathesis."""
    api = create_app(start()).app.app.app.openapi()
    found = {
        f"{method.upper()} {path}": set(operation["responses"])
        for path, operations in api["paths"].items()
        for method, operation in operations.items()
    }
    body = {"400", "401", "403", "408", "413", "422", "429", "503", "507"}
    assert found["PUT /models/{name}"] == body | {"201", "409"}
    for path in ("POST /models/{name}/learn", "POST /models/{name}/predict"):
        assert found[path] == body | {"200", "404"}
    assert found["POST /models/{name}/explain"] == (body - {"507"}) | {"200", "404", "409"}
    assert found["GET /models/{name}"] == {"200", "401", "403", "404", "422"}
    assert found["GET /models/{name}/file"] == {"200", "401", "403", "404", "409", "422"}
    assert found["GET /models"] == found["GET /metrics"] == {"200", "401", "403"}
    assert found["GET /healthz"] == {"200", "503"}


def test_generated_requests(tmp_path):
    schemathesis = pytest.importorskip("schemathesis", reason="pip install schemathesis")
    from schemathesis.generation import GenerationMode

    seen = set()
    with served(tmp_path, models=10**6, memory_bytes=2**50, first_rows=20) as (_, client):
        assert client.post("/models/flights/learn", json=events(40)).json()["learned"] == 40
        schema = schemathesis.openapi.from_url(f"{str(client.base_url).rstrip('/')}/openapi.json")
        for operation in (found.ok() for found in schema.get_all_operations()):
            if not operation.path.endswith("/events"):  # whose answer has no end
                for mode in GenerationMode:
                    with suppress(Unsatisfiable):  # there is nothing to be wrong about GET /models
                        send_all(operation, mode, seen)
        assert client.get("/healthz").json() == {"status": "ok"}
    assert len({label for label, _ in seen}) == 11
    assert {status for _, status in seen} >= {200, 201, 400, 404, 422}


def send_all(operation, mode, seen):
    documented = set(map(str, operation.definition.raw["responses"]))

    @settings(max_examples=GENERATED, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        names = case.path_parameters
        if "name" in names and len(str(names["name"])) % 2:
            names["name"] = "flights"  # half of the requests find a model
        response = case.call()
        seen.add((operation.label, response.status_code))
        assert response.status_code < 500, response.text
        # a name with a slash is another path, and 405 is the answer to another method
        assert str(response.status_code) in documented | {"404", "405"}, (operation.label, response.text)

    check()
