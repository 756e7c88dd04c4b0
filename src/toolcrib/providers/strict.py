"""OpenAI's strict mode: the schema in the form it demands, or why there is none (O8–O11).

A model in strict mode names every property and sends null for one it leaves out: `nulls` takes
those out again. Starts from `roots.flat_root`; never changes its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.definition import compact_json
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.report import Notes
from toolcrib.providers.walk import each_child, nodes_of, types_of, words

__all__ = ["NotStrict", "strict_form"]

FORMATS = words("date-time time date duration email hostname ipv4 ipv6 uuid")
_LIMITS_DROPPED = words(  # each of them only refuses values, so that without it more is accepted
    "not if then else dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems"
    " propertyNames minProperties maxProperties contains minContains maxContains uniqueItems"
    " minLength maxLength contentMediaType contentEncoding"
)
_WORDS_DROPPED = frozenset(("examples", "deprecated", "readOnly", "writeOnly", "title"))
_WORDS = frozenset(("title", "description", "default"))
MAX_PROPERTIES, MAX_LEVELS, MAX_ENUM, MAX_NAMES = 5_000, 10, 1_000, 120_000
MAX_LONG_ENUM, MAX_LONG_ENUM_TEXT = 250, 15_000
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")


class NotStrict(Exception):
    """Raised inside this room for a schema that has no strict form: why, and where in it."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.path = path


