"""When a server says that its list changed: how long to wait, and reading it again.

Knows neither lists nor connections. One reading at a time, the last one told wins, and however
often a server says it, the readings become ever rarer, down to one per `longest`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from toolcrib.sources.mcp.health import Pace, delay

__all__ = ["Changes", "due", "follow"]


def due(first: float, last: float, quiet: float, longest: float) -> float:
    """The moment to read a list that was said to have changed at `first`, …, and `last`: `quiet`
    seconds after the last word, at most `longest` after the first."""
    return min(last + quiet, first + longest)


class Changes:
    """What was said since the list was last read. `told` never waits and keeps two moments."""

    def __init__(self) -> None:
        self._first = self._last = 0.0
        self._any = asyncio.Event()

    def told(self) -> None:
        """The list changed."""
        self._last = time.monotonic()
        if not self._any.is_set():
            self._first = self._last
            self._any.set()

    async def begun(self) -> float:
        """Waits for the first word of a change; the moment of it."""
        await self._any.wait()
        return self._first

    async def settled(self, quiet: float, longest: float) -> None:
        """Waits until the list is due, and forgets what was said: later words are of the next
        change."""
        left = due(self._first, self._last, quiet, longest) - time.monotonic()
        while left > 0:
            await asyncio.sleep(left)  # what is told meanwhile moves the end, and nothing else
            left = due(self._first, self._last, quiet, longest) - time.monotonic()
        self._any.clear()


async def follow(changes: Changes, read: Callable[[], Awaitable[bool]], pace: Pace) -> None:
    """Reads the list whenever it is due, for ever. `read` says whether that came to an end of its
    own; one that failed is tried again, ever later."""
    ended = float("-inf")
    rapid = failures = 0
    while True:
        first = await changes.begun()
        # A server that says so after each reading would be read for ever, as fast as it can.
        rapid = rapid + 1 if first - ended < pace.list_longest else 0
        await changes.settled(
            delay(rapid + 1, pace.list_quiet, pace.list_longest), pace.list_longest
        )
        if await read():
            failures = 0
        else:
            failures += 1
            await asyncio.sleep(delay(failures, pace.first_backoff, pace.max_backoff))
            changes.told()
        ended = time.monotonic()
