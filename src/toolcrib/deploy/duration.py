"""Go durations, the way the files write time: `30s`, `1m30s`, `1.5h`, `250ms`, `0`."""

from __future__ import annotations

import re

__all__ = ["parse_duration"]

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # micro sign
    "μs": 1e-6,  # Greek mu: Go takes both
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>ns|us|µs|μs|ms|s|m|h)")
_MOST = 2**63 / 1e9
"""Seconds; Go counts nanoseconds in 63 bits."""


def parse_duration(text: str) -> float | None:
    """Seconds, negative ones too; None for a text that is no Go duration (a bare `30` is none)."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    if not rest or len(rest) > 100:
        return None
    seconds, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            return None
        seconds += float(part["number"]) * _UNITS[part["unit"]]
        at = part.end()
    return sign * seconds if seconds < _MOST else None
