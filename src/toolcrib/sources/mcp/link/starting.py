"""How many server processes may be starting at once: a hundred that load together load for ever.

Each attempt has so many seconds from its own start; where all begin at the same moment they share
the processors, all of them are late, and they begin again together. What a start is, is `line`.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final
from weakref import WeakKeyDictionary

__all__ = ["AT_ONCE", "YIELDS_AFTER", "Turn"]

AT_ONCE: Final = max(4, 2 * (os.cpu_count() or 1))

YIELDS_AFTER: Final = 10.0
"""Seconds after which one that is still starting lets the next begin: it may never end."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Turn:
    """One start among all of this loop: `begin`, which may wait, and `end`, safe at any time."""

    def __init__(self) -> None:
        self._gate: asyncio.Semaphore | None = None

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        gate = _gates.setdefault(loop, asyncio.Semaphore(AT_ONCE))
        await gate.acquire()
        self._gate = gate
        self._timer = loop.call_later(YIELDS_AFTER, self.end)

    def end(self) -> None:
        """Whoever waits may begin."""
        gate, self._gate = self._gate, None
        if gate is not None:
            self._timer.cancel()
            gate.release()
