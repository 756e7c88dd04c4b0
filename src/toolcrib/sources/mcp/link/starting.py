"""How many server processes may be starting at once: a hundred that load together load for ever.

Each attempt has so many seconds from its own start; where all begin at the same moment they share
the processors, all of them are late, and they begin again together. What a start is, is `line`.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

__all__ = ["AT_ONCE", "YIELDS_AFTER", "Turn"]

AT_ONCE: Final = max(4, 2 * (os.cpu_count() or 1))

YIELDS_AFTER: Final = 10.0
"""Seconds after which one that is still starting lets the next begin: it may never end."""


class _Gate:
    """The places of one loop, and who waits for one. It knows no loop, which would keep it."""

    def __init__(self) -> None:
        self.free = AT_ONCE
        self.waiting: deque[asyncio.Future[None]] = deque()

    def leave(self) -> None:
        while self.waiting:
            next_one = self.waiting.popleft()
            if not next_one.done():
                next_one.set_result(None)
                return
        self.free += 1


_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gate] = WeakKeyDictionary()


class Turn:
    """One start among all of this loop: `begin` or `begin_again`, which may wait, and `end`, safe
    at any time."""

    def __init__(self) -> None:
        self._gate: _Gate | None = None

    async def begin(self) -> None:
        """Of a server that was never there: in the order of coming."""
        gate, place = self._gate_and_place()
        gate.waiting.append(place)
        await self._enter(gate, place)

    async def begin_again(self) -> None:
        """Of one that was there before: those that never were, and perhaps never will be, wait."""
        gate, place = self._gate_and_place()
        gate.waiting.appendleft(place)
        await self._enter(gate, place)

    def _gate_and_place(self) -> tuple[_Gate, asyncio.Future[None]]:
        loop = asyncio.get_running_loop()
        return _gates.setdefault(loop, _Gate()), loop.create_future()

    async def _enter(self, gate: _Gate, place: asyncio.Future[None]) -> None:
        if gate.free:
            gate.free -= 1
            gate.leave()
        try:
            await place
        except asyncio.CancelledError:
            if place in gate.waiting:
                gate.waiting.remove(place)
            elif not place.cancelled():
                gate.leave()  # it was given, and is not taken
            raise
        self._gate = gate
        self._timer = asyncio.get_running_loop().call_later(YIELDS_AFTER, self.end)

    def end(self) -> None:
        """Whoever waits may begin."""
        gate, self._gate = self._gate, None
        if gate is not None:
            self._timer.cancel()
            gate.leave()
