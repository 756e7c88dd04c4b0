"""What references mean in the files of MCP clients: a text as literal pieces and references.

Three dialects, each by its own rules and none by ours: Claude's `${X}` and `${X:-default}`;
VS Code's and Cursor's `${env:X}`, `${workspaceFolder}`, `${userHome}` and (VS Code) `${input:id}`.
No dialect has an escape, and what a reference gives is never looked at again. Where a client would
leave an unknown reference as it is, it is a fault here: a server must not get "${API_KEY}" for a
key. Nothing is resolved here; that is `resolving`, and `writing` says it in our own syntax.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["DIALECTS", "Dialect", "Ref", "Text", "dialect_named", "parts"]

Dialect: TypeAlias = Literal["claude", "vscode", "cursor"]
DIALECTS: tuple[Dialect, ...] = ("claude", "vscode", "cursor")

Kind: TypeAlias = Literal[
    "env", "input", "workspace", "folder", "home", "separator", "childs", "fault"
]


@dataclass(frozen=True, slots=True)
class Ref:
    """One reference. `name` is the variable or the input's id, or what is wrong with a fault."""

    kind: Kind
    name: str = ""
    default: str | None = field(default=None, repr=False)


Text: TypeAlias = tuple[str | Ref, ...]
"""A text of the file: literal pieces and references, in order."""

_FOUND = re.compile(r"\$\{([^{}\r\n]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLACES: dict[str, Kind] = {
    "workspaceFolder": "workspace",
    "workspaceFolderBasename": "folder",
    "userHome": "home",
    "pathSeparator": "separator",
    "/": "separator",
}
_CLIENT = {"claude": "Claude Code", "vscode": "VS Code", "cursor": "Cursor"}
_SHOWN = re.compile(r"(?:(?:env|input|command|config):)?[A-Za-z0-9_.]{0,40}")
"""What a message may show of a reference that is not understood: behind its name there may be a
default in the words of some other program, and that may be a secret."""
_WHILE_RUNNING = re.compile(
    r"(?:file|relativeFile|fileWorkspaceFolder|lineNumber|columnNumber|selectedText|execPath"
    r"|defaultBuildTask|cwd)[A-Za-z]*\Z"
)


def dialect_named(name: str) -> Dialect | None:
    """The dialect of that name; None for any other word, such as `auto`."""
    known: dict[str, Dialect] = {one: one for one in DIALECTS}
    return known.get(name)


def parts(text: str, dialect: Dialect, childs_own: Collection[str] = ()) -> Text:
    """`text` taken apart. Empty pieces are left out, so the empty text is ().

    `${X}` of a variable in `childs_own` reaches the server as it is, and so it does in the clients:
    only the server's process has that variable, and puts it in itself (mcp-remote's `--header`).
    """
    found: list[str | Ref] = []
    at = 0
    for match in _FOUND.finditer(text):
        ref = Ref("childs", match[1]) if match[1] in childs_own else _ref(match[1], dialect)
        found += (text[at : match.start()], ref)
        at = match.end()
    found.append(text[at:])
    return tuple(piece for piece in found if piece != "")


def _ref(inner: str | None, dialect: Dialect) -> Ref:
    if inner is None:
        return Ref("fault", "a ${ without its } on the same line, or one within another reference")
    return _claude(inner) if dialect == "claude" else _editor(inner, dialect)


def _claude(inner: str) -> Ref:
    name, has_default, default = inner.partition(":-")
    if _NAME.match(name):
        return Ref("env", name, default if has_default else None)
    return _unknown(inner, "claude", "knows ${NAME} and ${NAME:-default}")


def _editor(inner: str, dialect: Dialect) -> Ref:
    if (kind := _PLACES.get(inner)) is not None:
        return Ref(kind)
    scheme, _, name = inner.partition(":")
    if scheme == "env" and _NAME.match(name):
        return Ref("env", name)
    if scheme == "env" and ":" in name:
        return _unknown(inner, dialect, "knows no defaults")
    if scheme == "input" and name.strip() and dialect == "vscode":
        return Ref("input", name)
    if _NAME.match(inner) and not _WHILE_RUNNING.match(inner):
        return _unknown(inner, dialect, f"writes ${{env:{inner}}}")
    return _unknown(inner, dialect, "has it, if at all, only while it runs")


def _unknown(inner: str, dialect: Dialect, hint: str) -> Ref:
    known = _SHOWN.match(inner)
    shown = known[0] if known is not None else ""
    rest = "…" if len(shown) < len(inner) else ""
    return Ref("fault", f"unknown reference ${{{shown}{rest}}}: {_CLIENT[dialect]} {hint}")
