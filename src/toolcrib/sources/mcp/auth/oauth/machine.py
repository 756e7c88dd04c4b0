"""Client credentials with the SDK: the client itself is who asks, with a secret or a key."""

from __future__ import annotations

import warnings
from typing import Any

from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.exceptions import MCPDeprecationWarning

from toolcrib.sources.mcp.auth.declared import ClientCredentials
from toolcrib.sources.mcp.auth.oauth.provider import Nowhere, Provider

__all__ = ["machine"]


class _SecretProvider(Provider, ClientCredentialsOAuthProvider):
    """With a secret."""


class _KeyProvider(Provider, PrivateKeyJWTOAuthProvider):
    """With a signed assertion."""


def machine(url: str, auth: ClientCredentials) -> Provider:
    """A provider for one connection to the server at `url`."""
    more: dict[str, Any] = {"scope": auth.scope or None, "issuer": auth.issuer or None}
    with warnings.catch_warnings():
        # That the SDK will want an issuer is said to users by our own documentation.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        if auth.method == "private_key_jwt":
            signed = SignedJWTParameters(
                issuer=auth.client_id,
                subject=auth.client_id,
                signing_key=auth.private_key,
                signing_algorithm=auth.algorithm,
            ).create_assertion_provider()
            return _KeyProvider(url, Nowhere(), auth.client_id, signed, **more)
        more["token_endpoint_auth_method"] = auth.method
        return _SecretProvider(url, Nowhere(), auth.client_id, auth.client_secret, **more)
