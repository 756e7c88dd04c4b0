"""What a refusal asks for, and whether answering it is worth it. Pure decisions."""

from __future__ import annotations

import time

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from toolcrib.sources.mcp.auth.grant import Grant

__all__ = ["is_challenge", "is_expired", "is_worth_renewing", "wanted_scopes"]

PAUSE = 60.0
"""Seconds in which a token that was refused as soon as it was issued is not renewed: the next one
would be refused as well, and a server that always says 401 would be a loop."""

EARLY = 10.0
"""Seconds before its end, at most a tenth of its life, in which a token is renewed: it must outlive
its request's way."""


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


def is_expired(grant: Grant, now: float | None = None) -> bool:
    """Whether its time is over, or all but."""
    now = time.time() if now is None else now
    if grant.expires_at is None:
        return False
    early = min(EARLY, (grant.expires_at - grant.obtained_at) / 10)
    return grant.expires_at - early <= now


def is_worth_renewing(refused_at: float | None, now: float | None = None) -> bool:
    """Whether a refused token is to be renewed. `refused_at` is when (monotonic) it was refused
    though it was new, None where it was not."""
    now = time.monotonic() if now is None else now
    return refused_at is None or now - refused_at > PAUSE
