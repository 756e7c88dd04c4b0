"""Exit codes, and how an error becomes one with a plain message on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import sys
from collections.abc import Coroutine
from typing import Any

from toolcrib.errors import ConfigurationError, Conflict, NotFound, NotReady, ToolcribError

__all__ = ["Exit", "guarded"]


class Exit(enum.IntEnum):
    """What the command's exit code says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    INTERRUPTED = 130


_CODES: tuple[tuple[type[ToolcribError], Exit], ...] = (
    (ConfigurationError, Exit.CONFIGURATION),
    (Conflict, Exit.CONFIGURATION),
    (NotFound, Exit.USAGE),
    (NotReady, Exit.FAILED),
)


def guarded(command: Coroutine[Any, Any, Exit]) -> None:
    """Runs a command to its exit code. Whatever a tool prints goes to standard error: standard
    output is the command's own, and may be JSON that somebody parses."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("toolcrib.telemetry").setLevel(logging.ERROR)  # the command itself tells
    with contextlib.redirect_stdout(sys.stderr):
        code = asyncio.run(_outcome(command))
    sys.exit(code)


async def _outcome(command: Coroutine[Any, Any, Exit]) -> Exit:
    try:
        return await command
    except BaseExceptionGroup as group:
        known, others = group.split(ToolcribError)
        if others is not None or known is None:
            raise
        return _told(known.exceptions[0])
    except ToolcribError as error:
        return _told(error)


def _told(error: BaseException) -> Exit:
    print(error, file=sys.stderr)
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)
