"""From the parameters of a function to one pydantic validator and its JSON Schema.

A parameter is a member of a TypedDict, so that no name is reserved (`self`, `title`, `schema`);
variadics are a list and an object of what they hold (PY03, PY04, PY06).
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NotRequired

import pydantic
import typing_extensions
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from toolcrib.binding import Binding, Parameter
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidDefinition
from toolcrib.jsonable import NotJson, json_text

__all__ = ["Field", "fields_of", "schema_of", "typed", "validator_of"]

_CONFIG = pydantic.ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=False
)


class _Schema(GenerateJsonSchema):
    """Without the titles pydantic derives from names: they cost tokens and say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """A default that JSON cannot hold is left out, and that is all there is to it (PY24)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter: what it may be, and the value that stands in for it."""

    hint: Any
    default: Any = Parameter.empty
    wire: str = ""
    """Its name in the schema, where an alias gives it another."""

    @property
    def has_default(self) -> bool:
        return self.default is not Parameter.empty  # never ==: a default may compare oddly


def fields_of(tool: str, binding: Binding, described: Mapping[str, str]) -> dict[str, Field]:
    """A field for each parameter a model may send. Raises `InvalidDefinition`."""
    return {
        name: _field(tool, binding, parameter, described.get(name, ""))
        for name, parameter in binding.parameters.items()
    }


def _field(tool: str, binding: Binding, parameter: Parameter, described: str) -> Field:
    hint, default = _typed(binding.hints[parameter.name], {}), parameter.default
    if parameter.kind is Parameter.VAR_POSITIONAL:
        if getattr(hint, "__unpacked__", False) or typing.get_origin(hint) is typing.Unpack:
            raise InvalidDefinition(
                f"tool {tool!r}: parameter *{parameter.name} of unpacked types cannot be described:"
                " use a tuple parameter"
            )
        hint, default = _list_of(hint), []
    elif parameter.kind is Parameter.VAR_KEYWORD:
        hint, default = _keywords(binding, hint)
    if isinstance(default, FieldInfo):
        hint, default = Annotated[hint, default], _default_of(default)
    elif default is Parameter.empty:
        default = _annotated_default(hint)
    if default is None:
        hint = typing.Optional[hint]  # noqa: UP045 also of what has no |, such as a string
    if described and not any(info.description for info in _infos(hint)):
        hint = Annotated[hint, pydantic.Field(description=described)]
    alias = next((a for info in _infos(hint) if isinstance(a := info.validation_alias, str)), "")
    return Field(hint, default, alias or parameter.name)


def _keywords(binding: Binding, hint: Any) -> tuple[Any, Any]:
    """`**kwargs` as one object; none of its names may be that of another parameter."""
    check = pydantic.AfterValidator(partial(_unreserved, binding.reserved))
    if typing.get_origin(hint) in (typing.Unpack, typing_extensions.Unpack):
        shape = typing.get_args(hint)[0]
        is_needed = bool(getattr(shape, "__required_keys__", ()))
        return Annotated[shape, check], Parameter.empty if is_needed else {}
    return Annotated[dict[str, hint], check], {}


def _list_of(hint: Any) -> Any:
    return list[hint]


def _unreserved(reserved: frozenset[str], given: dict[str, Any]) -> dict[str, Any]:
    """CPython would refuse it too, but as the function's fault: two values for one parameter."""
    for name in given:
        if name in reserved:
            raise ValueError(f"{name!r} is a parameter of its own: it cannot be among these")
    return given


def _infos(hint: Any) -> list[FieldInfo]:
    found = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldInfo)]
    inner = (
        typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()
    )
    return found + [info for each in inner for info in _infos(each)]


def _default_of(info: FieldInfo) -> Any:
    return Parameter.empty if info.is_required() else info.get_default(call_default_factory=True)


def _annotated_default(hint: Any) -> Any:
    defaults = [
        _default_of(m) for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldInfo)
    ]
    return next((d for d in defaults if d is not Parameter.empty), Parameter.empty)


