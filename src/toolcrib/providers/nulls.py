"""Takes out the nulls by which a model in OpenAI's strict mode spells what it leaves out (O8).

Looks at the tool's own schema: a null that it takes is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.walk import target, types_of

__all__ = ["without_nulls"]


def without_nulls(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """`value` without the nulls that stand for absence: where `schema` (the original) makes a
    property optional and gives it no null."""
    node = schema
    for _ in range(8):
        if not (is_object(node) and isinstance(node.get("$ref"), str)):
            break
        node = target(root, node["$ref"])
    if not is_object(node):
        return value
    branches = [b for b in node.get("anyOf") or () if is_object(b) and b.get("type") != "null"]
    if len(branches) == 1 and "properties" not in node:
        return without_nulls(value, branches[0], root)
    if is_array(value):
        first = node.get("prefixItems") or ()
        items = [*first, *(node.get("items") for _ in value[len(first) :])]
        return [without_nulls(v, s, root) for v, s in zip(value, items, strict=False)]
    properties = node.get("properties")
    if not is_object(value) or not is_object(properties):
        return value
    needed: list[str] = node.get("required") or []
    return {
        name: without_nulls(inner, properties.get(name), root)
        for name, inner in value.items()
        if inner is not None or name in needed or _takes_null(properties.get(name), root)
    }


def _takes_null(schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    if not is_object(schema) or depth > 8:
        return True
    if isinstance(reference := schema.get("$ref"), str):
        return _takes_null(target(root, reference), root, depth + 1)
    if "type" in schema:
        return "null" in types_of(schema)
    if "enum" in schema:
        return None in schema["enum"]
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    return not branches or any(_takes_null(each, root, depth + 1) for each in branches)
