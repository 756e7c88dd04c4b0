"""What the references of a client's file become in ours, where all are of the kind `env`.

Places are resolved (`${workspaceFolder}`), for our file may lie elsewhere; what would be asked for
becomes a variable. No value of a variable is looked up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from toolcrib.deploy.clients import discretion
from toolcrib.deploy.clients.client_file import ClientFile
from toolcrib.deploy.clients.dialect import Ref
from toolcrib.deploy.clients.said import HOME
from toolcrib.deploy.clients.server import Declared
from toolcrib.deploy.clients.variables import Variables

__all__ = ["References", "variables_of"]


def variables_of(servers: Iterable[Declared]) -> Iterator[str]:
    """The names of the variables that the servers refer to."""
    for server in servers:
        texts = (server.command, server.cwd, server.url, *server.args)
        for text in (*texts, *server.env.values(), *server.headers.values()):
            yield from (one.name for one in text if isinstance(one, Ref) and one.kind == "env")


class References:
    """Those of one file; `variables` names what has no variable yet."""

    def __init__(self, read: ClientFile, variables: Variables) -> None:
        self._read = read
        self._variables = variables

    def ours(self, ref: Ref) -> tuple[str | Ref, str]:
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
            "home": HOME,
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


def _may_show(text: str) -> bool:
    return not any(piece.is_secret for piece in discretion.literal(text))
