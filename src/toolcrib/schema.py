"""JSON Schema: whether a schema can describe a tool, and whether a value fits it.

The one place that touches the validator, with the bounds a foreign schema needs: size, depth, no
network, no files, limited backtracking. What becomes of a misfit is `arguments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolcrib.definition import compact_json
from toolcrib.errors import InvalidSchema
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.names import nearest

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["Checker", "compile_schema", "json_type", "too_deep", "validate_schema"]

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 100
MAX_VALUE_DEPTH = 256
"""A value nested 20,000 deep crashes the validator; parsers stop near 1,000, callers do not."""

MAX_MISFITS = 8
MAX_COMPILED = 4096
BACKTRACK_LIMIT = 10_000

_KEYWORDS = (
    # applicators of objects and arrays
    "type properties required additionalProperties patternProperties propertyNames minProperties"
    " maxProperties unevaluatedProperties items prefixItems contains minContains maxContains"
    " minItems maxItems uniqueItems"
    # values
    " enum const format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength"
    " minLength pattern contentMediaType contentEncoding"
    # logic
    " allOf anyOf oneOf not if then else dependentSchemas dependentRequired"
    # words about the schema
    " title description default examples deprecated readOnly writeOnly $schema $id $ref $defs"
    " definitions $anchor $dynamicRef $dynamicAnchor $vocabulary $comment"
)
KNOWN_KEYWORDS = frozenset(_KEYWORDS.split())


def validate_schema(schema: Mapping[str, Any] | None) -> None:
    """Checks that `schema` can describe the parameters of a tool.

    None and the empty schema mean no parameters. Otherwise it must be JSON, its root `type` must be
    "object", and each key at the root must be a JSON Schema keyword: any other is a parameter that
    was put beside `properties` by mistake. Only the root is checked (rule B2). Raises
    `InvalidSchema` with the key and what to do.
    """
    if not schema:
        return
    try:
        compact_json(dict(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from error
    if schema.get("type") != "object":
        found = schema.get("type", "no type")
        raise InvalidSchema(f'a tool\'s schema needs "type": "object" at its root, found {found!r}')
    for key in schema:
        if key not in KNOWN_KEYWORDS:
            close = nearest(key, KNOWN_KEYWORDS, 1)
            hint = f" or write {close[0]!r}" if close else ""
            raise InvalidSchema(
                f"{key!r} is no JSON Schema keyword: if it is a parameter, nest it under"
                f" 'properties'{hint}"
            )


class Checker:
    """One compiled schema. Shared by every tool whose schema has the same text."""

    __slots__ = ("_validator",)

    def __init__(self, validator: jsonschema_rs.Validator) -> None:
        self._validator = validator

    def fits(self, value: Any) -> bool:
        """Whether `value` (JSON: dict, list, str, int, float, bool, None) satisfies the schema."""
        return not too_deep(value, MAX_VALUE_DEPTH) and self._validator.is_valid(value)

    def misfits(self, value: Any) -> list[str]:
        """At most 8 misfits as `path: what was expected (got type)`, without any value."""
        if too_deep(value, MAX_VALUE_DEPTH):
            return [f"nested deeper than {MAX_VALUE_DEPTH} levels"]
        return list(_worded(self._validator, value))


def _worded(validator: jsonschema_rs.Validator, value: Any) -> Iterator[str]:
    for count, error in enumerate(validator.iter_errors(value)):
        if count == MAX_MISFITS:
            yield "… and more"
            return
        path = ".".join(str(step) for step in error.instance_path)
        got = f" (got {json_type(error.instance)})" if error.kind.name == "type" else ""
        yield f"{path}: {error.message}{got}" if path else f"{error.message}{got}"


def compile_schema(schema: Mapping[str, Any]) -> Checker:
    """The checker of `schema`, compiled once per text: 2020-12 unless `$schema` says otherwise.

    Raises `InvalidSchema` for what is too large, too deep, malformed, or refers outside itself.
    """
    try:
        return _compiled(compact_json(schema if isinstance(schema, dict) else dict(schema)))
    except (TypeError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from error


@lru_cache(maxsize=MAX_COMPILED)
def _compiled(text: str) -> Checker:
    if len(text) > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"the schema has {len(text)} bytes; the limit is {MAX_SCHEMA_BYTES}")
    if _depth_of_text(text) > MAX_SCHEMA_DEPTH:
        raise InvalidSchema(f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    import jsonschema_rs  # 26 ms: paid by the first foreign schema, not by every import

    try:
        validator = jsonschema_rs.validator_for(
            text,
            offline=True,  # without it a $ref fetches URLs and reads files
            mask="value",  # messages never repeat what was sent
            validate_formats=False,  # an annotation since 2019-09, and servers use it loosely
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema(f"not a usable JSON Schema: {_first_line(error)}") from error
    return Checker(validator)


def _depth_of_text(text: str) -> int:
    """An upper bound of the nesting: brackets inside strings count too, which only errs on the
    careful side for schemas whose patterns hold many unclosed ones."""
    depth = deepest = 0
    for char in text:
        if char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]":
            depth -= 1
    return deepest


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def too_deep(value: Any, limit: int) -> bool:
    """Whether `value` is nested deeper than `limit`, found without recursion."""
    level: list[object] = [value]
    for _ in range(limit + 1):
        inner: list[object] = []
        for item in level:
            members: Iterable[object] = ()
            if is_object(item):
                members = item.values()
            elif is_array(item):
                members = item
            inner.extend(member for member in members if is_object(member) or is_array(member))
        if not inner:
            return False
        level = inner
    return True


_JSON_TYPES: dict[type[object], str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
}


def json_type(value: object) -> str:
    """The JSON type of a parsed value: object, array, string, boolean, integer, number, null."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "number"
    return _JSON_TYPES.get(type(value)) or type(value).__name__
