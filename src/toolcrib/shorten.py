"""A JSON value too long for a model, shortened so that it is still JSON (report RS13).

Arrays keep head and tail round a marker, objects their keys as far as they go, long strings both
ends, and what lies deep is summarised. Everything that was left out says so, within the cap. Works
top-down on budgets and looks at no more of the value than could be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from toolcrib.definition import compact_json
from toolcrib.jsonvalue import is_array, is_object

__all__ = ["shorten"]

MAX_SHOWN_DEPTH: Final = 16
"""Levels that are shown of a value that has to be shortened."""
LEAST_ITEM: Final = 48
"""Bytes an array's item gets at least; rather fewer items than many stumps."""
LEAST_MEMBER: Final = 16
"""The same for an object's value: its keys say something even so."""
SPLIT: Final = 24
"""Below that many bytes a string keeps its head only."""


def shorten(value: Any, max_bytes: int, note: str = "") -> str:
    """Compact JSON of `value` in at most `max_bytes` (from 2 on) of UTF-8; all of it where it fits.

    `value` is plain JSON (`jsonable`). Where something is left out, `note` stands in the outermost
    array or object, unless it would take more than half of the room.
    """
    if _size(value, max_bytes) <= max_bytes:
        return compact_json(value)
    whole = compact_json(value)  # the measure above is an upper bound
    if len(whole.encode()) <= max_bytes:
        return whole
    if _text_size(note) > max_bytes // 2:
        note = ""
    return _shown(value, max_bytes, 0, note)


def _shown(value: Any, room: int, depth: int, note: str = "") -> str:
    """JSON of `value` in at most `room` bytes; `room` is 16 or more below the outermost."""
    if _size(value, room) <= room:
        return compact_json(value)
    shown = ""
    if isinstance(value, str):
        shown = _string(value, room)
    elif depth >= MAX_SHOWN_DEPTH:
        return _summary(value, room)
    elif is_array(value):
        shown = _array(value, room, depth, note)
    elif is_object(value):
        shown = _object(value, room, depth, note)
    return shown or _summary(value, room)


def _summary(value: Any, room: int) -> str:
    said: tuple[str, ...]
    if is_array(value):
        said = (f"[… {len(value)} items]", "[…]", "…")
    elif is_object(value):
        said = (f"{{… {len(value)} keys}}", "{…}", "…")
    else:
        said = ("a long number", "…")
    fitting = (compact_json(text) for text in said if _text_size(text) <= room)
    return next(fitting, "[]" if is_array(value) else "{}" if is_object(value) else '""')


