"""What a refusal asks for, and whether answering it is worth it. Pure decisions."""

from __future__ import annotations

import time

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

__all__ = ["is_challenge", "is_worth_renewing", "wanted_scopes"]

PAUSE = 60.0
"""Seconds in which a token that was refused as soon as it was issued is not renewed: the next one
would be refused as well, and a server that always says 401 would be a loop."""


def is_challenge(response: httpx2.Response) -> bool:
    """Whether another token may help: HTTP 401, or 403 for want of a scope. Any other 403 says that
    the token is good and its holder may not do this."""
    if response.status_code == 401:
        return True
    error = extract_field_from_www_auth(response, "error")
    return response.status_code == 403 and error == "insufficient_scope"


def wanted_scopes(response: httpx2.Response, asked: str) -> frozenset[str]:
    """The scopes a 403 asks for that were not asked for yet. Without one of them, asking again
    would give the same token."""
    wanted = extract_scope_from_www_auth(response) or ""
    return frozenset(wanted.split()) - frozenset(asked.split())


def is_worth_renewing(refused_at: float | None, now: float | None = None) -> bool:
    """Whether a refused token is to be renewed. `refused_at` is when (monotonic) it was refused
    though it was new, None where it was not."""
    now = time.monotonic() if now is None else now
    return refused_at is None or now - refused_at > PAUSE
