"""Plain JSON values of anything reasonable: the same in every process, nothing silently lost.

What becomes what (reports RS02, RS04, RS14): a dataclass, pydantic model or mapping is an object;
a list, tuple, deque, range or dict view an array; a set an array in a fixed order (numbers first,
then by JSON text); an enum its value; dates ISO 8601; Decimal, UUID, path, address and URL a
string; bytes their UTF-8 text; a numpy scalar or array its plain value. A key that is no string
becomes the text of its JSON (`1`, `null`, `true`, `[1,"a"]`). NaN and infinities become the strings
"NaN", "Infinity", "-Infinity". What had to be replaced is noted.

Iterators are not read: a file would be copied out, an endless one never ends. How it is written is
`jsonable`.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, cast
from uuid import UUID

import pydantic_core

from toolcrib.definition import compact_json
from toolcrib.jsonvalue import is_array, is_object

__all__ = [
    "MAX_DEPTH",
    "MAX_VALUES",
    "NON_FINITE",
    "REPLACED",
    "NotJson",
    "Walk",
    "clean",
]

MAX_DEPTH: Final = 254
"""Levels of nesting; orjson's own bound, so that both ways of writing agree."""
MAX_VALUES: Final = 1_000_000
"""Values of one result that are converted one by one; plain JSON values are not counted."""

NON_FINITE: Final = "a number that is not finite was written as text"
REPLACED: Final = "what is not UTF-8 text was replaced"

_FOREIGN: Final = frozenset({"pydantic", "pydantic_core", "ipaddress", "re", "zoneinfo"})
"""Packages whose values pydantic writes, and which hold nothing that could be endless."""


_type: Callable[[object], type[object]] = type


