"""One record per tool: what the deployment decides about it, whatever source it comes from.

A record only says; `discovery` shows by it, `executor` and `middleware` act on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, cast, get_args

from toolcrib.errors import InvalidDefinition
from toolcrib.principal import Principal

__all__ = ["EXPOSURES", "NO_POLICY", "Exposure", "Policies", "Policy", "may_use"]

Exposure: TypeAlias = Literal["always", "direct", "deferred", "hidden"]
"""always: in every round · direct, deferred: once discovered (direct is evicted later) ·
hidden: only where the host requires it by name (rule A4)."""

EXPOSURES: tuple[Exposure, ...] = get_args(Exposure)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is decided about one tool; `None` and the empty set leave it to the next record.

    `timeout` is in seconds, 0 exempts the tool from every default. `scopes` must all have been
    granted to whoever sees or calls the tool; without them it does not exist for that principal.
    `idempotent`: a call whose answer was lost may be sent once more (what a server claims of itself
    is never enough for that).

    Raises `InvalidDefinition` for what is none of these.
    """

    exposure: Exposure | None = None
    timeout: float | None = None
    scopes: frozenset[str] = frozenset()
    idempotent: bool | None = None

    def __post_init__(self) -> None:
        if self.exposure is not None and self.exposure not in EXPOSURES:
            raise InvalidDefinition(
                f"unknown exposure {self.exposure!r}: use one of {', '.join(EXPOSURES)}"
            )
        if self.timeout is not None and not _is_seconds(self.timeout):
            raise InvalidDefinition(f"timeout {self.timeout!r} is not a number of seconds ≥ 0")
        if isinstance(self.scopes, str):
            raise InvalidDefinition(f"scopes are a set of texts, not one text: {self.scopes!r}")
        object.__setattr__(self, "scopes", frozenset(self.scopes))

    def over(self, other: Policy) -> Policy:
        """This record where it says something, `other` where it does not."""
        if self in (NO_POLICY, other):
            return other
        said = {f.name: getattr(self, f.name) or getattr(other, f.name) for f in fields(Policy)}
        for name in ("timeout", "idempotent"):  # 0 and False say something too
            mine = getattr(self, name)
            said[name] = getattr(other, name) if mine is None else mine
        return Policy(**said)


NO_POLICY = Policy()


class Policies:
    """The records of one deployment: by tool name, or by pattern (`fs__*`).

    The exact name beats the patterns, an earlier pattern beats a later one, both beat what the
    tool's author wrote, and `default` fills what nobody said; each field on its own.
    """

    __slots__ = ("_default", "_exact", "_patterns")

    def __init__(
        self, records: Mapping[str, Policy] | None = None, *, default: Policy = NO_POLICY
    ) -> None:
        records = records or {}
        if wrong := _fault(records):
            raise InvalidDefinition(wrong)
        self._exact = {n: p for n, p in records.items() if not _is_pattern(n)}
        self._patterns = [(n, p) for n, p in records.items() if _is_pattern(n)]
        self._default = default

    def of(self, name: str, own: Policy = NO_POLICY) -> Policy:
        """The record in force for the tool `name` whose author wrote `own`."""
        found = self._exact.get(name, NO_POLICY)
        for pattern, policy in self._patterns:
            if fnmatchcase(name, pattern):
                found = found.over(policy)
        return found.over(own).over(self._default)

    def idle(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names and patterns about none of these tools. No fault: tools come and go."""
        known = set(names)
        exact = [name for name in self._exact if name not in known]
        patterns = [p for p, _ in self._patterns if not any(fnmatchcase(n, p) for n in known)]
        return (*exact, *patterns)


def _is_seconds(value: object) -> bool:
    """Not a text such as "30s", which a deployment file takes."""
    return isinstance(value, int | float) and value >= 0


def _fault(records: object) -> str:
    """What is wrong with the records as a whole; empty when nothing is."""
    if not isinstance(records, Mapping):
        return f"policies are records by tool name or pattern, not {records!r}"
    for name, record in cast("Mapping[str, object]", records).items():
        if not name.strip():
            return "a policy record needs a tool name or pattern: it is blank"
        if not isinstance(record, Policy):
            return f"the policy of {name!r} is a Policy, not {record!r}"
    return ""


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def may_use(principal: Principal, policy: Policy) -> bool:
    """Whether `principal` may know of a tool under `policy`: the one answer for lists, search,
    suggestions and calls alike."""
    return not policy.scopes or principal.has(policy.scopes)
