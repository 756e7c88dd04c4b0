"""Keeps one server connected: attempts, backoff, probes, health. Knows no tools.

One task per server, the owner, does everything that must happen in one task: it opens a link, has
it used, watches it, leaves it, and only then opens the next. Nothing else retries.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import anyio

from toolcrib.errors import NotAvailable
from toolcrib.sources.mcp.faults import CLOSED, NotSent, is_rejection, words
from toolcrib.sources.mcp.health import Connection, Health, OnProgress, Pace, State, delay

__all__ = ["Keeper"]

logger = logging.getLogger("toolcrib.mcp")

CHECK_TIMEOUT: Final = 15.0
"""Seconds a suspected server has to answer where it is not probed regularly."""


class Keeper:
    """Supervises one server from `start` to `close`.

    `make` gives a fresh link for each attempt; `use` does what each new connection is for, and may
    raise `Rejected` to give up. `tried` is set once the first attempt ended, `settled` once the
    server was ready for the first time, was given up, or closed.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Connection],
        use: Callable[[Any], Awaitable[None]],
        pace: Pace,
        masked: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self._make = make
        self._use = use
        self._pace = pace
        self._masked = masked
        self._link: Connection | None = None
        self._current: Connection | None = None
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self.tried = asyncio.Event()
        self.settled = asyncio.Event()
        self.was_ready = False
        self._told = False
        self.health = Health(name, since=time.time())

    def start(self) -> None:
        """Begins the first attempt in the background."""
        self._owner = asyncio.create_task(self._own(), name=f"toolcrib mcp {self.name}")

    async def request(
        self, method: str, params: dict[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """One request on the connection there is. Raises `NotAvailable` naming the server where
        there is none or the request was not executed; else as the link does."""
        link = self._link
        try:
            if link is None:
                raise NotSent(self.health.reason)
            return await link.request(method, params, on_progress)
        except NotSent as error:
            # Whoever calls again at once, and for ever, must not keep the owner from reconnecting.
            await asyncio.sleep(0)
            raise self._down(str(error)) from error

    def report(self) -> Health:
        """How the server is now, with what its process says now."""
        link = self._current
        if link is None or not link.stderr:
            return self.health
        return replace(self.health, stderr=self._masked(link.stderr))

    def _down(self, reason: str) -> NotAvailable:
        why = self._masked(reason) or "it is not connected yet"
        hope = "; it is being reconnected" if self.health.state == "degraded" else ""
        return NotAvailable(f"MCP server {self.name!r} is not available: {why}{hope}")

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
                await asyncio.wait((owner,), timeout=1.0)
        self._closed()

    def _closed(self) -> None:
        self._link = self._current = None
        if self.health.state not in ("given_up", "closed"):
            self._now("closed", "the source was closed")
        self.tried.set()
        self.settled.set()

    async def _own(self) -> None:
        failures = 0
        try:
            while not self._closing.is_set():
                self.health = replace(self.health, attempts=self.health.attempts + 1)
                began = time.monotonic()
                reason = await self._one_life()
                if reason is None:
                    break
                # One that lived longer than the longest wait was sound, so that counting starts
                # anew; any other, also one that answered, must not be restarted ever faster.
                sound = time.monotonic() - began > self._pace.max_backoff
                failures = 1 if sound else failures + 1
                pause = delay(failures, self._pace.first_backoff, self._pace.max_backoff)
                self._degraded(reason, pause)
                self.tried.set()
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
            self.health = replace(self.health, stderr=self._masked(link.stderr))
        if self._closing.is_set():
            return None
        status = link.last_status
        reason = link.reason
        if fault is not None:
            if reason in ("", CLOSED):
                reason = words(fault, status)
            logger.debug("MCP server %r: %s", self.name, reason, exc_info=fault)
            if is_rejection(fault, status):
                self._give_up(reason)
                return None
        if reason == CLOSED:
            reason = link.how_it_ended or CLOSED
        return self._masked(reason)

    async def _serve(self, link: Connection) -> None:
        with anyio.fail_after(self._pace.use_timeout):
            await self._use(link)
        if self._closing.is_set() or link.ended.is_set():
            return
        self._link = link
        self._ready(link.version)
        try:
            await self._watch(link)
        finally:
            # At once: leaving a server that hangs takes seconds, and calls shall not wait for that.
            self._link = None
            if not self._closing.is_set():
                self._now("degraded", self._masked(link.reason or "its connection broke"))

    async def _watch(self, link: Connection) -> None:
        """Returns when the link is of no more use."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._probe_on_demand, link)
            if self._pace.liveness and not link.pingable:
                tasks.start_soon(self._listen, link)
            await link.ended.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, link: Connection) -> None:
        while await link.watch_closure():
            link.suspect.set()
            await anyio.sleep(self._pace.liveness)

    async def _probe_on_demand(self, link: Connection) -> None:
        """Probes when there is a suspicion, and regularly where the peer knows ping."""
        interval = self._pace.liveness
        every = interval if interval and link.pingable else float("inf")
        while True:
            with anyio.move_on_after(every):
                await link.suspect.wait()
            link.suspect.clear()
            if fault := await self._fault(link, interval or CHECK_TIMEOUT):
                link.end(fault)
                return

    async def _fault(self, link: Connection, bound: float) -> str:
        """Why the server counts as dead; empty when it answered. One that is at work on an older
        request may be too busy to answer, so its silence is no proof (its call has a limit)."""
        began = time.monotonic()
        while True:
            with anyio.move_on_after(bound):
                try:
                    await link.probe()
                except Exception as error:
                    return words(error, link.last_status)
                return ""
            if not link.busy_since(began):
                return f"it did not answer a probe within {bound:g} s"

    def _ready(self, era: str) -> None:
        self.was_ready = True
        self._told = False
        self.health = replace(self.health, era=era)
        self._now("ready", "")
        self.tried.set()
        self.settled.set()
        logger.info("MCP server %r is ready (protocol %s)", self.name, era)

    def _degraded(self, reason: str, pause: float) -> None:
        level = logging.DEBUG if self._told else logging.WARNING
        logger.log(
            level,
            "MCP server %r is not available: %s; next attempt in %.3g s",
            self.name,
            reason,
            pause,
        )
        self._told = True
        self._now("degraded", reason)

    def _give_up(self, reason: str) -> None:
        self._now("given_up", self._masked(reason))
        self.settled.set()
        logger.error("MCP server %r is given up: %s", self.name, self.health.reason)

    def _now(self, state: State, reason: str) -> None:
        same = self.health.state == state
        since = self.health.since if same else time.time()
        self.health = replace(self.health, state=state, reason=reason, since=since)
