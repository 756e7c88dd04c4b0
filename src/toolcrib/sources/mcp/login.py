"""The login of a person at one server, and its end. What is shown and opened is the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from toolcrib.errors import NotAvailable
from toolcrib.sources.mcp.auth.declared import AuthorizationCode
from toolcrib.sources.mcp.auth.loopback import listening
from toolcrib.sources.mcp.auth.oauth.account import Account, account_of
from toolcrib.sources.mcp.auth.oauth.exchange import authorize
from toolcrib.sources.mcp.auth.oauth.fault import AuthFault
from toolcrib.sources.mcp.auth.stores.grant import Grant
from toolcrib.sources.mcp.auth.stores.locks import in_turn
from toolcrib.sources.mcp.server import McpServer

__all__ = ["Show", "login", "logout"]

TIMEOUT: Final = 30.0
"""Seconds the server has to refuse the first request."""

Show: TypeAlias = Callable[[str], Awaitable[None]]
"""Brings the authorization address before a person; returns at once."""


async def login(server: McpServer, show: Show, *, port: int = 0) -> None:
    """Gets tokens for `server` from whoever logs in, and keeps them. `port` goes before the
    declared one. Whatever was kept stays until the new ones are there. Raises `NotAvailable`, and
    `ConfigurationError` where they cannot be kept."""
    auth = _auth(server)
    account = account_of(server.name, server.url, auth)
    declared = port or auth.redirect_port
    ports = (declared,) if declared else (await _port_before(account), 0)
    async with listening(*ports) as loopback:

        async def person(url: str) -> str:
            await show(url)
            return await loopback.answer_to(url)

        asking = replace(auth, person=person, redirect_port=loopback.port)
        request, challenge = await _challenged(server)
        try:
            grant = await _granted(replace(account, auth=asking), request, challenge)
        except AuthFault as fault:
            raise NotAvailable(f"no login at MCP server {server.name!r}: {fault}") from None
    async with in_turn(account.key, account.locks):  # not under the hands of who renews them
        await account.store.set(account.key, grant)


async def _granted(asking: Account, request: httpx2.Request, challenge: httpx2.Response) -> Grant:
    provider = await asking.provider(await asking.held())
    await authorize(provider, request, challenge)
    if (grant := provider.granted) is None:
        raise AuthFault("it ended without a token")
    return grant


async def logout(server: McpServer) -> bool:
    """Forgets the tokens for `server`; whether there were any."""
    account = account_of(server.name, server.url, _auth(server))
    async with in_turn(account.key, account.locks):  # who renews them would keep them again
        return await account.store.forget(account.key)


def _auth(server: McpServer) -> AuthorizationCode:
    if not isinstance(server.auth, AuthorizationCode):
        raise NotAvailable(
            f"MCP server {server.name!r} takes no login: it has no auth of type authorization_code"
        )
    return server.auth


async def _port_before(account: Account) -> int:
    """The port this client is registered with, so that it need not register again."""
    grant = await account.store.get(account.key)
    client: Mapping[str, Any] = grant.client if grant is not None else {}
    for uri in client.get("redirect_uris") or ():
        try:
            return urlsplit(str(uri)).port or 0
        except ValueError:
            continue
    return 0


async def _challenged(server: McpServer) -> tuple[httpx2.Request, httpx2.Response]:
    """A request and how the server refuses it, which says where and for what one logs in. One that
    lets everybody begin is asked as if it had refused."""
    request = httpx2.Request(
        "POST",
        server.url,
        headers={
            **server.headers,
            "Accept": "application/json, text/event-stream",
            MCP_PROTOCOL_VERSION_HEADER: HANDSHAKE_PROTOCOL_VERSIONS[-1],
        },
        json=_INITIALIZE,
    )
    try:
        with anyio.fail_after(TIMEOUT):
            async with create_mcp_http_client(timeout=httpx2.Timeout(TIMEOUT)) as http:
                response = await http.send(request, stream=True)
                await response.aclose()
    except (httpx2.HTTPError, TimeoutError) as error:
        why = type(error).__name__
        raise NotAvailable(f"MCP server {server.name!r} cannot be reached ({why})") from error
    if response.status_code != 401:
        response = httpx2.Response(401, request=request)
    return request, response


_INITIALIZE: Final[Mapping[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": HANDSHAKE_PROTOCOL_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": {"name": "toolcrib", "version": "0"},
    },
}
