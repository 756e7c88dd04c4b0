"""At most so many calls at once; the rest wait, outside the tool's own time."""

from __future__ import annotations

import asyncio
import contextvars
import time

from toolcrib.chain import CallNext, Invocation, Middleware
from toolcrib.content import ToolResult
from toolcrib.errors import InvalidDefinition

__all__ = ["concurrency"]

_held: contextvars.ContextVar[frozenset[asyncio.Semaphore]] = contextvars.ContextVar(
    "toolcrib_slots", default=frozenset()
)


def concurrency(limit: int) -> Middleware:
    """At most `limit` calls run through this at once. A call nested in one that holds a slot runs
    on that slot, so nesting never deadlocks; a call whose deadline passes while it waits is
    `limited`. Raises `InvalidDefinition` for a limit below 1."""
    if limit < 1:
        raise InvalidDefinition(f"a concurrency limit of {limit!r} lets nothing run: use 1 or more")
    slots = asyncio.Semaphore(limit)
    mine = frozenset((slots,))

    async def hold_slot(invocation: Invocation, call_next: CallNext) -> ToolResult:
        held = _held.get()
        if slots in held:
            return await call_next(invocation)
        deadline = invocation.context.deadline
        if not slots.locked() or deadline is None:
            await slots.acquire()
        else:
            try:
                await asyncio.wait_for(slots.acquire(), max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return ToolResult.failed(
                    "limited",
                    f"tool {invocation.name!r} was not run: no slot was free before its deadline",
                )
        token = _held.set(held | mine if held else mine)
        try:
            return await call_next(invocation)
        finally:
            _held.reset(token)
            slots.release()

    return hold_slot
