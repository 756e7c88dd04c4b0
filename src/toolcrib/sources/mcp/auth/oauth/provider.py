"""The SDK's OAuth provider with our grants in and out, and the rules of ours that go beyond it.

The SDK discovers, registers, builds every request and judges every answer. Here is what both kinds
of client share (`machine`, `person`); when to ask is `oauth`'s, sending is `exchange`'s.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ValidationError

from toolcrib.sources.mcp.auth.oauth.fault import AuthFault
from toolcrib.sources.mcp.auth.stores.grant import Grant

__all__ = ["Nowhere", "Provider"]

Model = TypeVar("Model", bound=BaseModel)


class Nowhere:
    """The storage the SDK wants: what is kept is taken from its context when all of it is known."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None: ...

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


class Provider(OAuthClientProvider):
    """A provider that starts from a grant and gives one back. `declared_scope` goes before what a
    server proposes; `widens` adds what it demanded."""

    declared_scope = ""
    widens = False

    async def restore(self, grant: Grant | None) -> None:
        """Continues with what was kept."""
        await self._initialize()
        if grant is None:
            return
        context = self.context
        context.current_tokens = OAuthToken(
            access_token=grant.access_token, refresh_token=grant.refresh_token, scope=grant.scope
        )
        if context.client_info is None:
            context.client_info = _read(OAuthClientInformationFull, grant.client)
        context.oauth_metadata = _read(OAuthMetadata, grant.issuer)
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, grant.resource)

    @property
    def granted(self) -> Grant | None:
        """What is to be kept of the tokens there are now."""
        context, tokens, now = self.context, self.context.current_tokens, time.time()
        if tokens is None:
            return None
        lives = tokens.expires_in or 0
        expires = now + lives if lives > 0 else None
        return Grant(
            tokens.access_token,
            tokens.refresh_token,
            expires,
            now,
            tokens.scope,
            _written(context.client_info),
            _written(context.oauth_metadata),
            _written(context.protected_resource_metadata),
        )

    async def refresh_request(self, protocol_version: str | None) -> httpx2.Request:
        self.context.protocol_version = protocol_version
        return await self._refresh_token()

    async def take_refreshed(self, response: httpx2.Response) -> None:
        """Takes over an answer that was checked."""
        await self._handle_refresh_response(response)

    def check(self, request: httpx2.Request) -> None:
        """Raises `AuthFault` for a request that must not be sent."""
        self.check_address(str(request.url))
        if request.method == "POST":
            self.check_discovery()

    def check_address(self, url: str) -> None:
        """Raises `AuthFault` where secrets would leave TLS: everything of an authorization server
        is https, but on this machine, or where the declared server itself is not."""
        if is_downgrade(self.context.server_url, url):
            raise AuthFault("its authorization server is to be asked without TLS")

    def check_discovery(self) -> None:
        """Raises `AuthFault` where the server named an authorization server of which no metadata
        was found: the SDK would send secrets and codes to the MCP server in its stead."""
        if self.context.auth_server_url is not None and self.context.oauth_metadata is None:
            raise AuthFault("no metadata of its authorization server was found")

    async def _perform_authorization(self) -> httpx2.Request:
        self.check_discovery()
        metadata, declared = self.context.client_metadata, self.declared_scope or None
        if self.widens:
            metadata.scope = union_scopes(declared, metadata.scope)
        elif declared:
            metadata.scope = declared
        return await super()._perform_authorization()


def is_downgrade(server: str, url: str) -> bool:
    """Whether what is said to `url` is less private than what is said to `server`."""
    if urlsplit(server).scheme != "https" or urlsplit(url).scheme == "https":
        return False
    host = urlsplit(url).hostname or ""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _read(model: type[Model], kept: Mapping[str, Any]) -> Model | None:
    try:
        return model.model_validate(dict(kept)) if kept else None
    except ValidationError:
        return None  # kept by another version: it is found out again


def _written(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(mode="json", exclude_none=True)
