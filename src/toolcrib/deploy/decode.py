"""From nodes to frozen settings: every fault of a file is noted, not only the first.

A decoder is a function from a place in the file (`At`) to a value. It notes what is wrong and
raises `Rejected`; what holds others (`record`, `list_of`, `map_of`) lets each of them speak before
it gives up itself. What single values look like is `scalars`; which settings there are is said
where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from toolcrib.deploy.places import At, Rejected, suggestion
from toolcrib.errors import InvalidDefinition

__all__ = [
    "LATER",
    "Decoder",
    "Field",
    "gathered",
    "list_of",
    "map_of",
    "nothing",
    "plain_record",
    "record",
    "required",
]

T = TypeVar("T")

LATER = "not available in this version"

Decoder: TypeAlias = Callable[[At], T]
"""Gives the value of a place, or notes why there is none and raises `Rejected`."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a record that must be there."""

    decode: Decoder[Any]


def required(decode: Decoder[Any]) -> Field:
    return Field(decode)


def record(
    make: Callable[..., T],
    fields: Mapping[str, Decoder[Any] | Field],
    *,
    later: Iterable[str] = (),
    check: Callable[[At], None] | None = None,
) -> Decoder[T]:
    """A mapping with exactly these keys, given to `make` by name; an absent one is not given.

    `check` looks at the whole mapping before its keys are decoded, for rules between keys. `later`
    are keys this version does not have yet. `make` may raise `InvalidDefinition`; its text is
    shown, so it must not hold values.
    """
    decoders: dict[str, Decoder[Any]] = {
        key: one.decode if isinstance(one, Field) else one for key, one in fields.items()
    }
    needed = tuple(key for key, one in fields.items() if isinstance(one, Field))
    unbuilt = frozenset(later)

    def decode(at: At) -> T:
        before = len(at.notes.problems)
        node = at.map_node()
        for key in needed:
            if key not in node.by_key:
                at.note(f"missing required key {key!r}")
        if check is not None:
            check(at)
        values = _values(at, decoders, unbuilt)
        if len(at.notes.problems) > before or len(values) < len(node.entries):
            raise Rejected
        return _made(at, make, values)

    return decode


def _values(at: At, decoders: Mapping[str, Decoder[Any]], later: frozenset[str]) -> dict[str, Any]:
    """The values of the keys that have one; of the others it was noted why not."""
    values: dict[str, Any] = {}
    for entry in at.map_node().entries:
        if (decoder := decoders.get(entry.key)) is None:
            _unknown_key(at.under(entry), entry.key, tuple(decoders), later)
            continue
        try:
            values[entry.key] = decoder(at.under(entry))
        except Rejected:
            continue  # it said why; the other keys have their say before the record fails
    return values


def plain_record(
    fields: Mapping[str, Decoder[Any] | Field], *, later: Iterable[str] = ()
) -> Decoder[dict[str, Any]]:
    """A `record` as a dict of the keys that are there."""
    return record(_as_dict, fields, later=later)


def _as_dict(**values: Any) -> dict[str, Any]:
    return values


def _made(at: At, make: Callable[..., T], values: Mapping[str, Any]) -> T:
    try:
        return make(**values)
    except InvalidDefinition as error:
        at.reject(str(error))


def list_of(decode: Decoder[T], *, least: int = 0) -> Decoder[tuple[T, ...]]:
    """A list of at least `least` items that `decode` each."""

    def decode_list(at: At) -> tuple[T, ...]:
        items = at.list_node().items
        if len(items) < least:
            at.note(f"expected at least {least}, got {'none' if not items else len(items)}")
        places = (at.item(number, item) for number, item in enumerate(items))
        return tuple(gathered(partial(decode, place) for place in places))

    return decode_list


def map_of(decode: Decoder[T]) -> Decoder[dict[str, T]]:
    """A mapping from names of the user's own choice to what `decode` gives; none is blank."""

    def decode_map(at: At) -> dict[str, T]:
        entries = at.map_node().entries
        for entry in entries:
            if not entry.key.strip():
                at.under(entry).note("a blank key")
        values = gathered(partial(decode, at.under(entry)) for entry in entries)
        return dict(zip((entry.key for entry in entries), values, strict=True))

    return decode_map


def gathered(decodings: Iterable[Callable[[], T]]) -> list[T]:
    """What each gives; rejected as a whole if one was, after all had their say."""
    values: list[T] = []
    failed = False
    for decoding in decodings:
        try:
            values.append(decoding())
        except Rejected:
            failed = True
    if failed:
        raise Rejected
    return values


@dataclass(frozen=True, slots=True)
class _Nothing:
    """What an implementation without settings gets."""


nothing: Decoder[object] = record(_Nothing, {})
"""Settings of an implementation that has none: any key is unknown."""


def _unknown_key(at: At, key: str, known: tuple[str, ...], later: frozenset[str]) -> None:
    if key in later:
        at.note(f"{key!r} is {LATER}")
    else:
        at.note(f"unknown key {key!r}{suggestion(at.notes, key, known)}")
