"""One server of a client's file: judged, taken apart, nothing resolved and nothing made.

A fault is that server's own: it is left out with its reason, the others are read on. Whatever the
client knows and we do not is noted, for `toolcrib import`; only what promises a protection
(a sandbox) is a fault, as leaving it out would not be what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.deploy.clients.dialect import Dialect, Text
from toolcrib.deploy.clients.fields import Fields, Unusable
from toolcrib.deploy.clients.jsonc import Entry
from toolcrib.deploy.places import Place
from toolcrib.frozen import NOTHING

__all__ = ["Declared", "LeftOut", "declared"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A server as the file has it, its references unresolved. `notes` are places and words about
    what is not taken over."""

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
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A server that is not used: disabled in its client, or at fault."""

    name: str
    reason: str
    is_fault: bool


_OURS = ("type", "command", "args", "env", "envFile", "cwd", "url", "headers", "disabled")
_OF_STDIO, _OF_HTTP = ("command", "args", "env", "envFile", "cwd"), ("url", "headers")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_CLIENTS_OWN = {
    **dict.fromkeys(("oauth", "auth", "headersHelper"), "logging in is not taken over"),
    **dict.fromkeys(("alwaysAllow", "autoApprove", "trust"), "approvals are not taken over"),
    **dict.fromkeys(("timeout", "startupTimeout"), "time limits are the assembly's"),
    "dev": "watching and debugging a server is not taken over",
}
_PROTECTIONS = ("sandbox", "sandboxEnabled")


def declared(entry: Entry, place: Place, dialect: Dialect) -> Declared | LeftOut:
    """The server under `entry`."""
    try:
        fields = Fields(entry.value, place, dialect)
        if fields.flag("disabled"):
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
    transport = _transport(fields)
    return Declared(
        name,
        fields.place,
        transport,
        command=fields.text("command"),
        args=fields.texts("args"),
        env=fields.map("env"),
        env_file=fields.text("envFile"),
        cwd=fields.text("cwd"),
        url=fields.text("url"),
        headers=fields.map("headers"),
        notes=tuple(_notes(fields)),
    )


def _transport(fields: Fields) -> Literal["stdio", "http"]:
    said = fields.entries.get("type") or fields.entries.get("transport")
    kind = said.value.data if said is not None else None
    if kind == "sse":
        raise fields.unusable("the transport sse is deprecated and not supported: use http")
    if kind is not None and kind != "stdio" and kind not in _HTTP:
        raise fields.unusable(f"the transport {str(kind)[:20]!r} is not supported")
    transport: Literal["stdio", "http"] = "stdio" if kind == "stdio" else "http"
    if kind is None:
        transport = "stdio" if "command" in fields.entries else "http"
    needed, others = ("command", _OF_HTTP) if transport == "stdio" else ("url", _OF_STDIO)
    if needed not in fields.entries:
        hint = "" if kind else " (it has neither command nor url)"
        raise fields.unusable(f"missing {needed!r}, which transport {transport} needs{hint}")
    for key in others:
        if key in fields.entries:
            raise fields.unusable(f"transport {transport} takes no {key!r}", key)
    return transport


def _notes(fields: Fields) -> Iterator[str]:
    for key, entry in fields.entries.items():
        if key in _OURS or key in (*_PROTECTIONS, "transport"):
            continue
        why = _CLIENTS_OWN.get(key, "unknown here")
        yield str(fields.at(entry, key).problem(f"{key!r} is left out: {why}"))
    command = fields.entries.get("command")
    if command is not None and str(command.value.data).lower() in ("cmd", "cmd.exe"):
        yield str(
            fields.at(command, "command").problem(
                "a Windows wrapper (cmd /c …): elsewhere, make what follows /c the command"
            )
        )
