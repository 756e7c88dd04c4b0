"""The contract of a middleware (`chain.Middleware`), played through."""

from __future__ import annotations

import asyncio
from typing import cast

from toolcrib.chain import Invocation, Middleware
from toolcrib.content import ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.policy import NO_POLICY
from toolcrib.testing.findings import Findings
from toolcrib.tool import CallContext

__all__ = ["check_middleware"]


async def check_middleware(middleware: Middleware, *, tool: str = "checked") -> None:
    """Checks `middleware` round a tool named `tool` that succeeds, fails, and is cancelled.

    Raises `AssertionError` if it gives anything but a `ToolResult`, runs the tool more than once,
    turns a failure into a success, or swallows the caller's cancellation.
    """
    found = Findings(middleware)
    good, bad = ToolResult.ok("fine"), ToolResult.failed("tool_error", "no")
    for given in (good, bad):
        runs = 0

        async def answer(_: Invocation, given: ToolResult = given) -> ToolResult:
            nonlocal runs
            runs += 1
            await asyncio.sleep(0)
            return given

        result = cast("object", await middleware(_invocation(tool), answer))
        found.expect(isinstance(result, ToolResult), f"it gave a {type(result).__name__}")
        found.expect(runs <= 1, f"it ran the tool {runs} times for one call")
        if runs and isinstance(result, ToolResult) and given.is_error:
            found.expect(result.is_error, "it turned a failure into a success")
    found.expect(await _passes_cancellation(middleware, tool), "it swallowed a cancellation")
    found.tell()


async def _passes_cancellation(middleware: Middleware, tool: str) -> bool:
    begun = asyncio.Event()

    async def wait(_: Invocation) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        return ToolResult.ok("not reached")

    async def call() -> ToolResult:
        return await middleware(_invocation(tool), wait)

    task = asyncio.create_task(call())
    started = asyncio.create_task(begun.wait())
    await asyncio.wait((task, started), timeout=5, return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    if task.done():
        return True  # it answered itself: there was nothing to cancel
    task.cancel()
    await asyncio.wait((task,), timeout=5)
    return task.cancelled()


def _invocation(tool: str) -> Invocation:
    definition = ToolDefinition(tool, "A tool that is being checked.")
    return Invocation(definition, NO_POLICY, CallContext(tool, "check"), {})
