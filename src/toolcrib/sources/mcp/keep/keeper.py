"""Keeps one server connected: attempts, pauses, and what follows from an end. Knows no tools.

One task per server, the owner, does everything that must happen in one task: it opens a link, has
it used, waits for its end, leaves it, and only then opens the next. Nothing else connects.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import anyio

from toolcrib.sources.mcp.connection import Connection, Hears
from toolcrib.sources.mcp.failures import NotSent, Rejected
from toolcrib.sources.mcp.health import Health, Pace
from toolcrib.sources.mcp.keep.breaker import Breaker
from toolcrib.sources.mcp.keep.standing import Standing
from toolcrib.sources.mcp.keep.watch import Watch
from toolcrib.sources.mcp.link.faults import CLOSED, is_rejection, leaf, words

__all__ = ["Keeper"]

logger = logging.getLogger("toolcrib.mcp")

ABANDONED: Final = 1.0
"""Seconds an owner that did not close in time has to end once it is cancelled."""


class Keeper:
    """Supervises one server from `start` to `close`.

    `make` gives a fresh link for each attempt; `use` does what each new connection is for, and what
    a changed list is read for; it may raise `Rejected` to give up. The rest is of `Standing`.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Connection],
        use: Callable[[Any], Awaitable[None]],
        pace: Pace,
        masked: Callable[[str], str] = str,
        on_health: Callable[[Health], None] = lambda health: None,
    ) -> None:
        self.name = name
        self._make = make
        self._use = use
        self._pace = pace
        self._link: Connection | None = None  # what requests go over: only while it is ready
        self._current: Connection | None = None  # the same from its opening to its end
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._ready_for = 0.0
        self._renewed = False
        self._at_once = False
        self.standing = Standing(name, masked, on_health)
        self.tried = self.standing.tried
        self.settled = self.standing.settled

    @property
    def health(self) -> Health:
        return self.standing.health

    @property
    def generation(self) -> int:
        return self.standing.generation

    def start(self) -> None:
        """Begins the first attempt in the background; once, however often it is called."""
        if self._owner is not None:
            return
        self._owner = asyncio.create_task(self._supervise(), name=f"toolcrib mcp {self.name}")

    async def request(
        self, method: str, params: dict[str, Any], hears: Hears | None = None
    ) -> dict[str, Any]:
        """One request on the connection there is. Raises `NotAvailable` naming the server where
        there is none or the request was not executed; else as the link does."""
        link = self._link
        try:
            if link is None:
                raise NotSent(self.health.reason)
            return await link.request(method, params, hears)
        except NotSent as error:
            # Whoever calls again at once, and for ever, must not keep the owner from reconnecting.
            await asyncio.sleep(0)
            raise self.standing.refusal(str(error)) from error

    async def connected_after(self, generation: int, seconds: float) -> bool:
        """Whether a connection that proved sound after `generation` is there within so many
        seconds; False at once where none is being made."""
        if seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                while not (self.generation > generation and self._is_usable):
                    if self.standing.is_hopeless:
                        return False
                    await self.standing.moves()
        except TimeoutError:
            return False
        return True

    @property
    def _is_usable(self) -> bool:
        return self._link is not None and self._link.is_usable

    def report(self) -> Health:
        """How the server is now, with what its process says now."""
        return self.standing.with_stderr(self._current.stderr if self._current else "")

    async def close(self) -> None:
        """Ends the connection and every retry, within `close_timeout`; safe at any time, and
        twice."""
        self._closing.set()
        if (link := self._current) is not None:
            link.end("closed") if link is self._link else link.abort()
        owner = self._owner
        if owner is not None and not owner.done():
            await asyncio.wait((owner,), timeout=self._pace.close_timeout)
            if not owner.done():
                logger.warning("MCP server %r did not close in time: abandoning it", self.name)
                owner.cancel()
                await asyncio.wait((owner,), timeout=ABANDONED)
        self._link = self._current = None
        self.standing.closed()

    async def _supervise(self) -> None:
        breaker = Breaker()
        try:
            while not self._closing.is_set():
                breaker = breaker.trying()
                self._ready_for = 0.0
                self._at_once = False
                self.standing.attempts()
                reason = await self._one_life()
                if reason is None:
                    break
                breaker = breaker.failed(self._ready_for, self._pace)
                if self._at_once and breaker.phase != "open":
                    continue
                pause = breaker.pause(self._pace, random.random())
                self.standing.failed(
                    "open" if breaker.phase == "open" else "degraded", reason, pause
                )
                with anyio.move_on_after(pause):
                    await self._closing.wait()
        finally:
            self.tried.set()

    async def _one_life(self) -> str | None:
        """One connection from its opening to its end. Gives the reason of its end, None when no
        other shall follow."""
        link = self._current = self._make()
        fault: BaseException | None = None
        try:
            async with link.open():
                await self._serve(link)
        except Exception as error:
            fault = error
        except asyncio.CancelledError as error:
            # The SDK cancels the task it was entered in when its transport breaks.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            fault = error
        finally:
            self._current = None
            self.standing.keeps(link.stderr)
        return None if self._closing.is_set() else await self._what_follows(link, fault)

    async def _what_follows(self, link: Connection, fault: BaseException | None) -> str | None:
        status, reason = link.last_status, link.reason
        if fault is not None:
            if reason in ("", CLOSED):
                reason = words(fault, status)
            logger.debug("MCP server %r: %s", self.name, reason, exc_info=fault)
        renewed = await self._renewal(link)
        if fault is not None and is_rejection(fault, status) and not renewed:
            self.standing.gives_up(reason)
            return None
        return link.how_it_ended or CLOSED if reason == CLOSED else reason

    async def _renewal(self, link: Connection) -> bool:
        """Whether a refused credential was replaced: once, until the server was ready again."""
        if link.last_status != 401 or self._renewed:
            return False
        with anyio.move_on_after(self._pace.use_timeout):
            self._renewed = self._at_once = await link.renew()
        return self._renewed

    async def _serve(self, link: Connection) -> None:
        """Has the connection used and watched, and returns when it is of no more use."""
        async with anyio.create_task_group() as tasks:
            watch = Watch(link, self._pace, partial(self._read_again, link), self.standing.proves)
            await watch.listen_first(tasks)
            with anyio.fail_after(self._pace.use_timeout):
                await self._use(link)
            if not (self._closing.is_set() or link.ended.is_set()):
                watch.start(tasks)
                await self._until_its_end(link)
            tasks.cancel_scope.cancel()

    async def _until_its_end(self, link: Connection) -> None:
        self._link, self._renewed = link, False
        began = time.monotonic()
        self.standing.ready(link.version)
        try:
            await link.ended.wait()
        finally:
            # At once: leaving a server that hangs takes seconds, and calls shall not wait for that.
            self._link = None
            self._ready_for = time.monotonic() - began
            if not self._closing.is_set():
                self.standing.lost(link.reason or "its connection broke")

    async def _read_again(self, link: Connection) -> bool:
        """Uses the connection for a changed list; False where that is to be tried again. Whatever
        comes of it, the connection is as good as before (A10.9)."""
        try:
            with anyio.fail_after(self._pace.use_timeout):
                await self._use(link)
        except Exception as error:
            why = self.standing.masked(words(error, link.last_status))
            logger.warning("MCP server %r: its changed list is not taken: %s", self.name, why)
            link.suspect.set()
            return isinstance(leaf(error), Rejected)
        return True
