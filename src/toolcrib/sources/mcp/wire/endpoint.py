"""The HTTP client of one connection: what goes wrong with one exchange costs that exchange alone.

Under the SDK, an answer that breaks off ends the connection, and with it every other call; one that
has no end fills the memory; a stream that a server closes at once is opened again as fast as it
can. Here each of these becomes an answer, an error or a wait. What they mean is `link.faults`'.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final, cast

import httpx2
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR

from toolcrib.sources.mcp.content.shapes import object_of
from toolcrib.sources.mcp.health import delay
from toolcrib.sources.mcp.wire.outgoing import Outgoing, outgoing
from toolcrib.sources.mcp.wire.process import MAX_LINE

__all__ = ["Endpoint", "Resumed", "TooMuch"]

JSON: Final = "application/json"
CODINGS: Final = ("", "identity", "gzip", "deflate")
"""Those whose every piece unpacks to a bounded size; two of them, one in the other, do not."""

CONNECTING: Final = ("initialize", "server/discover")
"""What fails of these fails the connection."""

KEPT_ALIVE: Final = 20
FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 1.0
"""Seconds between two openings of one stream, whatever the server says: growing from one to the
other."""

MAX_RESUMED: Final = 500
"""How often the stream of one call may be opened again. The SDK goes one level deeper each time."""


class TooMuch(httpx2.StreamError):
    """An answer that is too large, or packed in a way that does not tell."""


class Resumed(httpx2.StreamError):
    """The stream of one call was opened again too often."""


class Endpoint(httpx2.AsyncClient):
    """Sends to `url`; what is secret in it stands in no log of those who send."""

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        timeout: httpx2.Timeout,
        auth: httpx2.Auth | None,
    ) -> None:
        # A call may wait for long, and the next one must not wait for it.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_ALIVE)
        accepted = {"Accept-Encoding": ", ".join(CODINGS[2:]), **headers}
        super().__init__(headers=accepted, timeout=timeout, auth=auth, limits=limits)
        self._address = _Address(url)
        self.bare = str(self._address)
        self._standing = Outgoing()

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.url == self.bare:
            request.url = self._address
        if request.method == "GET":
            await _pause(outgoing.get() or self._standing, self._standing)
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            return await _whole(await super().send(request, **options))
        except (httpx2.TransportError, httpx2.DecodingError, TooMuch) as error:
            is_lost = isinstance(error, httpx2.TransportError)
            if (going := outgoing.get()) is not None:
                going.abandoned = is_lost
            if (answer := _instead(request, CONNECTION_CLOSED if is_lost else PARSE_ERROR)) is None:
                raise
            return answer


class _Address(httpx2.URL):
    """An address that shows neither its query nor a password."""

    def __str__(self) -> str:
        return str(self.copy_with(query=None, userinfo=b"", fragment=None))

    __repr__ = __str__


async def _pause(stream: Outgoing, standing: Outgoing) -> None:
    """Returns when `stream` may be opened again. Raises `Resumed`."""
    stream.resumed += 1
    if stream.resumed > MAX_RESUMED and stream is not standing:
        raise Resumed(f"its answer was put off {MAX_RESUMED} times")
    pause = delay(stream.resumed, FIRST_PAUSE, LONGEST_PAUSE)
    await asyncio.sleep(max(0.0, stream.resumed_at + pause - time.monotonic()))
    stream.resumed_at = time.monotonic()


async def _whole(response: httpx2.Response) -> httpx2.Response:
    """The response, read to its end where it is no stream of events. Raises what reading it does,
    and `TooMuch`."""
    kind = response.headers.get("content-type", "").lower()
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS:
        await response.aclose()
        raise TooMuch(f"its answer is packed as {coding[:50]!r}, which was not asked for")
    if kind.startswith(JSON):
        return await _read(response)
    return response


async def _read(response: httpx2.Response) -> httpx2.Response:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > MAX_LINE:
                raise TooMuch(f"its answer is of more than {MAX_LINE} bytes")
            parts.append(part)
    finally:
        await response.aclose()
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    return httpx2.Response(
        response.status_code, headers=headers, content=b"".join(parts), request=response.request
    )


def _instead(request: httpx2.Request, code: int) -> httpx2.Response | None:
    """What stands for an answer that did not come; None where the connection is not worth having
    without it."""
    message = _message(request)
    if message.get("method") in CONNECTING:
        return None
    if "id" not in message or "method" not in message:
        return httpx2.Response(202, request=request)  # nobody waits for it
    error = {"code": code, "message": "no answer came that can be read"}
    answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return httpx2.Response(200, json=answer, request=request)


def _message(request: httpx2.Request) -> dict[str, Any]:
    return object_of(cast("object", json.loads(request.content)))
