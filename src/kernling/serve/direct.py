"""A shortcut to the endpoints for rows."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute

PATH = re.compile(r"/models/([^/]+)/(learn|predict)")


class Direct:
    """ASGI middleware that calls the endpoints for rows itself: the way through FastAPI takes longer than a prediction.

    Requests with a query, all other requests and the documentation are left to FastAPI.
    """

    def __init__(self, app: FastAPI, error_response: Callable[[Exception], Any]):
        self.app = app
        self.error_response = error_response
        self.routes = {route.path: route for route in app.routes if isinstance(route, APIRoute)}

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Awaitable[None]]) -> None:
        is_plain = scope["type"] == "http" and scope["method"] == "POST" and not scope["query_string"]
        found = PATH.fullmatch(scope["path"]) if is_plain else None
        if found is None:
            await self.app(scope, receive, send)
            return
        route = scope["route"] = self.routes[f"/models/{{name}}/{found[2]}"]
        try:
            response = await route.endpoint(found[1], Request(scope, receive))
        except Exception as error:
            response = self.error_response(error)
        await response(scope, receive, send)
