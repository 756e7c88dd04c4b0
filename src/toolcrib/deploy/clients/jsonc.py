"""JSON as editors write it, with comments and trailing commas: values that know their line.

A key given twice is kept twice: what that means is for whoever reads the object to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

__all__ = ["BOOLEAN", "MAX_DEPTH", "NUMBER", "TEXT", "Entry", "JsoncFault", "Value", "parse"]

MAX_DEPTH = 64

Scalar: TypeAlias = str | bool | None
"""A number is the text that was written."""

_TOKEN = re.compile(
    r"""
      (?P<space> [ \t\r\n]+ | //[^\n]* | /\*.*?\*/ )
    | (?P<mark> [{}\[\],:] )
    | (?P<text> "(?:[^"\\\x00-\x1f]|\\.)*" )
    | (?P<word> [-+.A-Za-z0-9_]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_CALLED = {"end": "the end of the file", "text": "a text", "word": "a word without quotes"}
"""What a message calls a token. A word is never shown: it may be a key that lacks its quotes."""


class JsoncFault(Exception):
    """The text is not JSON. Its words never show a text of the file."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value: a scalar, a tuple of values (an array) or of entries (an object)."""

    line: int
    data: Scalar | tuple[Value, ...] | tuple[Entry, ...] = field(repr=False)
    kind: str
    """What a message calls it: `an object`, `a list`, `a text`, `a number`, …"""

    @property
    def entries(self) -> tuple[Entry, ...] | None:
        """The entries of an object, one given twice twice; None for anything else."""
        return cast("tuple[Entry, ...]", self.data) if self.kind == OBJECT else None

    @property
    def items(self) -> tuple[Value, ...] | None:
        """The items of a list; None for anything else."""
        return cast("tuple[Value, ...]", self.data) if self.kind == LIST else None

    def get(self, key: str) -> Value | None:
        """What an object holds under `key`, its first; None for anything else."""
        return next((one.value for one in self.entries or () if one.key == key), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of an object and what it holds."""

    key: str
    line: int
    value: Value


OBJECT, LIST, TEXT, NUMBER = "an object", "a list", "a text", "a number"
BOOLEAN = "true or false"


def parse(text: str) -> Value:
    """The value that `text` is. Raises `JsoncFault`."""
    parser = _Parser(text)
    value = parser.value(0)
    parser.end()
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._kind, self._text, self._line = next(self._tokens)

    def _next(self) -> None:
        self._kind, self._text, self._line = next(self._tokens)

    def _take(self, mark: str) -> bool:
        if self._kind != "mark" or self._text != mark:
            return False
        self._next()
        return True

    def _expect(self, mark: str, what: str) -> None:
        if not self._take(mark):
            raise self._fault(f"expected {what}")

    def _fault(self, message: str) -> JsoncFault:
        found = _CALLED.get(self._kind, repr(self._text))
        return JsoncFault(f"not valid JSON: {message}, got {found}", self._line)

    def end(self) -> None:
        if self._kind != "end":
            raise self._fault("expected the end of the file")

    def value(self, depth: int) -> Value:
        line = self._line
        if depth > MAX_DEPTH:
            raise JsoncFault(f"nested deeper than {MAX_DEPTH} levels", line)
        if self._take("{"):
            return Value(line, tuple(self._entries(depth)), OBJECT)
        if self._take("["):
            return Value(line, tuple(self._items(depth)), LIST)
        if self._kind == "text":
            return Value(line, self._string(), TEXT)
        if self._kind == "word":
            return self._word()
        raise self._fault("expected a value")

    def _entries(self, depth: int) -> Iterator[Entry]:
        while not self._take("}"):
            if self._kind != "text":
                raise self._fault('expected a key in "double quotes" or the }')
            line, key = self._line, self._string()
            self._expect(":", "a : after the key")
            yield Entry(key, line, self.value(depth + 1))
            if not self._take(","):
                self._expect("}", "a , or the } of the object")
                return

    def _items(self, depth: int) -> Iterator[Value]:
        while not self._take("]"):
            yield self.value(depth + 1)
            if not self._take(","):
                self._expect("]", "a , or the ] of the list")
                return

    def _string(self) -> str:
        try:
            text: str = json.loads(self._text)
            text.encode()
        except ValueError:
            raise JsoncFault("not valid JSON: a text with a wrong escape", self._line) from None
        self._next()
        return text

    def _word(self) -> Value:
        try:
            found: object = json.loads(self._text, parse_constant=_no_number)
        except ValueError:
            raise self._fault('expected a value; a text needs "double quotes"') from None
        value = Value(self._line, self._text, NUMBER)
        if found is None:
            value = Value(self._line, None, "null")
        elif isinstance(found, bool):
            value = Value(self._line, found, BOOLEAN)
        self._next()
        return value


def _no_number(name: str) -> None:
    raise ValueError(name)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, line) of each token; ends with `end`, for as long as is asked."""
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = {'"': "a text without its end", "/": "a comment without its end"}
            fault = what.get(text[at], f"unexpected {text[at]!r}")
            raise JsoncFault(f"not valid JSON: {fault}", line)
        if found.lastgroup != "space":
            yield str(found.lastgroup), found[0], line
        line += found[0].count("\n")
        at = found.end()
    while True:
        yield "end", "", line