def strict_form(schema: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """`schema` for strict mode. Raises `NotStrict` where it would refuse what is meant to be
    accepted: objects with free names, values of any type, combinations."""
    result = _node(schema, notes, "")
    _within_limits(result)
    return result


def _node(node: Any, notes: Notes, path: str) -> dict[str, Any]:
    kept = _kept(node, notes, path)
    if "$ref" in kept:
        return {"$ref": kept["$ref"], **({"$defs": kept["$defs"]} if "$defs" in kept else {})}
    if "oneOf" in kept:
        if "anyOf" in kept:
            raise NotStrict("oneOf beside anyOf", path)
        kept["anyOf"] = kept.pop("oneOf")
        notes.add("oneOf sent as anyOf", path)
    _as_list(kept, notes, path)
    if not kept.keys() & {"type", "anyOf", "enum", "const"}:
        raise NotStrict("a value of any type", path)
    has_names = "properties" in kept or "object" in types_of(kept)
    if has_names:
        _closed(kept, notes, path)
    inside = each_child(kept, lambda inner, here: _node(inner, notes, here), path)
    return {**inside, "additionalProperties": False} if has_names else inside


def _kept(node: Mapping[str, Any], notes: Notes, path: str) -> dict[str, Any]:
    node = _unwrapped(node)
    beside = node.keys() - {"$ref", "$defs", *_WORDS}
    if "allOf" in node or ("$ref" in node and beside):
        raise NotStrict("a combination", path)
    if "$ref" in node and node.keys() - {"$ref", "$defs"}:
        notes.add("words beside a reference left out", path, "wording")
    if node.get("patternProperties"):
        raise NotStrict("an object with free names", path)
    kept = dict(node)
    for key in sorted(kept.keys() & _LIMITS_DROPPED):
        del kept[key]
        notes.add(f"{key!r} left out", path)
    for key in sorted(_WORDS_DROPPED & kept.keys()):
        del kept[key]
        notes.add(f"{key!r} left out", path, "wording")
    kept.pop("patternProperties", None)
    if kept.get("format", "date") not in FORMATS:
        del kept["format"]
        notes.add("format unknown to strict mode left out", path, "wording")
    if any(sign in str(kept.get("pattern", "")) for sign in _LOOK_AROUND):
        del kept["pattern"]
        notes.add("pattern with look-around left out", path)
    if "default" in kept:
        notes.add("default told in the description", path, "wording")
        said = compact_json(kept.pop("default"))
        text = f"{kept.get('description', '')} (default: {said})".strip()
        if said != "null" and len(said) <= 200:
            kept["description"] = text
    return kept


def _unwrapped(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """`allOf` of one schema, the old way to put words beside a reference, as that schema."""
    branches = node.get("allOf")
    if not branches or len(branches) > 1 or node.keys() - {"allOf", *_WORDS}:
        return node
    return {**branches[0], **{key: value for key, value in node.items() if key != "allOf"}}


def _as_list(node: dict[str, Any], notes: Notes, path: str) -> None:
    """A tuple as a list of any of its members: strict mode has no tuples."""
    if "array" not in types_of(node):
        node.pop("prefixItems", None)
        node.pop("items", None)
        return
    members: list[Any] = list(node.pop("prefixItems", None) or ())
    rest = node.get("items", {})
    if members:
        notes.add("tuple sent as a list of any of its members", path)
        if rest in ({"not": {}}, False):
            node["maxItems"] = min(len(members), node.get("maxItems", len(members)))
        elif node.get("maxItems", len(members) + 1) > len(members):
            members.append(rest)
        rest = members[0] if len(members) == 1 else {"anyOf": members}
    if rest in ({}, {"not": {}}):
        raise NotStrict("a list of anything", path)
    node["items"] = rest


def _closed(node: dict[str, Any], notes: Notes, path: str) -> None:
    """Closes an object and requires every name; what was optional takes null (O8)."""
    more = node.get("additionalProperties", {})
    properties: dict[str, Any] = node.get("properties") or {}
    is_root = path == ""
    if more not in ({"not": {}}, False):
        if more or "additionalProperties" in node or not (properties or is_root):
            raise NotStrict("an object with free names", path)
        notes.add("object closed: names beyond those listed", path, "narrower")
    needed: list[str] = node.get("required") or []
    if missing := [name for name in needed if name not in properties]:
        raise NotStrict("a required name that is not described", f"{path}/{missing[0][:60]}")
    if "type" not in node:
        node["type"] = "object"
        notes.add("type object inferred", path, "narrower")
    node["properties"] = {
        name: schema if name in needed else _or_null(schema) for name, schema in properties.items()
    }
    node["required"] = list(properties)
    node.pop("additionalProperties", None)


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    types = types_of(schema)
    if types and not schema.keys() & {"enum", "const", "anyOf", "oneOf", "allOf", "$ref"}:
        return {**schema, "type": list(dict.fromkeys([*types, "null"]))}
    if "description" in schema:  # words belong to the property, not to one branch of it
        inner = {key: value for key, value in schema.items() if key != "description"}
        return {"anyOf": [inner, {"type": "null"}], "description": schema["description"]}
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _within_limits(schema: Mapping[str, Any]) -> None:
    """Raises `NotStrict` beyond the sizes strict mode takes (O10)."""
    nodes = nodes_of(schema)
    names = [name for node in nodes for name in node.get("properties") or ()]
    enums: list[list[Any]] = [node["enum"] for node in nodes if is_array(node.get("enum"))]
    texts = [text for values in enums for text in values if isinstance(text, str)]
    texts += [n["const"] for n in nodes if isinstance(n.get("const"), str)]
    texts += [*names, *(schema.get("$defs") or ())]
    if len(names) > MAX_PROPERTIES:
        raise NotStrict(f"more than {MAX_PROPERTIES} properties")
    if sum(map(len, enums)) > MAX_ENUM:
        raise NotStrict(f"more than {MAX_ENUM} enum values")
    if sum(map(len, texts)) > MAX_NAMES:
        raise NotStrict(f"more than {MAX_NAMES} characters of names and values")
    for values in enums:
        size = sum(len(value) for value in values if isinstance(value, str))
        if len(values) > MAX_LONG_ENUM and size > MAX_LONG_ENUM_TEXT:
            raise NotStrict(f"an enum of more than {MAX_LONG_ENUM_TEXT} characters")
    definitions: dict[str, dict[str, Any]] = schema.get("$defs") or {}
    roots: list[Mapping[str, Any]] = [schema, *definitions.values()]
    if max(_levels({k: v for k, v in root.items() if k != "$defs"}) for root in roots) > MAX_LEVELS:
        raise NotStrict(f"nested deeper than {MAX_LEVELS} levels")


def _levels(node: Any) -> int:
    """Levels of nesting, objects and arrays alike: how OpenAI counts is not known, so carefully."""
    deepest = 0

    def look(inner: Any, _: str) -> None:
        nonlocal deepest
        deepest = max(deepest, _levels(inner) if is_object(inner) else 0)

    each_child(node, look, "")
    return deepest + bool({"object", "array"} & set(types_of(node)))
