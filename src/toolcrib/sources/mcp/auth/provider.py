"""The SDK's OAuth providers with our declarations in and our grants out.

The SDK discovers, registers, builds every request and judges every answer. Here it is told what
was declared and kept; when to ask it is `oauth`'s, sending is `exchange`'s.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, TypeVar

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolcrib.sources.mcp.auth.declared import AuthorizationCode, ClientCredentials
from toolcrib.sources.mcp.auth.grant import Grant
from toolcrib.sources.mcp.auth.redirects import asking, redirect_uri

__all__ = ["Provider", "provider_for"]

Model = TypeVar("Model", bound=BaseModel)


class _Nowhere:
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

    async def _perform_authorization(self) -> httpx2.Request:
        metadata, declared = self.context.client_metadata, self.declared_scope or None
        if self.widens:
            metadata.scope = union_scopes(declared, metadata.scope)
        elif declared:
            metadata.scope = declared
        return await super()._perform_authorization()


class _CodeProvider(Provider):
    """Authorization code with PKCE; `known` is a client that is registered already."""

    known: OAuthClientInformationFull | None = None

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.client_info = self.known

    async def restore(self, grant: Grant | None) -> None:
        await super().restore(grant)
        self._choose_method()
        client = self.context.client_info
        if self.context.redirect_handler is None or client is None or client is self.known:
            return
        # It registered itself with another port: it must do so again before somebody is sent there.
        if client.redirect_uris != self.context.client_metadata.redirect_uris:
            self.context.client_info = None

    async def _perform_authorization(self) -> httpx2.Request:
        self._choose_method()
        return await super()._perform_authorization()

    def _choose_method(self) -> None:
        """How a declared secret is sent: as the server takes it, basic where it does not say."""
        client, issuer = self.known, self.context.oauth_metadata
        if client is not None and client.client_secret:
            methods = (issuer and issuer.token_endpoint_auth_methods_supported) or ()
            post = "client_secret_post" in methods and "client_secret_basic" not in methods
            client.token_endpoint_auth_method = f"client_secret_{'post' if post else 'basic'}"


class _SecretProvider(Provider, ClientCredentialsOAuthProvider):
    """Client credentials with a secret."""


class _KeyProvider(Provider, PrivateKeyJWTOAuthProvider):
    """Client credentials with a signed assertion."""


def provider_for(url: str, auth: ClientCredentials | AuthorizationCode) -> Provider:
    """A provider for one connection to the server at `url`."""
    provider = _code(url, auth) if isinstance(auth, AuthorizationCode) else _machine(url, auth)
    provider.declared_scope = auth.scope
    return provider


def _machine(url: str, auth: ClientCredentials) -> Provider:
    more: dict[str, Any] = {"scope": auth.scope or None, "issuer": auth.issuer or None}
    with warnings.catch_warnings():
        # That the SDK will want an issuer is said to users by our own documentation.
        warnings.simplefilter("ignore", DeprecationWarning)
        if auth.method == "private_key_jwt":
            signed = SignedJWTParameters(
                issuer=auth.client_id,
                subject=auth.client_id,
                signing_key=auth.private_key,
                signing_algorithm=auth.algorithm,
            ).create_assertion_provider()
            return _KeyProvider(url, _Nowhere(), auth.client_id, signed, **more)
        more["token_endpoint_auth_method"] = auth.method
        return _SecretProvider(url, _Nowhere(), auth.client_id, auth.client_secret, **more)


def _code(url: str, auth: AuthorizationCode) -> Provider:
    uris = [AnyUrl(redirect_uri(auth.redirect_port))]
    redirect, callback = (None, None) if auth.person is None else asking(auth.person)
    provider = _CodeProvider(
        url,
        OAuthClientMetadata(client_name="toolcrib", redirect_uris=uris, scope=auth.scope or None),
        _Nowhere(),
        redirect,
        callback,
        auth.client_metadata_url or None,
    )
    if auth.client_id:
        provider.known = OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            redirect_uris=uris,
            token_endpoint_auth_method=None if auth.client_secret else "none",
        )
    return provider


def _read(model: type[Model], kept: Any) -> Model | None:
    try:
        return model.model_validate(dict(kept)) if kept else None
    except ValidationError:
        return None  # kept by another version: it is found out again


def _written(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(mode="json", exclude_none=True)
