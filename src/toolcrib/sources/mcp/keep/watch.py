"""Watches one connection while it is used: is it alive, did the server's list change.

It never connects and never decides what follows; that is `keeper`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from toolcrib.sources.mcp.changes import follow
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.health import Pace, delay
from toolcrib.sources.mcp.link.faults import words

__all__ = ["Watch"]

CHECK_TIMEOUT: Final = 15.0
"""Seconds a suspected server has to answer where it is not probed regularly."""

HEAD_START: Final = 0.5
"""Seconds a peer has to say that it tells of changes, before its list is read: what changes in
between would be missed. One that says so later has its list read again."""


class Watch:
    """The tasks that watch `link`; `read` reads the server's list again, `proved` is told when a
    suspicion was unfounded."""

    def __init__(
        self,
        link: Connection,
        pace: Pace,
        read: Callable[[], Awaitable[bool]],
        proved: Callable[[], None],
    ) -> None:
        self._link = link
        self._pace = pace
        self._read = read
        self._proved = proved

    async def listen_first(self, tasks: TaskGroup) -> None:
        """Before anything is asked: opens the stream on which a 2026-07-28 peer tells of changes.
        Older ones tell unasked."""
        if self._link.pingable:
            return
        tasks.start_soon(self._listen)
        with anyio.move_on_after(HEAD_START):
            await self._link.listening.wait()

    def start(self, tasks: TaskGroup) -> None:
        """Everything else, from when the connection is ready."""
        tasks.start_soon(self._probe_on_demand)
        tasks.start_soon(follow, self._link.changes, self._read, self._pace)

    async def _listen(self) -> None:
        """Holds the stream open. Its end is a suspicion: it ends with the peer, but by a proxy's
        idle limit too."""
        failures = 0
        while True:
            began = time.monotonic()
            if not await self._link.watch_closure():
                return
            self._link.suspect.set()
            sound = time.monotonic() - began > self._pace.max_backoff
            failures = 1 if sound else failures + 1
            await anyio.sleep(delay(failures, self._pace.first_backoff, self._pace.max_backoff))

    async def _probe_on_demand(self) -> None:
        """Probes when there is a suspicion, and regularly where the peer knows ping."""
        link, interval = self._link, self._pace.liveness
        every = interval if interval and link.pingable else float("inf")
        while True:
            with anyio.move_on_after(every):
                await link.suspect.wait()
            link.suspect.clear()
            if fault := await self._fault(interval or CHECK_TIMEOUT):
                link.end(fault)
                return
            self._proved()

    async def _fault(self, bound: float) -> str:
        """Why the server counts as dead; empty when it answered. One that is at work on an older
        request may be too busy to answer, so its silence is no proof (its call has a limit)."""
        link, began = self._link, time.monotonic()
        while True:
            with anyio.move_on_after(bound):
                try:
                    await link.probe()
                except Exception as error:
                    return words(error, link.last_status)
                return ""
            if not link.busy_since(began):
                return f"it did not answer a probe within {bound:g} s"
