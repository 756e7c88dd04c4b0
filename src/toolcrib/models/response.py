"""What a real model's response carries beyond the message itself: tokens, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolcrib.jsonvalue import is_object
from toolcrib.providers.history import Assistant

__all__ = ["Response", "Usage", "count"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them. `input` is the whole request, `cached` the part of it
    that was read from the provider's prompt cache; `output` includes reasoning."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input, self.output + other.output, self.cached + other.cached
        )


@dataclass(frozen=True, slots=True)
class Response(Assistant):
    """An `Assistant` message, so it stands in a transcript as it is, with its `usage` and the
    provider's own word for why it `stop`ped (`stop`, `end_turn`, `length`, …)."""

    usage: Usage = field(default=Usage(), kw_only=True)
    stop: str = field(default="", kw_only=True)


def count(counts: Any, *path: str) -> int:
    """The number at `path` of a provider's usage object; 0 where there is none."""
    for key in path:
        counts = counts.get(key) if is_object(counts) else None
    return counts if isinstance(counts, int) else 0
