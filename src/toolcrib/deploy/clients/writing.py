"""A client's file as a deployment file of ours: YAML, with comments on what was changed.

Text only: nothing is started, no variable is asked for and no value of one is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolcrib.deploy.clients.client_file import ClientFile
from toolcrib.deploy.clients.dialect import Ref, Text
from toolcrib.deploy.clients.fields import Unusable
from toolcrib.deploy.clients.resolving import Surroundings, env_file_values
from toolcrib.deploy.clients.said import Said
from toolcrib.deploy.clients.server import LeftOut
from toolcrib.deploy.clients.translating import Translation, Translator
from toolcrib.errors import ConfigurationError, Problem

__all__ = ["Imported", "imported"]

_HEAD = """\
resources:
  servers:
    kind: tool.Source
    impl: mcp
    settings:
      servers:
"""
_TAIL = """\
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {tool: servers}
    settings:
      dynamic: {default: deferred}
      middlewares:
        recover: {enabled: true}
        result_limit: {max: 20000}
        timeout: {default: 60s}
"""
_PLAIN = re.compile(r"[A-Za-z./_][A-Za-z0-9@./_-]*\Z")
_WORDS = re.compile(r"(?i:true|false|null|yes|no|on|off|y|n)\Z")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Imported:
    """The text, and the same in parts: the servers in it, those left out, what was not taken."""

    text: str
    servers: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def imported(read: ClientFile, environ: Mapping[str, str]) -> Imported:
    """`read` as a deployment file. `environ` only helps to find an envFile. Raises
    `ConfigurationError` where no server of it is left."""
    translator = Translator(read)
    servers: list[Translation] = []
    left_out = list(read.left_out)
    notes = list(read.notes)
    for one in read.servers:
        names: tuple[str, ...] = ()
        try:
            names = tuple(env_file_values(one, Surroundings(read.folder, environ, read.inputs)))
        except Unusable as error:
            notes.append(str(one.place.problem(f"its variables are missing: {error}")))
        try:
            servers.append(translator.server(one, names))
            notes += (*one.notes, *one.doubts)
        except Unusable as error:
            left_out.append(LeftOut(one.name, str(one.place.problem(str(error))), is_fault=True))
    if not servers:
        reasons = [Problem(f"{one.name!r}: {one.reason}") for one in left_out]
        nothing = Problem("no MCP server that could be imported", file=read.file)
        raise ConfigurationError([nothing, *reasons])
    lines = [*_comments(read, left_out, notes), *_HEAD.splitlines()]
    for server in servers:
        lines += (f"        {line}" for line in _server(server))
    text = "\n".join([*lines, *_TAIL.splitlines(), ""])
    return Imported(text, tuple(one.name for one in servers), tuple(left_out), tuple(notes))


def _comments(read: ClientFile, left_out: list[LeftOut], notes: list[str]) -> Iterator[str]:
    yield _comment(f"Written by `toolcrib import` from {read.file} ({read.dialect}).")
    yield _comment("Paths are absolute. Every ${env:NAME} must be set where this file is used.")
    yield _comment(
        "A server sees PATH, HOME and the like, and its own env: add what else it needs."
    )
    for one in left_out:
        yield _comment(f"left out: {one.name!r}: {one.reason}")
    for note in notes:
        yield _comment(f"note: {note}")


def _server(one: Translation) -> Iterator[str]:
    yield f"- name: {_scalar((one.name,))}"
    yield f"  transport: {one.transport}"
    for key, said in (("command", one.command), ("cwd", one.cwd), ("url", one.url)):
        if said is not None:
            yield _line(f"  {key}:", said)
    if one.args:
        yield "  args:"
        yield from (_line("    -", said) for said in one.args)
    for key, values in (("env", one.env), ("headers", one.headers)):
        if values:
            yield f"  {key}:"
            yield from (_line(f"    {_scalar((name,))}:", said) for name, said in values.items())
    if one.include is not None or one.exclude:
        yield "  tools:"
    for key, names in (("include", one.include), ("exclude", one.exclude)):
        if names is not None and (names or key == "include"):
            yield f"    {key}: [{', '.join(_scalar((name,)) for name in names)}]"


def _line(start: str, said: Said) -> str:
    remark = f"  {_comment(said.remark)}" if said.remark else ""
    return f"{start} {_scalar(said.text)}{remark}"


def _comment(text: str) -> str:
    """One line, without what could command a terminal or end the comment."""
    return "# " + " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _scalar(text: Text) -> str:
    if len(text) == 1 and isinstance(text[0], str) and _PLAIN.match(text[0]):
        return text[0] if not _WORDS.match(text[0]) else f'"{text[0]}"'
    return '"' + "".join(map(_piece, text)) + '"'


def _piece(piece: str | Ref) -> str:
    """A piece between double quotes. A reference is not YAML: it stays as it is."""
    if isinstance(piece, Ref):
        default = "" if piece.default is None else f":-{piece.default}"
        return f"${{env:{piece.name}{default}}}"
    quoted = json.dumps(piece.replace("${", "$${"), ensure_ascii=False)[1:-1]
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