def _typed(hint: Any, known: dict[Any, Any]) -> Any:
    """`hint` with TypedDicts of the standard library as those of typing_extensions, which are the
    only ones pydantic can read before Python 3.12. Inside models they stay what they are."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return known[hint] if hint in known else _extended(hint, known)
    arguments = typing.get_args(hint)
    if not arguments or typing.get_origin(hint) is typing.Literal:
        return hint
    if typing.get_origin(hint) is Annotated:
        return Annotated[(_typed(arguments[0], known), *arguments[1:])]
    changed = tuple(_typed(each, known) if _is_hint(each) else each for each in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return hint
    if isinstance(hint, types.UnionType):
        return typing.Union[changed]  # noqa: UP007 of a tuple that only running tells
    return (
        hint.copy_with(changed) if hasattr(hint, "copy_with") else typing.get_origin(hint)[changed]
    )


def _is_hint(value: Any) -> bool:
    return isinstance(value, type) or typing.get_origin(value) is not None


def _extended(shape: Any, known: dict[Any, Any]) -> Any:
    make: Any = typing_extensions.TypedDict  # a checker wants a literal; names come at run time
    members = typing.get_type_hints(shape, include_extras=True)
    known[shape] = shape  # one that contains itself stays as it is, and is refused with its name
    optional = shape.__optional_keys__
    known[shape] = made = make(
        shape.__name__,
        {n: NotRequired[_bare(h, known)] if n in optional else _bare(h, known)
         for n, h in members.items()},
    )  # fmt: skip
    made.__module__, made.__doc__ = shape.__module__, shape.__doc__
    if config := getattr(shape, "__pydantic_config__", None):
        made.__pydantic_config__ = config
    return made


def _bare(hint: Any, known: dict[Any, Any]) -> Any:
    if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = typing.get_args(hint)[0]
    return _typed(hint, known)


def validator_of(tool: str, fields: Mapping[str, Field]) -> pydantic.TypeAdapter[Any]:
    """The validator of all of them. Raises `InvalidDefinition` naming the parameter at fault."""
    try:
        return _adapter(fields)
    except Exception as error:  # a type may run any code of its own to describe itself
        raise _fault(tool, fields, error, _adapter) from error


def _adapter(fields: Mapping[str, Field]) -> pydantic.TypeAdapter[Any]:
    make: Any = typing_extensions.TypedDict
    shape = make(
        "arguments",
        {n: NotRequired[f.hint] if f.has_default else f.hint for n, f in fields.items()},
    )
    shape.__pydantic_config__ = _CONFIG
    return pydantic.TypeAdapter(shape)


def _described_alone(fields: Mapping[str, Field]) -> dict[str, Any]:
    return _adapter(fields).json_schema(schema_generator=_Schema)


def _fault(
    tool: str,
    fields: Mapping[str, Field],
    error: Exception,
    attempt: Callable[[Mapping[str, Field]], object],
) -> InvalidDefinition:
    for name, field in fields.items():
        try:
            attempt({name: field})
        except Exception as own:
            said = (str(own).splitlines() or [type(own).__name__])[0]
            return InvalidDefinition(f"tool {tool!r}: parameter {name!r}: {said}")
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return InvalidDefinition(f"tool {tool!r}: {said}")


def schema_of(
    tool: str, validator: pydantic.TypeAdapter[Any], fields: Mapping[str, Field]
) -> dict[str, Any]:
    """The JSON Schema of all of them. Raises `InvalidDefinition` naming the parameter at fault."""
    try:
        schema = validator.json_schema(schema_generator=_Schema)
    except PydanticInvalidForJsonSchema as error:
        raise _fault(tool, fields, error, _described_alone) from error
    schema.pop("title", None)
    properties = schema.get("properties", {})
    for field in fields.values():
        if field.wire in properties and (text := _default_text(validator, field)):
            properties[field.wire] = {**properties[field.wire], "default": json.loads(text)}
    return {"type": "object", "properties": {}, **schema}


def _default_text(validator: pydantic.TypeAdapter[Any], field: Field) -> str:
    """A default as JSON; empty where there is none, JSON cannot hold it, or it is not what the
    parameter takes: the schema then says none (PY09, PY24)."""
    if not field.has_default:
        return ""
    try:
        text, notes = json_text(field.default)
    except NotJson:
        return ""
    try:
        validator.validator.validate_json(f"{{{compact_json(field.wire)}:{text}}}", strict=True)
    except pydantic.ValidationError as error:
        if any(found["loc"][:1] == (field.wire,) for found in error.errors(include_url=False)):
            return ""
    return "" if notes else text


def typed(hint: Any) -> Any:
    """`hint` as pydantic can read it on this Python: its TypedDicts too."""
    return _typed(hint, {})
