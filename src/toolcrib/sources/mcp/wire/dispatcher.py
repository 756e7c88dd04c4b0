"""The SDK's reading of what a server sends, which also tells what the SDK keeps to itself.

What is said and asked goes to `Handlers`, which `link` gives. It knows the SDK's insides, so the
version is pinned.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import anyio
from mcp.shared.dispatcher import OnNotify, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import JSONRPCNotification, JSONRPCRequest

from toolcrib.host import Ability
from toolcrib.sources.mcp.wire.outgoing import Outgoing, outgoing

__all__ = ["Dispatcher", "Handlers"]

logger = logging.getLogger("toolcrib.mcp")

Heard: TypeAlias = Callable[[str, Mapping[str, Any], Outgoing | None], None]
"""Told each notification of the server: its method, its parameters, and the request on whose
stream it came, where the transport knows."""

Answer: TypeAlias = Callable[[str, Mapping[str, Any], Outgoing | None], Awaitable[dict[str, Any]]]
"""Told each question in the same way. Gives the answer, or raises `MCPError`."""

MAX_ASKING: Final = 256
"""Requests of a server that may wait for their answer to be taken."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Who is told of what comes of itself: that nothing can come any more, what the server says,
    and what it asks, which may be no more than `abilities`."""

    on_end: Callable[[], None]
    on_notification: Heard
    on_request: Answer
    abilities: frozenset[Ability] = frozenset()


class Dispatcher(JSONRPCDispatcher[TransportContext]):
    """Tells `handlers` when nothing can come any more, whatever ended it: the SDK tells nobody.
    Tells every notification as it comes, before the SDK looks at it."""

    handlers: Handlers
    _asking = 0
    _warned = False

    async def _dispatch_request(
        self,
        req: JSONRPCRequest,
        metadata: MessageMetadata,
        on_request: OnRequest,
        sender_ctx: Context | None,
    ) -> None:
        """Each request of the server has a task until its answer is written, so those of a server
        that never reads have to be left unanswered some time."""
        if self._asking < MAX_ASKING:
            await super()._dispatch_request(req, metadata, on_request, sender_ctx)
        elif not self._warned:
            self._warned = True
            logger.warning("an MCP server asks and does not read the answers: leaving it without")

    async def _handle_request(
        self,
        req: JSONRPCRequest,
        dctx: Any,
        scope: anyio.CancelScope,
        on_request: OnRequest,
    ) -> None:
        self._asking += 1
        try:
            await super()._handle_request(req, dctx, scope, on_request)
        finally:
            self._asking -= 1

    def _dispatch_notification(
        self,
        msg: JSONRPCNotification,
        metadata: MessageMetadata,
        on_notify: OnNotify,
        sender_ctx: Context | None,
    ) -> None:
        related = None if sender_ctx is None else sender_ctx.get(outgoing)
        try:
            self.handlers.on_notification(msg.method, msg.params or {}, related)
        except Exception:  # what one notification does must not end the connection
            logger.exception("a notification of an MCP server could not be taken")
        super()._dispatch_notification(msg, metadata, on_notify, sender_ctx)

    def _fan_out_closed(self) -> None:
        """Before those who wait are woken: they ask whether the connection is still there."""
        self.handlers.on_end()
        super()._fan_out_closed()
