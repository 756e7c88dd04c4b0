"""Which pieces of a client's file may be printed: what might be a secret may not.

Judged by where a text stands first (the value of an environment variable, of a header, behind
`--token`), by its looks second, and in doubt it is a secret: to print one is worse than to ask for
a variable too many.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["SET_EVERYWHERE", "Piece", "argument", "header", "literal", "path", "value", "variable"]

SET_EVERYWHERE = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "PWD",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TMPDIR",
        "TZ",
    ]
)
"""Variables that every process has, with another value on another machine: none of them can stand
for what a file has under its name. Their values are places and languages."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text. `hint` says what a secret is for, as part of a variable's name."""

    text: str = field(repr=False)
    is_secret: bool = False
    hint: str = ""


_HARMLESS = re.compile(
    r"(?i:true|false|yes|no|on|off|none|debug|info|warn|warning|error|trace|development|production"
    r"|test|stdio|http|utf-8|[0-9]{1,5})?\Z"
)
_HARMLESS_HEADERS = ("accept", "accept-language", "content-type", "mcp-protocol-version")
_SCHEME = re.compile(r"(?i:(bearer|basic|token|apikey)\s+)")
_TELLING = re.compile(
    r"(?i:token|key|secret|passw|pwd|pass\b|credential|auth|bearer|cookie|signature|session|dsn)"
)
_ASSIGNED = re.compile(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,60}) (?P<sign>["']?\s{0,4}[=:]\s{0,4}["']?)
        (?P<value>(?i:(?:bearer|basic|token|apikey)\s+)?[^\s;,&"'{}]+)""",
    re.VERBOSE,
)
_URL = re.compile(
    r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://) (?:(?P<user>[^/?\#\s]*)(?P<at>@))?
        (?P<host>[^/?\#\s@]*) (?P<path>[^?\#\s]*) (?P<query>[?\#]\S*)?""",
    re.VERBOSE,
)
_WORD = re.compile(r"[A-Za-z0-9_+=-]{6,}")
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:[spr]k[-_]|xox[abeprs]-|gh[opsu]_|github_pat_|glpat-|hf_|npm_|pypi-A|AKIA"
    r"|ASIA|AIza|eyJ|dop_v1_|shpat_|lin_api_|ntn_|secret_)[-_A-Za-z0-9]{6,}"
)
_LONG, _VERY_LONG, _CHUNK, _CAPITALS = 20, 32, 12, 4


def value(text: str) -> Iterator[Piece]:
    """The whole value of something that has a name: a secret unless it is plainly none."""
    yield Piece(text, not _HARMLESS.match(text))


def variable(name: str, text: str) -> Iterator[Piece]:
    """The whole value of the environment variable `name`."""
    yield from path(text) if name in SET_EVERYWHERE else value(text)


def header(name: str, text: str) -> Iterator[Piece]:
    """The whole value of a header; a scheme such as `Bearer` stays."""
    if name.lower() in _HARMLESS_HEADERS:
        yield Piece(text)
        return
    if scheme := _SCHEME.match(text):
        yield Piece(scheme[0])
        text = text[scheme.end() :]
    yield from value(text)


def literal(text: str) -> Iterator[Piece]:
    """What stands next to a reference in the value of a variable or header."""
    for piece in argument(text, ""):
        if piece.is_secret or not _has_digits(piece.text):
            yield piece
        else:
            yield Piece(piece.text, is_secret=True)


def path(text: str) -> Iterator[Piece]:
    """A program or directory. Long names with digits in them are common there."""
    at = 0
    for word in _KNOWN.finditer(text):
        yield Piece(text[at : word.start()])
        yield Piece(word[0], is_secret=True)
        at = word.end()
    yield Piece(text[at:])


def argument(text: str, before: str) -> Iterator[Piece]:
    """An argument or an address; `before` is the argument before it."""
    if _follows_telling(before, text):
        yield Piece(text, bool(text) and not text.startswith("-"), before)
        return
    if before in ("-e", "--env") and "=" in text:
        name, _, rest = text.partition("=")
        yield Piece(name + "=")
        yield Piece(rest, not _HARMLESS.match(rest), name)
        return
    at = 0
    for url in _URL.finditer(text):
        yield from _phrase(text[at : url.start()])
        yield from _address(url)
        at = url.end()
    yield from _phrase(text[at:])


def _follows_telling(before: str, text: str) -> bool:
    """Whether `before` is a flag whose value is, by its name, a secret."""
    if not before.startswith("-") or "=" in before:
        return False
    if before in ("-u", "--user"):
        return ":" in text
    if before == "-p":
        return not re.fullmatch(r"[0-9.:/a-z]*[0-9]", text)  # of ports, not a password
    return _TELLING.search(before) is not None


def _phrase(text: str) -> Iterator[Piece]:
    """A text without addresses: what is assigned to a telling name is a secret."""
    at = 0
    for found in _ASSIGNED.finditer(text):
        if not _TELLING.search(found["name"]):
            continue
        yield from _words(text[at : found.start()])
        yield Piece(found["name"] + found["sign"])
        for piece in header("", found["value"]):
            yield Piece(piece.text, piece.is_secret, found["name"])
        at = found.end()
    yield from _words(text[at:])


def _address(url: re.Match[str]) -> Iterator[Piece]:
    yield Piece(url["scheme"])
    if url["at"]:
        yield Piece(url["user"], bool(url["user"]), "user")
        yield Piece("@")
    yield Piece(url["host"])
    yield from _words(url["path"])
    for part in re.split(r"([?#&])", url["query"] or ""):
        name, equals, rest = part.partition("=")
        yield Piece(name + equals, not equals and len(name) >= _LONG)
        if rest:
            yield Piece(rest, not _HARMLESS.match(rest), name)


def _words(text: str) -> Iterator[Piece]:
    """The words of a text; one that looks like a token is a secret."""
    at = 0
    for word in _WORD.finditer(text):
        if _KNOWN.search(word[0]) or _is_random(word[0]):
            yield Piece(text[at : word.start()])
            yield Piece(word[0], is_secret=True)
            at = word.end()
    yield Piece(text[at:])


def _is_random(word: str) -> bool:
    """Whether a word looks drawn, not written: long, with digits or capitals all over it."""
    chunk = max(re.split(r"[-_]", word), key=len)
    changes = sum(a.islower() and b.isupper() for a, b in itertools.pairwise(word))
    if _has_digits(word) and (len(chunk) >= _CHUNK or len(word) >= _VERY_LONG):
        return True
    return len(word) >= _LONG and changes >= _CAPITALS


def _has_digits(text: str) -> bool:
    return any(any(c.isdigit() for c in word[0]) for word in _WORD.finditer(text))
