"""How one server stands, for whoever looks, listens or waits; what is logged of it.

It only says. What happens to the server is `keeper`'s.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from toolcrib.errors import NotAvailable
from toolcrib.sources.mcp.health import Health, State

__all__ = ["Standing"]

logger = logging.getLogger("toolcrib.mcp")

HOPE: Final[dict[State, str]] = {
    "degraded": "; it is being reconnected",
    "open": "; it failed too often in a row, and is tried again later",
}


class Standing:
    """The health of one server. `tried` is set once the first attempt ended, `settled` once the
    server was ready for the first time, was given up, or closed. `on_health` is told of each change
    of state or reason; `generation` counts how often a connection proved sound: when it became
    ready, and when it answered a probe."""

    def __init__(
        self, name: str, masked: Callable[[str], str], on_health: Callable[[Health], None]
    ) -> None:
        self.masked = masked
        self._on_health = on_health
        self._moved = asyncio.Event()
        self._told = False
        self.tried = asyncio.Event()
        self.settled = asyncio.Event()
        self.generation = 0
        self.health = Health(name, since=time.time())

    async def moves(self) -> None:
        """Returns at the next change."""
        await self._moved.wait()

    @property
    def is_hopeless(self) -> bool:
        """Whether no connection is being made at the moment."""
        return self.health.state in ("open", "given_up", "closed")

    def refusal(self, reason: str) -> NotAvailable:
        """What a call that cannot be sent is told."""
        why = self.masked(reason) or "it is not connected yet"
        hope = HOPE.get(self.health.state, "")
        return NotAvailable(f"MCP server {self.health.name!r} is not available: {why}{hope}")

    def attempts(self) -> None:
        self.health = replace(self.health, attempts=self.health.attempts + 1)

    def keeps(self, stderr: str) -> None:
        self.health = self.with_stderr(stderr)

    def with_stderr(self, stderr: str) -> Health:
        """The health with what the server's process says."""
        return replace(self.health, stderr=self.masked(stderr)) if stderr else self.health

    def ready(self, era: str) -> None:
        self.generation += 1
        self._told = False
        self.health = replace(self.health, era=era)
        self._now("ready", "")
        self.tried.set()
        self.settled.set()
        logger.info("MCP server %r is ready (protocol %s)", self.health.name, era)

    def proves(self) -> None:
        """The connection there is answered a probe."""
        self.generation += 1
        self._wake()

    def lost(self, reason: str) -> None:
        self._now("degraded", reason)

    def failed(self, state: State, reason: str, pause: float) -> None:
        """An attempt or a connection ended, and the next attempt is `pause` seconds away."""
        said = "MCP server %r is not available: %s; next attempt in %.3g s"
        level = logging.DEBUG if self._told else logging.WARNING
        logger.log(level, said, self.health.name, self.masked(reason), pause)
        self._told = True
        self._now(state, reason)
        self.tried.set()

    def gives_up(self, reason: str) -> None:
        self._now("given_up", reason)
        self.settled.set()
        logger.error("MCP server %r is given up: %s", self.health.name, self.health.reason)

    def closed(self) -> None:
        if self.health.state not in ("given_up", "closed"):
            self._now("closed", "closed by us")
        self.tried.set()
        self.settled.set()

    def _now(self, state: State, reason: str) -> None:
        before, reason = self.health, self.masked(reason)
        since = before.since if before.state == state else time.time()
        self.health = replace(before, state=state, reason=reason, since=since)
        self._wake()
        if (state, reason) != (before.state, before.reason):
            self._on_health(self.health)

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
