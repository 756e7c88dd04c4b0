"""The root of a tool's schema as providers demand it: one object with `properties`, without unions
(O6, A4), and `items` on each array (O7, JS12).

Pure; starts from `schemas.modern`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.report import Notes
from toolcrib.providers.walk import each_child, target, types_of

__all__ = ["flat_root", "with_items"]

_UNIONS = ("allOf", "anyOf", "oneOf")
_DROPPED = ("enum", "const", "not")
_WORDS = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_MERGED = frozenset(("type", "properties", "required", *_WORDS))
_CHOICE = frozenset(("if", "then", "else"))
_NAMES_OF_OTHERS = frozenset(
    ("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames")
)
MAX_STEPS = 24
"""How many references and combinations are followed at the root."""


def flat_root(schema: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """`schema` as one plain object: references at the root followed, combinations merged.

    Merging never refuses what was valid before, except for a property that only some branches of a
    union describe; that is noted as narrower.
    """
    flat = _Flat(schema, notes)
    node = flat.node({key: value for key, value in schema.items() if key != "$defs"}, 0)
    types = types_of(node)
    if types and "object" not in types:
        notes.add(f"root of type {types[0]!r} sent as an object of anything")
        node = {}
    for key in _DROPPED:
        if key in node:
            del node[key]
            notes.add(f"{key!r} at the root left out")
    whole = {
        **node,
        "type": "object",
        "properties": _properties(node),
    }
    order = ("title", "description", "type", "properties", "required")
    sorted_first = {key: whole[key] for key in order if key in whole}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**sorted_first, **whole, **definitions}


class _Flat:
    def __init__(self, root: Mapping[str, Any], notes: Notes) -> None:
        self._root = root
        self._notes = notes
        self._steps = 0

    def node(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """`node` without a reference or a union at its top."""
        self._steps += 1
        if depth > MAX_STEPS or self._steps > 40 * MAX_STEPS:
            self._notes.add("references at the root lead in a circle: anything is accepted")
            return {}
        plain = {k: v for k, v in node.items() if k not in _UNIONS and k != "$ref"}
        must: list[Mapping[str, Any]] = list(node.get("allOf") or ())
        if "$ref" in node:
            found = target(self._root, node["$ref"])
            must.insert(0, found if is_object(found) else {})
        for branch in must:
            plain = self._both(plain, self.node(branch, depth + 1))
        for key in ("anyOf", "oneOf"):
            if branches := node.get(key):
                plain = self._either(plain, [self.node(each, depth + 1) for each in branches])
        return plain

    def _both(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        """What both say: `allOf`, or a reference and what stands beside it."""
        if not first or not second:
            return {**first, **second}
        properties = dict(_properties(first))
        for name, schema in _properties(second).items():
            mine = properties.get(name)
            properties[name] = (
                schema if mine is None or mine == schema else {"allOf": [mine, schema]}
            )
        for key in sorted((first.keys() & second.keys()) - _MERGED):
            if first[key] != second[key]:
                self._notes.add(f"{key!r} of a combination at the root left out")
        apart = _CHOICE if first.keys() & _CHOICE else _NAMES_OF_OTHERS
        merged = {**{k: v for k, v in second.items() if k not in apart}, **first}
        merged = {k: v for k, v in merged.items() if k not in _NAMES_OF_OTHERS}
        for owner in (second, first):  # what it says of other names holds if it lists them all
            others = {key: owner[key] for key in sorted(_NAMES_OF_OTHERS & owner.keys())}
            if others and properties.keys() == _properties(owner).keys():
                merged = {k: v for k, v in merged.items() if k not in _NAMES_OF_OTHERS} | others
            elif others:
                self._notes.add("what a combination at the root says of other names left out")
        required = [*(first.get("required") or ()), *(second.get("required") or ())]
        return _with(merged, properties, required)

    def _either(self, base: dict[str, Any], branches: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What is common to the branches of a union, and what any of them adds."""
        self._notes.add("union at the root merged into one object")
        objects = [b for b in branches if not types_of(b) or "object" in types_of(b)]
        properties = dict(_properties(base))
        for name in dict.fromkeys(name for b in objects for name in _properties(b)):
            if name not in properties:
                properties[name] = self._one_of(name, objects)
        merged = dict(base)
        if properties.keys() - _properties(base).keys():
            self._notes.add("what a union at the root says of other names left out")
            merged = {k: v for k, v in base.items() if k not in _NAMES_OF_OTHERS}
        common = [
            name
            for name in (objects[0].get("required") or () if objects else ())
            if all(name in (b.get("required") or ()) for b in objects)
        ]
        return _with(merged, properties, [*(base.get("required") or ()), *common])

    def _one_of(self, name: str, branches: Sequence[dict[str, Any]]) -> dict[str, Any]:
        said: list[dict[str, Any]] = []
        for branch in branches:
            found = _properties(branch).get(name)
            if found is None:  # an open branch takes anything under this name
                if branch.get("additionalProperties", True) != {"not": {}}:
                    path = f"/properties/{name}"
                    self._notes.add("property of one branch of a union", path, "narrower")
            elif found not in said:
                said.append(found)
        return said[0] if len(said) == 1 else {"anyOf": said}


def _properties(node: Mapping[str, Any]) -> dict[str, Any]:
    found = node.get("properties")
    return found if is_object(found) else {}


def _with(node: dict[str, Any], properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    rest = {k: v for k, v in node.items() if k not in ("properties", "required")}
    needed = list(dict.fromkeys(required))
    return {
        **rest,
        **({"properties": properties} if properties else {}),
        **({"required": needed} if needed else {}),
    }


def with_items(node: Any, notes: Notes, path: str = "") -> dict[str, Any]:
    """`node` with `items` on each array, tuples included (O7): the meaning stays."""
    changed = each_child(node, lambda inner, here: with_items(inner, notes, here), path)
    if "items" not in changed and (
        "array" in types_of(changed) or is_array(changed.get("prefixItems"))
    ):
        changed["items"] = {}
        notes.add("array without items: any items", path, "same")
    if changed.get("additionalProperties") == {"not": {}}:
        changed["additionalProperties"] = False
    return changed
