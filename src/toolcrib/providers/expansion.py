"""Writes a referenced definition out where it is used: boundedly, for recursion has no end (JS01).

For providers that read no references, or not all of them. What becomes of a node is `subset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.jsonvalue import is_object
from toolcrib.providers.report import Notes
from toolcrib.providers.walk import target, types_of

__all__ = ["MAX_REPEATS", "Expansion"]

MAX_REPEATS = 2
"""How often a definition may stand inside itself before a plain value ends it."""
MAX_NODES = 3_000
"""Nodes of one exported schema: expansion multiplies."""


class Expansion:
    """Expands one schema's nodes and counts them."""

    def __init__(self, root: Mapping[str, Any], notes: Notes, repeats: int) -> None:
        self._root = root
        self._notes = notes
        self._repeats = repeats
        self.nodes = 0

    @property
    def is_over(self) -> bool:
        """Whether the expansion has grown too large: what is left is to be cut."""
        return self.nodes > MAX_NODES

    def __call__(
        self, raw: Any, path: str, within: Mapping[str, int]
    ) -> tuple[dict[str, Any], Mapping[str, int]]:
        """`raw` without reference and `allOf`, and the references followed on the way."""
        self.nodes += 1
        node: dict[str, Any] = dict(raw) if is_object(raw) and not self.is_over else {}
        while "$ref" in node:
            reference: str = node.pop("$ref")
            found = target(self._root, reference)
            times = within.get(reference, 0)
            within = {**within, reference: times + 1}
            if times >= self._repeats and is_object(found):
                self._notes.add("recursion cut: a plain value ends it", path, "narrower")
                kinds = types_of(found)
                kind = "object" if not kinds or "object" in kinds else kinds[0]
                return {"type": kind, **_described(found), **_described(node)}, within
            node = _merged(node, found if is_object(found) else {})
        for branch in node.pop("allOf", ()):
            more, within = self(branch, path, within)
            self._notes.add("allOf merged", path)
            node = _merged(node, more)
        return node, within


def _described(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": node["description"]} if "description" in node else {}


def _merged(node: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both, roughly: properties and required together, otherwise what came first."""
    if node.keys() & {"items", "prefixItems"}:  # they speak of each other
        more = {key: more[key] for key in more if key not in ("items", "prefixItems")}
    result = {**more, **node}
    properties: dict[str, Any] = {
        **(more.get("properties") or {}),
        **(node.get("properties") or {}),
    }
    required = [*(node.get("required") or ()), *(more.get("required") or ())]
    if properties:
        result["properties"] = properties
    if required:
        result["required"] = list(dict.fromkeys(required))
    if (more.get("properties") or {}).keys() != (node.get("properties") or {}).keys():
        result.pop("additionalProperties", None)
    return result
