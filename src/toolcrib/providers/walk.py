"""Where the subschemas of a JSON Schema are, and JSON pointers into it.

Only the structure; what becomes of a subschema is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from toolcrib.jsonvalue import is_array, is_object

__all__ = ["DEFS", "each_child", "nodes_of", "pointer", "target", "types_of", "words"]


def words(text: str) -> frozenset[str]:
    """The words of `text` as a set: long lists of keywords stay readable that way."""
    return frozenset(text.split())


ONE = words(
    "items additionalProperties propertyNames contains not if then else unevaluatedItems"
    " unevaluatedProperties contentSchema"
)
MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
NAMED = words("properties patternProperties dependentSchemas $defs definitions")
DEFS = "#/$defs/"


def each_child(
    node: Mapping[str, Any], change: Callable[[Any, str], Any], path: str
) -> dict[str, Any]:
    """`node` with each subschema replaced by what `change(subschema, path)` gives."""
    changed: dict[str, Any] = {}
    for key, value in node.items():
        here = f"{path}/{key}"
        if key in ONE:
            changed[key] = change(value, here)
        elif key in MANY and is_array(value):
            changed[key] = [change(inner, f"{here}/{at}") for at, inner in enumerate(value)]
        elif key in NAMED and is_object(value):
            changed[key] = {
                name: change(inner, f"{here}/{pointer(name)}") for name, inner in value.items()
            }
        else:
            changed[key] = value
    return changed


def nodes_of(node: Any) -> list[dict[str, Any]]:
    """Every subschema of `node`, itself included."""
    found: list[dict[str, Any]] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if is_object(each):
            found.append(each)
            each_child(each, lambda inner, _: waiting.append(inner), "")
    return found


def pointer(name: str) -> str:
    """`name` as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def target(root: Any, reference: str) -> Any:
    """What a reference within the document (`#`, `#/a/b`) points at; None where nothing is."""
    found = root
    for step in unquote(reference[1:]).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if is_object(found):
            found = found.get(step)
        elif is_array(found) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def types_of(node: Mapping[str, Any]) -> list[str]:
    """The types a schema names, as a list; empty where it names none."""
    said = node.get("type")
    if isinstance(said, str):
        return [said]
    return [str(each) for each in said] if is_array(said) else []
