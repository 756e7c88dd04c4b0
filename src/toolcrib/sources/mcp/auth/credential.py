"""What one connection shows for itself, and how that is renewed: the contract, and plain tokens."""

from __future__ import annotations

import inspect
import logging
from traceback import extract_tb
from typing import Protocol

import anyio
import httpx2

from toolcrib.sources.mcp.auth.declared import Bearer, is_sendable
from toolcrib.sources.mcp.auth.issued import note

__all__ = ["BearerCredential", "Credential"]

logger = logging.getLogger("toolcrib.mcp")


class Credential(Protocol):
    """The credential of one connection. `problem` says why there is none that the server takes, in
    words that can follow "MCP server 'x' is not available: "; empty: no retry can mend that.
    `is_final`: somebody was asked and it came to nothing, they are not to be asked on and on."""

    problem: str
    is_final: bool

    async def token(self, request: httpx2.Request) -> str | None:
        """The token for `request`; None: none yet."""
        ...

    async def renewed(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        """A token to try instead of `used`, which `challenge` refused; None: the refusal stands."""
        ...

    def taken(self) -> None:
        """The server accepted the token."""
        ...

    def refused(self) -> None:
        """The server refused a token that was just renewed."""
        ...


class BearerCredential:
    """A token somebody else looks after: read when the connection begins, and when it is refused
    once more."""

    def __init__(self, declared: Bearer) -> None:
        self._declared = declared
        self._token: str | None = None
        self._is_read = False
        self._reading = anyio.Lock()
        self.problem = ""
        self.is_final = False

    async def token(self, request: httpx2.Request) -> str | None:
        async with self._reading:
            if not self._is_read:
                self._token, self._is_read = await self._read(), True
            return self._token

    async def renewed(
        self, request: httpx2.Request, challenge: httpx2.Response, used: str | None
    ) -> str | None:
        if challenge.status_code != 401 or isinstance(self._declared.token, str):
            return None
        async with self._reading:
            if self._token == used:  # else another request has read it already
                self._token = await self._read()
        if self._token is not None and self._token != used:
            return self._token
        self.refused()
        return None

    def taken(self) -> None:
        self.problem = ""

    def refused(self) -> None:
        self.problem = self.problem or "its bearer token is refused: a new one is needed"

    async def _read(self) -> str | None:
        given = self._declared.token
        if isinstance(given, str):
            return given
        try:
            found = given()
            token = _stripped(await found if inspect.isawaitable(found) else found)
        except Exception as error:
            # Where, not what: its words may hold what it asked with.
            where = extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            said = "a provider of bearer tokens failed: %s at %s:%s"
            logger.error(said, kind, where.filename, where.lineno)
            self.problem = f"its provider of tokens failed: {kind}"
            return None
        if token is None:
            self.problem = "its provider of tokens gave none that a header can hold"
            return None
        note((token,))
        return token


def _stripped(found: object) -> str | None:
    """A token as a command or a file gives it, without the line break at its end."""
    token = found.strip() if isinstance(found, str) else ""
    return token if is_sendable(token) else None
