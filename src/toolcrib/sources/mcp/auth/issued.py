"""What this process knows of the tokens it holds: that they are secret, and which are no good.

A declared secret is known from its declaration; what an authorization server issues only from here,
so that no text of a server can repeat it. It outlives connections: what a new one reads from a
store that could not be written is known to be spent. Holds the last ones, in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, TypeVar

from toolcrib.sources.mcp.auth.stores.grant import Grant

__all__ = [
    "is_spent",
    "issued",
    "note",
    "note_refused",
    "note_replaced",
    "note_spent",
    "refused_at",
    "replaced",
]

MOST: Final = 256

Value = TypeVar("Value")

_secret: dict[str, None] = {}
_refused: dict[str, float] = {}
"""Access tokens that the server refused although they were new, and when."""
_spent: dict[str, None] = {}
"""Refresh tokens that the authorization server takes no more."""
_replaced: dict[str, Grant] = {}
"""What came in the place of an access token, where no store could keep it."""


def note(secrets: Iterable[str]) -> None:
    """From now on these are masked in whatever a server says."""
    for secret in secrets:
        _put(_secret, secret, None)


def issued() -> tuple[str, ...]:
    """Those noted last."""
    return tuple(_secret)


def note_refused(token: str) -> None:
    """The server refused this one, which was issued just now."""
    _put(_refused, token, time.monotonic())


def refused_at(token: str) -> float | None:
    """When that was (monotonic); None for any other."""
    return _refused.get(token)


def note_spent(refresh_token: str) -> None:
    """Its authorization server says that this one is no good: it is not sent again."""
    _put(_spent, refresh_token, None)


def is_spent(refresh_token: str) -> bool:
    return refresh_token in _spent


def note_replaced(old: Grant, new: Grant) -> None:
    """`new` came for `old`, and could not be kept."""
    if old.access_token != new.access_token:
        _put(_replaced, old.access_token, new)


def replaced(grant: Grant) -> Grant:
    """The grant that came last for this one."""
    seen: set[str] = set()
    while grant.access_token in _replaced and grant.access_token not in seen:
        seen.add(grant.access_token)
        grant = _replaced[grant.access_token]
    return grant


def _put(known: dict[str, Value], token: str, value: Value) -> None:
    known.pop(token, None)
    known[token] = value
    while len(known) > MOST:
        del known[next(iter(known))]
