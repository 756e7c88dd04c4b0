"""The OAuth credential of one connection: when a token is taken from the store, when it is renewed,
when somebody must log in. How OAuth goes is the SDK's (`provider`, `exchange`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

import anyio
import httpx2
from mcp.client.auth.utils import union_scopes

from toolcrib.sources.mcp.auth.declared import AuthorizationCode
from toolcrib.sources.mcp.auth.issued import is_spent, note, note_refused, refused_at
from toolcrib.sources.mcp.auth.oauth.account import Account
from toolcrib.sources.mcp.auth.oauth.challenge import is_worth_renewing, wanted_scopes
from toolcrib.sources.mcp.auth.oauth.exchange import authorize, refresh
from toolcrib.sources.mcp.auth.oauth.fault import AuthFault, NoVerdict
from toolcrib.sources.mcp.auth.oauth.provider import Provider
from toolcrib.sources.mcp.auth.stores.grant import Grant
from toolcrib.sources.mcp.auth.stores.locks import LOGIN, PATIENCE, in_turn

__all__ = ["OAuthCredential"]

logger = logging.getLogger("toolcrib.mcp")


class OAuthCredential:
    """See `Credential`. Tokens are read from the store when the connection begins and whenever one
    was refused, so that a login elsewhere is noticed; they are only replaced by newer ones.
    `waiting` is entered while somebody is asked."""

    def __init__(
        self,
        account: Account,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._account = account
        self._waiting = waiting if account.asks_somebody else nullcontext
        self._grant: Grant | None = None
        self._is_read = False
        self._asked = account.auth.scope
        self.problem = ""
        self.is_final = False

    async def token(self, request: httpx2.Request) -> str | None:
        if not self._is_read:
            self._adopt(await self._account.held())
            self._is_read = True
        grant = self._grant
        if grant is None:
            return None
        if not (grant.is_expired() and _can_refresh(grant)):
            return grant.access_token
        # Refreshed or not, what there is is sent: whether it is of use is the server's to say.
        fresh = await self._in_turn(grant.access_token, lambda held: self._refreshed(request, held))
        return fresh or grant.access_token

    async def renewed(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        if challenge.status_code == 403:
            return await self._widened(request, challenge, used)
        held = await self._account.held()
        if _is_other(held, used):
            return self._adopt(held)
        if held is not None and not is_worth_renewing(refused_at(held.access_token)):
            self.problem = self._hopeless
            return None
        if self.is_final:
            return None
        if not (_can_refresh(held) or self._account.gets_tokens_unasked):
            self.problem = self._account.needs_login
            return None

        async def renew(held: Grant | None) -> str | None:
            token = await self._refreshed(request, held)
            if token is None and self._account.gets_tokens_unasked and not self.is_final:
                return await self._granted(request, challenge, held)
            return token

        return await self._in_turn(used, renew)

    def taken(self) -> None:
        self.problem = ""

    def refused(self) -> None:
        self.problem = self._hopeless
        if self._grant is not None:
            note_refused(self._grant.access_token)

    @property
    def _hopeless(self) -> str:
        if isinstance(self._account.auth, AuthorizationCode):
            return self._account.needs_login
        return "it refuses a token that was issued just now"

    async def _in_turn(
        self, used: str | None, renew: Callable[[Grant | None], Awaitable[str | None]]
    ) -> str | None:
        """What `renew` makes of the grant that is held when its turn has come; the token that
        somebody else got meanwhile, where there is one."""
        account = self._account
        patience = LOGIN if account.asks_somebody else PATIENCE
        async with in_turn(account.key, account.locks, patience):
            held = await self._account.held()
            if _is_other(held, used):
                return self._adopt(held)
            try:
                return await renew(held)
            except NoVerdict as fault:
                self.problem = str(fault)
                return None

    async def _refreshed(self, request: httpx2.Request, held: Grant | None) -> str | None:
        """A token for the refresh token, None where there is none that is of use. Raises
        `NoVerdict`."""
        if held is None or not _can_refresh(held):
            return None
        try:
            with anyio.CancelScope(shield=True):
                # Bounded. Given up half-way, the old tokens are spent and the new ones are lost.
                provider = await self._account.provider(held)
                await refresh(provider, request)
                return await self._keep(provider, held)
        except NoVerdict:
            raise
        except AuthFault as fault:
            account = self._account
            self.problem = str(fault) if account.gets_tokens_unasked else account.needs_login
            await account.give_up(held, fault.code)
        return None

    async def _granted(
        self, request: httpx2.Request, challenge: httpx2.Response, held: Grant | None
    ) -> str | None:
        try:
            return await self._authorized(request, challenge, held)
        except AuthFault as fault:
            self.problem = str(fault)
            self.is_final = self._account.asks_somebody and not isinstance(fault, NoVerdict)
            return None

    async def _widened(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        """A token with the scopes that a 403 asks for, each of which is asked for once."""
        wanted = wanted_scopes(challenge, self._asked)
        if wanted and not self._account.gets_tokens_unasked:
            self._asked = " ".join((self._asked, *sorted(wanted)))
            said = "MCP server %r wants scope %r: add it to its auth, and log in again"
            logger.warning(said, self._account.name, " ".join(sorted(wanted)))
            return None
        if not wanted:
            return None

        async def widen(held: Grant | None) -> str | None:
            self._asked = " ".join((self._asked, *sorted(wanted)))
            try:
                return await self._authorized(request, challenge, held)
            except AuthFault as fault:
                # The token is as good as before, and the 403 stands.
                logger.debug("MCP server %r: no further scope: %s", self._account.name, fault)
                return None

        return await self._in_turn(used, widen)

    async def _authorized(
        self, request: httpx2.Request, challenge: httpx2.Response, held: Grant | None
    ) -> str | None:
        provider = await self._account.provider(held)
        provider.widens = challenge.status_code == 403
        with self._waiting():
            await authorize(provider, request, challenge)
        return await self._keep(provider, held)

    async def _keep(self, provider: Provider, held: Grant | None) -> str | None:
        if (grant := provider.granted) is not None:
            await self._account.keep(grant, held)
        return self._adopt(grant)

    def _adopt(self, grant: Grant | None) -> str | None:
        self._grant = grant
        if grant is None:
            return None
        note(grant.secrets)
        self._asked = union_scopes(self._asked, grant.scope) or ""
        return grant.access_token


def _can_refresh(grant: Grant | None) -> bool:
    return bool(grant and grant.refresh_token and not is_spent(grant.refresh_token))


def _is_other(grant: Grant | None, used: str | None) -> bool:
    return grant is not None and grant.access_token != used and not grant.is_expired()
