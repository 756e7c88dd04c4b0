"""From the text a model sent to the arguments of a call, or to a refusal it can act on.

Strict first; then the few recoveries of the decision table, each of them noted; never a guess:
what is cut off or glued together is refused. What the arguments mean is the tool's own parse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jiter
import pydantic_core

from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.errors import InvalidArguments
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.names import nearest
from toolcrib.schema import Checker, compile_schema, json_type

__all__ = [
    "JsonArguments",
    "Repaired",
    "SchemaParser",
    "accepted",
    "coerce",
    "decode",
    "encode",
    "refuse",
]

MAX_BYTES = 8 * 1024 * 1024
MAX_UNWRAP = 3
MAX_REFERENCES = 8
_HUGE_NUMBER = re.compile(r"[0-9][eE]\+?[0-9]{3}")


class JsonArguments(dict[str, Any]):
    """Decoded arguments together with `text`, the JSON object they stand for."""

    __slots__ = ("text",)

    def __init__(self, values: Mapping[str, Any], text: str) -> None:
        super().__init__(values)
        self.text = text


class Repaired(NamedTuple):
    """Parsed arguments that were not taken as sent; `repairs` says what was changed."""

    prepared: Any
    repairs: tuple[str, ...]


def decode(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The JSON object in `text` and the repairs it took.

    Blank text and `null` mean no arguments. An object inside a JSON string is unwrapped (at most 3
    times), prose after a complete object is cut off; both are repairs. Integers of any size stay
    exact. Raises `InvalidArguments` for everything else, NaN and infinite numbers included.
    """
    if len(text) > MAX_BYTES:
        raise InvalidArguments(
            f"the arguments are longer than {MAX_BYTES} bytes: send less at once"
        )
    repairs: list[str] = []
    value = _value_of(text, repairs)
    for _ in range(MAX_UNWRAP):
        if not isinstance(value, str) or not value.lstrip().startswith(("{", '"')):
            break
        repairs.append("the arguments were a JSON string holding the object")
        value = _value_of(value, repairs)
    if value is None:
        return {}, tuple(repairs)
    if not is_object(value):
        raise InvalidArguments(
            f"the arguments must be a JSON object, got {_article(json_type(value))}"
        )
    if _HUGE_NUMBER.search(text):
        _refuse_infinite(value, "")
    return value, tuple(repairs)


def _value_of(text: str, repairs: list[str]) -> Any:
    text = text.strip()
    if not text:
        return None
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(
            "the arguments hold an unpaired surrogate, which is no text"
        ) from None
    try:
        return jiter.from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        if text.startswith("{") and str(error).startswith("trailing characters"):
            return _before_prose(text, repairs)
        raise InvalidArguments(_not_json(text, str(error))) from None


def _before_prose(text: str, repairs: list[str]) -> Any:
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidArguments(_not_json(text, str(error))) from None
    rest = text[end:].lstrip()
    if rest.startswith(("{", "[", "}", "]", ",")):
        raise InvalidArguments(
            f"the arguments go on after the JSON object ended at character {end}: send exactly one"
            " object, and one call for each set of arguments"
        )
    repairs.append(f"ignored {len(text) - end} characters after the JSON object")
    return value


def _refuse_constant(name: str) -> Any:
    raise InvalidArguments(f"{name} is not a JSON value: send a finite number")


def _not_json(text: str, error: str) -> str:
    if "NaN" in text or "Infinity" in text:
        return f"the arguments are not JSON ({error}); NaN and Infinity are not JSON values"
    if error.startswith("EOF"):
        return f"the arguments are cut off ({error}): send the whole JSON object again"
    return f"the arguments are not JSON: {error}"


def _refuse_infinite(value: Any, path: str) -> None:
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise InvalidArguments(f"{path or 'a number'}: too large for a number")
    steps = value.items() if is_object(value) else enumerate(value) if is_array(value) else ()
    for key, inner in steps:
        _refuse_infinite(inner, f"{path}.{key}" if path else str(key))


