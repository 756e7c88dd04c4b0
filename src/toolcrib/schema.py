"""JSON Schema: whether a schema can describe a tool, and whether a value fits it.

The one place that touches the validator, with the bounds a foreign schema needs: size, depth, work,
no network, no files, limited backtracking (dependencies §1). What becomes of a misfit is
`arguments`, its words are `misfits`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolcrib.definition import compact_json
from toolcrib.errors import InvalidSchema
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.misfits import json_type, worded
from toolcrib.names import nearest
from toolcrib.refs import Work, work_of

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "Checker",
    "compile_asserting",
    "compile_schema",
    "compile_with",
    "json_type",
    "too_deep",
    "validate_schema",
]

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 100
MAX_PLACES = 10_000
"""How many subschemas may look at one value: references can double it with every step."""
MAX_PATTERNS = 500
MAX_PATTERN_SIZE = 256 * 1024
BACKTRACK_LIMIT = 10_000
MAX_COMPILED = 4096

MAX_VALUE_DEPTH = 256
"""A value nested 20,000 deep crashes the validator; parsers stop near 1,000, callers do not."""
MAX_VALUES = 5_000_000
MAX_CONTAINERS = 1_000_000
MAX_CHECKS = 200_000_000
"""Members of a value times places: about two seconds of checking at worst."""
MAX_LISTED = 20_000
"""The same for listing errors, which costs a thousand times as much and is never cut short."""

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
    _text_of(schema)
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

    __slots__ = ("_places", "_text", "_validator", "_work")

    def __init__(self, validator: jsonschema_rs.Validator, text: str, work: Work) -> None:
        self._validator = validator
        self._text = text
        self._work = work
        self._places = work.places

    def fits(self, value: Any, length: int = 0) -> bool:
        """Whether `value` (JSON: dict, list, str, int, float, bool, None) satisfies the schema.
        What is too deep or too large to be checked does not. `length`: that of the JSON text which
        `arguments.decode` read it from, and which bounds it; 0 if it comes from elsewhere."""
        if not 0 < (length >> 1) * self._places < MAX_CHECKS and self._uncheckable(value):
            return False
        return self._validator.is_valid(value)

    def misfits(self, value: Any) -> list[str]:
        """At most 8 misfits as `path: what was expected (got type)`, without any value."""
        if reason := self._uncheckable(value):
            return [reason]
        if self._validator.is_valid(value):
            return []
        schema = json.loads(self._text)
        depth, members = _extent(value)
        growth = self._work.growth**depth if self._work.growth > 1 else 1
        if members * self._places * growth <= MAX_LISTED:
            return worded(schema, self._validator.iter_errors(value))
        if growth == 1 and '"anyOf"' not in self._text and '"oneOf"' not in self._text:
            return worded(schema, self._first(value))
        return ["does not fit the schema (too large to say where: send less to find out)"]

    def _first(self, value: Any) -> Iterable[jsonschema_rs.ValidationError]:
        from jsonschema_rs import ValidationError

        try:
            self._validator.validate(value)
        except ValidationError as error:
            yield error

    def _uncheckable(self, value: Any) -> str:
        depth, members = _extent(value)
        if depth > MAX_VALUE_DEPTH:
            return f"nested deeper than {MAX_VALUE_DEPTH} levels"
        too_much = members > MAX_VALUES or members * self._places > MAX_CHECKS
        return "too large to be checked: send less at once" if too_much else ""


def compile_schema(schema: Mapping[str, Any] | bool) -> Checker:
    """The checker of `schema`, compiled once per text and shared: 2020-12 unless `$schema` names
    2019-09 or draft 7, 6 or 4. `format` only describes, as it does since 2019-09.

    Raises `InvalidSchema` for what is too large, too deep or too much work, malformed at any place,
    or refers outside itself (JS02, JS20, JS21).
    """
    return _compiled(_text_of(schema))


def compile_asserting(schema: Mapping[str, Any] | bool) -> Checker:
    """The same for one's own schema, with `format` asserted. Not shared."""
    return _built(_text_of(schema), {}, formats=True)


