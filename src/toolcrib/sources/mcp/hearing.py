"""What a server says during a call, passed on to the call: so much of it and no more.

Which call it belongs to is `inflight`'s.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from toolcrib.sources.mcp.clock import Clock
from toolcrib.sources.mcp.questions import Caller
from toolcrib.tool import CallContext

__all__ = ["LEVELS", "ToCall", "words_of"]

MAX_PROGRESS: Final = 10_000
MAX_LOGS: Final = 1_000
MAX_CHARS: Final = 2_000
"""What one call may tell: reports of progress, log messages, characters of each."""

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


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
            self._ctx.logger.log(LEVELS.get(level, logging.INFO), "%s", self._masked(text))
        elif self._logs == MAX_LOGS + 1:
            self._ctx.logger.warning("the server logs too much: the rest of it is left out")

    def waiting(self) -> AbstractContextManager[None]:
        return self._clock.stopped()


def words_of(params: Mapping[str, Any]) -> str:
    """The text of a log message on one line, cut."""
    data = params.get("data")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return " ".join(text[:MAX_CHARS].splitlines())
