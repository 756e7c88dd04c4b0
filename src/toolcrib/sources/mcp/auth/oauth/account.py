"""Whose tokens: the server, its declaration, and the store that holds them.

What a store could not keep is known to this process all the same (`issued`), so that no spent
refresh token is sent again.
"""

from __future__ import annotations

import logging
import shlex
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from toolcrib.errors import ToolcribError
from toolcrib.frozen import NOTHING
from toolcrib.sources.mcp.auth.declared import AuthorizationCode, ClientCredentials
from toolcrib.sources.mcp.auth.issued import note_replaced, note_spent, replaced
from toolcrib.sources.mcp.auth.oauth.machine import machine
from toolcrib.sources.mcp.auth.oauth.person import person
from toolcrib.sources.mcp.auth.oauth.provider import Provider
from toolcrib.sources.mcp.auth.stores.file_store import FileStore
from toolcrib.sources.mcp.auth.stores.grant import Grant, TokenKey
from toolcrib.sources.mcp.auth.stores.keyring_store import KeyringStore, usable_keyring
from toolcrib.sources.mcp.auth.stores.private_files import state_directory
from toolcrib.sources.mcp.auth.stores.store import MemoryStore, TokenStore

__all__ = ["Account", "account_of", "default_store"]

logger = logging.getLogger("toolcrib.mcp")


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
    def needs_login(self) -> str:
        return f"needs login: run toolcrib login FILE {shlex.quote(self.name)}"

    async def provider(self, held: Grant | None) -> Provider:
        """What speaks OAuth for it, once; goes on from what is held."""
        auth, url = self.auth, self.url
        made = machine(url, auth) if isinstance(auth, ClientCredentials) else person(url, auth)
        made.declared_scope = auth.scope
        await made.restore(held)
        return made

    async def held(self) -> Grant | None:
        """The newest tokens there are. Raises `ConfigurationError`."""
        held = await self.store.get(self.key)
        return None if held is None else replaced(held)

    async def keep(self, grant: Grant, held: Grant | None) -> None:
        """Puts `grant` in the place of what was held. One that cannot be kept is good all the
        same."""
        try:
            await self.store.set(self.key, grant)
        except ToolcribError as error:
            logger.warning("MCP server %r: %s", self.name, error)
            if held is not None:
                note_replaced(held, grant)

    async def give_up(self, held: Grant, code: str) -> None:
        """Draws the consequences of a refresh that was refused with an error `code`."""
        if code == "invalid_grant":
            note_spent(held.refresh_token or "")
        if code == "invalid_client" and self._registers_itself:
            # Its registration is forgotten over there. With it, nobody could log in again.
            await self.keep(replace(held, client=NOTHING), None)

    @property
    def _registers_itself(self) -> bool:
        return isinstance(self.auth, AuthorizationCode) and not self.auth.client_id


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