def coerce(
    values: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """`values` with the slips of models put right where `schema` leaves no doubt, and the repairs.

    A string holding a JSON list, object, number or boolean becomes that value where the parameter
    takes its type and no string; 10.0 becomes 10 where only whole numbers are taken (JSON Schema
    calls both integers); null is dropped where the parameter is optional and takes no null.
    """
    properties = _properties(schema)
    required: set[str] = set(schema.get("required") or ())
    result: dict[str, Any] = {}
    repairs: list[str] = []
    for name, value in values.items():
        types = _types(properties.get(name), schema)
        if value is None and types and "null" not in types and name not in required:
            repairs.append(f"{name}: null was taken as absent")
        elif isinstance(value, str) and types and "string" not in types:
            result[name] = _from_string(name, value, types, repairs)
        elif isinstance(value, float) and value.is_integer() and types == {"integer"}:
            result[name] = int(value)
            repairs.append(f"{name}: a whole number was sent with a fraction of zero")
        else:
            result[name] = value
    return result, tuple(repairs)


def _from_string(name: str, value: str, types: set[str], repairs: list[str]) -> Any:
    try:
        inner = jiter.from_json(value.encode(), allow_inf_nan=False)
    except (ValueError, UnicodeEncodeError):
        return value
    found = json_type(inner)
    if found == "null" or not (found in types or (found == "integer" and "number" in types)):
        return value
    repairs.append(f"{name}: {_article(found)} was sent as a JSON string")
    return inner


def _types(schema: object, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The JSON types a subschema takes; empty where it does not say."""
    if not is_object(schema) or depth > MAX_REFERENCES:
        return set()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        definitions: dict[str, Any] = root.get("$defs") or {}
        return _types(definitions.get(reference[8:]), root, depth + 1)
    if (said := schema.get("type")) is not None:
        return {said} if isinstance(said, str) else set(said)
    if is_array(allowed := schema.get("enum")):
        return {json_type(value) for value in allowed}
    branches = schema.get("anyOf") or schema.get("oneOf")
    found = [_types(branch, root, depth + 1) for branch in branches or ()]
    return set[str]().union(*found) if all(found) else set()


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if is_object(found) else {}


def accepted(schema: Mapping[str, Any]) -> str:
    """The accepted names as text for the model: `a (required), b`."""
    properties = _properties(schema)
    required: set[str] = set(schema.get("required") or ())
    names = [f"{name} (required)" if name in required else name for name in properties]
    return ", ".join(names) or "none"


def refuse(name: str, schema: Mapping[str, Any], misfits: list[str]) -> InvalidArguments:
    """The refusal of a call of the tool `name`: what is wrong, and what it takes."""
    wrong = "; ".join(dict.fromkeys(misfits))
    return InvalidArguments(
        f"invalid arguments for {name!r}: {wrong}. Accepted: {accepted(schema)}."
    )


def unknown_names(values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """A line for each name that `schema` does not list, with the nearest one it does."""
    properties = _properties(schema)
    lines: list[str] = []
    for name in values:
        if name not in properties:
            close = nearest(name, properties, 1)
            lines.append(
                f"unknown argument {name[:80]!r}"
                + (f", did you mean {close[0]!r}?" if close else "")
            )
    return lines


def encode(arguments: Mapping[str, Any] | str | None, named: Mapping[str, Any]) -> str:
    """The JSON text of a call made by a program: a mapping and keywords together, or text as it is.

    Raises `InvalidArguments` for text together with keywords, for a name given twice, and for a
    value JSON cannot hold.
    """
    if isinstance(arguments, str):
        if named:
            raise InvalidArguments("give the arguments as JSON text or as keywords, not both")
        return arguments
    if arguments and (twice := [name for name in named if name in arguments]):
        raise InvalidArguments(f"argument {twice[0]!r} was given twice")
    try:
        return pydantic_core.to_json({**(arguments or {}), **named}).decode()
    except ValueError as error:
        raise InvalidArguments(f"the arguments cannot be written as JSON: {error}") from error


class SchemaParser:
    """Parses by the definition's own input schema, for tools whose schema is all we have.

    `parser(text)` gives `JsonArguments`, or `Repaired` holding them; raises `InvalidArguments`.
    The schema is compiled at the first call.
    """

    __slots__ = ("_checker", "_definition")

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._checker: Checker | None = None

    def __call__(self, text: str) -> JsonArguments | Repaired:
        checker = self._checker
        if checker is None:
            checker = self._checker = compile_schema(self._definition.input_schema)
        values, repairs = decode(text)
        if not checker.fits(values):
            values, more = self._repaired(checker, values)
            repairs += more
        if not repairs:
            return JsonArguments(
                values, text if values and text.startswith("{") else compact_json(values)
            )
        return Repaired(JsonArguments(values, compact_json(values)), repairs)

    def _repaired(
        self, checker: Checker, values: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        schema = self._definition.input_schema
        if not schema.get("properties") and schema.get("additionalProperties") is False:
            return {}, (f"ignored {len(values)} arguments of a tool that takes none",)
        mended, repairs = coerce(values, schema)
        if repairs and checker.fits(mended):
            return mended, repairs
        misfits = checker.misfits(mended)
        if schema.get("additionalProperties") is False:
            misfits = unknown_names(values, schema) + [
                m for m in misfits if "Additional properties" not in m
            ]
        raise refuse(self._definition.name, schema, misfits)


def _article(noun: str) -> str:
    return noun if noun == "null" else f"an {noun}" if noun[0] in "aio" else f"a {noun}"
