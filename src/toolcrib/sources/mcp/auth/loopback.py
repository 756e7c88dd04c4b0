"""Where a browser comes back to after a login: one address of this machine, for one answer.

Takes the first request that carries the right state, refuses every other, and tells the page
nothing of what it got.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from toolcrib.errors import NotAvailable

__all__ = ["Loopback", "listening"]

REQUEST: Final = 10.0
"""Seconds a browser has to send its request."""

LONGEST: Final = 16 * 1024

_HEAD = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n\r\n"
)
_DONE = "200 OK", "toolcrib has what it needs. You can close this page."
_DENIED = "200 OK", "The login was not granted. You can close this page."
_FOREIGN = "400 Bad Request", "This does not belong to the login that toolcrib waits for."
_UNKNOWN = "404 Not Found", "Nothing is here."


class Loopback:
    """Waits on `port` of 127.0.0.1 for the answer to one login."""

    def __init__(self) -> None:
        self.port = 0
        self._state = ""
        self._found = ""
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer_to(self, url: str) -> str:
        """The address with which the browser comes back from the authorization at `url`."""
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[-1]
        return await asyncio.shield(self._answer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request; every connection carries one."""
        try:
            async with asyncio.timeout(REQUEST):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._taken(head)
                body = (text + "\n").encode()
                writer.write(_HEAD.format(status=status, length=len(body)).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, TimeoutError):
            pass  # it was no browser of ours, or it left
        finally:
            if self._found and not self._answer.done():
                self._answer.set_result(self._found)  # now that the page is on its way
            writer.close()

    def _taken(self, head: bytes) -> tuple[str, str]:
        verb, _, rest = head.decode("latin-1").partition(" ")
        try:
            target = urlsplit(rest.partition(" ")[0])
        except ValueError:
            return _UNKNOWN
        if verb != "GET" or target.path != "/callback":
            return _UNKNOWN
        query = parse_qs(target.query)
        state = query.get("state", [""])[0]
        is_right = secrets.compare_digest(state.encode(), self._state.encode())
        if not (self._state and is_right) or self._found:
            return _FOREIGN
        self._found = f"http://127.0.0.1:{self.port}/callback?{target.query}"
        return _DONE if "code" in query else _DENIED


@asynccontextmanager
async def listening(*ports: int) -> AsyncGenerator[Loopback]:
    """A `Loopback` on the first of `ports` that is free (0: any). Raises `NotAvailable`."""
    loopback = Loopback()
    server: asyncio.Server | None = None
    for port in ports:
        try:
            server = await asyncio.start_server(loopback.serve, "127.0.0.1", port, limit=LONGEST)
            break
        except OSError:
            continue
    if server is None:
        raise NotAvailable(f"port {ports[-1]} of 127.0.0.1 is taken: name another")
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
