"""Servers that want credentials as tests declare them, and people that log in there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from servers.oauth import MACHINE, OAuthPeer, Seen, method_of
from servers.support import BOUND, NO_WAIT, Host, hosting, source
from toolcrib.content import ToolResult
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.auth import AuthorizationCode, ClientCredentials, MemoryStore
from toolcrib.sources.mcp.login import login

HINT = "needs login: run toolcrib login FILE web"


def web(oauth: OAuthPeer, auth: Any) -> McpServer:
    return McpServer("web", "http", url=oauth.url, auth=auth, liveness=0.0, settings=NO_WAIT)


def machine(oauth: OAuthPeer, secret: str = MACHINE[1]) -> McpServer:
    return web(oauth, ClientCredentials(MACHINE[0], secret, oauth.issuer, store=MemoryStore()))


def of_a_person(oauth: OAuthPeer) -> McpServer:
    return web(oauth, AuthorizationCode(store=MemoryStore()))


async def browse(url: str) -> httpx2.Response:
    """What a browser does for somebody who grants everything."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=BOUND) as browser:
        return await browser.get(url)


async def log_in(server: McpServer) -> None:
    browsing: list[asyncio.Task[httpx2.Response]] = []

    async def show(url: str) -> None:
        browsing.append(asyncio.create_task(browse(url)))

    async with asyncio.timeout(BOUND):
        await login(server, show)
        page = await browsing[0]
    assert page.status_code == 200 and "code" not in page.text


@asynccontextmanager
async def logged_in(oauth: OAuthPeer) -> AsyncIterator[Host]:
    """A source whose person logged in before."""
    server = of_a_person(oauth)
    await log_in(server)
    async with hosting(source(server)) as host:
        assert host.health("web").state == "ready"
        yield host


async def add(host: Host) -> ToolResult:
    return await host.call("web__add", a=2, b=3)


def refuse_calls(status: int, *numbers: int, **headers: str) -> Any:
    """Answers the calls of these numbers (from 1; none: every one) with an empty body."""
    asked = 0

    def gate(seen: Seen) -> Any:
        nonlocal asked
        if method_of(seen) != "tools/call":
            return None
        asked += 1
        return (status, headers, b"") if not numbers or asked in numbers else None

    return gate


def said(logs: pytest.LogCaptureFixture) -> str:
    formatter = logging.Formatter("%(name)s %(message)s")
    return "\n".join(formatter.format(record) for record in logs.records)
