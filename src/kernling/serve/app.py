"""The HTTP endpoints of the service."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import tempfile
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from .. import __version__, models
from . import schemas
from .direct import Direct
from .guard import Guard
from .live import LiveModel
from .metrics import Metrics, Timed
from .refusal import Refused, first_line
from .rows import ID, NAME, TARGET, has_columns, ids_of, loads, parse
from .service import Service
from .stopping import Stopping

_LOG = logging.getLogger(__name__)
FEW = 8  # rows that are predicted and stored at once, without a thread
TICK = 1.0  # seconds between two server-sent events
Name = Annotated[str, PathParameter(json_schema_extra={"pattern": f"^{NAME.pattern}$"})]  # checked later, with one sentence


def create_app(service: Service, token: str | None = None, stopping: Stopping | None = None) -> Guard:
    """Return the ASGI application of a service; streams of events end when ``stopping`` is set."""
    app = FastAPI(title="kernling", version=__version__, summary="Models that predict and learn", redoc_url=None)
    endpoints = Endpoints(service, stopping or Stopping())
    metrics = Metrics(service)
    page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def show_page() -> HTMLResponse:
        policy = "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @app.get("/healthz", summary="Whether the service can write", responses=schemas.HEALTH)
    async def health(request: Request) -> JSONResponse:
        found = service.health() if request.state.is_trusted else {"status": service.health()["status"]}
        return JSONResponse(found, 503 if service.failures else 200)

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse, responses=schemas.METRICS)
    def read_metrics() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    one = "/models/{name}"
    app.get("/models", summary="All models", responses=schemas.MODELS)(endpoints.list_models)
    app.put(one, status_code=201, summary="Create a model", openapi_extra=schemas.CREATE, responses=schemas.CREATED)(
        endpoints.create
    )
    app.get(one, summary="Facts about a model", responses=schemas.FACTS)(endpoints.facts)
    app.patch(one, summary="Rename a model", openapi_extra=schemas.RENAME, responses=schemas.RENAMED)(endpoints.rename)
    app.delete(one, summary="Delete a model", responses=schemas.GONE)(endpoints.delete)
    app.post(f"{one}/predict", summary="Predict rows", openapi_extra=schemas.PREDICT, responses=schemas.PREDICTED)(
        endpoints.predict
    )
    app.post(f"{one}/explain", summary="Explain rows", openapi_extra=schemas.EXPLAIN, responses=schemas.EXPLAINED)(
        endpoints.explain
    )
    app.post(f"{one}/learn", summary="Learn rows or late labels", openapi_extra=schemas.LEARN, responses=schemas.LEARNED)(
        endpoints.learn
    )
    app.get(f"{one}/file", summary="The model file", response_class=Response, responses=schemas.CONTENT)(endpoints.file)
    app.get(f"{one}/events", summary="Server-sent events", response_class=Response, responses=schemas.EVENTS)(endpoints.events)
    _answer_errors(app)
    return Guard(Timed(Direct(app, _error_response), metrics), token)


def _answer_errors(app: FastAPI) -> None:
    """Return every error as JSON with one sentence."""

    @app.exception_handler(Refused)
    async def refuse(_: Request, error: Refused) -> JSONResponse:
        return _error_response(error)

    @app.exception_handler(HTTPException)
    async def refuse_path(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": f"{error.detail}: the requests are listed at /docs"}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_argument(_: Request, error: RequestValidationError) -> JSONResponse:
        wrong = error.errors()[0]
        return JSONResponse({"error": f"{wrong['loc'][-1]}: {wrong['msg']}"}, 422)

    @app.exception_handler(Exception)
    async def fail(_: Request, error: Exception) -> JSONResponse:
        return _error_response(error)


def _error_response(error: Exception) -> JSONResponse:
    if isinstance(error, Refused):
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return JSONResponse(error.to_plain(), error.status, headers)
    _LOG.error("a request failed", exc_info=error)
    return JSONResponse({"error": f"the service has a defect: {type(error).__name__}: {first_line(error)}"}, 500)


class Endpoints:
    """The requests about models."""

    def __init__(self, service: Service, stopping: Stopping):
        self.service = service
        self.settings = service.settings
        self.stopping = stopping
        self._arriving = 0  # bytes of incomplete bodies
        self._explaining = asyncio.Semaphore(1)  # others, which are faster, need threads as well
        self._explained = 0  # requests that are worked on or wait

    async def list_models(self) -> list[dict[str, Any]]:
        """Return all models with their current performance."""
        names = ("name", "task", "events", "measure", "lately", "constant_lately")
        found = (self.service.facts(model) for model in list(self.service.models.values()))
        return [{name: facts.get(name) for name in names} for facts in found]

    async def create(self, name: Name, request: Request) -> JSONResponse:
        """Create a model from a JSON object with estimator, parameters and task, all optional, or from a model file."""
        body = await self._body(request, self.settings.file_bytes)
        spec, model = await asyncio.to_thread(_spec_or_model, body, request.headers.get("content-type", ""))
        return JSONResponse(await asyncio.wrap_future(self.service.create(name, spec, model)), 201)

    async def facts(self, name: Name) -> dict[str, Any]:
        """Return events, mistakes overall and in the sliding window next to those of a constant answer, points and memory."""
        return self.service.facts(self.service.model(name))

    async def rename(self, name: Name, request: Request) -> JSONResponse:
        """Give a model the name in a JSON object; the old name is free again."""
        body = await self._body(request, self.settings.body_bytes)
        try:
            held = loads(body)
        except (RecursionError, ValueError) as error:
            raise Refused(400, f"the body is not JSON: {first_line(error)}") from None
        if not isinstance(held, dict) or set(held) != {"name"} or not isinstance(held["name"], str):
            raise Refused(422, 'send the new name as a JSON object: {"name": "..."}')
        return JSONResponse(await asyncio.wrap_future(self.service.rename(name, held["name"])))

    async def delete(self, name: Name) -> JSONResponse:
        """Delete a model, its events and the rows that wait for labels; the name is free again."""
        return JSONResponse(await asyncio.wrap_future(self.service.delete(name)))

    async def predict(self, name: Name, request: Request, keep: bool = True) -> JSONResponse:
        """Predict rows, and store them for labels that arrive later with the same id."""
        rows = parse(await self._body(request, self.settings.body_bytes), self.settings)
        model = await self._model_for(name, rows)
        ids = [one or secrets.token_hex(12) for one in ids_of(rows, self.settings)]
        for row in rows:
            row.pop(ID, None)
            row.pop(TARGET, None)
        state = model.recent if model.is_recent else await asyncio.to_thread(lambda: model.recent)  # copying takes a while
        layout = model.traits.layout
        if state.model is None:  # rows that could not be learned should not wait for their labels
            layout = layout.widened(rows, self.settings)
        if len(rows) <= FEW:
            predicted = state.predict_few(rows, layout)
        else:
            predicted = await asyncio.to_thread(state.predict, rows, layout)
        if keep and len(rows) <= FEW:
            self.service.keep(model, ids, rows)
        elif keep:
            await asyncio.to_thread(self.service.keep, model, ids, rows)
        return JSONResponse([{"id": one, **answer} for one, answer in zip(ids, predicted, strict=True)])

    async def explain(self, name: Name, request: Request) -> JSONResponse:
        """Return what each column contributes to the score of each row; nothing is stored."""
        rows = parse(await self._body(request, self.settings.body_bytes), self.settings)
        model = self.service.model(name)
        most = self.settings.explained_values // max(len(model.traits.layout.columns), 1)
        most = max(1, min(self.settings.explained_rows, most))
        if len(rows) > most:
            raise Refused(413, f"there are {len(rows)} rows: send at most {most} to be explained at once")
        if self._explained >= self.settings.explaining:
            raise Refused(429, "too many requests for explanations at once: send this again later", retry_after=1)
        for row in rows:
            row.pop(ID, None)
            row.pop(TARGET, None)
        self._explained += 1
        try:
            async with self._explaining:
                found = await asyncio.to_thread(model.published.explain, rows, model.traits.layout)
        finally:
            self._explained -= 1
        return JSONResponse(found)

    async def _model_for(self, name: str, rows: list[dict[str, Any]]) -> LiveModel:
        """Return a model; if none has this name and the rows have columns, it is created, and has learned nothing yet."""
        if name not in self.service.models and all(map(has_columns, rows)):
            try:
                await asyncio.wrap_future(self.service.create(name))
            except Refused as refused:
                if refused.status != 409:  # another request was faster
                    raise
        return self.service.model(name)

    async def learn(self, name: Name, request: Request) -> JSONResponse:
        """Learn rows with their target, or targets of rows that were predicted before."""
        body = await self._body(request, self.settings.body_bytes)
        rows = parse(body, self.settings)
        return JSONResponse(await asyncio.wrap_future(self.service.learn(name, rows, len(body))))

    async def file(self, name: Name) -> Response:
        """Return the model as ``kernling.save`` writes it."""
        model = self.service.model(name)
        content = await asyncio.to_thread(_file_of, model)
        headers = {"Content-Disposition": f'attachment; filename="{model.name}.kern"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def events(self, name: Name) -> StreamingResponse:
        """Stream the facts once a second; the first message contains the history."""
        model = self.service.model(name)
        return StreamingResponse(self._stream(model), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def _stream(self, model: LiveModel) -> AsyncIterator[str]:
        sent = 0.0
        while not self.stopping.is_set() and model.number in self.service.histories:
            moments = self.service.histories[model.number].moments
            news = [moment for moment in moments if moment["time"] > sent]
            sent = moments[-1]["time"] if moments else 0.0
            yield f"data: {json.dumps(self.service.facts(model) | {'history': news})}\n\n"
            await asyncio.sleep(TICK)

    async def _body(self, request: Request, limit: int) -> bytes:
        """Read the body of a request; raise if it is too large or too slow."""
        too_large = Refused(413, f"the body is too large: send at most {limit:,} bytes")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limit:
            raise too_large
        parts, size = [], 0
        try:
            async with self.stopping.limited(self.settings.request_seconds):
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    self._arriving += len(part)
                    if size > limit:
                        raise too_large
                    if self._arriving > self.settings.arriving_bytes:
                        raise Refused(429, "too many requests are arriving at once: send this again later", retry_after=1)
        except ClientDisconnect:
            raise Refused(400, "the connection ended before the body did") from None
        except TimeoutError:
            if self.stopping.is_set():
                raise Refused(503, "the service is stopping: try again", retry_after=1) from None
            raise Refused(408, f"the body took longer than {self.settings.request_seconds:g} seconds") from None
        finally:
            self._arriving -= size
        return b"".join(parts)


def _spec_or_model(body: bytes, content_type: str) -> tuple[Any, Any]:
    """Return the JSON of a body, or its model if it is a model file."""
    try:
        return loads(body or b"{}"), None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply: send estimator, parameters and task") from None
    except ValueError as error:
        # curl calls JSON a form unless told otherwise; a model file begins with a length, whose first bytes may look like it
        if "json" in content_type or (body.lstrip().startswith(b"{") and b"\0" not in body[:8]):
            raise Refused(400, f"the body is not JSON: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kern"
        path.write_bytes(body)
        try:
            return None, models.load(path)
        except ValueError as error:
            raise Refused(422, first_line(error).replace(str(path), "the body")) from None


def _file_of(model: LiveModel) -> bytes:
    state = model.published
    if state.model is None:
        raise Refused(
            409, f"{model.name!r} has learned too little for a file: it begins after {model.settings.first_rows} events"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kern"
        models.save(state.model, path)
        return path.read_bytes()
