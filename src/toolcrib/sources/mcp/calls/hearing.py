"""What a server says during a call, passed on to the call: so much of it and no more.

Which call it belongs to is `link.inflight`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from toolcrib.sources.mcp.asking.questions import Caller
from toolcrib.sources.mcp.calls.clock import Clock
from toolcrib.sources.mcp.content.logged import MAX_CHARS, severity
from toolcrib.tool import CallContext

__all__ = ["ToCall"]

MAX_PROGRESS: Final = 10_000
MAX_LOGS: Final = 1_000
"""What one call may tell: reports of progress, log messages."""


class ToCall:
    """Tells `ctx` what the server says. A report of progress is a sign of life to `clock`, also
    one beyond the bound; while the caller's host is asked, the clock stands still."""

    def __init__(self, ctx: CallContext, masked: Callable[[str], str], clock: Clock) -> None:
        self._ctx = ctx
        self._masked = masked
        self._clock = clock
        self.caller = Caller(ctx.host, ctx.name, ctx.call_id)
        self._reports = self._logs = 0

    def progress(self, current: float, total: float | None, message: str) -> None:
        self._clock.alive()
        self._reports += 1
        if self._reports <= MAX_PROGRESS:
            self._ctx.progress(current, total, self._masked(message[:MAX_CHARS]))

    def log(self, level: str, text: str) -> None:
        self._logs += 1
        if self._logs <= MAX_LOGS:
            self._ctx.logger.log(severity(level), "%s", self._masked(text))
        elif self._logs == MAX_LOGS + 1:
            self._ctx.logger.warning("the server logs too much: the rest of it is left out")

    def waiting(self) -> AbstractContextManager[None]:
        return self._clock.stopped()
