"""The short way to declare one server, with `${env:X}` taken from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from toolcrib.frozen import NOTHING
from toolcrib.interpolate import expand
from toolcrib.sources.mcp.auth import Auth
from toolcrib.sources.mcp.overrides import Overrides
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.sources.mcp.source import McpSource

__all__ = ["http", "stdio"]

T = TypeVar("T")


def stdio(
    name: str,
    command: str,
    *args: str,
    env: Mapping[str, str] = NOTHING,
    cwd: str = "",
    prefix: str | None = None,
    resources: bool = False,
    prompts: bool = False,
    per_session: bool = False,
    required: bool = False,
    liveness: float | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    rename: Mapping[str, str] = NOTHING,
    descriptions: Mapping[str, str] = NOTHING,
    bounds: ServerSettings = ServerSettings(),
    **settings: Any,
) -> McpSource:
    """A source of one MCP server that is started as `command args…` and spoken to over its pipes.

    `include`, `exclude`, `rename` and `descriptions` are those of `Overrides`; `bounds` are the
    times and numbers of this server (`bounds=ServerSettings(call_timeout=60.0)`); further keywords
    are those of `McpSource`, such as `first_backoff`. The rest is as in `McpServer`, with
    `${env:X}` in `args` and `env` expanded here, once. Raises `InvalidDefinition`, and
    `ConfigurationError` for a variable that is not set.
    """
    server = McpServer(
        name,
        "stdio",
        command=command,
        args=_expanded(args),
        env=_expanded(env),
        cwd=cwd,
        prefix=prefix,
        resources=resources,
        prompts=prompts,
        per_session=per_session,
        required=required,
        liveness=liveness,
        tools=Overrides(include, exclude, rename, descriptions),
        settings=bounds,
    )
    return McpSource([server], name=name, **settings)


def http(
    name: str,
    url: str,
    *,
    headers: Mapping[str, str] = NOTHING,
    auth: Auth | None = None,
    http_timeout: float | None = None,
    prefix: str | None = None,
    resources: bool = False,
    prompts: bool = False,
    per_session: bool = False,
    required: bool = False,
    liveness: float | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    rename: Mapping[str, str] = NOTHING,
    descriptions: Mapping[str, str] = NOTHING,
    bounds: ServerSettings = ServerSettings(),
    **settings: Any,
) -> McpSource:
    """A source of one MCP server at `url` (Streamable HTTP). `${env:X}` in `url` and `headers` is
    expanded here, once. Everything else is as in `stdio`."""
    server = McpServer(
        name,
        "http",
        url=_expanded(url),
        headers=_expanded(headers),
        auth=auth,
        http_timeout=http_timeout,
        prefix=prefix,
        resources=resources,
        prompts=prompts,
        per_session=per_session,
        required=required,
        liveness=liveness,
        tools=Overrides(include, exclude, rename, descriptions),
        settings=bounds,
    )
    return McpSource([server], name=name, **settings)


def _expanded(given: T) -> T:
    """`given` with the references in its texts replaced. What is no text is left to `McpServer`,
    which refuses it."""
    found: object = given
    if isinstance(given, str):
        found = expand(given, os.environ)
    elif isinstance(given, tuple):
        found = tuple(map(_expanded, cast("tuple[object, ...]", given)))
    elif isinstance(given, Mapping):
        values = cast("Mapping[object, object]", given)
        found = {key: _expanded(value) for key, value in values.items()}
    return cast("T", found)
