"""What a round sends, and what that costs, against the round before: figures, decided nowhere here.

Providers cache the beginning of a request, and definitions stand at its beginning: what of them is
the same as last time, from the first byte on, is what a prompt cache can keep.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import Budget, Dynamic
from toolcrib.limits import ToolLimits

__all__ = ["RoundReport", "Sent", "Used", "report_of"]

NOTHING_SENT: tuple[ToolDefinition, ...] = ()
_DEFAULT_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Sent:
    """What one round sends, in wire order, and what there was when that was decided: the
    definitions of the round before, the names in the pool, and how many tools the searches since
    the last accepted round took in. `dynamic` is None where the session is static."""

    names: tuple[str, ...]
    definitions: tuple[ToolDefinition, ...]
    before: tuple[ToolDefinition, ...] = NOTHING_SENT
    pooled: Collection[str] = ()
    admitted: int = 0
    dynamic: Dynamic | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """What a turn has used of its limits so far."""

    iterations: int = 0
    calls: int = 0
    searches: int = 0


@dataclass(frozen=True, slots=True)
class RoundReport:
    """The figures of one round. Bytes are those of `ToolDefinition.wire_bytes`.

    `prefix_definitions` and `prefix_bytes` say how much of the list is, from its beginning on, the
    same as in the round before. `added`, `dropped` and `changed` are names against that round;
    `waiting` names are in the pool but found no room. `tokens` is an estimate unless the budget
    brings a counter (`tokens_are`). A `max_…` of None means no bound. `used` is what the turn had
    used of `limits` when the report was made.
    """

    definitions: int
    bytes: int
    tokens: int
    tokens_are: str
    prefix_definitions: int
    prefix_bytes: int
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    waiting: tuple[str, ...]
    admitted: int
    max_definitions: int | None
    max_bytes: int | None
    max_tokens: int | None
    max_admitted: int | None
    used: Used
    limits: ToolLimits

    def to_json(self) -> dict[str, Any]:
        """The same as a JSON object; `used` and `limits` as objects of their own."""
        own = {name: getattr(self, name) for name in self.__slots__}
        for name in ("added", "dropped", "changed", "waiting"):
            own[name] = list(own[name])
        for name in ("used", "limits"):
            part = own[name]
            own[name] = {key: getattr(part, key) for key in part.__slots__}
        return own


def report_of(sent: Sent, used: Used, limits: ToolLimits) -> RoundReport:
    """The figures of `sent`."""
    now, before = sent.definitions, {one.name: one for one in sent.before}
    names = frozenset(sent.names)
    pairs = zip(now, sent.before, strict=False)
    kept = sum(1 for _ in takewhile(lambda pair: _is_same(*pair), pairs))
    dynamic = sent.dynamic
    budget = _DEFAULT_BUDGET if dynamic is None else dynamic.budget
    caps = None if dynamic is None else budget.caps
    return RoundReport(
        definitions=len(now),
        bytes=_bytes(now),
        tokens=sum(map(budget.tokens.of, now)),
        tokens_are="an estimate" if budget.tokens.is_estimate else "counted",
        prefix_definitions=kept,
        prefix_bytes=_bytes(now[:kept]),
        added=tuple(name for name in sent.names if name not in before),
        dropped=tuple(name for name in before if name not in names),
        changed=tuple(
            one.name for one in now if one.name in before and not _is_same(one, before[one.name])
        ),
        waiting=tuple(name for name in sent.pooled if name not in names),
        admitted=sent.admitted,
        max_definitions=None if caps is None else caps.max_tools,
        max_bytes=None if caps is None else caps.max_bytes,
        max_tokens=budget.max_tokens if budget.max_tokens > 0 else None,
        max_admitted=(dynamic.discovery.max_admitted or None) if dynamic is not None else None,
        used=used,
        limits=limits,
    )


def _is_same(one: ToolDefinition, other: ToolDefinition) -> bool:
    """Whether both look the same to a model."""
    return one is other or (
        one.name == other.name
        and one.description == other.description
        and one.schema_json == other.schema_json
    )


def _bytes(definitions: tuple[ToolDefinition, ...]) -> int:
    return sum(one.wire_bytes for one in definitions)
