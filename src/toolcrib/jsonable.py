"""Strict RFC 8259 JSON of anything reasonable, and the plain values behind it.

The ways to `plain`, which says what becomes what; most values need no conversion and take the
quick one. Who gets the text is `results`.
"""

from __future__ import annotations

from typing import Any

import orjson
import pydantic_core

from toolcrib.definition import compact_json
from toolcrib.plain import MAX_DEPTH, MAX_VALUES, NON_FINITE, REPLACED, NotJson, Walk, clean

__all__ = [
    "MAX_DEPTH",
    "MAX_VALUES",
    "NON_FINITE",
    "REPLACED",
    "NotJson",
    "clean",
    "json_text",
    "jsonable",
]


def json_text(value: Any) -> tuple[str, tuple[str, ...]]:
    """Compact RFC 8259 JSON of `value`, and notes of what was replaced. Raises `NotJson`."""
    quick = _quick(value)
    if quick is not None:
        return quick.decode(), ()
    plain, notes = _converted(value)
    try:
        return compact_json(plain), notes
    except ValueError as error:  # Python writes no number of more than 4,300 digits
        raise NotJson("a number of too many digits") from error


def jsonable(value: Any) -> tuple[Any, tuple[str, ...]]:
    """`value` as plain JSON values (itself, where it is that already), and notes of what was
    replaced. Raises `NotJson`."""
    return (value, ()) if _is_plain(value) else _converted(value)


def _quick(value: Any) -> bytes | None:
    """What orjson writes of a value it knows whole; None where a closer look is needed."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:
        return None
    if b"null" in text:  # orjson writes NaN and infinities as null
        named = pydantic_core.to_json(value, inf_nan_mode="constants")
        if b"NaN" in named or b"Infinity" in named:
            return None
    return text


def _is_plain(value: Any) -> bool:
    options = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    try:
        orjson.dumps(value, option=options | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return False
    return _quick(value) is not None


def _converted(value: Any) -> tuple[Any, tuple[str, ...]]:
    walk = Walk()
    plain = walk.plain(value, 0)
    return plain, tuple(walk.notes)
