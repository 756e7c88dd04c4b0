"""How many tokens a definition costs: a counter that anybody may replace.

Models count differently and none of them here: the built-in figure is an estimate and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from toolcrib.definition import ToolDefinition

__all__ = ["TokenCounter", "Tokens", "estimated"]

TokenCounter: TypeAlias = Callable[[ToolDefinition], int]
"""The tokens of one definition as a model's own tokenizer counts them. Pure; asked once for each
definition and remembered."""

BYTES_PER_TOKEN = 4
MAX_REMEMBERED = 20_000


def estimated(definition: ToolDefinition) -> int:
    """A quarter of the definition's bytes: an estimate, within about a third for English text."""
    return definition.wire_bytes // BYTES_PER_TOKEN


class Tokens:
    """A counter and what it has counted. Shared by all sessions of an assembly; one loop."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    @property
    def is_estimate(self) -> bool:
        """Whether the built-in estimate counts."""
        return self._counter is estimated

    def of(self, definition: ToolDefinition) -> int:
        """The tokens of `definition`."""
        if self._counter is estimated:
            return estimated(definition)
        key = definition.fingerprint
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._counter(definition)
        return known
