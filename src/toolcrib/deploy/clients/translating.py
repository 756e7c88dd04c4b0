"""A declared server in our own words: its references in our syntax, no secret in it.

What might be a secret becomes the reference to a variable that is still to be set. Resolves
nothing but places (`${workspaceFolder}`); how the words are laid out as YAML is `writing`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from toolcrib.deploy.clients import discretion
from toolcrib.deploy.clients.declared import Declared
from toolcrib.deploy.clients.dialect import Ref, Text
from toolcrib.deploy.clients.discretion import Piece
from toolcrib.deploy.clients.fields import Unusable
from toolcrib.deploy.clients.reading import ClientFile
from toolcrib.deploy.clients.resolving import ANOTHER_USER, under
from toolcrib.deploy.clients.variables import Variables
from toolcrib.deploy.scalars import is_address

__all__ = ["Said", "Translation", "Translator"]

_HOME = Ref("env", "HOME")
_SET_IT = "its value stood in the file: set the variable"


@dataclass(frozen=True, slots=True)
class Said:
    """One value: our text, and a remark for people."""

    text: Text
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """A server as our file would declare it. Texts hold only references of the kind `env`."""

    name: str
    transport: str
    command: Said | None = None
    args: tuple[Said, ...] = ()
    cwd: Said | None = None
    url: Said | None = None
    env: Mapping[str, Said] = field(default_factory=dict[str, Said])
    headers: Mapping[str, Said] = field(default_factory=dict[str, Said])
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()


Judge: TypeAlias = Callable[[str], Iterator[Piece]]


class Translator:
    """Translates the servers of one file."""

    def __init__(self, read: ClientFile) -> None:
        self._read = read
        taken = (*discretion.SET_EVERYWHERE, *_references(read.servers))
        self._variables = Variables(taken)

    def server(self, one: Declared, from_file: Iterable[str]) -> Translation:
        """`from_file` are the names of the variables in its envFile. Raises `Unusable` for what
        our syntax has no words for."""
        if one.transport == "http":
            url = self._judged(one, "url", one.url, lambda text: discretion.argument(text, ""))
            return Translation(
                one.name,
                "http",
                url=_address(url),
                headers=self._headers(one),
                include=one.include,
                exclude=one.exclude,
            )
        env = {
            name: Said((Ref("env", name),), "from its envFile: set the variable")
            for name in from_file
        }
        env |= self._env(one)  # first: a variable keeps its own name
        return Translation(
            one.name,
            "stdio",
            command=self._path(one, "command", one.command),
            args=tuple(self._args(one)),
            cwd=self._path(one, "cwd", one.cwd) if one.cwd else Said((str(self._read.folder),)),
            env=env,
            include=one.include,
            exclude=one.exclude,
        )

    def _env(self, one: Declared) -> dict[str, Said]:
        return {
            name: self._judged(one, name, text, _in_whole(text, _variable_judge(name)), name)
            for name, text in one.env.items()
        }

    def _headers(self, one: Declared) -> dict[str, Said]:
        found: dict[str, Said] = {}
        for name, text in one.headers.items():
            judge = _in_whole(text, _header_judge(name))
            found[name] = self._judged(one, name, text, judge)
        return found

    def _args(self, one: Declared) -> Iterator[Said]:
        before = ""
        for number, text in enumerate(one.args, 1):
            judge = _argument_judge(before)
            yield self._judged(one, f"arg {number}", text, judge)
            before = "".join(piece for piece in text if isinstance(piece, str))

    def _path(self, one: Declared, what: str, text: Text) -> Said:
        """A path is absolute in our file, wherever that will lie; `~` is written out."""
        said = self._judged(one, what, text, discretion.path)
        first = said.text[0]
        if not isinstance(first, str):
            remark = "absolute, or relative to this file"
            return Said(said.text, f"{said.remark}; {remark}" if said.remark else remark)
        if said.text == ("~",) or first.startswith(("~/", "~\\")):
            return Said((_HOME, first[1:], *said.text[1:]), said.remark)
        if first.startswith("~"):
            raise Unusable(ANOTHER_USER)
        whole = "".join(piece for piece in said.text if isinstance(piece, str))
        is_bare = what == "command" and "/" not in whole and os.sep not in whole
        if is_bare:
            return said
        return Said((under(self._read.folder, first), *said.text[1:]), said.remark)

    def _judged(self, one: Declared, what: str, text: Text, judge: Judge, *wishes: str) -> Said:
        """`text` with its references translated and what may not be shown replaced, by a variable
        of the first of `wishes` that is free, else one named after the server and `what`."""
        found: list[str | Ref] = []
        remarks: list[str] = []
        for piece in text:
            if isinstance(piece, Ref):
                translated, remark = self._reference(piece)
                found.append(translated)
                remarks.append(remark)
                continue
            for part in judge(piece):
                if not (part.is_secret or self._variables.has_part_in(part.text)):
                    found.append(part.text)
                    continue
                last = f"{one.name}_{part.hint or what}"
                found.append(Ref("env", self._variables.name(part.text, *wishes, last)))
                remarks.append(_SET_IT)
        return Said(_merged(found), "; ".join(dict.fromkeys(r for r in remarks if r)))

    def _reference(self, ref: Ref) -> tuple[str | Ref, str]:
        """A reference in our terms, and a remark."""
        if ref.kind == "input":
            return self._input(ref.name)
        if ref.kind == "env":
            if ref.default is None or _may_show(ref.default):
                return ref, ""
            return Ref("env", ref.name), "its default is left out, it may be a secret"
        places: dict[str, str | Ref] = {
            "workspace": str(self._read.folder),
            "folder": self._read.folder.name,
            "home": _HOME,
            "separator": os.sep,
            "childs": f"${{{ref.name}}}",
        }
        return places[ref.kind], ""

    def _input(self, name: str) -> tuple[Ref, str]:
        asked = self._read.inputs.get(name)
        variable = self._variables.name(f"input {name}", name, f"input {name}")
        about = f" ({asked.description})" if asked is not None and asked.description else ""
        default = asked.default if asked is not None else None
        if default is not None and (not _may_show(default) or re.search(r"[{}\r\n]", default)):
            default = None
        return Ref("env", variable, default), f"was asked for{about}: set the variable"


def _merged(pieces: Iterable[str | Ref]) -> Text:
    """Literal pieces next to each other as one. Raises `Unusable` for a `$` before a reference:
    in our syntax that would be the escape."""
    found: list[str | Ref] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, str) and isinstance(last, str):
            found[-1] = last + piece
        elif piece != "":
            if isinstance(piece, Ref) and isinstance(last, str) and last.endswith("$"):
                raise Unusable("a $ right before a reference cannot be written in our syntax")
            found.append(piece)
    return tuple(found)


def _in_whole(text: Text, judge: Judge) -> Judge:
    """`judge` where the text is one literal; next to references, only what looks like a secret."""
    return judge if len(text) == 1 else discretion.literal


def _variable_judge(name: str) -> Judge:
    return lambda text: discretion.variable(name, text)


def _header_judge(name: str) -> Judge:
    return lambda text: discretion.header(name, text)


def _argument_judge(before: str) -> Judge:
    return lambda text: discretion.argument(text, before)


def _may_show(text: str) -> bool:
    return not any(piece.is_secret for piece in discretion.literal(text))


def _address(said: Said) -> Said:
    """`said` if it is an address whatever its references, which may be any part of it, give."""
    likely = "".join(piece if isinstance(piece, str) else "1" for piece in said.text)
    if isinstance(said.text[0], str) and not is_address(likely):
        raise Unusable("its url is not an http:// or https:// address")
    return said


def _references(servers: Iterable[Declared]) -> Iterator[str]:
    for server in servers:
        texts = (server.command, server.cwd, server.url, *server.args)
        for text in (*texts, *server.env.values(), *server.headers.values()):
            yield from (one.name for one in text if isinstance(one, Ref) and one.kind == "env")
