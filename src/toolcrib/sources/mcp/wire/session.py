"""The SDK's session, asked for what servers really send.

The SDK checks every answer against its own models and validates structured content on the event
loop (a hostile pattern there freezes the process). Here requests and their raw answers pass; what
is in them is for `catalogue` and `content`. It knows the SDK's insides, so the version is pinned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, cast

import anyio
from mcp import Client
from mcp.client._transport import Transport
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
)
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    LOG_LEVEL_META_KEY,
    CallToolResult,
    ClientCapabilities,
    Implementation,
    InitializeResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.host import abilities_of
from toolcrib.sources.mcp.asking.questions import METHODS, capabilities
from toolcrib.sources.mcp.wire.dispatcher import Dispatcher, Handlers
from toolcrib.sources.mcp.wire.outgoing import Outgoing, outgoing

__all__ = ["RawClient", "RawSession", "UnsupportedVersion", "raw_client"]

logger = logging.getLogger("toolcrib.mcp")

MAX_FAREWELLS: Final = 256
FAREWELL: Final = 5.0
"""How many cancellations may be on their way at once, and seconds each may take."""


class UnsupportedVersion(Exception):
    """Server and SDK share no protocol version: no retry can mend that."""


class RawSession(ClientSession):
    """A session whose requests return the answer as it came."""

    handlers: Handlers

    @property
    def is_modern(self) -> bool:
        """Whether the peer speaks 2026-07-28 or later: no sessions, no ping."""
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def raw(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        going: Outgoing | None = None,
        log_level: str = "",
    ) -> dict[str, Any]:
        """The result of one request. Raises `MCPError` for an error and for a lost connection.

        `going` hears what the server says meanwhile. When we are cancelled the server is told so,
        and nobody waits for that: one that hangs would keep its callers.
        """
        going = going or Outgoing()
        data: dict[str, Any] = {"method": method}
        if params is not None:
            data["params"] = params
        if going.hears is not None:
            meta = {**(params or {}).get("_meta", {}), "progressToken": going.id}
            if log_level and self.is_modern:
                meta[LOG_LEVEL_META_KEY] = log_level
            data["params"] = {**(params or {}), "_meta": meta}
        options: CallOptions = {}
        self._stamp(data, options)
        if going.hears is not None and self.is_modern:
            able = abilities_of(going.hears.caller.host)
            data["params"]["_meta"][CLIENT_CAPABILITIES_META_KEY] = capabilities(able)
        options["request_id"] = going.id
        options["cancel_on_abandon"] = False
        try:
            return await self._dispatcher.send_raw_request(method, data.get("params"), options)
        except asyncio.CancelledError:
            self._say_farewell(going.id)
            raise

    _farewells = 0

    def _say_farewell(self, id: int) -> None:
        if self._task_group is not None and self._farewells < MAX_FAREWELLS:
            self._farewells += 1
            try:
                self._task_group.start_soon(self._farewell, id)
            except RuntimeError:  # the session has ended, and with it whatever was asked
                self._farewells -= 1

    async def _farewell(self, id: int) -> None:
        try:
            with anyio.move_on_after(FAREWELL):
                cancelled = {"requestId": id, "reason": "the caller no longer waits"}
                await self._dispatcher.notify("notifications/cancelled", cancelled)
        finally:
            self._farewells -= 1

    def _build_capabilities(self, version: str) -> ClientCapabilities:
        """What a legacy server may ask on this connection. A modern one is told with each call."""
        return ClientCapabilities.model_validate(capabilities(self.handlers.abilities))

    async def _on_request(
        self,
        dctx: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        is_connected = self._initialize_result is not None
        if not is_connected or METHODS.get(method) not in self.handlers.abilities:
            return await super()._on_request(dctx, method, params)
        related = outgoing.get()
        outgoing.set(None)  # what becomes of our answer on the wire is not what becomes of the call
        return await self.handlers.on_request(method, params or {}, related)

    def _intercept_notification(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Nothing is left to the SDK, which would begin a task for each notification."""
        super()._intercept_notification(method, params)
        return True

    def header_fault(self, name: str, schema: object) -> str | None:
        """Why the specification forbids offering a tool (its `x-mcp-header`), else None; a tool
        that passes gets its headers from then on."""
        if not self.is_modern:
            return None
        if (fault := find_invalid_x_mcp_header(schema)) is not None:
            return fault
        self._x_mcp_header_maps[name] = x_mcp_header_map(schema)
        return None

    async def initialize(self) -> InitializeResult:
        try:
            return await super().initialize()
        except RuntimeError as error:  # the SDK's only one here: a version it does not know
            raise UnsupportedVersion(str(error)) from error

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Never on the event loop."""


class RawClient(Client):
    """The SDK's client round a `RawSession`: it connects and negotiates, no more."""

    handlers: Handlers

    async def _build_session(self, exit_stack: AsyncExitStack) -> ClientSession:
        read, write = await exit_stack.enter_async_context(cast("Transport", self.server))
        dispatcher = Dispatcher(read, write)
        dispatcher.handlers = self.handlers
        session = RawSession(dispatcher=dispatcher, client_info=self.client_info)
        session.handlers = self.handlers
        return session

    @property
    def raw(self) -> RawSession:
        return cast("RawSession", self.session)


def raw_client(transport: Transport, mode: str, handlers: Handlers) -> RawClient:
    """A client not yet entered."""
    client = RawClient(transport, mode=mode, cache=None, client_info=_who())
    client.handlers = handlers
    return client


def _who() -> Implementation:
    try:
        return Implementation(name="toolcrib", version=version("toolcrib"))
    except PackageNotFoundError:  # run from a source tree
        return Implementation(name="toolcrib", version="0")
