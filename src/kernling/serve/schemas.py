"""OpenAPI descriptions of requests and responses."""

from __future__ import annotations

from typing import Any

from ..registry import public_names


def _body(schema: dict[str, Any], example: Any, **others: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}, **others}
    return {"requestBody": {"required": True, "content": content}}


REFUSED = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "row": {"type": "integer"}},
}
STATUSES = {
    400: "The body is not JSON, or nested too deeply",
    401: "The token is missing or wrong",
    403: "Without a token, the request does not name this machine, or comes from the web page of another site",
    404: "There is no model of this name",
    405: "There is no such request",
    408: "The body took too long to arrive",
    409: "The model exists already, has learned too little for a file or an explanation, or learns from a source",
    413: "The body or its number of rows is too large",
    422: "Refused, with one sentence and, if a row is invalid, its index; nothing was changed",
    429: "Too much is arriving or waiting to be learned: retry after the number of seconds in Retry-After",
    503: "The service is stopping, or cannot write",
    507: "The disk is full, or there is no room for another model; nothing was changed",
}
ALWAYS = (401, 403)
BODY = (400, 404, 408, 413, 422, 429, 503, 507)  # of requests with rows


def _answers(done: int, content: dict[str, Any], *refusals: int) -> dict[int | str, dict[str, Any]]:
    """Describe the response to a request that is done, and those to requests that are refused."""
    example = {"error": "row 3: there is no column 'km'", "row": 3}
    refused = {"application/json": {"schema": REFUSED, "example": example}}
    found: dict[int | str, dict[str, Any]] = {done: {"description": "Done", "content": content}}
    return found | {status: {"description": STATUSES[status], "content": refused} for status in sorted((*ALWAYS, *refusals))}


def _json(example: Any) -> dict[str, Any]:
    return {"application/json": {"example": example}}


ROW = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean", "null"]}}
ROWS = {"oneOf": [ROW, {"type": "array", "items": ROW}]}
LINES = {"schema": {"type": "string"}, "example": '{"km": 2.5, "city": "Oslo"}\n{"km": 3.0, "city": "Rome"}'}
SPEC = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "estimator": {"type": "string", "enum": list(public_names(main=True))},
        "parameters": {"type": "object"},
        "columns": {"type": "object"},
        "task": {"type": "string", "enum": ["classification", "regression"]},
    },
}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
CREATE = _body(SPEC, {"estimator": "AVMClassifier", "parameters": {"gamma": 1.0}}, **FILE)
RENAME = _body(
    {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {"name": {"type": "string"}}},
    {"name": "departures"},
)
PREDICT = _body(ROWS, [{"id": "7", "km": 2.5, "city": "Oslo"}], **{"application/x-ndjson": LINES})
EXPLAIN = _body(ROWS, [{"km": 2.5, "city": "Oslo"}], **{"application/x-ndjson": LINES})
LEARN = _body(ROWS, [{"km": 2.5, "city": "Oslo", "target": "late"}, {"id": "7", "target": "on time"}])
EXAMPLE = {"name": "flights", "task": "classification", "events": 1000, "lately": 0.1, "constant_lately": 0.3}
BYTES = {"schema": {"type": "string", "format": "binary"}}
TEXT = {"schema": {"type": "string"}}
SHARES = {"late": 0.8, "on time": 0.2}
PREDICTED = _answers(200, _json([{"id": "7", "label": "late", "probabilities": SHARES, "set": ["late", "on time"]}]), *BODY)
CONTRIBUTIONS = {
    "score_of": "on time",
    "score": -1.4,
    "base": 0.2,
    "contributions": {"city": -1.7, "km": 0.1},
    "error": {"city": 0.02, "km": 0.01},
}
EXPLAINED = _answers(200, _json([{"label": "late", **CONTRIBUTIONS}]), *(set(BODY) - {507}), 409)
LEARNED = _answers(200, _json({"learned": 2, "repeated": [], "unknown": []}), *BODY)
CREATED = _answers(201, _json({"name": "flights"}), 400, 408, 409, 413, 422, 429, 503, 507)
RENAMED = _answers(200, _json({"name": "departures"}), *BODY, 409)
GONE = _answers(200, _json({"name": "flights", "deleted": 1000}), 404, 409, 422, 429, 503, 507)
COUNTS = {"read": 1200, "learned": 1000, "repeated": 3, "predicted": 190, "early": 0, "failed": 7}
SOURCE = {"source": "redis://localhost/flights", "status": "is read", "is_read": True, "behind": 40, "rate": 120.0}
LETTER = {
    "source": "redis://localhost/flights",
    "place": "7-0",
    "reason": "there is no column 'km'",
    "event": "{}",
    "time": 0.0,
}
FED = {"sources": [SOURCE | {"counts": COUNTS, "notes": []}], "letters": {"count": 7, "last": [LETTER]}}
ALARM = {
    "event": 10240,
    "what": "error",
    "before": 0.021,
    "after": 0.17,
    "sure": 0.9999,
    "columns": {},
    "said": "changed at event 10,240: error 2.1 to 17 %",
}
FACTS = _answers(200, _json(EXAMPLE | FED | {"alarms": [ALARM], "alarm_count": 1}), 404, 422)
MODELS = _answers(200, _json([EXAMPLE]))
CONTENT = _answers(200, {"application/octet-stream": BYTES}, 404, 409, 422)
EVENTS = _answers(200, {"text/event-stream": TEXT}, 404, 422)
METRICS = _answers(200, {"text/plain": TEXT})
HEALTH: dict[int | str, dict[str, Any]] = {
    200: {"description": "It works", "content": _json({"status": "ok"})},
    503: {"description": "Nothing can be written", "content": _json({"status": "nothing can be written: the disk is full"})},
}
