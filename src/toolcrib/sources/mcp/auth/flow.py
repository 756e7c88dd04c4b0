"""The credential of a connection on its requests: shown with each, renewed once when refused.

The SDK's own flow holds a lock while a request waits for its answer, so that one slow call would
hold up all others; here only renewing is one at a time. A refusal that stands is left to the SDK
as the answer it is: an exception in here would take down the whole connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Final

import anyio
import httpx2

from toolcrib.errors import ToolcribError
from toolcrib.sources.mcp.auth.credential import BearerCredential, Credential
from toolcrib.sources.mcp.auth.declared import Auth, Bearer
from toolcrib.sources.mcp.auth.oauth.account import account_of
from toolcrib.sources.mcp.auth.oauth.challenge import is_challenge
from toolcrib.sources.mcp.auth.oauth.renewal import OAuthCredential
from toolcrib.sources.mcp.failures import NotSent, Rejected

__all__ = ["Authorizer", "authorizing"]

BODY: Final = 5.0
"""Seconds for the rest of a refusal; what it says is in its head."""


class Authorizer(httpx2.Auth):
    """Shows `credential`. `on_refusal` is told once a refusal stands that somebody could mend."""

    def __init__(self, credential: Credential, on_refusal: Callable[[str], None]) -> None:
        self._credential = credential
        self._on_refusal = on_refusal

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = await self._first(request)
        response = yield _showing(request, token)
        if not is_challenge(response):
            self._credential.taken()
            return
        other = await self._other(request, response, token)
        if other is not None:
            response = yield _showing(request, other)
            if response.status_code == 401:
                self._credential.refused()
            elif not is_challenge(response):
                self._credential.taken()
        if response.status_code == 401 and self._credential.problem:
            self._on_refusal(self._credential.problem)

    async def _first(self, request: httpx2.Request) -> str | None:
        try:
            return await self._credential.token(request)
        except ToolcribError as error:  # a store that cannot be read
            self._credential.problem = str(error)
            return None

    async def _other(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        if not await _is_complete(challenge):
            self._credential.problem = "it refused a request, and not even that to its end"
            return None
        try:
            return await self._credential.renewed(request, challenge, used)
        except ToolcribError as error:
            self._credential.problem = str(error)
            return None


@asynccontextmanager
async def authorizing(
    name: str,
    url: str,
    auth: Auth | None,
    on_refusal: Callable[[str], None],
    waiting: Callable[[], AbstractContextManager[None]],
) -> AsyncGenerator[httpx2.Auth | None]:
    """What the requests of one connection need. A connection that fails for want of a credential
    raises `NotSent` with what is to be done: it is tried again, because the remedy comes from
    outside (a login in another process) and nobody would tell us. `Rejected` after a person was
    asked in vain. `waiting` is entered while one is asked: the connection has to wait that long."""
    if auth is None:
        yield None
        return
    try:
        credential = await _credential(name, url, auth, waiting)
    except ToolcribError as error:  # nowhere to keep tokens
        raise NotSent(str(error)) from error
    try:
        yield Authorizer(credential, on_refusal)
    except Exception as error:
        if credential.problem:
            kind = Rejected if credential.is_final else NotSent
            raise kind(credential.problem) from error
        raise


async def _credential(
    name: str, url: str, auth: Auth, waiting: Callable[[], AbstractContextManager[None]]
) -> Credential:
    if isinstance(auth, Bearer):
        return BearerCredential(auth)
    # Looking for a keyring may ask another process.
    return OAuthCredential(await asyncio.to_thread(account_of, name, url, auth), waiting)


def _showing(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is None:
        request.headers.pop("Authorization", None)
    else:
        request.headers["Authorization"] = f"Bearer {token}"
    return request


async def _is_complete(response: httpx2.Response) -> bool:
    """Whether the whole refusal came: httpx reads it before it sends anything else."""
    with anyio.move_on_after(BODY):
        try:
            await response.aread()
        except httpx2.HTTPError:
            return False
        return True
    return False
