"""What this process knows of the tokens it holds: that they are secret, and which were no good.

A declared secret is known from its declaration; what an authorization server issues only from here,
so that no text of a server can repeat it. Holds the last ones, in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

__all__ = ["issued", "note", "note_refused", "refused_at"]

MOST: Final = 256

_tokens: dict[str, float | None] = {}
"""Each token, and when the server refused it although it was new."""


def note(secrets: Iterable[str]) -> None:
    """From now on these are masked in whatever a server says."""
    for secret in secrets:
        _tokens[secret] = _tokens.pop(secret, None)
    while len(_tokens) > MOST:
        del _tokens[next(iter(_tokens))]


def issued() -> tuple[str, ...]:
    """Those noted last."""
    return tuple(_tokens)


def note_refused(token: str) -> None:
    """The server refused this one, which was issued just now."""
    note((token,))
    _tokens[token] = time.monotonic()


def refused_at(token: str) -> float | None:
    """When that was (monotonic); None for any other."""
    return _tokens.get(token)
