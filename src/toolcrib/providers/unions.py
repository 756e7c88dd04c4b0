"""Several lowered schemas as one, and null among them, in Gemini's two forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.providers.walk import types_of

__all__ = ["SCALARS", "either", "is_null", "plain"]

SCALARS = ("string", "number", "boolean")


def plain(kind: str) -> dict[str, Any]:
    """A value of type `kind`; a list has items of a type, for there must be one (G7, JS12)."""
    if kind != "array":
        return {"type": kind}
    return {"type": "array", "items": {"anyOf": [{"type": each} for each in SCALARS]}}


def either(branches: Sequence[dict[str, Any]], null: bool, is_json: bool) -> dict[str, Any]:
    """Any of `branches`; null as `nullable` in the OpenAPI form, as a type in the other."""
    others = [each for each in branches if each.get("type") != "null"]
    null = null or len(others) < len(branches) or any(e.get("nullable") for e in others)
    distinct: list[dict[str, Any]] = []
    for each in others:
        inner = {key: value for key, value in each.items() if key != "nullable"}
        if inner not in distinct:
            distinct.append(inner)
    if null and is_json:
        return {"anyOf": [*distinct, {"type": "null"}]} if distinct else {"type": "null"}
    if not distinct:
        return {"type": "string", "nullable": True}
    one = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return {**one, "nullable": True} if null else one


def is_null(node: Mapping[str, Any]) -> bool:
    """Whether null is the one value a schema takes."""
    only = node.get("enum") == [None] or ("const" in node and node["const"] is None)
    return only or types_of(node) == ["null"]
