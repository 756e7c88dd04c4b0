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
    `parallel`: calls of a batch that run at once; the rest wait.

    0 means the default. Raises `InvalidDefinition` for a negative value (rule C3).
    """

    iterations: int = 25
    calls: int = 100
    parallel: int = 8

    def __post_init__(self) -> None:
        for name, default in (("iterations", 25), ("calls", 100), ("parallel", 8)):
            value = getattr(self, name)
            if value < 0 or (name == "parallel" and value >= UNLIMITED):
                raise InvalidDefinition(
                    f"limits.{name} is {value!r}: use a number from 1, 0 for {default}"
                )
            if value == 0:
                object.__setattr__(self, name, default)
