"""OpenAPI descriptions of requests and responses."""

from __future__ import annotations

from typing import Any

from ..registry import public_names


def _body(schema: dict[str, Any], example: Any, **others: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}, **others}
    return {"requestBody": {"required": True, "content": content}}


def _answer(example: Any) -> dict[int | str, dict[str, Any]]:
    refused = {"application/json": {"example": {"error": "row 3: there is no column 'km'", "row": 3}}}
    return {
        200: {"description": "Done", "content": {"application/json": {"example": example}}},
        422: {"description": "Refused, with one sentence and the index of the row; nothing was changed", "content": refused},
        429: {"description": "Too many rows are waiting: retry after the number of seconds in Retry-After"},
    }


ROW = {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean", "null"]}}
ROWS = {"oneOf": [ROW, {"type": "array", "items": ROW}]}
LINES = {"schema": {"type": "string"}, "example": '{"km": 2.5, "city": "Oslo"}\n{"km": 3.0, "city": "Rome"}'}
SPEC = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "estimator": {"type": "string", "enum": list(public_names(main=True))},
        "parameters": {"type": "object"},
        "task": {"type": "string", "enum": ["classification", "regression"]},
    },
}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
CREATE = _body(SPEC, {"estimator": "AVMClassifier", "parameters": {"gamma": 1.0}}, **FILE)
PREDICT = _body(ROWS, [{"id": "7", "km": 2.5, "city": "Oslo"}], **{"application/x-ndjson": LINES})
LEARN = _body(ROWS, [{"km": 2.5, "city": "Oslo", "target": "late"}, {"id": "7", "target": "on time"}])
PREDICTED = _answer([{"id": "7", "label": "late", "probabilities": {"late": 0.8, "on time": 0.2}}])
LEARNED = _answer({"learned": 2, "repeated": [], "unknown": []})
FACTS = _answer({"name": "flights", "task": "classification", "events": 1000, "lately": 0.1, "constant_lately": 0.3})
