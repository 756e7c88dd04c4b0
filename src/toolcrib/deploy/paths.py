"""How a place in a deployment file is written: `resources.fs.settings.servers[0].name`."""

from __future__ import annotations

import re

__all__ = ["joined"]

_SIMPLE = re.compile(r"[\w-]+\Z")
_LONGEST = 64


def joined(path: str, step: str | int) -> str:
    """`path` one step further: a key, or the number of a list's item. Keys that would not read as
    one step are quoted."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if len(step) > _LONGEST:
        step = step[:_LONGEST] + "…"
    return f"{path}.{_quoted(step)}" if path else _quoted(step)


def _quoted(key: str) -> str:
    return key if _SIMPLE.match(key) else repr(key)
