"""A limit for the heads of requests parsed by httptools; where h11 parses them, uvicorn has one that can be set."""

from __future__ import annotations

from typing import Any

HEAD_BYTES = 2**16  # of headers, or of those after a body in chunks; more may pass if they are read at once

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    PROTOCOL: Any = "auto"
else:

    class BoundedHeads(HttpToolsProtocol):
        """A connection that is closed if a client sends headers without end, which would be stored before they are used."""

        _unused = 0  # bytes since the last end of a head, part of a body or end of a request

        def on_headers_complete(self) -> None:
            """Begin a request."""
            self._unused = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            """Receive a part of its body."""
            self._unused = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            """End its body."""
            self._unused = 0
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            """Read on, unless there are too many headers."""
            self._unused += len(data)
            super().data_received(data)
            if self._unused > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response(f"The headers of a request must have at most {HEAD_BYTES:,} bytes.")

    PROTOCOL = BoundedHeads
