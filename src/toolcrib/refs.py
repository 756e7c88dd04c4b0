"""Inside one JSON Schema: what a `$ref` means, which subschemas see the same value or its parts.

Pure, local and bounded: only references into the same document are followed, and how much work a
schema can make a validator do is known before it is given one (JS01–JS03, dependencies §1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from toolcrib.jsonvalue import is_array, is_object

__all__ = ["Work", "alternatives", "below", "in_place", "pointed", "work_of"]

MAX_ALTERNATIVES = 64
_SAME_MANY = ("allOf", "anyOf", "oneOf")
_SAME_ONE = ("not", "if", "then", "else")
_PARTS_BY_NAME = ("properties", "patternProperties")
_PARTS_ONE = (
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "unevaluatedItems",
)


def pointed(root: object, reference: object) -> object:
    """What a reference into the document `root` points at: `#`, `#/any/where`, `#anchor`. None for
    anything else, an address outside included: that is never fetched."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if not fragment.startswith("/"):
        return root if not fragment else _anchored(root, fragment)
    found = root
    for step in fragment[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if is_object(found) and key in found:
            found = found[key]
        elif is_array(found) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _anchored(root: object, name: str) -> object:
    for places in ("$defs", "definitions"):
        named = root.get(places) if is_object(root) else None
        for schema in named.values() if is_object(named) else ():
            if is_object(schema) and schema.get("$anchor") == name:
                return schema
    return None


def in_place(node: Mapping[str, Any], root: object) -> Iterator[object]:
    """The subschemas that `node` applies to the very value it is applied to itself."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in node:
            yield pointed(root, node[keyword])
    for keyword in _SAME_MANY:
        if is_array(listed := node.get(keyword)):
            yield from listed
    for keyword in _SAME_ONE:
        if keyword in node:
            yield node[keyword]
    for keyword in ("dependentSchemas", "dependencies"):
        if is_object(named := node.get(keyword)):
            yield from named.values()


def below(node: Mapping[str, Any]) -> Iterator[object]:
    """The subschemas that `node` applies to members or items of its value."""
    for keyword in _PARTS_BY_NAME:
        if is_object(named := node.get(keyword)):
            yield from named.values()
    for keyword in ("prefixItems", "items"):
        if is_array(listed := node.get(keyword)):
            yield from listed
    for keyword in _PARTS_ONE:
        if is_object(one := node.get(keyword)):
            yield one


def alternatives(schema: object, root: object) -> list[dict[str, Any]]:
    """The plain schemas, one of which or all of which a value has to fit: references, unions and
    `allOf` opened, at most 64 of them. Empty where something among them cannot be read."""
    found: list[dict[str, Any]] = []
    waiting, seen = [schema], set[int]()
    while waiting:
        node = waiting.pop(0)
        if not is_object(node) or len(seen) == MAX_ALTERNATIVES:
            return []
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)
        if "$ref" in node:
            waiting.append(pointed(root, node["$ref"]))
        for keyword in _SAME_MANY:
            waiting.extend(node.get(keyword) or ())
    return found


class Work(NamedTuple):
    """What checking one value against a schema can cost, whatever the value.

    `places`: how many subschemas may look at one member of it. `growth`: how many times a recursive
    schema may come back to itself for one member: above 1, each level of the value multiplies.
    """

    places: int
    growth: int


def work_of(root: object) -> Work:
    """The work a schema makes. Raises `RecursionError` for references chained too long."""
    return _weigh(root, root, {}, set())


def _weigh(node: object, root: object, known: dict[int, Work], open_: set[int]) -> Work:
    """Subschemas of the same value add up; of several parts, only the heaviest meets one member."""
    if not is_object(node):
        return Work(1, 0)
    if id(node) in open_:
        return Work(1, 1)
    if (found := known.get(id(node))) is not None:
        return found
    open_.add(id(node))
    same = [_weigh(each, root, known, open_) for each in in_place(node, root)]
    parts = [_weigh(each, root, known, open_) for each in below(node)]
    open_.discard(id(node))
    places = 1 + sum(w.places for w in same) + max((w.places for w in parts), default=0)
    growth = sum(w.growth for w in same) + max((w.growth for w in parts), default=0)
    known[id(node)] = Work(places, growth)
    return known[id(node)]
