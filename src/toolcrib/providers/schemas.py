"""From any JSON Schema to the one form that every provider's conversion starts from.

2020-12 whatever the draft, without keywords that are no JSON Schema, each reference pointing to a
definition at the root that exists. The input is never changed; each change is noted. What a
provider takes beyond that is `roots`, `strict` and `subset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.report import Notes
from toolcrib.providers.shapes import is_sound
from toolcrib.providers.walk import DEFS, each_child, nodes_of, pointer, target, words
from toolcrib.schema import KNOWN_KEYWORDS, MAX_SCHEMA_DEPTH, too_deep

__all__ = ["modern"]

_ABOUT = words(  # words about the document; none of them limits a value
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment $defs definitions"
)
_BESIDE_REF = frozenset(("$ref", "title", "description", "default"))
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")


def modern(schema: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """`schema` as self-contained 2020-12: a new tree, references only to `#/$defs/…`.

    Definitions that nothing refers to are left out. A reference that leads nowhere becomes the
    empty schema (JS02); one into the middle of the document gets a definition of its own (JS03).
    """
    if too_deep(schema, MAX_SCHEMA_DEPTH):
        notes.add("schema too deep: sent as an object of anything")
        return {"type": "object", "properties": {}}
    work = _Modern(dict(schema), notes)
    return work.whole()


class _Modern:
    def __init__(self, root: dict[str, Any], notes: Notes) -> None:
        self._root = root
        self._notes = notes
        dialect = root.get("$schema")
        self._is_old = isinstance(dialect, str) and any(old in dialect for old in _OLD)
        self._names: dict[str, str] = {}  # reference → name of its definition; blank for none
        self._waiting: list[tuple[str, Any]] = []
        self._anchors: dict[str, Any] | None = None

    def whole(self) -> dict[str, Any]:
        """The root, and then whatever it led to."""
        result = self._node(self._root, "")
        found: dict[str, Any] = {}
        while self._waiting:
            name, raw = self._waiting.pop(0)
            found[name] = self._node(raw, f"/$defs/{pointer(name)}")
        return {**result, "$defs": found} if found else result

    def _node(self, raw: Any, path: str) -> dict[str, Any]:
        if raw is True:
            return {}
        if raw is False:
            return {"not": {}}
        if not is_object(raw):
            self._notes.add("no schema where one belongs: anything is accepted there", path)
            return {}
        node = self._renewed(raw)
        for key in ("$dynamicRef", "$recursiveRef"):  # the same as long as nobody overrides it
            if key in node and "$ref" not in node:
                node["$ref"] = node.pop(key)
                self._notes.add(f"{key} taken as $ref", path, "narrower")
        kept = {k: v for k, v in node.items() if k not in _ABOUT and self._is_sound(k, v, path)}
        if "$ref" in kept:
            self._point(kept, path)
        return each_child(kept, self._node, path)

    def _is_sound(self, key: str, value: Any, path: str) -> bool:
        """Whether a keyword exists and its value has the shape that it must have."""
        if key not in KNOWN_KEYWORDS:
            self._notes.add(f"unknown keyword {key[:40]!r} left out", path, "wording")
            return False
        if not is_sound(key, value):
            self._notes.add(f"malformed keyword {key!r} left out", path)
            return False
        return True

    def _renewed(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Keywords of older drafts in today's words. Tuples as a list of `items` are taken from any
        dialect: no later draft gives that form a meaning."""
        node = dict(raw)
        if is_array(node.get("items")):
            node["prefixItems"] = node.pop("items") or [{}]
            if "additionalItems" in node:
                node["items"] = node["additionalItems"]
        node.pop("additionalItems", None)
        for side in ("inimum", "aximum"):
            exclusive = node.get(f"exclusiveM{side}")
            if isinstance(exclusive, bool):  # draft-04
                del node[f"exclusiveM{side}"]
                if exclusive and f"m{side}" in node:
                    node[f"exclusiveM{side}"] = node.pop(f"m{side}")
        depends = node.pop("dependencies", None)  # since 2019-09 a word without meaning
        if self._is_old and is_object(depends):
            for name, needs in depends.items():
                kind = "dependentRequired" if is_array(needs) else "dependentSchemas"
                node[kind] = {**(node.get(kind) or {}), name: needs}
        for key in ("required", "type"):  # no name twice
            if is_array(value := node.get(key)) and all(isinstance(each, str) for each in value):
                node[key] = list(dict.fromkeys(value))
        if "$ref" in node and self._is_old:  # it stood alone until 2019-09
            node = {key: value for key, value in node.items() if key in _BESIDE_REF}
        return node

    def _point(self, node: dict[str, Any], path: str) -> None:
        reference = node["$ref"]
        name = self._named(reference) if isinstance(reference, str) else ""
        if name:
            node["$ref"] = DEFS + pointer(name)
        else:
            del node["$ref"]
            self._notes.add("reference to nowhere: anything is accepted there", path)

    def _named(self, reference: str) -> str:
        """The definition that stands for `reference`; blank where it leads nowhere."""
        if reference in self._names:
            return self._names[reference]
        found = self._resolved(reference)
        name = ""
        if is_object(found) or isinstance(found, bool):
            name = self._free_name(reference)
            self._waiting.append((name, found))
        self._names[reference] = name
        return name

    def _resolved(self, reference: str) -> Any:
        if reference == "#" or reference.startswith("#/"):
            return target(self._root, reference)
        if self._anchors is None:
            self._anchors = {
                f"#{node[key]}": node
                for key in ("$dynamicAnchor", "$anchor")
                for node in nodes_of(self._root)
                if isinstance(node.get(key), str)
            }
        return self._anchors.get(reference)

    def _free_name(self, reference: str) -> str:
        last = reference.rsplit("/", 1)[-1].lstrip("#").replace("~1", "/").replace("~0", "~")
        taken = set(self._names.values())
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else "_" for c in last)
        base = plain[:60] or "root"
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        return name
