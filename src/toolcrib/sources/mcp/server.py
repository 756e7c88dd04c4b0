"""What a user declares of one MCP server: how it is reached and how its tools are named.

Checked when it is made; nothing here connects or starts anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from toolcrib.errors import InvalidDefinition
from toolcrib.frozen import NOTHING
from toolcrib.names import namespace
from toolcrib.sources.mcp.auth.declared import Auth, is_sendable, secrets_of
from toolcrib.sources.mcp.auth.issued import issued
from toolcrib.sources.mcp.checks import mapping, number, text, texts
from toolcrib.sources.mcp.overrides import AS_LISTED, Overrides
from toolcrib.sources.mcp.settings import USUAL, ServerSettings

__all__ = ["McpServer", "Transport"]

Transport: TypeAlias = Literal["stdio", "http"]

MASK = "***"
_SHORTEST_SECRET = 6
"""A declared value shorter than this is no secret, and masking it would tear ordinary words."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server.

    `stdio`: `command` with `args` is started in `cwd`; its environment is a short allow-list (PATH,
    HOME, LANG, …) plus `env`. `http`: a Streamable HTTP endpoint at `url`; `headers` go with every
    request; `http_timeout` (seconds, default 30) bounds connecting and sending, not how long an
    answer may take.

    `prefix` is the namespace of the exposed names: None means `<name>__`, `fs` means `fs__`, ""
    means none. `resources` adds the tools list_resources and read_resource. `required` marks a
    server that hosts wait for. `liveness` is seconds between two probes: None takes the source's,
    0.0 turns them off. `tools` decides which of its tools are offered, under which names and in
    which words. `settings` bounds its calls, listings and retries; `prompts` adds the tools
    list_prompts and get_prompt; `per_session` gives each conversation a connection of its own.

    `auth` (http only) is a credential that is fetched, renewed or kept; a fixed one may stand in
    `headers` instead.

    Taken as it is: no `${…}` is expanded here. Raises `InvalidDefinition` (rules A9.1, A9.2).
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default=NOTHING, repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)
    http_timeout: float | None = None
    prefix: str | None = None
    resources: bool = False
    required: bool = False
    liveness: float | None = None
    tools: Overrides = AS_LISTED
    settings: ServerSettings = USUAL
    prompts: bool = False
    per_session: bool = False
    auth: Auth | None = None

    def __post_init__(self) -> None:
        if not text("the name of an MCP server", self.name).strip():
            raise InvalidDefinition("an MCP server needs a name: it is blank")
        try:
            self._check_kinds()
            if wrong := _fault(self):
                raise InvalidDefinition(wrong)
        except InvalidDefinition as error:
            raise InvalidDefinition(f"MCP server {self.name!r}: {error}") from None

    def _check_kinds(self) -> None:
        for name in ("command", "cwd", "url"):
            text(name, getattr(self, name))
        object.__setattr__(self, "args", texts("args", self.args))
        for name in ("env", "headers"):
            object.__setattr__(self, name, mapping(name, getattr(self, name)))
        if self.prefix is not None:
            text("prefix", self.prefix)
        if self.liveness is not None:
            number("liveness", self.liveness, "≥ 0")
        if self.http_timeout is not None:
            number("http_timeout", self.http_timeout, "> 0")

    @property
    def namespace(self) -> str:
        """What stands before the name of each of its tools."""
        return namespace(self.name + "__" if self.prefix is None else self.prefix)

    def masked(self, said: str) -> str:
        """`said` without what was declared as `env`, `headers` and in the url's query, for whatever
        leaves us."""
        url = urlsplit(self.url)
        values = [*self.env.values(), *self.headers.values(), url.query, url.password or ""]
        # "Bearer x" and "key=x" are declared as one value, but a server repeats x alone.
        values += [part for value in values for part in re.split(r"[ =&]", value)]
        values += (*secrets_of(self.auth), *issued())
        for secret in sorted(set(values), key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                said = said.replace(secret, MASK)
        return said


def _fault(server: McpServer) -> str:
    """What is wrong with the declaration; empty when nothing is."""
    if server.transport not in get_args(Transport):
        return f"unknown transport {server.transport!r}: use stdio or http"
    return _stdio_fault(server) if server.transport == "stdio" else _http_fault(server)


def _stdio_fault(server: McpServer) -> str:
    if not server.command.strip():
        return "transport stdio needs a command"
    if forbidden := _given(server, "url", "headers", "http_timeout", "auth"):
        return f"transport stdio takes no {forbidden}: use transport http, or remove it"
    if wrong := [name for name in server.env if not name or "=" in name]:
        return f"{wrong[0]!r} cannot be the name of an environment variable"
    handed = (server.command, server.cwd, *server.args, *server.env, *server.env.values())
    return "a NUL character cannot be handed to a process" if any("\0" in t for t in handed) else ""


def _http_fault(server: McpServer) -> str:
    if not server.url.strip():
        return "transport http needs a url"
    if forbidden := _given(server, "command", "args", "env", "cwd"):
        return f"transport http takes no {forbidden}: use transport stdio, or remove it"
    try:
        parts = urlsplit(server.url)
        usable = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        usable = False
    if not usable:
        return "its url is not an http:// or https:// address"
    for name, value in server.headers.items():
        if value and not is_sendable(value):
            return f"header {name!r} cannot be sent: a line break, no ASCII, or a blank at an end"
    if server.auth and any(name.lower() == "authorization" for name in server.headers):
        return "it has both auth and an Authorization header: remove one"
    return ""


def _given(server: McpServer, *names: str) -> str:
    """Those of `names` that were given, for the message."""
    return ", ".join(name for name in names if getattr(server, name))
