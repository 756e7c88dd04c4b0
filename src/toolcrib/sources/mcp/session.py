"""The SDK's session, asked for what servers really send.

The SDK checks every answer against its own models and validates structured content on the event
loop (a hostile pattern there freezes the process). Here requests and their raw answers pass; what
is in them is for `mirror` and `translate`. It knows the SDK's insides, so the version is pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from mcp import Client
from mcp.client._transport import Transport
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult, Implementation, InitializeResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.sources.mcp.health import OnProgress

__all__ = ["RawClient", "RawSession", "UnsupportedVersion", "raw_client"]


class UnsupportedVersion(Exception):
    """Server and SDK share no protocol version: no retry can mend that."""


class RawSession(ClientSession):
    """A session whose requests return the answer as it came."""

    @property
    def is_modern(self) -> bool:
        """Whether the peer speaks 2026-07-28 or later: no sessions, no ping."""
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def raw(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The result of one request. Raises `MCPError` for an error and for a lost connection."""
        data: dict[str, Any] = {"method": method}
        if params is not None:
            data["params"] = params
        options: CallOptions = {}
        self._stamp(data, options)
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self._dispatcher.send_raw_request(method, data.get("params"), options)

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


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """Tells when its receive loop ends, whatever ended it: the SDK tells nobody."""

    on_end: Callable[[], None] = staticmethod(lambda: None)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self.on_end()


class RawClient(Client):
    """The SDK's client round a `RawSession`: it connects and negotiates, no more."""

    on_end: Callable[[], None]

    async def _build_session(self, exit_stack: AsyncExitStack) -> ClientSession:
        read, write = await exit_stack.enter_async_context(cast("Transport", self.server))
        dispatcher = _Dispatcher(read, write)
        dispatcher.on_end = self.on_end
        return RawSession(dispatcher=dispatcher, client_info=self.client_info)

    @property
    def raw(self) -> RawSession:
        return cast("RawSession", self.session)


def raw_client(transport: Transport, mode: str, on_end: Callable[[], None]) -> RawClient:
    """A client not yet entered. `on_end` is called once nothing can come back any more."""
    client = RawClient(transport, mode=mode, cache=None, client_info=_who())
    client.on_end = on_end
    return client


def _who() -> Implementation:
    try:
        return Implementation(name="toolcrib", version=version("toolcrib"))
    except PackageNotFoundError:  # run from a source tree
        return Implementation(name="toolcrib", version="0")
