"""What single values of a deployment file look like: each field reads the text its own way.

A text field keeps what was written (`NO`, `on`, `1.10`, `0755`, `2026-01-02`, `true`); only null is
no text. Numbers are decimal: `010`, `0x1F`, `1_000` and `1e3` are refused, not guessed. `true` and
`false` are booleans; a quoted "true" is one only where a rule says so (A9.3). What a reference
gives is text and is read like a quoted one, except that it may feed a number or boolean: otherwise
no variable ever could.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from toolcrib.deploy.decode import Decoder, map_of
from toolcrib.deploy.document import TextNode
from toolcrib.deploy.duration import parse_duration
from toolcrib.deploy.places import At

__all__ = [
    "address",
    "choice",
    "directory",
    "duration",
    "flag",
    "integer",
    "is_address",
    "lenient_flag",
    "name",
    "not_a_text",
    "program",
    "secret_texts",
    "text",
]

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})\Z")
_BOOLEAN = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def text(at: At) -> str:
    """Any text, as written or as its references give it; may be empty."""
    return at.expand()


def name(at: At) -> str:
    """A text that is not blank."""
    found = at.expand()
    if not found.strip():
        at.reject(f"expected a text that is not blank, got {at.shown}")
    return found


def secret_texts(at: At) -> dict[str, str]:
    """A mapping of names to texts; what stands in its place is not shown, it may be a secret."""
    not_a_text(at)
    return map_of(text)(at)


def not_a_text(at: At) -> None:
    """Refuses, unseen, a text where a mapping that may hold secrets is due."""
    if isinstance(at.node, TextNode) and not at.node.is_null:
        at.reject("expected a mapping, got a text: write NAME: value, each on a line of its own")


def choice(*words: str) -> Decoder[str]:
    """One of these words."""

    def decode(at: At) -> str:
        found = at.expand(what := f"one of {', '.join(words)}")
        if found not in words:
            at.expected(what)
        return found

    return decode


def flag(at: At) -> bool:
    """`true` or `false`, unquoted or from a reference."""
    node = at.text_node(what := "true or false")
    value = _BOOLEAN.get(at.expand()) if node.plain or node.from_outside else None
    if value is None:
        at.expected(what)
    return value


def lenient_flag(at: At) -> bool:
    """Like `flag`, and a quoted "true" or "false" too (rule A9.3)."""
    value = _BOOLEAN.get(at.expand(what := "true or false"))
    if value is None:
        at.expected(what)
    return value


def integer(least: int | None = None) -> Decoder[int]:
    """A whole decimal number, at least `least`."""
    what = "a whole number" if least is None else f"a whole number ≥ {least}"

    def decode(at: At) -> int:
        node = at.text_node(what)
        found = at.expand()
        if not (node.plain or node.from_outside) or not _INTEGER.match(found):
            at.expected(f"{what}, written in decimal")
        if least is not None and int(found) < least:
            at.expected(what)
        return int(found)

    return decode


def duration(at: At) -> float:
    """A Go duration (`30s`, `1m30s`, `250ms`) in seconds; may be zero or negative."""
    seconds = parse_duration(at.expand(what := "a duration such as 30s, 1m30s or 250ms"))
    if seconds is None:
        at.expected(what)
    return seconds


def address(at: At) -> str:
    """An http:// or https:// address; never shown, it may hold a password or a key."""
    found = name(at)
    if not is_address(found):
        at.reject("expected an http:// or https:// address")
    return found


def is_address(text: str) -> bool:
    """Whether `text` is an http:// or https:// address with a host in it."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def directory(at: At) -> str:
    """A directory: a relative one is relative to the file, whatever the working directory is.

    Absolute ones stay as they are: the file starts programs, so it is trusted with paths. Whether
    it exists is seen when it is used.
    """
    return _resolved(at, name(at))


def program(at: At) -> str:
    """A program: a bare name is searched on PATH, a relative path is relative to the file."""
    found = name(at)
    return _resolved(at, found) if "/" in found or found.startswith("~") else found


def _resolved(at: At, found: str) -> str:
    if found.startswith("~"):
        at.reject("~ is not expanded: write ${env:HOME} instead")
    if at.notes.base is None or Path(found).is_absolute():
        return found
    return str(at.notes.base / found)
