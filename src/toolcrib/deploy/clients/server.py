"""One server of a client's file: judged, taken apart, nothing resolved and nothing made.

A fault is that server's own: it is left out with its reason, the others are read on. Whatever the
client knows and we do not is noted, for `toolcrib import`; only what promises a protection
(a sandbox) is a fault, as leaving it out would not be what was asked for. The same thing has other
names in other clients (Windsurf's `serverUrl`, Cline's `transportType`): it is read under any.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from toolcrib.deploy.clients.dialect import Dialect, Ref, Text
from toolcrib.deploy.clients.fields import Fields, Unusable
from toolcrib.deploy.clients.jsonc import Entry
from toolcrib.deploy.places import Place
from toolcrib.frozen import NOTHING

__all__ = ["Declared", "LeftOut", "declared"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A server as the file has it, its references unresolved. `include` and `exclude` are patterns
    of tool names. `notes` are places and words about what is not taken over, `doubts` about what
    may keep the server from working here."""

    name: str
    place: Place
    transport: Literal["stdio", "http"]
    command: Text = ()
    args: tuple[Text, ...] = field(default=(), repr=False)
    env: Mapping[str, Text] = field(default=NOTHING, repr=False)
    env_file: Text = ()
    cwd: Text = ()
    url: Text = field(default=(), repr=False)
    headers: Mapping[str, Text] = field(default=NOTHING, repr=False)
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A server that is not used: disabled in its client, or at fault."""

    name: str
    reason: str
    is_fault: bool


_SAME = {
    "serverUrl": "url",
    "httpUrl": "url",
    "transport": "type",
    "transportType": "type",
    "disabledTools": "excludeTools",
}
"""Keys of single clients, by the one that is read."""
_OF_STDIO, _OF_HTTP = ("command", "args", "env", "envFile", "cwd"), ("url", "headers")
_OFF = {"disabled": True, "enabled": False, "isActive": False}
_INCLUDE, _EXCLUDE = ("includeTools", "tools"), "excludeTools"
_OURS = {"type", *_OF_STDIO, *_OF_HTTP, *_OFF, *_INCLUDE, _EXCLUDE}
_STDIO = ("stdio", "local")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_LOGIN = ("oauth", "auth", "headersHelper")
_CLIENTS_OWN = {
    **dict.fromkeys(_LOGIN, "logging in is not taken over"),
    **dict.fromkeys(("alwaysAllow", "autoApprove", "trust"), "approvals are not taken over"),
    **dict.fromkeys(("timeout", "startupTimeout"), "time limits are the assembly's"),
    "dev": "watching and debugging a server is not taken over",
}
_PROTECTIONS = ("sandbox", "sandboxEnabled")
_SSE = (
    "the transport sse is deprecated and not supported: give its Streamable HTTP address, which"
    " often ends in /mcp, with type http, or put a bridge such as mcp-remote before it"
)
_COMMAND_LINE = re.compile(r"[\w.-]+\s+\S")
_MAYBE_SSE = "its address ends in /sse: a server that speaks only the deprecated SSE cannot be used"
_ONE_LINE = "a whole command line: put its first word into command, the others into args"
_WINDOWS = "a Windows wrapper (cmd /c …): elsewhere, make what follows /c the command"


def declared(entry: Entry, place: Place, dialect: Dialect) -> Declared | LeftOut:
    """The server under `entry`."""
    try:
        fields = Fields(entry.value, place, dialect, _SAME)
        if any(fields.flag(key) is off for key, off in _OFF.items()):
            return LeftOut(entry.key, "disabled in its client", is_fault=False)
        return _server(entry.key, fields)
    except Unusable as error:
        return LeftOut(entry.key, str(error), is_fault=True)


def _server(name: str, fields: Fields) -> Declared:
    if not name.strip():
        raise fields.unusable("a server needs a name: it is blank")
    for key in _PROTECTIONS:
        if key in fields.entries and fields.entries[key].value.data is not False:
            raise fields.unusable("it is to run in a sandbox, which is not available here", key)
    whole = Declared(
        name,
        fields.place,
        _transport(fields),
        include=_include(fields),
        exclude=tuple(map(glob.escape, fields.names(_EXCLUDE) or ())),
        notes=tuple(_notes(fields)),
        doubts=tuple(_doubts(fields)),
    )
    if whole.transport == "http":
        return replace(whole, url=fields.text("url"), headers=fields.map("headers"))
    env = fields.map("env")
    return replace(
        whole,
        command=fields.text("command"),
        args=fields.texts("args", _childs_own(env)),
        env=env,
        env_file=fields.text("envFile"),
        cwd=fields.text("cwd"),
    )


def _childs_own(env: Mapping[str, Text]) -> frozenset[str]:
    """The variables that only the server's process has: one that its client merely hands on has
    the same value on both sides."""
    return frozenset(name for name, text in env.items() if text != (Ref("env", name),))


def _include(fields: Fields) -> tuple[str, ...] | None:
    """Patterns of the tools that are offered; None for all."""
    for key in _INCLUDE:
        if key == "tools" and not fields.is_list(key):
            continue  # other clients say other things under this name
        names = fields.names(key)
        if names is not None and "*" not in names:
            return tuple(map(glob.escape, names))
    return None


def _transport(fields: Fields) -> Literal["stdio", "http"]:
    """The transport that is named, else the one whose keys are there."""
    said = fields.entries.get("type")
    kind = said.value.data if said is not None else None
    if kind == "sse":
        raise fields.unusable(_SSE)
    if kind is not None and kind not in (*_STDIO, *_HTTP):
        raise fields.unusable(f"the transport {str(kind)[:20]!r} is not supported")
    if kind is None and fields.has("command") and fields.has("url"):
        raise fields.unusable("it has both a command and a url: say which one with 'type'", "url")
    is_stdio = kind in _STDIO if kind else "command" in fields.entries and not fields.has("url")
    transport: Literal["stdio", "http"] = "stdio" if is_stdio else "http"
    needed = "command" if is_stdio else "url"
    if needed not in fields.entries:
        hint = "" if kind else " (it has neither command nor url)"
        raise fields.unusable(f"missing {needed!r}, which transport {transport} needs{hint}")
    return transport


def _notes(fields: Fields) -> Iterator[str]:
    transport = _transport(fields)
    for key, entry in fields.entries.items():
        if key in (_OF_HTTP if transport == "stdio" else _OF_STDIO):
            if fields.has(key):
                why = f"transport {transport} takes none"
                yield str(fields.at(entry).problem(f"{entry.key!r} is left out: {why}"))
        elif key in _PROTECTIONS or key in _LOGIN:
            continue
        elif key not in _OURS or (key == "tools" and not fields.is_list(key)):
            why = _CLIENTS_OWN.get(key, "unknown here")
            yield str(fields.at(entry).problem(f"{entry.key!r} is left out: {why}"))


def _doubts(fields: Fields) -> Iterator[str]:
    for key in _LOGIN:
        if (login := fields.entries.get(key)) is not None:
            why = _CLIENTS_OWN[key]
            yield str(fields.at(login).problem(f"{key!r} is left out: {why}"))
    command, url = fields.entries.get("command"), fields.entries.get("url")
    if command is not None and str(command.value.data).lower() in ("cmd", "cmd.exe"):
        yield str(fields.at(command).problem(_WINDOWS))
    if command is not None and _COMMAND_LINE.match(str(command.value.data)):
        yield str(fields.at(command).problem(_ONE_LINE))
    if url is not None and str(url.value.data).partition("?")[0].rstrip("/").endswith("/sse"):
        yield str(fields.at(url).problem(_MAYBE_SSE))
