"""Whose tokens: the server, its declaration, and the store that holds them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from toolcrib.sources.mcp.auth.declared import AuthorizationCode, ClientCredentials
from toolcrib.sources.mcp.auth.file_store import FileStore
from toolcrib.sources.mcp.auth.grant import TokenKey
from toolcrib.sources.mcp.auth.keyring_store import KeyringStore, usable_keyring
from toolcrib.sources.mcp.auth.machine import machine
from toolcrib.sources.mcp.auth.person import person
from toolcrib.sources.mcp.auth.private_files import state_directory
from toolcrib.sources.mcp.auth.provider import Provider
from toolcrib.sources.mcp.auth.store import MemoryStore, TokenStore

__all__ = ["Account", "account_of", "default_store"]


@dataclass(frozen=True, slots=True)
class Account:
    """With which server, by which declaration, and where its tokens are. `locks` is the directory
    of the lock files, None where no other process has these tokens."""

    name: str
    url: str = field(repr=False)
    auth: ClientCredentials | AuthorizationCode
    store: TokenStore
    locks: Path | None

    @property
    def key(self) -> TokenKey:
        auth = self.auth
        if isinstance(auth, ClientCredentials):
            return TokenKey(self.url, f"{auth.client_id} {auth.issuer}".strip(), auth.scope)
        return TokenKey(self.url, auth.client_id or auth.client_metadata_url, auth.scope)

    @property
    def gets_tokens_unasked(self) -> bool:
        """Whether a token can be had now, by the client itself or from somebody it can ask."""
        return isinstance(self.auth, ClientCredentials) or self.asks_somebody

    @property
    def asks_somebody(self) -> bool:
        return isinstance(self.auth, AuthorizationCode) and self.auth.person is not None

    @property
    def registers_itself(self) -> bool:
        auth = self.auth
        return isinstance(auth, AuthorizationCode) and not auth.client_id

    @property
    def needs_login(self) -> str:
        return f"needs login: run toolcrib login FILE {shlex.quote(self.name)}"

    def provider(self) -> Provider:
        """What speaks OAuth for it, once."""
        auth, url = self.auth, self.url
        made = machine(url, auth) if isinstance(auth, ClientCredentials) else person(url, auth)
        made.declared_scope = auth.scope
        return made


@lru_cache(maxsize=256)
def _shared(auth: ClientCredentials) -> MemoryStore:
    """The tokens of a client that gets new ones unasked, shared by its connections: by those only
    that declare the same secret."""
    return MemoryStore()


def default_store() -> TokenStore:
    """The keyring of the system where there is a real one, else the file in the user's state."""
    keyring = usable_keyring()
    return FileStore() if keyring is None else KeyringStore(keyring)


def account_of(name: str, url: str, auth: ClientCredentials | AuthorizationCode) -> Account:
    """Where the tokens of `auth` for the server at `url` are. Raises `ConfigurationError`."""
    if auth.store is not None:
        return Account(name, url, auth, auth.store, state_directory())
    if isinstance(auth, ClientCredentials):
        return Account(name, url, auth, _shared(auth), None)
    return Account(name, url, auth, default_store(), state_directory())
