"""MCP servers as one source: what each lists is published, and stays while it is down.

Supervision is `keep`'s, naming `mirror`'s; here is only what joins them to a registry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from toolcrib.errors import (
    ConfigurationError,
    Conflict,
    InvalidDefinition,
    NotAvailable,
    NotReady,
    Problem,
)
from toolcrib.manifest import ManifestTool
from toolcrib.sources.contract import Publish
from toolcrib.sources.mcp.era import Era
from toolcrib.sources.mcp.faults import Rejected
from toolcrib.sources.mcp.health import Health, Pace
from toolcrib.sources.mcp.keep import Keeper
from toolcrib.sources.mcp.link import Link
from toolcrib.sources.mcp.mirror import Mirror, Mirrored, Rejection, mirror
from toolcrib.sources.mcp.remote_tools import remote_tool, resource_tools
from toolcrib.sources.mcp.server import McpServer

__all__ = ["McpSource"]

logger = logging.getLogger("toolcrib.mcp")


class McpSource:
    """MCP servers as a source of tools. Belongs to the loop that opens it.

    `liveness` is seconds between two probes of a server that names none (0.0: no probes);
    `first_backoff` doubles up to `max_backoff` between attempts; `connect_timeout` bounds each
    connecting, `list_timeout` each listing, `stop_timeout` each step of ending a process (its input
    closed, SIGTERM, SIGKILL). All in seconds. Raises `InvalidDefinition` (A9.1).
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        name: str = "mcp",
        *,
        liveness: float = 15.0,
        first_backoff: float = 1.0,
        max_backoff: float = 30.0,
        connect_timeout: float = 30.0,
        list_timeout: float = 30.0,
        stop_timeout: float = 2.0,
    ) -> None:
        self._name = name
        self.servers = tuple(sorted(servers, key=lambda server: server.name))
        times = (first_backoff, max_backoff, connect_timeout, list_timeout, stop_timeout)
        _check(name, [server.name for server in self.servers], liveness, times)
        self._publish: Publish | None = None
        self._closed = False
        pace = Pace(
            liveness=liveness,
            first_backoff=first_backoff,
            max_backoff=max(first_backoff, max_backoff),
            use_timeout=list_timeout,
            close_timeout=3 * stop_timeout + 4.0,
        )
        bounds = {"connect_timeout": connect_timeout, "grace": stop_timeout}
        self._members = [
            _Member(server, pace, bounds, self._publish_all) for server in self.servers
        ]

    @property
    def name(self) -> str:
        return self._name

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """The listed tools that are not offered, with the reason of each."""
        return tuple(rejection for member in self._members for rejection in member.rejected)

    def health(self) -> tuple[Health, ...]:
        """How each server is now, sorted by name."""
        return tuple(replace(m.keeper.report(), tools=len(m.tools)) for m in self._members)

    async def open(self, publish: Publish) -> None:
        """Connects to every server at once and returns when each first attempt has ended; one that
        failed goes on in the background. Raises `ConfigurationError` naming each server that was
        given up, and `NotAvailable` when it is open or closed already."""
        if self._closed or self._publish is not None:
            raise NotAvailable(f"source {self._name!r} can be opened once")
        self._publish = publish
        for member in self._members:
            member.keeper.start()
        await asyncio.gather(*(member.keeper.tried.wait() for member in self._members))
        _raise_given_up(self._members)

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Returns once every server marked `required` was ready (again down or not); at once where
        none is. Raises as the contract says, and `NotAvailable` when the source is closed."""
        needed = [member for member in self._members if member.server.required]
        try:
            async with asyncio.timeout(timeout):
                for member in needed:
                    await member.keeper.settled.wait()
                    _raise_given_up([member])
        except TimeoutError:
            waiting = ", ".join(
                f"{m.server.name!r} ({m.keeper.health.reason or 'still connecting'})"
                for m in needed
                if not m.keeper.settled.is_set()
            )
            raise NotReady(f"not ready after {timeout:g} s: MCP server {waiting}") from None
        if needed and self._closed:
            raise NotAvailable(f"source {self._name!r} was closed")

    async def close(self) -> None:
        """Ends every connection, process and retry; safe twice, and after a failed `open`."""
        self._closed = True
        await asyncio.gather(*(member.keeper.close() for member in self._members))

    def _publish_all(self) -> None:
        """Publishes what every server offers, in the order of their names (T-A21). Raises
        `Conflict`."""
        if self._publish is None or self._closed:
            return
        offered: dict[str, str] = {}
        for member in self._members:
            for name in member.tools:
                other = offered.setdefault(name, member.server.name)
                if other != member.server.name:
                    raise Conflict(
                        f"tool name {name!r} of MCP server {member.server.name!r} is already taken"
                        f" by MCP server {other!r}: give one of them a prefix"
                    )
        self._publish([tool for member in self._members for tool in member.tools.values()])


class _Member:
    """One server of the source: its supervision and the tools it has published."""

    def __init__(
        self,
        server: McpServer,
        pace: Pace,
        bounds: Mapping[str, float],
        publish: Callable[[], None],
    ) -> None:
        self.server = server
        self.tools: dict[str, ManifestTool[Any]] = {}
        self.rejected: tuple[Rejection, ...] = ()
        self._publish = publish
        self._known: dict[str, tuple[Mirrored, ManifestTool[Any]]] = {}
        if server.liveness is not None:
            pace = replace(pace, liveness=server.liveness)
        make = partial(Link, server, Era(bounds["connect_timeout"]), **bounds)
        self.keeper = Keeper(server.name, make, self._use, pace, server.masked)
        self._resources = resource_tools(self.keeper, server) if server.resources else []

    async def _use(self, link: Link) -> None:
        """Lists a fresh connection's tools and publishes them; a list that fails leaves what was
        published (A10.9)."""
        listed = await link.tools()
        found = mirror(self.server.name, self.server.namespace, listed, link.header_fault)
        before = self.tools
        self.tools = self._tools(found)
        try:
            self._publish()
        except Conflict as error:
            self.tools = before
            raise Rejected(str(error)) from error
        if found.rejected != self.rejected:
            self.rejected = found.rejected
            for one in found.rejected:
                logger.warning(
                    "MCP server %r: tool %r is left out: %s", one.server, one.tool, one.reason
                )

    def _tools(self, found: Mirror) -> dict[str, ManifestTool[Any]]:
        """The tools of a list. One that did not change stays the same object, so that the registry
        leaves it alone."""
        known, self._known = self._known, {}
        for mirrored in found.tools:
            before = known.get(mirrored.definition.name)
            self._known[mirrored.definition.name] = (
                before
                if before is not None and before[0] == mirrored
                else (mirrored, remote_tool(self.keeper, mirrored))
            )
        tools = {name: tool for name, (_, tool) in self._known.items()}
        for tool in self._resources:
            tools.setdefault(tool.definition.name, tool)
        return tools


def _check(source: str, names: list[str], liveness: float, times: tuple[float, ...]) -> None:
    if not source.strip():
        raise InvalidDefinition("an MCP source needs a name: it is blank")
    if not names:
        raise InvalidDefinition(f"MCP source {source!r} has no server")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(f"MCP source {source!r}: two servers are named {twice[0]!r}")
    if not 0 <= liveness < float("inf"):
        raise InvalidDefinition(f"liveness {liveness!r} is not a number of seconds > 0, nor 0")
    for seconds in times:
        if not 0 < seconds < float("inf"):
            raise InvalidDefinition(f"{seconds!r} is not a number of seconds > 0")


def _raise_given_up(members: Iterable[_Member]) -> None:
    problems = [
        Problem(f"MCP server {m.server.name!r}: {m.keeper.health.reason}")
        for m in members
        if m.keeper.health.state == "given_up"
    ]
    if problems:
        raise ConfigurationError(problems)
