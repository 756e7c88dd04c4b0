"""A declared server in our own words: its references in our syntax, no secret in it.

What might be a secret becomes the reference to a variable that is still to be set. How a value is
worded is `said`, what a reference becomes `references`, how all is laid out as YAML `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from toolcrib.deploy.clients import discretion, said
from toolcrib.deploy.clients.client_file import ClientFile
from toolcrib.deploy.clients.dialect import Ref, Text
from toolcrib.deploy.clients.discretion import Piece
from toolcrib.deploy.clients.references import References, variables_of
from toolcrib.deploy.clients.said import Said
from toolcrib.deploy.clients.server import Declared
from toolcrib.deploy.clients.variables import Variables

__all__ = ["Translation", "Translator"]

_SET_IT = "its value stood in the file: set the variable"


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
        taken = (*discretion.SET_EVERYWHERE, *variables_of(read.servers))
        self._variables = Variables(taken)
        self._references = References(read, self._variables)

    def server(self, one: Declared, from_file: Iterable[str]) -> Translation:
        """`from_file` are the names of the variables in its envFile. Raises `Unusable` for what
        our syntax has no words for."""
        if one.transport == "http":
            url = self._judged(one, "url", one.url, lambda text: discretion.argument(text, ""))
            return Translation(
                one.name,
                "http",
                url=said.address(url),
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
            command=said.program(self._path(one, "command", one.command), self._read.folder),
            args=tuple(self._args(one)),
            cwd=self._cwd(one),
            env=env,
            include=one.include,
            exclude=one.exclude,
        )

    def _cwd(self, one: Declared) -> Said:
        folder = self._read.folder
        return (
            said.path(self._path(one, "cwd", one.cwd), folder) if one.cwd else Said((str(folder),))
        )

    def _path(self, one: Declared, what: str, text: Text) -> Said:
        return self._judged(one, what, text, discretion.path)

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

    def _judged(self, one: Declared, what: str, text: Text, judge: Judge, *wishes: str) -> Said:
        """`text` with its references translated and what may not be shown replaced, by a variable
        of the first of `wishes` that is free, else one named after the server and `what`."""
        found: list[str | Ref] = []
        remarks: list[str] = []
        for piece in text:
            if isinstance(piece, Ref):
                translated, remark = self._references.ours(piece)
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
        return Said(said.joined(found), "; ".join(dict.fromkeys(r for r in remarks if r)))


def _in_whole(text: Text, judge: Judge) -> Judge:
    """`judge` where the text is one literal; next to references, only what looks like a secret."""
    return judge if len(text) == 1 else discretion.literal


def _variable_judge(name: str) -> Judge:
    return lambda text: discretion.variable(name, text)


def _header_judge(name: str) -> Judge:
    return lambda text: discretion.header(name, text)


def _argument_judge(before: str) -> Judge:
    return lambda text: discretion.argument(text, before)
