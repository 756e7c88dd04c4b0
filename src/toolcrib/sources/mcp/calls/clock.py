"""The time of one call: a total bound, and one that every sign of life extends up to it.

While somebody is asked on the call's behalf, neither runs: how long a person takes says nothing
about the server. What the caller set for the call as a whole (its deadline) goes on all the same.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["Clock", "limit"]


def limit(now: float, end: float, idle: float | None) -> float:
    """The moment at which a call that gave a sign of life `now` is over."""
    return end if idle is None else min(end, now + idle)


class Clock:
    """Raises `TimeoutError` in its body at `end` (monotonic), or `idle` seconds after the last
    `alive`; at `deadline` whatever happens. `why` says which it was."""

    def __init__(self, end: float, idle: float | None, deadline: float = math.inf) -> None:
        self._began = time.monotonic()
        self._end = end
        self._idle = idle
        self._deadline = deadline
        self._waits = 0
        self._over = False
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._set()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        await self._timeout.__aexit__(kind, error, trace)

    def alive(self) -> None:
        """The call gave a sign of life."""
        if self._idle is not None:
            self._set()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stands still meanwhile, except for the deadline."""
        began = time.monotonic()
        self._waits += 1
        self._set()
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self._end += time.monotonic() - began
            self._set()

    @property
    def left(self) -> float:
        """Seconds until the call is over, if it gives signs of life."""
        return min(self._end, self._deadline) - time.monotonic()

    def _set(self) -> None:
        if self._over or self._timeout.expired():
            return
        now = time.monotonic()
        end = math.inf if self._waits else limit(now, self._end, self._idle)
        left = min(end, self._deadline) - now
        when = asyncio.get_running_loop().time() + left
        self._timeout.reschedule(None if left == math.inf else when)

    @property
    def why(self) -> str:
        if self._idle is not None and self.left > 0:
            return f"it told no progress for {self._idle:g} s"
        return f"it did not answer within {min(self._end, self._deadline) - self._began:.4g} s"
