"""Whose tokens: the server, its declaration, and the store that holds them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcrib.sources.mcp.auth.declared import AuthorizationCode, ClientCredentials
from toolcrib.sources.mcp.auth.file_store import FileStore
from toolcrib.sources.mcp.auth.grant import TokenKey
from toolcrib.sources.mcp.auth.keyring_store import KeyringStore, usable_keyring
from toolcrib.sources.mcp.auth.private_files import state_directory
from toolcrib.sources.mcp.auth.store import MemoryStore, TokenStore

__all__ = ["Account", "account_of", "default_store", "needs_login"]


@dataclass(frozen=True, slots=True)
class Account:
    """With which server, by which declaration, and where its tokens are. `locks` is the directory
    of the lock files, None where no other process has these tokens."""

    name: str
    url: str
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


def needs_login(name: str) -> str:
    return f"needs login: run toolcrib login FILE {shlex.quote(name)}"


_MACHINES: Final = MemoryStore()
"""Tokens of clients that get new ones unasked, shared by the connections of this process."""


def default_store() -> TokenStore:
    """The keyring of the system where there is a real one, else the file in the user's state."""
    keyring = usable_keyring()
    return FileStore() if keyring is None else KeyringStore(keyring)


def account_of(name: str, url: str, auth: ClientCredentials | AuthorizationCode) -> Account:
    """Where the tokens of `auth` for the server at `url` are."""
    if auth.store is not None:
        return Account(name, url, auth, auth.store, state_directory())
    if isinstance(auth, ClientCredentials):
        return Account(name, url, auth, _MACHINES, None)
    return Account(name, url, auth, default_store(), state_directory())
