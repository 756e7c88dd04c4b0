"""The slips of models put right where a schema leaves no doubt, each one noted.

Asked only after arguments did not fit, and what it gives is checked again: what fits is never
touched, and what is mended but still does not fit is refused. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jiter

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.misfits import article, json_type
from toolcrib.refs import alternatives, pointed

__all__ = ["MAX_REPAIRS", "coerce"]

MAX_REPAIRS = 20
MAX_DEPTH = 32


def coerce(
    values: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """`values` with the slips put right, and the repairs; at any depth, through references.

    A string holding a JSON list, object, number or boolean becomes that value where its place takes
    that type and no string; 10.0 becomes 10 where only whole numbers are taken (JSON Schema calls
    both integers); null is dropped where a member is optional and takes no null (JS18).
    """
    mender = _Mender(schema)
    mended = mender.members(dict(values), schema, "", 0)
    more = mender.count - len(mender.repairs)
    return mended, (*mender.repairs, *([f"and {more} more of the kind"] if more else ()))


class _Mender:
    """One pass over one call's arguments."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[int, tuple[list[dict[str, Any]], set[str]]] = {}
        self._made: list[object] = []
        self.repairs: list[str] = []
        self.count = 0

    def _note(self, path: str, what: str) -> None:
        self.count += 1
        if len(self.repairs) < MAX_REPAIRS:
            self.repairs.append(f"{path[:200]}: {what}")

    def _open(self, schema: object) -> tuple[list[dict[str, Any]], set[str]]:
        found = self._known.get(id(schema))
        if found is None:
            nodes = alternatives(schema, self._root)
            found = self._known[id(schema)] = (nodes, _types(schema, self._root, 0))
        return found

    def members(self, value: dict[str, Any], schema: object, path: str, depth: int) -> Any:
        nodes, _ = self._open(schema)
        required = {name for node in nodes for name in node.get("required") or ()}
        result: dict[str, Any] = {}
        for name, inner in value.items():
            where = f"{path}.{name}" if path else name
            place = self._place([_property(node, name) for node in nodes])
            types = self._open(place)[1]
            if inner is None and types and "null" not in types and name not in required:
                self._note(where, "null was taken as absent")
            else:
                result[name] = self.value(inner, place, where, depth + 1)
        return result

    def value(self, value: Any, schema: object, path: str, depth: int) -> Any:
        types = self._open(schema)[1]
        if not types or depth > MAX_DEPTH:
            return value
        if isinstance(value, str) and "string" not in types:
            value = self._from_string(value, types, path)
        elif isinstance(value, float) and types == {"integer"} and value.is_integer():
            self._note(path, "a whole number was sent with a fraction of zero")
            return int(value)
        if is_object(value) and "object" in types:
            return self.members(value, schema, path, depth)
        if is_array(value) and "array" in types:
            return self._items(value, schema, path, depth)
        return value

    def _items(self, value: list[Any], schema: object, path: str, depth: int) -> list[Any]:
        nodes, _ = self._open(schema)
        rest = self._place([node.get("items") for node in nodes])
        prefixes: list[list[Any]] = [node.get("prefixItems") or [] for node in nodes]
        longest = max(map(len, prefixes), default=0)
        places = [self._place([p[at] if at < len(p) else None for p in prefixes])
                  for at in range(longest)]  # fmt: skip
        return [
            self.value(item, places[at] if at < longest else rest, f"{path}.{at}", depth + 1)
            for at, item in enumerate(value)
        ]

    def _place(self, parts: list[object]) -> object:
        """What describes a part of a value: the one subschema that does, or any of several."""
        known = [part for part in parts if is_object(part)]
        if len(known) < 2:
            return known[0] if known else None
        place = {"anyOf": known}
        self._made.append(place)  # kept, so that its id stays its own
        return place

    def _from_string(self, value: str, types: set[str], path: str) -> Any:
        try:
            inner = jiter.from_json(value.encode(), allow_inf_nan=False)
        except (ValueError, UnicodeEncodeError):
            return value
        found = json_type(inner)
        if found == "null" or not (found in types or (found == "integer" and "number" in types)):
            return value
        self._note(path, f"{article(found)} was sent as a JSON string")
        return inner


def _property(node: Mapping[str, Any], name: str) -> object:
    properties = node.get("properties")
    if is_object(properties) and name in properties:
        return properties[name]
    return node.get("additionalProperties")


def _types(schema: object, root: Mapping[str, Any], depth: int) -> set[str]:
    """The JSON types a subschema takes; empty where it does not say."""
    if not is_object(schema) or depth > 8:
        return set()
    said = schema.get("type")
    found = {said} if isinstance(said, str) else set(said) if is_array(said) else set[str]()
    if not found and is_array(allowed := schema.get("enum")):
        found = {json_type(value) for value in allowed}
    if not found and "const" in schema:
        found = {json_type(schema["const"])}
    if found:
        return found
    if "$ref" in schema:
        return _types(pointed(root, schema["$ref"]), root, depth + 1)
    if is_array(every := schema.get("allOf")):
        limits = [types for each in every if (types := _types(each, root, depth + 1))]
        return set[str].intersection(*limits) if limits else set()
    branches = schema.get("anyOf") or schema.get("oneOf")
    united = [_types(branch, root, depth + 1) for branch in branches or ()]
    return set[str]().union(*united) if all(united) else set()