class NotJson(Exception):
    """A value that JSON cannot hold: what it is, and the path to it. Never its own text, which may
    be no model's business."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.steps: list[str] = []

    def __str__(self) -> str:
        path = ".".join(reversed(self.steps[-8:]))
        return f"{path}: {self.what}" if path else self.what


def clean(text: str) -> str:
    """`text` with unpaired surrogates replaced: they are no text, and crash whoever encodes it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class Walk:
    """One conversion: counts what it meets and keeps the notes."""

    __slots__ = ("left", "notes")

    def __init__(self) -> None:
        self.left = MAX_VALUES
        self.notes: dict[str, None] = {}

    def plain(self, value: Any, depth: int) -> Any:
        kind = _type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is int or kind is bool:
            return value
        if kind is float:
            return value if math.isfinite(value) else self._non_finite(value)
        if depth >= MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH} levels, or contains itself")
        if kind is dict:
            return self.members(value, depth)
        if kind is list or kind is tuple:
            return self.items(value, depth)
        return self._other(value, kind, depth)

    def _other(self, value: Any, kind: type[object], depth: int) -> Any:
        for types, convert in _CONVERSIONS:
            if isinstance(value, types):
                return convert(self, value, depth)
        if isinstance(value, type):
            raise NotJson("a class")
        if dataclasses.is_dataclass(value):
            return self._dataclass(value, depth)
        if hasattr(kind, "model_dump") and hasattr(kind, "__pydantic_serializer__"):
            return self._model(value, depth)
        if hasattr(kind, "tolist") and hasattr(kind, "dtype"):  # numpy, never imported by us
            self._count(int(getattr(value, "size", 1)))
            return self.plain(value.tolist(), depth + 1)
        if isinstance(value, os.PathLike):
            return self._text(os.fsdecode(cast("os.PathLike[str]", value)))
        if kind.__module__.partition(".")[0] in _FOREIGN:
            return self.by_pydantic(value, depth)
        raise NotJson(f"a value of type {kind.__name__[:80]!r}")

    def _count(self, more: int) -> None:
        self.left -= more
        if self.left < 0:
            raise NotJson(f"more than {MAX_VALUES} values")

    def _text(self, text: str) -> str:
        cleaned = clean(text)
        if cleaned is not text:
            self.notes[REPLACED] = None
        return cleaned

    def text_of_bytes(self, value: Any, _: int) -> str:
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.notes[REPLACED] = None
            return data.decode("utf-8", "replace")

    def decimal(self, value: Any, _: int) -> str:
        if value.is_finite():
            return str(value)
        return self._non_finite(float("nan") if value.is_nan() else float(value))

    def _non_finite(self, value: float) -> str:
        self.notes[NON_FINITE] = None
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"

    def members(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self._count(len(value))
        found: dict[str, Any] = {}
        key: Any = None
        try:
            for key, item in value.items():
                name = self._text(key) if type(key) is str else self._key(key, depth)
                if name in found:
                    raise NotJson("two keys that are the same text in JSON")
                found[name] = self.plain(item, depth + 1)
        except NotJson as error:
            error.steps.append(key[:80] if isinstance(key, str) else type(key).__name__)
            raise
        return found

    def _key(self, key: Any, depth: int) -> str:
        plain = self.plain(key, depth + 1)
        return plain if isinstance(plain, str) else compact_json(plain)

    def items(self, value: Iterable[Any], depth: int) -> list[Any]:
        self._count(len(cast("Sequence[Any]", value)))
        found: list[Any] = []
        try:
            for item in value:
                found.append(self.plain(item, depth + 1))
        except NotJson as error:
            error.steps.append(str(len(found)))
            raise
        return found

    def sorted_items(self, value: Set[Any], depth: int) -> list[Any]:
        return sorted(self.items(value, depth), key=_sort_key)

    def _dataclass(self, value: Any, depth: int) -> dict[str, Any]:
        if type(value).__module__ == "toolcrib.content":
            raise NotJson(
                f"{type(value).__name__} inside other data: return it, or a list of parts"
            )
        fields = dataclasses.fields(value)
        return self.members({f.name: getattr(value, f.name) for f in fields}, depth)

    def _model(self, model: Any, depth: int) -> Any:
        """A pydantic model as it writes itself; sets, which it writes in any order, in ours."""
        errors = (ValueError, TypeError, RecursionError)
        try:
            raw = model.model_dump(by_alias=True, warnings=False)
        except errors as error:  # its text may quote the value
            raise NotJson(f"a {type(model).__name__[:80]!r} that cannot be written") from error
        try:
            written = model.model_dump(mode="json", by_alias=True, warnings=False)
        except errors:  # bytes that are no text, for one; ours can do that
            return self.plain(raw, depth + 1)
        return self.plain(_stable(written, raw), depth + 1)

    def by_pydantic(self, value: Any, _: int) -> Any:
        try:
            return self.plain(pydantic_core.to_jsonable_python(value), MAX_DEPTH)
        except ValueError as error:
            raise NotJson(f"a value of type {type(value).__name__[:80]!r}") from error


def _stable(written: Any, raw: Any) -> Any:
    """`written`, the JSON of `raw`, with arrays that were sets in a fixed order."""
    if is_array(written):
        if isinstance(raw, Set):
            return sorted(written, key=_sort_key)
        if isinstance(raw, list | tuple):
            own = cast("Sequence[Any]", raw)
            if len(own) == len(written):
                return [_stable(item, each) for item, each in zip(written, own, strict=True)]
    elif is_object(written) and is_object(raw) and len(raw) == len(written):
        pairs = zip(written.items(), raw.values(), strict=True)
        return {key: _stable(item, own) for (key, item), own in pairs}
    return written


def _sort_key(item: Any) -> tuple[int, Any]:
    return (0, item) if isinstance(item, int | float) else (1, compact_json(item))


def _iso(walk: Walk, value: Any, depth: int) -> str:
    text: str = value.isoformat()
    return text


def _inner(walk: Walk, value: Any, depth: int) -> Any:
    return walk.plain(value.value, depth + 1)


_CONVERSIONS: Final[
    tuple[tuple[type[Any] | tuple[type[Any], ...], Callable[[Walk, Any, int], Any]], ...]
] = (
    (Enum, _inner),
    (str, lambda walk, value, depth: walk.plain(str.__str__(value), depth)),
    (int, lambda walk, value, depth: int(value)),
    (float, lambda walk, value, depth: walk.plain(float(value), depth)),
    (Mapping, Walk.members),
    ((KeysView, ValuesView, ItemsView), Walk.items),  # their order is the mapping's
    (Set, Walk.sorted_items),
    ((bytes, bytearray, memoryview), Walk.text_of_bytes),
    (Decimal, Walk.decimal),
    ((datetime, date, time), _iso),
    (timedelta, Walk.by_pydantic),
    ((UUID, Fraction), lambda walk, value, depth: str(value)),
    (Sequence, Walk.items),
)
"""First match counts: an enum may be a string or a number, a view of keys is a set too."""
