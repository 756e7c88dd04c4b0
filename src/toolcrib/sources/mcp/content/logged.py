"""The log messages of servers: their levels as ours, their data as one line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MAX_CHARS", "severity", "words_of"]

MAX_CHARS: Final = 2_000
"""Characters of a message that are passed on."""

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


def severity(level: str) -> int:
    """The level of the logging module; that of a word nobody knows is INFO."""
    return _LEVELS.get(level, logging.INFO)


def words_of(params: Mapping[str, Any]) -> str:
    """The text of a log message on one line, cut."""
    data = params.get("data")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return " ".join(text[:MAX_CHARS].splitlines())
