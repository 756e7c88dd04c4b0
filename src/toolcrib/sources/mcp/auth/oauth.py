"""The OAuth credential of one connection: when a token is taken from the store, when it is renewed,
when somebody must log in. How OAuth goes is the SDK's (`provider`, `exchange`).
"""

from __future__ import annotations

import logging

import anyio
import httpx2
from mcp.client.auth.utils import union_scopes

from toolcrib.errors import ToolcribError
from toolcrib.sources.mcp.auth.account import Account, needs_login
from toolcrib.sources.mcp.auth.challenge import (
    is_expired,
    is_worth_renewing,
    wanted_scopes,
)
from toolcrib.sources.mcp.auth.declared import AuthorizationCode
from toolcrib.sources.mcp.auth.exchange import authorize, refresh
from toolcrib.sources.mcp.auth.fault import AuthFault, Unreachable
from toolcrib.sources.mcp.auth.grant import Grant
from toolcrib.sources.mcp.auth.issued import note, note_refused, refused_at
from toolcrib.sources.mcp.auth.provider import Provider, provider_for
from toolcrib.sources.mcp.auth.turns import in_turn

__all__ = ["OAuthCredential"]

logger = logging.getLogger("toolcrib.mcp")


class OAuthCredential:
    """See `Credential`. Tokens are read from the store when the connection begins and whenever one
    was refused, so that a login elsewhere is noticed; they are only replaced by newer ones."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._grant: Grant | None = None
        self._is_read = False
        self._dead = ""
        self._asked = account.auth.scope
        self.problem = ""
        self.is_final = False

    async def token(self) -> str | None:
        if not self._is_read:
            self._adopt(await self._account.store.get(self._account.key))
            self._is_read = True
        grant = self._grant
        if grant is not None and is_expired(grant):
            return await self._refreshed_early(grant)
        return None if grant is None else grant.access_token

    async def renewed(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        if challenge.status_code == 403:
            return await self._widened(request, challenge, used)
        held = await self._account.store.get(self._account.key)
        if self._is_other(held, used):
            return self._adopt(held)
        if held is not None and not is_worth_renewing(refused_at(held.access_token)):
            self.problem = self._hopeless
            return None
        if self.is_final:
            return None
        if not (self._can_refresh(held) or self._account.gets_tokens_unasked):
            self.problem = needs_login(self._account.name)
            return None
        return await self._renewed_in_turn(request, challenge, used)

    def taken(self) -> None:
        self.problem = ""

    def refused(self) -> None:
        self.problem = self._hopeless
        if self._grant is not None:
            note_refused(self._grant.access_token)

    @property
    def _hopeless(self) -> str:
        if isinstance(self._account.auth, AuthorizationCode):
            return needs_login(self._account.name)
        return "it refuses a token that was issued just now"

    async def login(self, request: httpx2.Request, challenge: httpx2.Response) -> None:
        """New tokens from whoever can be asked, whatever is held. Raises `AuthFault`."""
        account = self._account
        provider = await self._provider(await account.store.get(account.key))
        await authorize(provider, request, challenge)
        async with in_turn(account.key, account.locks):  # not under the hands of who renews them
            token = await self._keep(provider)
            kept = await account.store.get(account.key)
        if kept is None or kept.access_token != token:
            raise AuthFault("its tokens cannot be kept")

    async def _renewed_in_turn(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        account = self._account
        async with in_turn(account.key, account.locks):
            held = await account.store.get(account.key)
            if self._is_other(held, used):
                return self._adopt(held)  # somebody else renewed it meanwhile
            try:
                if held is not None and self._can_refresh(held):
                    return await self._refreshed(request, held)
            except Unreachable as fault:
                self.problem = str(fault)
                return None
            except AuthFault as fault:
                self._gone(held, fault)
            if account.gets_tokens_unasked:
                return await self._granted(request, challenge, held)
        return None

    async def _granted(
        self, request: httpx2.Request, challenge: httpx2.Response, held: Grant | None
    ) -> str | None:
        try:
            return await self._authorized(request, challenge, held)
        except AuthFault as fault:
            self.problem = str(fault)
            self.is_final = self._account.asks_somebody and not isinstance(fault, Unreachable)
            return None

    async def _refreshed_early(self, grant: Grant) -> str | None:
        """The token in place of one whose time is over. None where it cannot be renewed: the
        server's challenge then says what is needed."""
        account = self._account
        if not self._can_refresh(grant):
            return None
        async with in_turn(account.key, account.locks):
            held = await account.store.get(account.key)
            if self._is_other(held, grant.access_token):
                return self._adopt(held)
            try:
                request = httpx2.Request("POST", account.url)
                return await self._refreshed(request, held or grant)
            except Unreachable as fault:
                self.problem = str(fault)
            except AuthFault as fault:
                self._gone(held, fault)
        return None

    async def _widened(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        """A token with the scopes that a 403 asks for, each of which is asked for once."""
        account, wanted = self._account, wanted_scopes(challenge, self._asked)
        if not wanted or not account.gets_tokens_unasked:
            return None
        async with in_turn(account.key, account.locks):
            held = await account.store.get(account.key)
            if self._is_other(held, used):
                return self._adopt(held)
            self._asked = " ".join((self._asked, *sorted(wanted)))
            try:
                return await self._authorized(request, challenge, held)
            except AuthFault as fault:
                # The token is as good as before, and the 403 stands.
                logger.debug("MCP server %r: no further scope: %s", account.name, fault)
        return None

    async def _refreshed(self, request: httpx2.Request, held: Grant) -> str | None:
        with anyio.CancelScope(shield=True):
            # Bounded. Given up half-way, the old tokens are spent and the new ones are lost.
            provider = await self._provider(held)
            await refresh(provider, request)
            return await self._keep(provider)
        return None

    async def _authorized(
        self, request: httpx2.Request, challenge: httpx2.Response, held: Grant | None
    ) -> str | None:
        provider = await self._provider(held)
        provider.widens = challenge.status_code == 403
        await authorize(provider, request, challenge)
        return await self._keep(provider)

    async def _provider(self, held: Grant | None) -> Provider:
        provider = provider_for(self._account.url, self._account.auth)
        await provider.restore(held)
        return provider

    async def _keep(self, provider: Provider) -> str | None:
        grant = provider.granted
        if grant is not None:
            try:
                await self._account.store.set(self._account.key, grant)
            except ToolcribError as error:  # they are good all the same
                logger.warning("MCP server %r: %s", self._account.name, error)
        return self._adopt(grant)

    def _adopt(self, grant: Grant | None) -> str | None:
        self._grant = grant
        if grant is None:
            return None
        note(grant.secrets)
        self._asked = union_scopes(self._asked, grant.scope) or ""
        return grant.access_token

    def _gone(self, held: Grant | None, fault: AuthFault) -> None:
        """The refresh token is of no use any more: it is not sent again."""
        self._dead = (held and held.refresh_token) or ""
        unasked = self._account.gets_tokens_unasked
        self.problem = str(fault) if unasked else needs_login(self._account.name)

    def _can_refresh(self, grant: Grant | None) -> bool:
        return bool(grant and grant.refresh_token and grant.refresh_token != self._dead)

    @staticmethod
    def _is_other(grant: Grant | None, used: str | None) -> bool:
        return grant is not None and grant.access_token != used and not is_expired(grant)
