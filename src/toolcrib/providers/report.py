"""What an export changed, and why: nothing is degraded in silence.

Only the record; what is changed is decided in `schemas`, `strict`, `subset` and the providers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["Degraded", "Effect", "Export", "Notes"]

Effect: TypeAlias = Literal["same", "wording", "wider", "narrower"]
"""What a change does to the values a schema accepts. same: only the form · wording: an annotation
was lost · wider: more is accepted, which our own check of the arguments makes good · narrower: some
valid arguments can no longer be expressed; the only lossy one."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """One change: which tool (blank for a message), why, where in it, and what it does."""

    tool: str
    reason: str
    path: str = ""
    effect: Effect = "wider"

    @property
    def is_lossy(self) -> bool:
        """Whether something valid can no longer be expressed."""
        return self.effect == "narrower"


@dataclass(frozen=True, slots=True)
class Export:
    """What to send and what was changed on the way.

    `items` are tools or messages as JSON objects, made afresh for each export: change them freely.
    """

    items: list[dict[str, Any]]
    degraded: tuple[Degraded, ...] = ()

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The items, under the name they have in an export of definitions."""
        return self.items

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The items, under the name they have in an export of a history."""
        return self.items

    def counts(self) -> dict[str, int]:
        """How often each reason occurred, most frequent first."""
        return dict(Counter(each.reason for each in self.degraded).most_common())


class Notes:
    """Collects the changes of one conversion; local to it."""

    __slots__ = ("_found", "tool")

    def __init__(self, tool: str = "") -> None:
        self.tool = tool
        self._found: dict[tuple[str, str], Degraded] = {}

    def add(self, reason: str, path: str = "", effect: Effect = "wider") -> None:
        """Notes one change; the same one in the same place counts once."""
        self._found.setdefault((reason, path), Degraded(self.tool, reason, path, effect))

    def extend(self, others: Iterable[Degraded]) -> None:
        """Takes over what another conversion noted."""
        for each in others:
            self._found.setdefault((each.reason, f"{each.tool} {each.path}"), each)

    def all(self) -> tuple[Degraded, ...]:
        """Everything noted, in the order it was found."""
        return tuple(self._found.values())
