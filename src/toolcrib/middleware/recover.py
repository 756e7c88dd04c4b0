"""Contains faults of the middlewares inside it; a tool's own faults never leave the executor."""

from __future__ import annotations

import logging

from toolcrib.chain import CallNext, Invocation
from toolcrib.content import ToolResult
from toolcrib.failures import internal

__all__ = ["recover"]

logger = logging.getLogger("toolcrib.executor")


async def recover(invocation: Invocation, call_next: CallNext) -> ToolResult:
    """An exception from further in becomes the failure `internal`; siblings in a batch go on.
    Cancellation, KeyboardInterrupt and MemoryError pass through."""
    try:
        return await call_next(invocation)
    except MemoryError:
        raise
    except Exception as error:
        return internal(invocation.name, error, logger)
