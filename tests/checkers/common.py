"""What the three checkers share: the refusal, shapes, schema nodes, pictures."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


class Refused(Exception):
    """A request that a provider would answer with 400; `rule` is the id of the rule it breaks."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"{rule}: {why}")
        self.rule = rule


def refuse(rule: str, why: str) -> NoReturn:
    raise Refused(rule, why)


def need(holds: bool, rule: str, why: str) -> None:
    if not holds:
        refuse(rule, why)


def typed(value: Any, kinds: type | tuple[type, ...], rule: str, what: str) -> Any:
    """`value` if it has the JSON type; rules O0, A0, G0 (a bool is no number)."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, bool) and bool not in kinds:
        refuse(rule, f"{what} is a boolean")
    need(isinstance(value, kinds), rule, f"{what} is a {type(value).__name__}")
    return value


def only(value: dict[str, Any], keys: str, rule: str, what: str) -> None:
    unknown = set(value) - set(keys.split())
    need(not unknown, rule, f"{what}: unknown keys {sorted(unknown)}")


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every subschema with its path; values of enum, const, default are none."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for key in [
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
    ]:
        if key in schema and isinstance(schema[key], dict | bool):
            yield from nodes(schema[key], f"{path}/{key}")
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"]:
        for at, inner in enumerate(schema.get(key) or ()):
            yield from nodes(inner, f"{path}/{key}/{at}")
    for key in ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]:
        for name, inner in (schema.get(key) or {}).items():
            yield from nodes(inner, f"{path}/{key}/{name}")


def types(node: Any) -> list[str]:
    said = node.get("type") if isinstance(node, dict) else None
    return [said] if isinstance(said, str) else list(said or ())


def resolve(root: Any, ref: str) -> Any:
    found = root
    for step in ref.lstrip("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        found = found.get(step) if isinstance(found, dict) else None
    return found


def decoded(text: Any, rule: str) -> bytes:
    typed(text, str, rule, "base64")
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        refuse(rule, "not base64")


def is_true_to(kind: str, data: bytes) -> bool:
    return data.startswith(MAGIC.get(kind, (b"",)))


def looks_like_base64(text: str) -> bool:
    """A long run of base64: a picture that slipped into text (RS09)."""
    return re.search(r"[A-Za-z0-9+/]{2000}", text) is not None
