"""One value of a server in our words: its pieces joined, a path made absolute, an address checked.

Pure. What may be said of a value is `discretion`, what its references become `references`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolcrib.deploy.clients.dialect import Ref, Text
from toolcrib.deploy.clients.fields import Unusable
from toolcrib.deploy.clients.resolving import ANOTHER_USER, under
from toolcrib.deploy.scalars import is_address

__all__ = ["HOME", "Said", "address", "joined", "path", "program"]

HOME = Ref("env", "HOME")


@dataclass(frozen=True, slots=True)
class Said:
    """One value: our text, and a remark for people."""

    text: Text
    remark: str = ""


def joined(pieces: Iterable[str | Ref]) -> Text:
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


def program(said: Said, folder: Path) -> Said:
    """A bare name is searched on PATH and stays; anything else is a path."""
    whole = "".join(piece for piece in said.text if isinstance(piece, str))
    is_bare = "/" not in whole and os.sep not in whole and not whole.startswith("~")
    return said if is_bare and isinstance(said.text[0], str) else path(said, folder)


def path(said: Said, folder: Path) -> Said:
    """A path is absolute in our file, wherever that will lie; `~` is written out."""
    first = said.text[0]
    if not isinstance(first, str):
        remark = "absolute, or relative to this file"
        return Said(said.text, f"{said.remark}; {remark}" if said.remark else remark)
    if said.text == ("~",) or first.startswith(("~/", "~\\")):
        return Said((HOME, first[1:], *said.text[1:]), said.remark)
    if first.startswith("~"):
        raise Unusable(ANOTHER_USER)
    return Said((under(folder, first), *said.text[1:]), said.remark)


def address(said: Said) -> Said:
    """`said` if it is an address whatever its references, which may be any part of it, give."""
    likely = "".join(piece if isinstance(piece, str) else "1" for piece in said.text)
    if isinstance(said.text[0], str) and not is_address(likely):
        raise Unusable("its url is not an http:// or https:// address")
    return said
