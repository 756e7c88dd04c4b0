"""Who really calls: set by the server side, never by the model or a client's self-report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolcrib.frozen import NOTHING

__all__ = ["LOCAL", "Principal"]


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller: `id` within `tenant`, the `scopes` granted to it, and free `attributes`.

    Attributes may hold personal data, so they stay out of `repr`.
    """

    id: str
    tenant: str = ""
    scopes: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default=NOTHING, repr=False, compare=False)

    @classmethod
    def of(cls, id: str, *scopes: str, tenant: str = "") -> Principal:
        """`Principal.of("ana", "billing:refund")`."""
        return cls(id, tenant, frozenset(scopes))

    def has(self, scopes: Iterable[str]) -> bool:
        """Whether every one of `scopes` was granted."""
        return self.scopes.issuperset(scopes)


LOCAL = Principal("local")
"""The program itself: the caller where the host names none. It holds no scope."""
