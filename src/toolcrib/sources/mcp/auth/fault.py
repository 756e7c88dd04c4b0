"""Why there is no token, in words without secrets."""

from __future__ import annotations

import re

__all__ = ["AuthFault", "Unreachable", "shown_code"]

_CODE = re.compile(r"[a-z_]{1,60}\Z")


class AuthFault(Exception):
    """No token, and why; holds nothing secret."""


class Unreachable(AuthFault):
    """The authorization server could not be asked: that says nothing of what it would answer."""


def shown_code(code: object) -> str:
    """The error code of an answer for a message; nothing where it does not look like one, since a
    server may put anything there."""
    return f": {code}" if isinstance(code, str) and _CODE.match(code) else ""
