"""Gemini's two forms of a schema: the OpenAPI subset of `parameters` (G6, G7), and the keywords it
documents for `parametersJsonSchema` (G8).

Both are one conversion: references expanded (boundedly: JS01), one type a node, enums of strings
only, typed items at each array (JS12). Starts from `roots.flat_root`; never changes its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from toolcrib.definition import compact_json
from toolcrib.providers.expansion import MAX_REPEATS, Expansion
from toolcrib.providers.report import Notes
from toolcrib.providers.unions import SCALARS, either, is_null, plain
from toolcrib.providers.walk import types_of, words
from toolcrib.schema import json_type

__all__ = ["Form", "gemini_form"]

Form: TypeAlias = Literal["json", "openapi"]
"""json: for `parametersJsonSchema` · openapi: for `parameters`."""

_SHARED = words("title description format minItems maxItems minimum maximum")
_OPENAPI = _SHARED | words("minProperties maxProperties minLength maxLength pattern")
_FORMATS = frozenset(("date-time", "enum", "float", "double", "int32", "int64"))
_HANDLED = words(  # what the conversion itself looks at, and what goes without saying
    "type properties required items prefixItems enum const anyOf oneOf allOf $ref $defs default"
    " additionalProperties"
)
_WORDS = words("examples deprecated readOnly writeOnly")
_BY_TYPE = {
    "object": frozenset(("properties", "required", "minProperties", "maxProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": frozenset(("minimum", "maximum", "format")),
    "integer": frozenset(("minimum", "maximum", "format")),
}
_NO_REFS: Mapping[str, int] = {}


def gemini_form(schema: Mapping[str, Any], form: Form, notes: Notes) -> dict[str, Any]:
    """`schema` as Gemini takes it in `form`; a root without properties gives one without any."""
    for repeats in (MAX_REPEATS, 1):  # rather shallow everywhere than deep in the first branch
        own = Notes(notes.tool)
        work = _Gemini(schema, form, own, repeats)
        result = work.node(schema, "", _NO_REFS)
        if not work.is_over:
            break
    notes.extend(own.all())
    return result


class _Gemini:
    def __init__(self, root: Mapping[str, Any], form: Form, notes: Notes, repeats: int) -> None:
        self._expand = Expansion(root, notes, repeats)
        self._is_json = form == "json"
        self._kept = _SHARED if self._is_json else _OPENAPI
        self._notes = notes

    @property
    def is_over(self) -> bool:
        """Whether the schema became too large and was cut."""
        return self._expand.is_over

    def node(self, raw: Any, path: str, within: Mapping[str, int]) -> dict[str, Any]:
        """One node, expanded and lowered; `within` counts the references it stands inside of."""
        node, within = self._expand(raw, path, within)
        told = self._words(node, path)
        if self._expand.is_over:
            self._notes.add("schema too large when expanded: cut", path, "narrower")
            return {**told, "type": "object"}
        if node.get("not") == {}:
            self._notes.add("a value that cannot be: anything is accepted", path)
        values = self._values(node)
        if values is not None:
            return {**told, **self._choice(node, values, told, path)}
        branches = self._branches(node, path)
        if branches:
            others = [each for each in branches if not is_null(each)]
            lowered = [self.node(b, f"{path}/anyOf/{at}", within) for at, b in enumerate(others)]
            return {**told, **self._either(lowered, len(others) < len(branches)), **told}
        types = types_of(node) or self._inferred(node, path)
        if not types:
            return {**told, **self._anything(path)}
        lowered = [self._typed(node, each, path, within) for each in types]
        return {**told, **self._either(lowered), **told}

    def _words(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Title and description; values that have no place of their own are told there."""
        for key in sorted(node.keys() - _HANDLED - self._kept):
            self._notes.add(f"{key!r} left out", path, "wording" if key in _WORDS else "wider")
        told = {
            key: node[key] for key in ("title", "description") if isinstance(node.get(key), str)
        }
        if node.get("default") is not None:
            said = compact_json(node["default"])
            if len(said) <= 200:
                told["description"] = f"{told.get('description', '')} (default: {said})".strip()
            self._notes.add("default told in the description", path, "wording")
        return told

    def _either(self, branches: list[dict[str, Any]], null: bool = False) -> dict[str, Any]:
        return either(branches, null, self._is_json)

    def _values(self, node: Mapping[str, Any]) -> list[Any] | None:
        return [node["const"]] if "const" in node else node.get("enum")

    def _choice(
        self, node: Mapping[str, Any], values: list[Any], said: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        """An enum: as such where all are strings, otherwise by type and told in words (JS11)."""
        allowed = types_of(node)
        texts = [
            v for v in values if isinstance(v, str) and v and (not allowed or "string" in allowed)
        ]
        others = [v for v in values if not isinstance(v, str)]
        rest = list(dict.fromkeys(json_type(v) for v in others if v is not None))
        if "number" in rest and "integer" in rest:
            rest.remove("integer")
        branches: list[dict[str, Any]] = [plain(kind) for kind in rest]
        if len(texts) == len(values) - len(others) and texts:
            branches.insert(0, {"type": "string", "enum": texts})
        elif len(others) < len(values):  # the empty string is refused in an enum
            branches.insert(0, {"type": "string"})
        if "array" in rest:
            self._notes.add("enum of lists told in the description", path, "narrower")
        if not branches and None not in others:
            branches = [{"type": "string"}]
        if rest or len(texts) + len(others) < len(values):
            self._notes.add("enum of other than strings told in the description", path)
            listed = ", ".join(compact_json(value) for value in values[:50])
            told = f"{said.get('description', '')} One of: {listed[:500]}".strip()
            return {"description": told, **self._either(branches, None in others)}
        return self._either(branches, None in others)

    def _branches(self, node: Mapping[str, Any], path: str) -> list[Any]:
        found: list[Any] = node.get("anyOf") or node.get("oneOf") or []
        if not found:
            return []
        if "properties" in node or "items" in node:
            self._notes.add("union beside properties or items left out", path)
            return []
        if node.keys() & (self._kept - {"title", "description"}):
            self._notes.add("limits beside a union left out", path)
        if "anyOf" not in node:
            self._notes.add("oneOf sent as anyOf", path)
        elif "oneOf" in node:
            self._notes.add("oneOf beside anyOf left out", path)
        return [each for each in found if each != {"not": {}}] or [{}]

    def _inferred(self, node: Mapping[str, Any], path: str) -> list[str]:
        for kind in ("object", "array", "string", "number"):
            if _BY_TYPE[kind] & node.keys() - {"format"}:
                self._notes.add(f"type {kind} inferred", path, "narrower")
                return [kind]
        return []

    def _anything(self, path: str) -> dict[str, Any]:
        """A value of any type: lists of lists are the one thing it leaves out."""
        self._notes.add("a value of any type: lists in lists cannot be told", path, "narrower")
        kinds = [plain(kind) for kind in (*SCALARS, "object", "array")]
        return self._either(kinds, null=True)

    def _typed(
        self, node: Mapping[str, Any], kind: str, path: str, within: Mapping[str, int]
    ) -> dict[str, Any]:
        """The part of `node` that speaks of values of type `kind`."""
        mine = _BY_TYPE.get(kind, frozenset[str]()) & self._kept
        result = {"type": kind, **{key: node[key] for key in node if key in mine}}
        if result.get("format", "enum") not in _FORMATS:
            del result["format"]
            self._notes.add("format unknown to Gemini left out", path, "wording")
        if kind == "object":
            result.update(self._members(node, path, within))
        elif kind == "array":
            result["items"] = self._items(node, result, path, within)
        return result

    def _members(
        self, node: Mapping[str, Any], path: str, within: Mapping[str, int]
    ) -> dict[str, Any]:
        properties: dict[str, Any] = node.get("properties") or {}
        lowered = {
            name: self.node(inner, f"{path}/properties/{name}", within)
            for name, inner in properties.items()
        }
        found: dict[str, Any] = {"properties": lowered} if lowered or not path else {}
        needed = [name for name in node.get("required") or () if name in properties]
        if needed:
            found["required"] = needed
        if len(needed) < len(node.get("required") or ()):
            self._notes.add("required name that is not described left out", path)
        more = node.get("additionalProperties")
        if more is None:
            return found
        if self._is_json and more in ({"not": {}}, False) and "patternProperties" not in node:
            found["additionalProperties"] = False
        elif self._is_json and more not in ({}, True) and "patternProperties" not in node:
            found["additionalProperties"] = self.node(more, f"{path}/additionalProperties", within)
        elif more not in ({}, True):
            self._notes.add("'additionalProperties' left out", path)
        return found

    def _items(
        self, node: Mapping[str, Any], result: dict[str, Any], path: str, within: Mapping[str, int]
    ) -> dict[str, Any]:
        """One schema for every item: a tuple becomes any of its members."""
        members: list[Any] = list(node.get("prefixItems") or ())
        rest = node.get("items", {})
        if members:
            self._notes.add("tuple sent as a list of any of its members", path)
            if rest in ({"not": {}}, False):
                result["maxItems"] = min(len(members), result.get("maxItems", len(members)))
            elif rest != {}:
                members.append(rest)
            elif result.get("maxItems", len(members) + 1) > len(members):
                self._notes.add("items after a tuple", path, "narrower")
            return self.node(
                {"anyOf": members} if len(members) > 1 else members[0], path + "/items", within
            )
        return self.node(rest, f"{path}/items", within)
