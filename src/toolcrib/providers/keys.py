"""Argument names Anthropic refuses at the root of a schema, in letters it takes, and back (A5).

A legal name stays; any other is spelt out behind a mark that no name is given otherwise, so that
the way back needs no memory. Only one that is too long for that needs the definition.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.providers.report import Notes

__all__ = ["given_keys", "long_keys", "sent_keys", "with_sent_keys"]

MAX_KEY = 64
_LEGAL = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")
_SPELT, _SHORT = "k..", "h.."
_BY_NAME = ("if", "then", "else", "dependentRequired", "dependentSchemas", "propertyNames")


def _sent(key: str) -> str:
    if _LEGAL.match(key) and not key.startswith((_SPELT, _SHORT)):
        return key
    spelt = _SPELT + re.sub(r"[^A-Za-z0-9_-]", lambda found: f".{ord(found[0]):x}.", key)
    if len(spelt) <= MAX_KEY:
        return spelt
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_SHORT}{re.sub('[^A-Za-z0-9_-]+', '_', key)[:40]}_{digest}"


def sent_keys(names: Iterable[str]) -> dict[str, str]:
    """Those of `names` that are sent differently: what is sent for each."""
    return {name: sent for name in names if (sent := _sent(name)) != name}


def with_sent_keys(schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A root schema with the names that are sent. What else speaks of names there is left out."""
    changed = sent_keys(schema["properties"])
    if not changed:
        return schema
    for name in changed:
        notes.add("argument name mapped", f"/properties/{name[:60]}", "same")
    for key in _BY_NAME:
        if key in schema:
            notes.add(f"{key!r} beside mapped argument names left out")
    properties = {changed.get(k, k): v for k, v in schema["properties"].items()}
    required = [changed.get(name, name) for name in schema.get("required") or ()]
    kept = {key: value for key, value in schema.items() if key not in _BY_NAME}
    return {**kept, "properties": properties, **({"required": required} if required else {})}


def given_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` by the tool's own names; those that were too long to be spelt out stay as sent."""
    return {_unspelt(key): value for key, value in values.items()}


def long_keys(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What `given_keys` gave, with the long ones of `names`, those of the schema, brought back."""
    if not any(key.startswith(_SHORT) for key in values):
        return dict(values)
    back = {sent: name for name, sent in sent_keys(names).items() if sent.startswith(_SHORT)}
    return {back.get(key, key): value for key, value in values.items()}


def _unspelt(key: str) -> str:
    if not key.startswith(_SPELT):
        return key
    try:
        return re.sub(r"\.([0-9a-f]{1,6})\.", lambda f: chr(int(f[1], 16)), key[len(_SPELT) :])
    except ValueError:  # a number beyond Unicode: not one of ours
        return key
