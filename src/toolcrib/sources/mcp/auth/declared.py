"""How a server learns who asks, as a user declares it. Checked when made; does nothing.

Static headers are `McpServer.headers`; here is what must be fetched, renewed or kept. None of the
reprs shows a secret.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from toolcrib.errors import InvalidDefinition
from toolcrib.sources.mcp.auth.stores.store import TokenStore

__all__ = [
    "Auth",
    "AuthorizationCode",
    "Bearer",
    "ClientCredentials",
    "Method",
    "Person",
    "TokenSource",
    "is_sendable",
    "secrets_of",
]

Method: TypeAlias = Literal["client_secret_basic", "client_secret_post", "private_key_jwt"]

TokenSource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Gives the bearer token of the moment; asked at each connect, and once more when it is refused."""

Person: TypeAlias = Callable[[str], Awaitable[str]]
"""Sends somebody to the authorization address it is given, and returns the address of the redirect
URI that they came back to, with its query."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that somebody else looks after: a text, or a callable that gives the present one."""

    token: str | TokenSource = field(repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.token, str) and not self.token.strip():
            raise InvalidDefinition("auth: a bearer token that is blank")
        if isinstance(self.token, str) and not is_sendable(self.token):
            raise InvalidDefinition(
                "auth: a bearer token that no header can hold: it has a line break or no ASCII"
            )


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAuth for machines: the client itself is who asks (RFC 6749 §4.4).

    `client_secret` is sent by `method`; with `private_key_jwt` an assertion is signed with
    `private_key` (PEM) by `algorithm` instead. `issuer` is the authorization server they belong to:
    without it the MCP server decides who is sent the secret. `scope` is asked for as it is; empty:
    what the server wants. Tokens are kept in memory, or in `store`.
    """

    client_id: str
    client_secret: str = field(default="", repr=False)
    issuer: str = ""
    scope: str = ""
    method: Method = "client_secret_basic"
    private_key: str = field(default="", repr=False)
    algorithm: str = "RS256"
    store: TokenStore | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.client_id.strip():
            raise InvalidDefinition("auth: client credentials need a client_id")
        if self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise InvalidDefinition(f"auth: unknown method {self.method!r}: use one of {known}")
        needed = "private_key" if self.method == "private_key_jwt" else "client_secret"
        other = "client_secret" if needed == "private_key" else "private_key"
        if not getattr(self, needed):
            raise InvalidDefinition(f"auth: method {self.method} needs a {needed}")
        if getattr(self, other):
            raise InvalidDefinition(f"auth: method {self.method} takes no {other}")
        if self.issuer and not _is_http(self.issuer):
            raise InvalidDefinition("auth: issuer is not an http:// or https:// address")


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """OAuth for people: somebody logs in with a browser, with PKCE (RFC 6749 §4.1, RFC 7636).

    Without `client_id` the client is known by its `client_metadata_url`, or registers itself.
    `redirect_port` is where the browser comes back to on 127.0.0.1 (0: any free one). `person` is
    who can be asked while a source runs, for five minutes at most; None: nobody, then a server that
    wants a login says so and `toolcrib login` is for it. Tokens are kept in `store` (None: the
    keyring of the system where there is one, else a file of the user's alone).
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    client_metadata_url: str = ""
    redirect_port: int = 0
    person: Person | None = field(default=None, repr=False)
    store: TokenStore | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.client_secret and not self.client_id:
            raise InvalidDefinition("auth: a client_secret without its client_id")
        if self.client_id and self.client_metadata_url:
            raise InvalidDefinition("auth: client_id and client_metadata_url exclude each other")
        if self.client_metadata_url:
            parts = urlsplit(self.client_metadata_url)
            if parts.scheme != "https" or parts.path in ("", "/"):
                raise InvalidDefinition(
                    "auth: client_metadata_url is not an https:// address with a path"
                )
        if not 0 <= self.redirect_port < 65536:
            raise InvalidDefinition(f"auth: redirect_port {self.redirect_port} is no port")
        if self.person is not None and not self.redirect_port:
            raise InvalidDefinition("auth: who asks a person must say the redirect_port")


Auth: TypeAlias = Bearer | ClientCredentials | AuthorizationCode


_SENDABLE = re.compile(r"[!-~]([ -~]*[!-~])?\Z")


def is_sendable(token: str) -> bool:
    """Whether a header can hold it. What is found out only when it is sent is told with it."""
    return _SENDABLE.match(token) is not None


def secrets_of(auth: Auth | None) -> tuple[str, ...]:
    """What was declared and nobody may see."""
    if isinstance(auth, Bearer):
        return (auth.token,) if isinstance(auth.token, str) else ()
    if isinstance(auth, ClientCredentials):
        return tuple(filter(None, (auth.client_secret, auth.private_key)))
    return (auth.client_secret,) if auth is not None and auth.client_secret else ()


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
