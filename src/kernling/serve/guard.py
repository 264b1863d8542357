"""Access control: a token if the service is reachable from the network, else protection from other sites' web pages."""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse

from .refusal import Refused

VARIABLE = "KERNLING_TOKEN"
OPEN = ("/", "/healthz", "/docs", "/openapi.json")  # the page asks for the token itself, and names need it
SHORTEST = 16  # minimum number of characters of a token


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Examples
    --------
    >>> from kernling.serve.guard import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find_token(file: Path | None, host: str) -> str | None:
    """Return the token from a file or the environment; raise if one is needed and there is none."""
    token = file.read_text(encoding="utf-8").strip() if file else os.environ.get(VARIABLE)
    if token is None and not is_loopback(host):
        raise ValueError(f"others can reach {host}: give a token with --token-file or the environment variable {VARIABLE}")
    if token is not None and (len(token) < SHORTEST or not token.isascii() or not token.isprintable()):
        raise ValueError(f"the token must have at least {SHORTEST} printable ASCII characters")
    return token


class Guard:
    """ASGI middleware that refuses requests without the token.

    Without a token, requests must name this machine, and must not come from web pages of other sites: a browser would send
    such requests on behalf of anybody.
    """

    def __init__(self, app: Any, token: str | None):
        self.app = app
        self.token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Awaitable[None]]) -> None:
        refused = self._refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            await self.app(scope, receive, send)
        else:
            headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
            await JSONResponse(refused.to_plain(), refused.status, headers)(scope, receive, send)

    def _refusal(self, scope: dict[str, Any]) -> Refused | None:
        headers = dict(scope["headers"])
        is_trusted = self.token is None or hmac.compare_digest(headers.get(b"authorization", b""), self.token)
        scope.setdefault("state", {})["is_trusted"] = is_trusted
        if self.token is not None:
            if scope["path"] in OPEN or is_trusted:
                return None
            return Refused(401, "the header Authorization must be 'Bearer' and the token of this service")
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not _is_local(host, origin):
            return Refused(403, "without a token, requests must come from this machine and name it as localhost")
        return None


@lru_cache(maxsize=100)
def _is_local(host: str, origin: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "") and (not origin or urlsplit(origin).netloc == host)
    except ValueError:  # not an address
        return False
