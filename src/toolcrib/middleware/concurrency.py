"""At most so many calls at once; the rest wait, outside the tool's own time."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque

from toolcrib.chain import CallNext, Invocation, Middleware
from toolcrib.content import ToolResult
from toolcrib.errors import InvalidDefinition

__all__ = ["concurrency"]


def concurrency(limit: int) -> Middleware:
    """At most `limit` calls run through this at once. A call nested in one that holds a slot runs
    on that slot, so nesting never deadlocks; a call whose deadline passes while it waits is
    `limited`. Raises `InvalidDefinition` for a limit below 1."""
    if limit < 1:
        raise InvalidDefinition(f"a concurrency limit of {limit!r} lets nothing run: use 1 or more")
    slots = _Slots(limit)

    async def hold_slot(invocation: Invocation, call_next: CallNext) -> ToolResult:
        held = _held.get()
        if any(hold.slots is slots and hold.active for hold in held):
            return await call_next(invocation)
        if not slots.take() and not await slots.wait(invocation.context.deadline):
            return ToolResult.failed(
                "limited",
                f"tool {invocation.name!r} was not run: no slot was free before its deadline",
            )
        hold = _Hold(slots)
        token = _held.set((*held, hold))
        try:
            return await call_next(invocation)
        finally:
            _held.reset(token)
            hold.active = False  # for tasks that outlive the call and still see its context
            slots.free()

    return hold_slot


class _Slots:
    """Slots handed out in the order they were asked for. Bound to no loop."""

    __slots__ = ("_free", "_waiting")

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        if self._free and not self._waiting:
            self._free -= 1
            return True
        return False

    async def wait(self, deadline: float | None) -> bool:
        """Waits for a slot; False if `deadline` (monotonic) passes first."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        timer = None
        if deadline is not None:
            timer = loop.call_later(max(0.0, deadline - time.monotonic()), turn.cancel)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.free()  # it was given to us in the moment we were cancelled
            else:
                self._waiting.remove(turn)
            task = asyncio.current_task()
            if timer is None or timer.when() > loop.time() or (task and task.cancelling()):
                raise
            return False
        finally:
            if timer is not None:
                timer.cancel()
        return True

    def free(self) -> None:
        """Gives a slot back: to the one who has waited longest, if anybody does."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done() and not turn.get_loop().is_closed():
                turn.set_result(None)
                return
        self._free += 1


class _Hold:
    __slots__ = ("active", "slots")

    def __init__(self, slots: _Slots) -> None:
        self.slots = slots
        self.active = True


_held: contextvars.ContextVar[tuple[_Hold, ...]] = contextvars.ContextVar(
    "toolcrib_slots", default=()
)
