"""Which shape the value of each JSON Schema keyword must have (A4: a schema must be valid 2020-12).

One malformed keyword of one tool would have the whole request refused.
"""

from __future__ import annotations

from typing import Any

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.walk import words

__all__ = ["is_sound"]

_TYPES = words("object array string number integer boolean null")
_TEXT = words("title description pattern format contentMediaType contentEncoding $ref")
_SWITCH = words("deprecated readOnly writeOnly uniqueItems")
_COUNT = words(
    "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains"
)
_NUMBER = words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf")
_BRANCHES = words("allOf anyOf oneOf prefixItems")
_NAMED = words("properties patternProperties dependentSchemas")


def is_sound(key: str, value: Any) -> bool:
    """Whether `value` has the shape of the keyword `key`; subschemas are not looked into."""
    if key in _TEXT:
        return isinstance(value, str)
    if key in _SWITCH:
        return isinstance(value, bool)
    if key in _COUNT:
        return _is_number(value) and value >= 0 and value == int(value)
    if key in _NUMBER:
        return _is_number(value) and (key != "multipleOf" or value > 0)
    if key in _BRANCHES:
        return is_array(value) and bool(value)
    if key in _NAMED:
        return is_object(value)
    if key == "type":
        names = value if is_array(value) else [value]
        return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
    if key == "dependentRequired":
        return is_object(value) and all(_are_names(each) for each in value.values())
    if key == "required":
        return _are_names(value)
    return key not in ("enum", "examples") or is_array(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return (
        is_array(value)
        and all(isinstance(each, str) for each in value)
        and len(set(value)) == len(value)
    )
