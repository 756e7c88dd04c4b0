"""Several calls at once: so many in parallel, every one with a result, in the order given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from toolcrib.bounded import GRACE, cancelled_itself
from toolcrib.content import ToolCall, ToolResult

__all__ = ["run_batch"]


async def run_batch(
    calls: Sequence[ToolCall],
    run: Callable[[ToolCall], Awaitable[ToolResult]],
    parallel: int,
) -> list[ToolResult]:
    """The results of `calls`, in their order, at most `parallel` running at once.

    When cancelled, nothing further starts and what runs is cancelled. An exception of `run` (what
    the executor does not contain) is raised once the others have ended.
    """
    results: dict[int, ToolResult] = {}
    waiting = iter(enumerate(calls))

    async def work() -> None:
        for at, call in waiting:
            try:
                results[at] = await run(call)
            except asyncio.CancelledError:
                if stopping:
                    raise
                results[at] = _cancelled_itself(call)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                return  # its tool has cancelled this task: another takes the rest

    stopping = False
    workers: set[asyncio.Task[None]] = set()
    try:
        while len(results) < len(calls):
            while len(workers) < min(parallel, len(calls) - len(results)):
                workers.add(asyncio.create_task(work()))
            done, workers = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not task.cancelled() and (error := task.exception()) is not None:
                    stopping = True
                    await _stop(workers)
                    raise error
    except asyncio.CancelledError:
        stopping = True
        await _stop(workers)
        raise
    return [results[at] for at in range(len(calls))]


async def _stop(workers: set[asyncio.Task[None]]) -> None:
    for task in workers:
        task.cancel()
    if workers:
        await asyncio.wait(workers, timeout=2 * GRACE)


def _cancelled_itself(call: ToolCall) -> ToolResult:
    result = cancelled_itself(call.name)
    return ToolResult(result.content, result.failure, call_id=call.id)
