"""From a declared server to one that can be started: references replaced, paths made absolute.

One pass: what a reference gave is never looked at again. What cannot be resolved makes that one
server unusable, with the name of what is missing and never a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.deploy.clients.client_file import ClientFile, Input, text_of
from toolcrib.deploy.clients.dialect import Ref, Text
from toolcrib.deploy.clients.envfile import MAX_BYTES, EnvFileFault, read_env_file
from toolcrib.deploy.clients.fields import Unusable
from toolcrib.deploy.clients.server import Declared
from toolcrib.errors import ConfigurationError, InvalidDefinition

if TYPE_CHECKING:
    from toolcrib.sources.mcp.server import McpServer

__all__ = ["ANOTHER_USER", "Surroundings", "env_file_values", "under", "usable"]

ANOTHER_USER = "the home directory of another user (~name) is not looked up"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What references may ask for. `given` are answers to inputs, by id."""

    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    given: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def value(self, ref: Ref) -> str:
        """Raises `Unusable` naming what is missing."""
        match ref.kind:
            case "env":
                value = self.environ.get(ref.name, ref.default)
                if value is None:
                    raise Unusable(f"the environment variable {ref.name!r} is not set")
                return value
            case "input":
                return self._input(ref.name)
            case "workspace":
                return str(self.folder)
            case "folder":
                return self.folder.name
            case "home":
                return home_of(self.environ)
            case "separator":
                return os.sep
            case "childs":
                return f"${{{ref.name}}}"
            case "fault":
                raise Unusable(ref.name)

    def _input(self, name: str) -> str:
        asked = self.inputs.get(name)
        value = self.given.get(name, asked.default if asked is not None else None)
        if value is None:
            raise Unusable(
                f"the input {name!r} would have to be asked for, and nobody can be asked here:"
                " give it under inputs, next to config"
            )
        return value

    def text(self, text: Text) -> str:
        return "".join(one if isinstance(one, str) else self.value(one) for one in text)


def usable(
    read: ClientFile, environ: Mapping[str, str], given: Mapping[str, str]
) -> tuple[tuple[McpServer, ...], dict[str, str]]:
    """The servers of the file that can be used, and the reason for each that cannot."""
    around = Surroundings(read.folder, environ, read.inputs, given)
    servers: list[McpServer] = []
    unavailable = {one.name: one.reason for one in read.left_out if one.is_fault}
    for one in read.servers:
        try:
            servers.append(resolve(one, around))
        except Unusable as error:
            unavailable[one.name] = str(error)
    return tuple(servers), unavailable


def resolve(one: Declared, around: Surroundings) -> McpServer:
    """The server that `one` declares. Raises `Unusable`."""
    from toolcrib.sources.mcp.overrides import Overrides
    from toolcrib.sources.mcp.server import McpServer

    try:
        tools = Overrides(include=one.include, exclude=one.exclude)
        if one.transport == "http":
            url, headers = around.text(one.url), _values(one.headers, around)
            return McpServer(one.name, "http", url=url, headers=headers, tools=tools)
        return McpServer(
            one.name,
            "stdio",
            command=program(around.text(one.command), around),
            args=tuple(around.text(arg) for arg in one.args),
            env={**env_file_values(one, around), **_values(one.env, around)},
            cwd=absolute(around.text(one.cwd), around) if one.cwd else str(around.folder),
            tools=tools,
        )
    except (Unusable, InvalidDefinition) as error:
        raise Unusable(str(one.place.problem(str(error)))) from error


def _values(texts: Mapping[str, Text], around: Surroundings) -> dict[str, str]:
    return {name: around.text(text) for name, text in texts.items()}


def program(command: str, around: Surroundings) -> str:
    """A program from the file: a bare name is searched on PATH, anything else is a path."""
    is_path = "/" in command or os.sep in command or command.startswith("~")
    return absolute(command, around) if is_path else command


def absolute(path: str, around: Surroundings) -> str:
    """A path from the file: `~` is the home directory, a relative one is relative to the folder."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return home_of(around.environ) + path[1:]
    if path.startswith("~"):
        raise Unusable(ANOTHER_USER)
    return under(around.folder, path)


def under(folder: Path, path: str) -> str:
    """`path`, if it is relative, under `folder`. As it is written: it may be the start of more."""
    if os.path.isabs(path):
        return path
    return str(folder).rstrip(os.sep) + os.sep + path.removeprefix("./")


def env_file_values(one: Declared, around: Surroundings) -> dict[str, str]:
    """The variables of the server's `envFile`. Raises `Unusable` if it cannot be read."""
    if not one.env_file:
        return {}
    path = Path(absolute(around.text(one.env_file), around))
    try:
        return read_env_file(text_of(path, MAX_BYTES))
    except ConfigurationError as error:
        raise Unusable(f"its envFile {error}") from error
    except EnvFileFault as error:
        raise Unusable(f"its envFile {path}:{error.line}: {error}") from error


def home_of(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or environ.get("USERPROFILE") or str(Path.home())