def compile_with(schema: Mapping[str, Any] | bool, documents: Mapping[str, Any]) -> Checker:
    """The same for a schema that refers to `documents`, schemas by URI. Not shared; anything else
    outside is still refused."""
    return _built(_text_of(schema), documents, formats=False)


@lru_cache(maxsize=MAX_COMPILED)
def _compiled(text: str) -> Checker:
    return _built(text, {}, formats=False)


def _text_of(schema: Mapping[str, Any] | bool) -> str:
    try:
        return compact_json(schema if isinstance(schema, dict | bool) else dict(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema is not JSON: {_first_line(error)}") from error


def _built(text: str, documents: Mapping[str, Any], *, formats: bool) -> Checker:
    work = _checked_work(text)
    import jsonschema_rs  # 26 ms: paid by the first foreign schema, not by every import

    registry = jsonschema_rs.Registry(list(documents.items())) if documents else None
    try:
        validator = jsonschema_rs.validator_for(
            text,
            offline=True,  # without it a $ref fetches URLs and reads files
            registry=registry,
            mask="value",  # messages never repeat what was sent
            validate_formats=formats,  # else an annotation: servers use it loosely
            pattern_options=jsonschema_rs.FancyRegexOptions(
                backtrack_limit=BACKTRACK_LIMIT,
                size_limit=MAX_PATTERN_SIZE,
                dfa_size_limit=MAX_PATTERN_SIZE,
            ),
        )
    except jsonschema_rs.ValidationError as error:
        place = "".join(f"/{step}" for step in error.instance_path)
        where = f" at {place[:200]}" if place else ""
        raise InvalidSchema(f"not a usable JSON Schema{where}: {_first_line(error)}") from error
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema(f"not a usable JSON Schema: {_first_line(error)}") from error
    return Checker(validator, text, work)


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')


def _checked_work(text: str) -> Work:
    """The work of the schema in `text`. Raises `InvalidSchema` for what is more than enough."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise InvalidSchema(f"the schema has {len(text)} bytes; the limit is {MAX_SCHEMA_BYTES}")
    depth = deepest = 0
    for char in re.sub(r"[^\[\]{}]", "", _STRINGS.sub("", text)):
        depth += 1 if char in "{[" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_SCHEMA_DEPTH:
        raise InvalidSchema(f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    schema = json.loads(text)
    if "pattern" in text and _patterns(schema) > MAX_PATTERNS:
        raise InvalidSchema(f"the schema has more than {MAX_PATTERNS} patterns")
    try:
        work = work_of(schema)
    except RecursionError as error:
        raise InvalidSchema("the schema's references form too long a chain") from error
    if work.places > MAX_PLACES:
        raise InvalidSchema(
            f"the schema's references multiply: more than {MAX_PLACES} subschemas for one value"
        )
    return work


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _patterns(schema: object) -> int:
    count, waiting = 0, [schema]
    while waiting:
        node = waiting.pop()
        if is_object(node):
            count += "pattern" in node
            named = node.get("patternProperties")
            count += len(named) if is_object(named) else 0
            waiting.extend(node.values())
        elif is_array(node):
            waiting.extend(node)
    return count


def too_deep(value: Any, limit: int) -> bool:
    """Whether `value` is nested deeper than `limit`, found without recursion."""
    return _extent(value, limit)[0] > limit


def _extent(value: Any, limit: int = MAX_VALUE_DEPTH) -> tuple[int, int]:
    """How deep `value` is nested, and how many values it holds; counting ends above `limit` levels
    or at what is too large to be checked. Without recursion, and safe for values that
    contain themselves."""
    level: list[object] = [value]
    members, containers = 1, 0
    for depth in range(limit + 1):
        inner: list[object] = []
        for item in level:
            if is_object(item):
                inner.extend(each for each in item.values() if is_object(each) or is_array(each))
                members += len(item)
            elif is_array(item):
                inner.extend(each for each in item if is_object(each) or is_array(each))
                members += len(item)
            if len(inner) > MAX_CONTAINERS - containers:
                return depth, MAX_VALUES + 1
        if not inner:
            return depth, members
        containers += len(inner)
        level = inner
    return limit + 1, members
