"""Why there is no token, in words without secrets."""

from __future__ import annotations

import re

__all__ = ["AuthFault", "NoVerdict", "error_code"]

_CODE = re.compile(r"[a-z_]{1,60}\Z")


class AuthFault(Exception):
    """No token, and why; holds nothing secret. `code` is the error code of the authorization
    server, empty where it gave none."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(f"{text}: {code}" if code else text)
        self.code = code


class NoVerdict(AuthFault):
    """The authorization server could not be asked, or what answered was not it: that says nothing
    of what it would answer, and nothing is given up for it."""


def error_code(value: object) -> str:
    """The error code of an answer; empty where it does not look like one, since a server may put
    anything there."""
    return value if isinstance(value, str) and _CODE.match(value) else ""