def _string(text: str, room: int) -> str:
    mark = f"…[{len(text)} characters left out]…"
    space = room - _text_size(mark)
    if space < SPLIT:
        space = room - _text_size("…")
        return compact_json(_piece(text, space, is_tail=False) + "…") if space >= 0 else ""
    head = _piece(text, space * 2 // 3, is_tail=False)
    tail = _piece(text, space - _text_size(head) + 2, is_tail=True)
    left_out = len(text) - len(head) - len(tail)
    return compact_json(f"{head}…[{left_out} characters left out]…{tail}")


def _piece(text: str, room: int, *, is_tail: bool) -> str:
    """One end of `text` that takes at most `room` bytes between the quotes."""
    keep = max(room, 0)
    while keep:
        piece = text[-keep:] if is_tail else text[:keep]
        size = _text_size(piece) - 2
        if size <= room:
            return piece
        keep = len(piece) * room // size
    return ""


@dataclass(frozen=True, slots=True)
class _Member:
    """An item of an array or a member of an object: its key as JSON, and at most `size` bytes."""

    key: str
    key_size: int
    value: Any
    size: int


def _array(value: list[Any], room: int, depth: int, note: str) -> str:
    def members(items: Iterator[Any]) -> Iterator[_Member]:
        return (_Member("", 0, item, _size(item, room)) for item in items)

    marker = _marker("items", len(value), note)
    space = room - 2
    most = max(LEAST_ITEM, space // 8)
    count = len(value)
    if 3 * count <= space and (all_ := _all_of(members(iter(value)), space, LEAST_ITEM, note)):
        shown = [*_fill(all_, space - _cost(note), depth), *_said(note)]
        return f"[{','.join(shown)}]"
    space -= _text_size(marker) + 1
    head, tail = _ends(members(iter(value)), members(reversed(value)), count, space, most)
    if not head:
        return f"[{compact_json(marker)}]" if space + 1 >= 0 else ""
    shown = _fill([*head, *tail], space, depth)
    left_out = _marker("items", count, note, count - len(shown))
    return f"[{','.join([*shown[: len(head)], compact_json(left_out), *shown[len(head) :]])}]"


def _object(value: dict[str, Any], room: int, depth: int, note: str) -> str:
    name = "…"
    while name in value:
        name += "…"
    own_key = compact_json(name) + ":"

    def members(items: Iterator[tuple[str, Any]]) -> Iterator[_Member]:
        for key, item in items:
            yield _Member(compact_json(key) + ":", _text_size(key) + 1, item, _size(item, room))

    marker = _marker("keys", len(value), note)
    space = room - 2
    count = len(value)
    own = _cost(note) + _text_size(name) + 1 if note else 0
    every = members(iter(value.items()))
    if 6 * count <= space and (all_ := _all_of(every, space - own, LEAST_MEMBER, "")):
        shown = [*_fill(all_, space - own, depth), *(own_key + text for text in _said(note))]
        return f"{{{','.join(shown)}}}"
    space -= _text_size(marker) + 1 + _text_size(name) + 1
    head, tail = _ends(
        members(iter(value.items())), members(reversed(value.items())), count, space, LEAST_ITEM
    )
    if not head:
        return f"{{{own_key}{compact_json(marker)}}}" if space + 1 >= 0 else ""
    shown = _fill([*head, *tail], space, depth)
    left_out = own_key + compact_json(_marker("keys", count, note, count - len(shown)))
    return f"{{{','.join([*shown[: len(head)], left_out, *shown[len(head) :]])}}}"


def _marker(what: str, count: int, note: str, left_out: int | None = None) -> str:
    """What stands for the items that are not shown; the longest it can be, where `left_out` is not
    known yet."""
    said = f"… {count if left_out is None else left_out} of {count} {what} left out …"
    return f"{said} {note}" if note else said


def _cost(note: str) -> int:
    return _text_size(note) + 1 if note else 0


def _said(note: str) -> tuple[str, ...]:
    return (compact_json(note),) if note else ()


def _all_of(members: Iterator[_Member], space: int, least: int, note: str) -> list[_Member]:
    """Every member, where each could get its `least`; nothing otherwise."""
    left = space - _cost(note)
    found: list[_Member] = []
    for member in members:
        left -= member.key_size + min(member.size, least) + 1
        if left < -1:  # the last has no comma
            return []
        found.append(member)
    return found


def _ends(
    first: Iterator[_Member], last: Iterator[_Member], count: int, space: int, most: int
) -> tuple[list[_Member], list[_Member]]:
    """As many members from both ends, by turns, as get the space they need, or `most` of it."""
    head: list[_Member] = []
    tail: list[_Member] = []
    for member in islice(_by_turns(first, last), count - 1):
        space -= member.key_size + min(member.size, most) + 1
        if space < 0:
            break
        (head if len(head) <= len(tail) else tail).append(member)
    return head, tail[::-1]


def _by_turns(first: Iterator[_Member], last: Iterator[_Member]) -> Iterator[_Member]:
    for one, other in zip(first, last, strict=True):
        yield one
        yield other


def _fill(members: Sequence[_Member], space: int, depth: int) -> list[str]:
    """Each member as JSON, together within `space` bytes with their commas: small ones whole, the
    large ones share what is left evenly."""
    left = space - sum(member.key_size for member in members) - len(members) + 1
    level = _level([member.size for member in members], left)
    return [m.key + _shown(m.value, min(m.size, level), depth + 1) for m in members]


def _level(sizes: Sequence[int], total: int) -> int:
    """The most that each may take so that together they take at most `total`."""
    waiting = len(sizes)
    for size in sorted(sizes):
        if size * waiting > total:
            return total // waiting
        total -= size
        waiting -= 1
    return max(sizes, default=0)


def _text_size(text: str) -> int:
    return len(orjson.dumps(text))


def _size(value: Any, most: int) -> int:
    """Bytes of the compact JSON of `value`, or a little more; something above `most` as soon as
    they are more than that."""
    if isinstance(value, str):
        return _text_size(value) if len(value) <= most else most + 1
    if is_array(value):
        return _sum_of(value, len(value) + 1 if value else 2, most)
    if is_object(value):
        total = len(value) + 1 if value else 2
        for key in value:
            total += _size(key, most) + 1
            if total > most:
                return most + 1
        return _sum_of(list(value.values()), total, most)
    if isinstance(value, float):  # written in two ways, see compact_json
        return max(len(orjson.dumps(value)), len(repr(value)))
    return len(compact_json(value))


def _sum_of(items: Sequence[Any], total: int, most: int) -> int:
    if total > most:
        return most + 1
    for item in items:
        total += _size(item, most - total)
        if total > most:
            return most + 1
    return total
