"""One server of a source: its supervision, and the tools it has published so far.

What the source publishes of all its servers, and when, is `source`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

from toolcrib.errors import Conflict
from toolcrib.host import Ability, abilities_of
from toolcrib.manifest import ManifestTool
from toolcrib.sources.mcp.calls.repeats import Calls, Lease
from toolcrib.sources.mcp.catalogue.bridges import prompt_tools, resource_tools
from toolcrib.sources.mcp.catalogue.mirror import Mirror, Mirrored, Rejection, mirror
from toolcrib.sources.mcp.catalogue.remote_tools import remote_tool
from toolcrib.sources.mcp.failures import Rejected
from toolcrib.sources.mcp.health import Health, Pace
from toolcrib.sources.mcp.keep.keeper import Keeper
from toolcrib.sources.mcp.keep.per_session import SessionPool
from toolcrib.sources.mcp.link.era import Era
from toolcrib.sources.mcp.link.link import Link
from toolcrib.sources.mcp.server import McpServer
from toolcrib.tool import CallContext

__all__ = ["Member"]

logger = logging.getLogger("toolcrib.mcp")


SILENCE: Final = 1.0
"""Seconds without an answer that make a server suspect, where it is watched at all."""


class Member:
    """Keeps `server` connected and its list current. `publish` is called after each listing, and
    may raise `Conflict`; `on_health` is told of each change. `abilities` is what connections made
    from now on say that hosts can be asked."""

    def __init__(
        self,
        server: McpServer,
        pace: Pace,
        bounds: Mapping[str, float],
        publish: Callable[[], None],
        on_health: Callable[[Health], None],
    ) -> None:
        self.server = server
        self.tools: dict[str, ManifestTool[Any]] = {}
        self.is_inheriting = False
        self.rejected: tuple[Rejection, ...] = ()
        self.idle: tuple[str, ...] = ()
        self._publish = publish
        self._on_health = on_health
        self._known: dict[str, tuple[Mirrored, ManifestTool[Any]]] = {}
        self.abilities: frozenset[Ability] = frozenset()
        self._pace = pace = _paced(pace, server)
        self._bounds = bounds
        self._era = Era(bounds["connect_timeout"])
        self.keeper = Keeper(server.name, self._make, self._use, pace, server.masked, self._told)
        self.sessions = SessionPool(self.keeper, self._keeper_for, server.settings)
        self._calls = Calls(server.name, server.settings, self._lease(), server.masked)
        self._bridges = [
            *(resource_tools(self._calls, server) if server.resources else ()),
            *(prompt_tools(self._calls, server) if server.prompts else ()),
        ]

    def report(self) -> Health:
        """How the server is now."""
        return replace(self.keeper.report(), tools=len(self.tools))

    def inherit(self, before: Member) -> None:
        """Offers the tools of the server as it was declared before, until it is listed anew."""
        self.tools, self.is_inheriting = before.tools, True

    async def close(self) -> None:
        """Ends every connection of the server."""
        await self.sessions.close()
        await self.keeper.close()

    def _make(self) -> Link:
        return self._link(self.abilities)

    def _link(self, abilities: frozenset[Ability]) -> Link:
        silence = SILENCE if self._pace.liveness else math.inf
        return Link(self.server, self._era, abilities, silence=silence, **self._bounds)

    def _keeper_for(self, ctx: CallContext) -> Keeper:
        """A conversation's connection: its host is the only one there, and known."""
        make = partial(self._link, self.abilities | abilities_of(ctx.host))
        name, masked = self.server.name, self.server.masked
        return Keeper(name, make, self._use_for_session, self._pace, masked)

    def _told(self, health: Health) -> None:
        self._on_health(replace(health, tools=len(self.tools)))

    def _lease(self) -> Lease:
        if self.server.per_session:
            return self.sessions.lease

        def shared(ctx: CallContext) -> nullcontext[Keeper]:
            return nullcontext(self.keeper)

        return shared

    async def _use(self, link: Link) -> None:
        """Lists the tools and publishes them; a list that fails leaves what was published
        (A10.9)."""
        listed = await link.tools()
        # Thousands of schemas take seconds to look at, which the loop has not.
        found = await asyncio.to_thread(
            mirror,
            self.server.name,
            self.server.namespace,
            listed,
            link.header_fault,
            self.server.tools,
        )
        before = self.tools, self.is_inheriting
        self.tools, self.is_inheriting = self._tools(found), False
        try:
            self._publish()
        except Conflict as error:
            self.tools, self.is_inheriting = before
            raise Rejected(str(error)) from error
        self._warn(found)

    async def _use_for_session(self, link: Link) -> None:
        """A conversation's connection offers what the shared one lists; some tools' arguments
        travel in headers, which each connection has to know."""
        for mirrored, _ in self._known.values():
            link.header_fault(mirrored.remote, mirrored.definition.input_schema)

    def _warn(self, found: Mirror) -> None:
        """Once for each thing that is new."""
        if found.rejected != self.rejected:
            self.rejected = found.rejected
            for one in found.rejected:
                logger.warning(
                    "MCP server %r: tool %r is left out: %s", one.server, one.tool, one.reason
                )
        if found.idle != self.idle:
            self.idle = found.idle
            for said in found.idle:
                logger.warning("MCP server %r: %s", self.server.name, said)

    def _tools(self, found: Mirror) -> dict[str, ManifestTool[Any]]:
        """The tools of a list. One that did not change stays the same object, so that the registry
        leaves it alone (T-A12)."""
        known, self._known = self._known, {}
        for mirrored in found.tools:
            before = known.get(mirrored.definition.name)
            self._known[mirrored.definition.name] = (
                before
                if before is not None and before[0] == mirrored
                else (mirrored, remote_tool(self._calls, mirrored))
            )
        tools = {name: tool for name, (_, tool) in self._known.items()}
        for tool in self._bridges:
            tools.setdefault(tool.definition.name, tool)
        return tools


def _paced(pace: Pace, server: McpServer) -> Pace:
    """The pace of the source with what the server says of its own."""
    given = server.settings
    return replace(
        pace,
        liveness=pace.liveness if server.liveness is None else server.liveness,
        open_after=given.open_after,
        open_pause=given.open_pause,
        jitter=given.jitter,
        list_quiet=given.list_quiet,
        list_longest=given.list_longest,
    )
