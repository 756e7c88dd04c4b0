"""`toolcrib login` and `logout`: a person's tokens for one MCP server of a file."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from toolcrib.cli.exits import Exit
from toolcrib.deploy import Deployment, load
from toolcrib.deploy.mcp import McpSettings
from toolcrib.errors import NotFound, ToolcribError
from toolcrib.names import nearest
from toolcrib.registry import Registry

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer

__all__ = ["Opens", "login", "logout", "no_browser", "the_browser"]

Opens: TypeAlias = Callable[[str], object]
"""Opens an address for a person, or does nothing: it is printed anyway."""


def the_browser(url: str) -> object:
    return webbrowser.open(url)


def no_browser(url: str) -> object:
    return None


async def login(file: Path, name: str, source: str | None, opens: Opens, port: int) -> Exit:
    """Logs in, connects once, and says what is there."""
    from toolcrib.sources.mcp.login import login as log_in

    server = _server(load(file), name, source)

    async def show(url: str) -> None:
        _say(f"Log in here, if no browser opens:\n\n{url}\n")
        # Some browsers are programs that return when they are closed: nobody waits for those.
        threading.Thread(target=opens, args=(url,), daemon=True).start()

    await log_in(server, show, port=port)
    return await _connected(server)


async def logout(file: Path, name: str, source: str | None) -> Exit:
    """Forgets the tokens; fine where there are none."""
    from toolcrib.sources.mcp.login import logout as log_out

    had_any = await log_out(_server(load(file), name, source))
    _say(f"the tokens for {name!r} are forgotten" if had_any else f"no tokens for {name!r}")
    return Exit.OK


async def _connected(server: McpServer) -> Exit:
    """Whether the new tokens are of use: one connection, as a source makes it."""
    from toolcrib.sources.mcp import McpSource

    source, registry = McpSource([replace(server, required=True)]), Registry()
    try:
        await source.open(lambda tools: registry.publish("login", tools))
        health = source.health()[0]
    except ToolcribError as error:
        print(f"logged in, but: {error}", file=sys.stderr)
        return Exit.FAILED
    finally:
        await source.close()
        registry.close()
    if health.state != "ready":
        print(f"logged in, but {server.name!r} is not ready: {health.reason}", file=sys.stderr)
        return Exit.FAILED
    tools = "tool" if health.tools == 1 else "tools"
    _say(f"logged in to {server.name!r}: {health.tools} {tools}")
    return Exit.OK


def _server(deployment: Deployment, name: str, source: str | None) -> McpServer:
    """The server of that name. Raises `NotFound`, also where several sources have one."""
    found = [(own, one) for own, one in _servers(deployment) if source in (None, own)]
    fitting = [(own, one) for own, one in found if one.name == name]
    if not fitting:
        near = nearest(name, [one.name for _, one in found], 1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise NotFound(f"no MCP server {name!r} in {deployment.file}{hint}")
    if len(fitting) > 1:
        several = ", ".join(own for own, _ in fitting)
        raise NotFound(f"several sources have a server {name!r}, choose with --source: {several}")
    return fitting[0][1]


def _servers(deployment: Deployment) -> Iterator[tuple[str, McpServer]]:
    for resource in deployment.resources:
        if isinstance(resource.settings, McpSettings):
            for server in resource.settings.servers:
                yield resource.name, server


def _say(text: str) -> None:
    print(text, file=sys.__stdout__, flush=True)
