"""The default limit of a call's own time, for tools whose policy names none."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, cast

from toolcrib.bounded import Limit, within
from toolcrib.chain import CallNext, Invocation, Middleware
from toolcrib.content import ToolResult

__all__ = ["timeout"]


def timeout(default: float) -> Middleware:
    """Ends a call after `default` seconds with the failure `timeout`; 0 or less never does.

    A call that already carries a deadline passes through, and so does a tool with a time-out of
    its own (the executor keeps both).
    """

    limit = Limit(default)

    def limit_time(invocation: Invocation, call_next: CallNext) -> Awaitable[ToolResult]:
        ctx = invocation.context
        if default <= 0 or ctx.deadline is not None or invocation.policy.timeout is not None:
            return call_next(invocation)
        work = cast("Coroutine[Any, Any, ToolResult]", call_next(invocation))
        return within(limit, work, ctx)

    return limit_time
