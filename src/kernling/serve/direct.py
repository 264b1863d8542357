"""A shortcut to the endpoints for rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute


class Direct:
    """ASGI middleware that calls the endpoints for rows itself: the way through FastAPI takes longer than a prediction.

    Requests with a query, all other requests and the documentation are left to FastAPI.
    """

    def __init__(self, app: FastAPI, error_response: Callable[[Exception], Any]):
        self.app = app
        self.error_response = error_response
        self.routes = [route for route in app.routes if isinstance(route, APIRoute) and "POST" in (route.methods or ())]

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Awaitable[None]]) -> None:
        is_plain = scope["type"] == "http" and scope["method"] == "POST" and not scope["query_string"]
        for route in self.routes if is_plain else ():
            if found := route.path_regex.match(scope["path"]):
                scope["route"] = route
                await self._answer(route.endpoint(found["name"], Request(scope, receive)), scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _answer(self, answer: Awaitable[Any], *connection: Any) -> None:
        try:
            response = await answer
        except Exception as error:
            response = self.error_response(error)
        await response(*connection)
