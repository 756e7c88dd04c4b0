"""The end of the chain: one tool run with prepared arguments, in its task or thread, in its time.

Turns whatever the tool does into a result. Decides nothing about who may call it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from toolcrib.bounded import Limit, cancelled_itself, within
from toolcrib.catalog import Entry
from toolcrib.content import TextPart, ToolResult
from toolcrib.failures import failure_of
from toolcrib.manifest import Stages
from toolcrib.output import AS_IT_IS, Delivery, delivering
from toolcrib.threads import MAX_ABANDONED, CancelledItself, ThreadPool, TooManyAbandoned
from toolcrib.tool import CallContext

__all__ = ["Run", "runner"]

logger = logging.getLogger("toolcrib.executor")

Run: TypeAlias = Callable[[CallContext, Any], Coroutine[Any, Any, ToolResult]]


def runner(entry: Entry, stages: Stages, threads: ThreadPool, delivery: Delivery = AS_IT_IS) -> Run:
    """Runs the tool of `entry`. A deadline of the call bounds it, else the time-out of its policy;
    a default for all tools is the time-out middleware's."""
    execute = stages.execute if stages.is_async else _in_thread(stages, threads)
    parse_output = stages.parse_output
    is_strict: object = getattr(entry.real, "strict_output", False)
    short, deliver = delivering(entry.definition, delivery, is_strict=is_strict is True)
    policy = entry.policy
    own = Limit(policy.timeout) if policy.timeout else None

    async def body(ctx: CallContext, prepared: Any) -> ToolResult:
        ctx.policy = policy
        if ctx.on_executed is not None:
            ctx.on_executed(ctx.name)
        try:
            result = parse_output(await execute(ctx, prepared))
            parts = result.content
            if len(parts) == 1 and type(one := parts[0]) is TextPart and len(one.text) <= short:
                return result
            return deliver(ctx, result)
        except (MemoryError, KeyboardInterrupt, GeneratorExit):
            raise
        except asyncio.CancelledError:
            return _cancelled(ctx)
        except CancelledItself:
            return cancelled_itself(ctx.name)
        except TooManyAbandoned:
            return ToolResult.failed(
                "limited",
                f"tool {ctx.name!r} was not run: {MAX_ABANDONED} earlier calls still are",
            )
        except BaseException as error:  # SystemExit too: a tool does not end the program
            failed = failure_of(ctx.name, error, logger)
            return failed if len(failed.text) <= short else deliver(ctx, failed)

    def run(ctx: CallContext, prepared: Any) -> Coroutine[Any, Any, ToolResult]:
        if ctx.deadline is not None:
            left = ctx.deadline - time.monotonic()
            if left <= 0:
                return _too_late(ctx)
            limit = own if own is not None and own.seconds < left else Limit(left)
            return within(limit, body(ctx, prepared), ctx)
        return within(own, body(ctx, prepared), ctx) if own else body(ctx, prepared)

    return run


def _in_thread(stages: Stages, threads: ThreadPool) -> Callable[[CallContext, Any], Any]:
    async def execute(ctx: CallContext, prepared: Any) -> object:
        try:
            value = await threads.run(partial(stages.execute, ctx, prepared))
        except asyncio.CancelledError:
            ctx.still_running = True
            ctx.cancellation.request()  # the only thing a thread can see of it
            raise
        return await value if inspect.isawaitable(value) else value

    return execute


async def _too_late(ctx: CallContext) -> ToolResult:
    return ToolResult.failed("timeout", f"tool {ctx.name!r} was not run: the deadline has passed")


def _cancelled(ctx: CallContext) -> ToolResult:
    """Passes our own cancellation on; one that the tool made up itself is its failure."""
    task = asyncio.current_task()
    if task is None or (ctx.cancellation.requested if ctx.in_own_task else task.cancelling()):
        raise asyncio.CancelledError
    while task.cancelling():
        task.uncancel()
    return cancelled_itself(ctx.name)
