"""The two transports, as the SDK's client wants them: a stream of messages each way.

They add only what a supervisor needs to know: whether a request left, which HTTP status answered
it, and how a process ended. What a message means is the SDK's and `link`'s.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self, cast

import anyio
import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from toolcrib.sources.mcp.auth.flow import authorizing
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.wire.endpoint import Endpoint
from toolcrib.sources.mcp.wire.outgoing import outgoing
from toolcrib.sources.mcp.wire.process import ServerProcess
from toolcrib.sources.mcp.wire.streamable import http_transport, is_answerable

__all__ = ["HttpWatch", "http_streams", "process_streams"]

logger = logging.getLogger("toolcrib.mcp")

CANCELLING = 1.0
"""Seconds that a server has to take a cancellation."""

HTTP_TIMEOUT = 30.0
HTTP_READ_TIMEOUT = 3600.0
"""How long an answer may take is the executor's to say; this only ends what nobody waits for."""


class _Stream:
    """What both directions share: they belong to the process, which is ended elsewhere."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._closed = False

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self._closed = True


class _Incoming(_Stream):
    """Messages from the server. A line that is none is kept as diagnostics and skipped."""

    def __aiter__(self) -> Self:
        return self

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def __anext__(self) -> SessionMessage | Exception:
        while (line := await self._process.read_line()) is not None:
            if (message := parsed(line)) is not None:
                return message
            logger.debug("an MCP server wrote %d bytes to stdout that are no message", len(line))
            self._process.note(line + b"\n")
        raise StopAsyncIteration


class _Outgoing(_Stream):
    """Messages to the server."""

    async def send(self, item: SessionMessage, /) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        if getattr(item.message, "method", "") == "notifications/cancelled":
            await self._wait_a_little()
        else:
            await self._process.wait_writable()
        request = outgoing.get()
        if self._closed or (request is not None and request.withdrawn):
            raise anyio.ClosedResourceError
        try:
            self._process.write(line.encode())
        except BrokenPipeError:
            raise anyio.BrokenResourceError from None
        if request is not None:
            request.sent = True

    async def _wait_a_little(self) -> None:
        """A cancellation may be sent while its caller is being cancelled. Whoever does not read
        cannot be told, and what is meant for them must not fill the memory."""
        with anyio.move_on_after(CANCELLING) as scope:
            await self._process.wait_writable()
        if scope.cancelled_caught:
            raise anyio.BrokenResourceError


def parsed(line: bytes) -> SessionMessage | None:
    """The message in `line`, None where there is none. An answer that cannot be read becomes an
    error of the request it belongs to, so that nobody waits for it."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        pass  # perhaps an answer all the same: see below
    try:
        raw: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    answer = cast("dict[str, Any]", raw)
    number = answer.get("id")
    if type(number) not in (int, str) or answer.keys().isdisjoint(("result", "error")):
        return None
    error = ErrorData(code=PARSE_ERROR, message="the server's answer is no valid message")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


@asynccontextmanager
async def process_streams(
    process: ServerProcess, grace: float
) -> AsyncGenerator[tuple[_Incoming, _Outgoing]]:
    """The streams of a running server; leaving ends it and its group."""
    try:
        yield _Incoming(process), _Outgoing(process)
    finally:
        with anyio.CancelScope(shield=True):  # every wait inside is bounded
            await process.stop(grace)


class HttpWatch:
    """Sees each message that is sent on one HTTP connection, and what answered it: a POST. What
    else goes to and fro (the stream of an answer resumed, a farewell) says nothing of what became
    of a message. `on_refusal` is told why no request will be accepted any more; `waiting` lasts for
    as long as somebody is asked to log in."""

    def __init__(
        self,
        on_refusal: Callable[[str], None],
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.on_refusal = on_refusal
        self.waiting = waiting
        self.last_status = 0

    async def on_request(self, request: httpx2.Request) -> None:
        if request.method != "POST" or (going := outgoing.get()) is None:
            return
        # Sent once more with another credential: of the time before, only a refusal is known.
        going.sent, going.status = False, 0

        async def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith("send_request_headers.started"):
                if going.withdrawn:
                    raise httpx2.ConnectError("it was withdrawn before it was sent")
                going.sent = True

        request.extensions = {**request.extensions, "trace": trace}

    async def on_response(self, response: httpx2.Response) -> None:
        if response.request.method != "POST":
            return
        self.last_status = response.status_code
        if (going := outgoing.get()) is not None:
            going.status = response.status_code
            going.abandoned = not is_answerable(response)


@asynccontextmanager
async def http_streams(server: McpServer, watch: HttpWatch) -> AsyncGenerator[Any]:
    """The streams to an HTTP endpoint."""
    timeout = httpx2.Timeout(server.http_timeout or HTTP_TIMEOUT, read=HTTP_READ_TIMEOUT)
    name, url = server.name, server.url
    async with authorizing(name, url, server.auth, watch.on_refusal, watch.waiting) as auth:
        http = Endpoint(url, dict(server.headers), timeout, auth)
        http.event_hooks = {"request": [watch.on_request], "response": [watch.on_response]}
        async with http, http_transport(http.bare, http) as streams:
            yield streams
