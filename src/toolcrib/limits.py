"""How much one user turn may do with tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolcrib.errors import InvalidDefinition

__all__ = ["UNLIMITED", "ToolLimits"]

UNLIMITED: Final = 2**62
"""Lifts the bound on iterations or calls; `parallel` has no such value."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """`iterations`: batches of calls in a turn · `calls`: calls in a turn, failed ones too ·
    `parallel`: calls of a batch that run at once; the rest wait · `searches`: calls of
    `tool_search` in a turn that run; further ones are `limited`, each for itself.

    0 means the default, for searches that there is no limit. Raises `InvalidDefinition` for a
    negative value (rule C3).
    """

    iterations: int = 25
    calls: int = 100
    parallel: int = 8
    searches: int = UNLIMITED

    def __post_init__(self) -> None:
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value < 0 or (name == "parallel" and value >= UNLIMITED):
                usual = "no limit" if default == UNLIMITED else default
                raise InvalidDefinition(
                    f"limits.{name} is {value!r}: use a number from 1, 0 for {usual}"
                )
            if value == 0:
                object.__setattr__(self, name, default)


_DEFAULTS = {"iterations": 25, "calls": 100, "parallel": 8, "searches": UNLIMITED}
