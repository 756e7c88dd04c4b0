"""For servers that keep state: a connection of its own for each conversation.

Lends connections; what one is and how it is kept is the keeper's. Calls outside a conversation, and
the list of tools, use the shared one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from toolcrib.errors import NotAvailable
from toolcrib.sources.mcp.keep.keeper import Keeper
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.tool import CallContext

__all__ = ["SessionPool"]

Owner: TypeAlias = tuple[str, str, str]
"""Tenant, principal and session: an id of a session alone is whatever the host made of it."""


class _Place:
    """One conversation's connection, and how many calls use it now."""

    __slots__ = ("calls", "keeper", "timer")

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.calls = 0
        self.timer: asyncio.TimerHandle | None = None


class SessionPool:
    """At most `max_sessions` connections, each made (by `make`) at a conversation's first call and
    closed after `session_idle` seconds without one, earlier where its place is needed."""

    def __init__(
        self, shared: Keeper, make: Callable[[CallContext], Keeper], settings: ServerSettings
    ) -> None:
        self._shared = shared
        self._make = make
        self._settings = settings
        self._places: dict[Owner, _Place] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._places)

    @asynccontextmanager
    async def lease(self, ctx: CallContext) -> AsyncGenerator[Keeper]:
        """The connection for a call. Raises `NotAvailable` when every place is taken by a
        conversation that is at work."""
        if ctx.session is None:
            yield self._shared
            return
        owner = (ctx.principal.tenant, ctx.principal.id, ctx.session.id)
        place = self._places.pop(owner, None) or self._new(ctx)
        self._places[owner] = place  # the last used is the last
        place.calls += 1
        if place.timer is not None:
            place.timer.cancel()
        try:
            await place.keeper.tried.wait()
            yield place.keeper
        finally:
            place.calls -= 1
            if not place.calls and not self._closed:
                loop = asyncio.get_running_loop()
                place.timer = loop.call_later(self._settings.session_idle, self._drop, owner)

    def _new(self, ctx: CallContext) -> _Place:
        name, most = self._shared.name, self._settings.max_sessions
        if self._closed:
            raise NotAvailable(f"MCP server {name!r} is not available: closed by us")
        if len(self._places) >= most:
            idle = [owner for owner, place in self._places.items() if not place.calls]
            if not idle or len(self._closing) >= most:
                raise NotAvailable(
                    f"MCP server {name!r} has a connection for each of {most} conversations, its"
                    " most, and they are all at work"
                )
            self._drop(idle[0])
        keeper = self._make(ctx)
        keeper.start()
        return _Place(keeper)

    def _drop(self, owner: Owner) -> None:
        place = self._places.pop(owner)
        if place.timer is not None:
            place.timer.cancel()
        task = asyncio.get_running_loop().create_task(place.keeper.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Closes every connection; safe twice."""
        self._closed = True
        for owner in [*self._places]:
            self._drop(owner)
        if self._closing:
            await asyncio.wait(set(self._closing))
