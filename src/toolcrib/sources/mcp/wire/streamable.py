"""The SDK's Streamable HTTP, with the two things said that it keeps to itself.

That it answered a request in the server's name (with a code that a server may use, too), and before
2026-07-28 that nobody waits for an answer any more: its stream would be resumed for ever. It knows
the SDK's insides, so the version is pinned; what a message means is not decided here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import StreamableHTTPTransport, StreamWriter
from mcp.shared._context_streams import create_context_streams
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, JSONRPCNotification, RequestId

from toolcrib.sources.mcp.wire.outgoing import outgoing
from toolcrib.sources.mcp.wire.process import MAX_LINE

__all__ = ["http_transport", "is_answerable"]

CANCELLED: Final = "notifications/cancelled"
ANSWERS: Final = ("application/json", "text/event-stream")


def is_answerable(response: httpx2.Response) -> bool:
    """Whether an answer to a request can be in here. A success of another kind (202, the page of a
    login) holds none, whatever was done."""
    kind = response.headers.get("content-type", "").lower()
    return not response.is_success or (response.status_code != 202 and kind.startswith(ANSWERS))


class _Transport(StreamableHTTPTransport):
    async def _resolve_abandoned_request(
        self,
        read_stream_writer: StreamWriter,
        request_id: RequestId,
        message: str,
        *,
        code: int = CONNECTION_CLOSED,
    ) -> None:
        """Answers a request that the server will not answer."""
        if (going := outgoing.get()) is not None:
            going.abandoned = True
        await super()._resolve_abandoned_request(read_stream_writer, request_id, message, code=code)

    def _consume_modern_cancellation(self, session_message: SessionMessage) -> bool:
        """Whether a message is a cancellation that is told by hanging up. Of any other the frame is
        sent, and we hang up all the same."""
        if super()._consume_modern_cancellation(session_message):
            return True
        message = session_message.message
        if isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            id = cancelled_request_id_from_params(message.params)
            if id is not None and (post := self._in_flight_posts.get(id)) is not None:
                post.scope.cancel()
        return False


@asynccontextmanager
async def http_transport(url: str, http: httpx2.AsyncClient) -> AsyncGenerator[TransportStreams]:
    """The streams to an HTTP endpoint; leaving ends the session, where there is one, and whatever
    is under way. No event may be longer than a line of a process."""
    transport = _Transport(url, max_sse_event_size=MAX_LINE)
    answers, incoming = create_context_streams[SessionMessage | Exception](0)
    leaving, requests = create_context_streams[SessionMessage](0)
    async with answers, incoming, leaving, requests, anyio.create_task_group() as tasks:

        def hear() -> None:
            tasks.start_soon(transport.handle_get_stream, http, answers)

        tasks.start_soon(transport.post_writer, http, requests, answers, leaving, hear, tasks)
        try:
            yield incoming, leaving
        finally:
            if transport.session_id:
                await transport.terminate_session(http)
            tasks.cancel_scope.cancel()
