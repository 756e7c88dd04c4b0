"""Closing what was withdrawn: once, when its last call ended, on the loop that ran it.

Knows nothing of names and owners; that is `registry`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable

from toolcrib.catalog import Entry
from toolcrib.tool import closer_of

__all__ = ["Closer"]

logger = logging.getLogger("toolcrib.registry")

CLOSE_PATIENCE = 5.0
"""Seconds a tool's own close may take when the assembly ends."""

PATIENCE = 30.0
"""Seconds a closing waits for the calls in flight before it goes ahead."""


class Closer:
    """Closes withdrawn entries. With a loop bound, on that loop; without one, at once."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: dict[Entry, asyncio.TimerHandle] = {}

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop whose calls use the entries; closings run there from now on."""
        self._loop = loop

    def retire(self, entries: Iterable[Entry]) -> None:
        """Marks the entries withdrawn, so that no call begins any more, and has them closed in the
        order given. Callable from any thread."""
        entries = [entry for entry in entries if not entry.withdrawn]
        for entry in entries:
            entry.withdrawn = True
        closeable = [entry for entry in entries if closer_of(entry.tool) is not None]
        if not closeable:
            return
        loop = self._loop
        if loop is None or loop.is_closed():
            for entry in closeable:
                _close_now(entry)
        else:
            # Calls are counted on this loop, so only there is "nobody uses it" a safe reading.
            loop.call_soon_threadsafe(self._close_when_idle, loop, closeable)

    def _close_when_idle(self, loop: asyncio.AbstractEventLoop, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.in_flight:
                self._waiting[entry] = loop.call_later(PATIENCE, self._start, loop, entry)
                entry.on_idle = lambda entry=entry: self._start(loop, entry)
            else:
                self._start(loop, entry)

    def _start(self, loop: asyncio.AbstractEventLoop, entry: Entry) -> None:
        if (timer := self._waiting.pop(entry, None)) is not None:
            timer.cancel()
        if entry.in_flight:
            logger.warning("closing %r with %d calls still in flight", entry, entry.in_flight)
        entry.on_idle = None
        task = loop.create_task(_close(entry))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def drain(self) -> None:
        """Waits until every closing that was asked for has ended; entries in use are waited for as
        long as `PATIENCE` allows."""
        await asyncio.sleep(0)  # lets closings that another thread asked for begin
        while self._running or self._waiting:
            if self._running:
                _, late = await asyncio.wait(set(self._running), timeout=CLOSE_PATIENCE)
                for task in late:
                    logger.error("a tool's close did not end within %g s: given up", CLOSE_PATIENCE)
                    task.cancel()
                    self._running.discard(task)
            else:
                await asyncio.sleep(0.01)


async def _close(entry: Entry) -> None:
    try:
        close = closer_of(entry.tool)
        done = close() if close is not None else None
        if inspect.isawaitable(done):
            await done
    except Exception:
        logger.exception("closing %r failed", entry)


def _close_now(entry: Entry) -> None:
    """Without a loop of ours: a sync close runs here, an async one on a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_close(entry))
        return
    task = asyncio.ensure_future(_close(entry))
    _loose.add(task)
    task.add_done_callback(_loose.discard)


_loose: set[asyncio.Future[None]] = set()
