"""Running something for so long and no longer.

A task that ignores its cancellation cannot be stopped in Python: after a short grace it is left
behind, counted, and nobody waits for it. Which limit applies to a call is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, TypeVar, cast

from toolcrib import eager
from toolcrib.content import ToolResult
from toolcrib.tool import CallContext

__all__ = [
    "GRACE",
    "MAX_STRAGGLERS",
    "CancelledItself",
    "Limit",
    "TimedOut",
    "TooManyStragglers",
    "cancelled_itself",
    "inherited_deadline",
    "stragglers",
    "within",
]

T = TypeVar("T")

GRACE = 0.05
"""Seconds a cancelled task gets to end before it is left behind (rule CC04)."""

MAX_STRAGGLERS = 256

inherited_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar(
    "toolcrib_deadline", default=None
)
"""The deadline of the call that is running here, for the calls nested in it."""

_stragglers: Final[set[asyncio.Task[Any]]] = set()


class TimedOut(Exception):
    """The time was up. `left_behind`: the task did not end when it was cancelled."""

    def __init__(self, left_behind: bool) -> None:
        super().__init__()
        self.left_behind = left_behind


class CancelledItself(Exception):
    """The work cancelled its own task; nobody else did."""


class TooManyStragglers(Exception):
    """256 tasks that ignored their cancellation are still running: no more are started."""


def stragglers() -> int:
    """Tasks left behind in this process that are still running."""
    for task in [task for task in _stragglers if task.get_loop().is_closed()]:
        _stragglers.discard(task)  # it can never run again
    return len(_stragglers)


class Limit:
    """A duration that many calls may take, watched with one timer for all of them.

    All calls of one limit end in the order they began, so the oldest is the only one to time.
    """

    __slots__ = ("_loop", "_running", "_timer", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[asyncio.Future[None], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T], ctx: CallContext) -> T:
        """What `work` gives, run in a task of its own, unless it takes too long.

        Raises `TimedOut` then, at most `GRACE` later; a value that arrived in time is never thrown
        away. If we are cancelled, `work` is too, and gets the same grace. `ctx.cancellation` is
        requested in both cases, before the task is cancelled.
        """
        if len(_stragglers) >= MAX_STRAGGLERS <= stragglers():
            work.close()
            raise TooManyStragglers
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + self.seconds
        if ctx.deadline is not None and ctx.deadline < deadline:
            deadline = ctx.deadline
        context = contextvars.copy_context()
        context.run(inherited_deadline.set, deadline)
        ctx.in_own_task = True
        started = eager.start(loop, work, context)
        if (task := started.task) is None:
            return cast("T", started.value)
        answer: asyncio.Future[None] = loop.create_future()
        task.add_done_callback(partial(_wake, answer))
        self._running[answer] = deadline
        if self._timer is None or self._loop is not loop:
            self._loop = loop  # another than before only where that one has ended
            self._timer = loop.call_at(deadline, self._wake_late, loop)
        try:
            await answer
        except asyncio.CancelledError:
            await _stop(task, ctx)
            raise
        finally:
            del self._running[answer]
        if task.done():
            if task.cancelled():
                raise CancelledItself
            return cast("T", task.result())
        await _stop(task, ctx)
        raise TimedOut(left_behind=not task.done())

    def _wake_late(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        self._timer = None
        for answer, deadline in self._running.items():
            if answer.done():
                continue
            if deadline > now:
                self._timer = loop.call_at(deadline, self._wake_late, loop)
                return
            answer.set_result(None)


def _wake(answer: asyncio.Future[None], _: object = None) -> None:
    if not answer.done():
        answer.set_result(None)


async def within(
    limit: Limit, work: Coroutine[Any, Any, ToolResult], ctx: CallContext
) -> ToolResult:
    """The result of a call's `work`, or the failure `timeout` when it takes longer than `limit`."""
    try:
        return await limit.run(work, ctx)
    except TimedOut as late:
        still = (
            "; it could not be stopped and may still be running"
            if late.left_behind or ctx.still_running
            else ""
        )
        return ToolResult.failed(
            "timeout", f"tool {ctx.name!r} timed out after {limit.seconds:.4g}s{still}"
        )
    except CancelledItself:
        return cancelled_itself(ctx.name)
    except TooManyStragglers:
        return ToolResult.failed(
            "limited",
            f"tool {ctx.name!r} was not run: {MAX_STRAGGLERS} earlier calls ignore their time-out",
        )


def cancelled_itself(name: str) -> ToolResult:
    """The failure of a tool that cancelled its own task, or raised what a cancellation raises."""
    return ToolResult.failed(
        "cancelled", f"tool {name!r} cancelled itself; what it had begun may be unfinished"
    )


async def _stop(task: asyncio.Task[Any], ctx: CallContext) -> None:
    ctx.cancellation.request()
    task.cancel()
    task.add_done_callback(_ended)
    await asyncio.wait((task,), timeout=GRACE)
    if not task.done():
        _stragglers.add(task)


def _ended(task: asyncio.Task[Any]) -> None:
    _stragglers.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it as lost
