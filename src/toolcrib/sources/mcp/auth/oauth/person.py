"""The authorization code with the SDK: somebody is sent to log in, and comes back with a code."""

from __future__ import annotations

import asyncio
import time
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
)
from pydantic import AnyUrl

from toolcrib.sources.mcp.auth.declared import AuthorizationCode, Person
from toolcrib.sources.mcp.auth.oauth.fault import AuthFault, error_code
from toolcrib.sources.mcp.auth.oauth.provider import Nowhere, Provider
from toolcrib.sources.mcp.auth.stores.grant import Grant

__all__ = ["PATIENCE", "person"]

PATIENCE: Final = 300.0
"""Seconds somebody has to log in."""


def person(url: str, auth: AuthorizationCode) -> Provider:
    """A provider for one connection to the server at `url`."""
    uris = [AnyUrl(f"http://127.0.0.1:{auth.redirect_port}/callback")]
    client = OAuthClientMetadata(
        client_name="toolcrib", redirect_uris=uris, scope=auth.scope or None
    )
    provider = _CodeProvider(
        url, client, Nowhere(), client_metadata_url=auth.client_metadata_url or None
    )
    if auth.person is not None:
        provider.asks(auth.person)
    if auth.client_id:
        provider.known = OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            redirect_uris=uris,
            token_endpoint_auth_method=None if auth.client_secret else "none",
        )
    return provider


class _CodeProvider(Provider):
    """Authorization code with PKCE; `known` is a client that is registered already."""

    known: OAuthClientInformationFull | None = None
    _asked = ""

    def asks(self, person: Person) -> None:
        """From now on `person` is who can be asked. The SDK's two handlers are one question."""

        async def redirect(url: str) -> None:
            self._asked = self._mended(url)

        async def callback() -> AuthorizationCodeResult:
            try:
                async with asyncio.timeout(PATIENCE):
                    return self._returned(await person(self._asked))
            except TimeoutError:
                raise AuthFault(
                    f"nobody logged in within {PATIENCE:g} s (if the page did not know this "
                    "client, log out first: then it registers again)"
                ) from None

        self.context.redirect_handler, self.context.callback_handler = redirect, callback

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.client_info = self.known

    async def restore(self, grant: Grant | None) -> None:
        await super().restore(grant)
        self._choose_method()
        client = self.context.client_info
        if self.context.redirect_handler is None or client is None or client is self.known:
            return
        # It registered itself with another port, or for a time that is over: it must do so again
        # before somebody is sent there.
        is_other = client.redirect_uris != self.context.client_metadata.redirect_uris
        if is_other or 0 < (client.client_secret_expires_at or 0) <= time.time():
            self.context.client_info = None

    async def _perform_authorization(self) -> httpx2.Request:
        self._choose_method()
        if (issuer := self.context.oauth_metadata) is not None:
            if "S256" not in (issuer.code_challenge_methods_supported or ()):
                raise AuthFault("its authorization server does not say that it checks PKCE (S256)")
            self.check_address(str(issuer.authorization_endpoint))
        return await super()._perform_authorization()

    def _choose_method(self) -> None:
        """How a declared secret is sent: as the server takes it, basic where it does not say."""
        client, issuer = self.known, self.context.oauth_metadata
        if client is not None and client.client_secret:
            methods = (issuer and issuer.token_endpoint_auth_methods_supported) or ()
            post = "client_secret_post" in methods and "client_secret_basic" not in methods
            client.token_endpoint_auth_method = f"client_secret_{'post' if post else 'basic'}"

    def _mended(self, url: str) -> str:
        """The address with one query: an endpoint may have its own (RFC 6749 §3.1), the SDK adds
        another."""
        issuer = self.context.oauth_metadata
        endpoint = "" if issuer is None else str(issuer.authorization_endpoint)
        return url.replace(f"{endpoint}?", f"{endpoint}&", 1) if "?" in endpoint else url

    def _returned(self, url: str) -> AuthorizationCodeResult:
        """What the redirect to `url` brought back."""
        asked, back = parse_qs(urlsplit(self._asked).query), parse_qs(urlsplit(url).query)
        values = {name: found[0] for name, found in back.items()}
        if values.get("state") != asked["state"][-1]:
            raise AuthFault("the answer belongs to another login (its state differs)")
        # Before anything of it is told or acted on: an error may come from elsewhere, too.
        validate_authorization_response_iss(values.get("iss"), self.context.oauth_metadata)
        if "error" in values or "code" not in values:
            raise AuthFault("it was not granted", error_code(values.get("error")))
        return AuthorizationCodeResult(
            code=values["code"], state=values["state"], iss=values.get("iss")
        )
