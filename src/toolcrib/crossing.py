"""Calls from other threads: run on the loop they belong to, waited for where they were made."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine
from typing import Any

from toolcrib.bounded import cancelled_itself
from toolcrib.content import ToolResult
from toolcrib.errors import InvalidDefinition, NotAvailable
from toolcrib.threads import TooManyAbandoned, waiting

__all__ = ["call_across"]

LOOK = 1.0
"""Seconds after which a waiting thread looks whether the loop is still there."""


def call_across(
    loop: asyncio.AbstractEventLoop, name: str, call: Callable[[], Coroutine[Any, Any, ToolResult]]
) -> ToolResult:
    """The result of `call()`, a call of the tool `name`, run on `loop`.

    Raises `InvalidDefinition` on that loop's own thread, which would wait for itself for ever, and
    `NotAvailable` where the loop ends during the call.
    """
    if _running_loop() is loop:
        raise InvalidDefinition("call_sync on the assembly's own loop never ends: await call()")
    try:
        with waiting():
            return _result_of(asyncio.run_coroutine_threadsafe(call(), loop), loop)
    except TooManyAbandoned:
        return ToolResult.failed("limited", "not run: too many threads wait for nested calls")
    except concurrent.futures.CancelledError:
        return cancelled_itself(name)


def _result_of(
    called: concurrent.futures.Future[ToolResult], loop: asyncio.AbstractEventLoop
) -> ToolResult:
    while True:
        try:
            return called.result(timeout=LOOK)
        except TimeoutError:
            if called.done():
                raise  # the call's own, not our waiting
            if loop.is_closed():
                raise NotAvailable("the assembly's loop ended during the call") from None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
