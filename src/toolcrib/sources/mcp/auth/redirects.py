"""Sending a person to an authorization server, as the SDK's two handlers, and what came back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from toolcrib.sources.mcp.auth.declared import Person
from toolcrib.sources.mcp.auth.fault import AuthFault, shown_code

__all__ = ["asking", "redirect_uri"]


def redirect_uri(port: int) -> str:
    return f"http://127.0.0.1:{port}/callback"


def asking(
    person: Person,
) -> tuple[Callable[[str], Awaitable[None]], Callable[[], Awaitable[AuthorizationCodeResult]]]:
    """The two handlers of the SDK, which are one question to a person."""
    asked: list[str] = []

    async def redirect(url: str) -> None:
        asked.append(url)

    async def callback() -> AuthorizationCodeResult:
        url = asked.pop()
        return _returned(url, await person(url))

    return redirect, callback


def _returned(asked: str, url: str) -> AuthorizationCodeResult:
    """What the redirect to `url` brought back."""
    values = {name: found[0] for name, found in parse_qs(urlsplit(url).query).items()}
    if values.get("state") != parse_qs(urlsplit(asked).query)["state"][0]:
        raise AuthFault("the answer belongs to another login (its state differs)")
    if "error" in values or "code" not in values:
        raise AuthFault(f"it was not granted{shown_code(values.get('error'))}")
    return AuthorizationCodeResult(
        code=values["code"], state=values["state"], iss=values.get("iss")
    )
