"""An OAuth authorization server and an MCP server behind it on one loopback port, over real HTTP.

The SDK serves discovery, registration, PKCE and the MCP side; the tokens are ours, in memory, so
that a test can expire, revoke and count them. Both run in a thread of their own: what is left in
the test's loop is then the client's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Seen = tuple[str, str, dict[str, str], bytes]
"""Verb, path, headers and body of one request."""

Gate = Callable[[Seen], tuple[int, dict[str, str], bytes] | None]
"""Answers a request in place of the servers, or leaves it to them."""

MACHINE = ("machine", "machine-s3cret")


class Tokens:
    """The provider the SDK's authorization server asks. `lifetime` is told to clients, `refreshes`
    says whether a refresh token works."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.issued: list[str] = []
        self.lifetime: int | None = 3600
        self.refreshes = True
        self.refreshed = 0
        self.granted = 0
        self.denies = False

    def revoke(self) -> None:
        """Makes every access token there is worthless, without telling anybody."""
        self.access.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        if self.denies:
            answer = {"error": "access_denied", "state": params.state}
            return f"{params.redirect_uri}?{urlencode(answer)}"
        code = AuthorizationCode(
            code=self._new("code"),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return f"{params.redirect_uri}?{urlencode({'code': code.code, 'state': params.state})}"

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._grant(client.client_id, code.scopes)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        return self.refresh.get(token) if self.refreshes else None

    async def exchange_refresh_token(
        self, client: Any, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(token.token, None) is None:
            raise TokenError("invalid_grant")
        self.refreshed += 1
        return self._grant(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None: ...

    def machine(self, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        """The client_credentials grant, which the SDK's server does not have."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        pair = tuple(base64.b64decode(given).decode().split(":")) if kind == "Basic" else ()
        if pair != MACHINE:
            return 401, {"error": "invalid_client", "error_description": f"not {pair[1:]}"}
        granted = self._grant(MACHINE[0], [], with_refresh=False)
        return 200, granted.model_dump(exclude_none=True)

    def _grant(self, client: str, scopes: list[str], *, with_refresh: bool = True) -> OAuthToken:
        self.granted += 1
        access = self._new("access")
        self.access[access] = AccessToken(token=access, client_id=client, scopes=scopes)
        refresh = None
        if with_refresh:
            refresh = self._new("refresh")
            self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(
            access_token=access, expires_in=self.lifetime, refresh_token=refresh, scope=None
        )

    def _new(self, kind: str) -> str:
        self.issued.append(made := f"{kind}-{secrets.token_hex(12)}")
        return made


class OAuthPeer:
    """What a test holds of both servers. `gate` answers requests before they do."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.tokens = Tokens()
        self.seen: list[Seen] = []
        self.gate: Gate = lambda seen: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, path: str, *, grant: str = "") -> int:
        """The requests to `path`; to the token endpoint, those of one kind of grant."""
        found = [body for _, at, _, body in self.seen if at == path]
        if not grant:
            return len(found)
        return sum(parse_qs(body.decode()).get("grant_type") == [grant] for body in found)

    def calls(self) -> int:
        return sum(method_of(one) == "tools/call" for one in self.seen)


def method_of(seen: Seen) -> str:
    """The JSON-RPC method of a request to the MCP server, empty for another."""
    _, path, _, body = seen
    try:
        return str(json.loads(body).get("method", "")) if path == "/mcp" and body else ""
    except ValueError:
        return ""


@asynccontextmanager
async def oauth_peer() -> AsyncIterator[OAuthPeer]:
    """Both servers, until the end."""
    config = uvicorn.Config(
        _nothing, "127.0.0.1", 0, log_config=None, ws="none", timeout_graceful_shutdown=1
    )
    socket = config.bind_socket()
    peer = OAuthPeer(socket.getsockname()[1])
    server = uvicorn.Server(config)
    config.app = _watched(peer, _mcp(peer))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        async with asyncio.timeout(10):
            while not server.started:
                await asyncio.sleep(0.002)
        yield peer
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join, 10)
        socket.close()
        assert not thread.is_alive()


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None: ...


def _mcp(peer: OAuthPeer) -> ASGIApp:
    server = MCPServer(
        "guarded",
        auth_server_provider=peer.tokens,
        auth=AuthSettings(
            issuer_url=peer.issuer,
            resource_server_url=peer.url,
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=False,
        ),
    )

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def slow() -> str:
        """Answers after the others."""
        await asyncio.sleep(0.3)
        return "slow"

    return server.streamable_http_app(json_response=True)


def _watched(peer: OAuthPeer, app: ASGIApp) -> ASGIApp:
    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = await _body(receive)
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        seen = (scope["method"], scope["path"], headers, body)
        peer.seen.append(seen)
        answer = peer.gate(seen) or _machine(peer, seen)
        if answer is not None:
            await _answered(send, *answer)
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return given.pop() if given else await receive()

        await app(scope, replay, send)

    return watched


def _machine(peer: OAuthPeer, seen: Seen) -> tuple[int, dict[str, str], bytes] | None:
    _, path, headers, body = seen
    if path != "/token" or b"grant_type=client_credentials" not in body:
        return None
    status, said = peer.tokens.machine(body, headers)
    return status, {"content-type": "application/json"}, json.dumps(said).encode()


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _answered(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def redirected(url: str, **changed: str) -> str:
    """`url` with parameters of its query replaced, as somebody meddling would."""
    parts = urlsplit(url)
    query = {name: found[0] for name, found in parse_qs(parts.query).items()} | changed
    return parts._replace(query=urlencode(query)).geturl()
