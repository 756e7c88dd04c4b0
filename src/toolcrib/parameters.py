"""The parameters of a Python function: their JSON Schema, their parse, and the call they make.

One pydantic validator per function, over the JSON text itself. Strict: a model that sends "3" for
a whole number is put right only by `arguments.coerce`, which notes it.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, cast

import pydantic
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined, ValidationError, to_jsonable_python
from typing_extensions import TypedDict

from toolcrib.arguments import Repaired, coerce, decode, refuse, unknown_names
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidDefinition
from toolcrib.jsonvalue import is_array
from toolcrib.schema import json_type

__all__ = ["Parameters"]

_Kind = inspect.Parameter
_CONFIG = pydantic.ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=False
)


class _Schema(GenerateJsonSchema):
    """Without the titles pydantic derives from names: they cost tokens and say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Parameters:
    """What `function` takes, less the parameters annotated with `injected`.

    `described` gives a text per parameter. Raises `InvalidDefinition` naming the parameter whose
    annotation cannot be resolved or has no JSON Schema.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        described: Mapping[str, str],
        injected: type[object],
    ) -> None:
        self._name = name
        signature = _signature(name, function)
        hints = _hints(name, function)
        self._context = [p for p in signature.parameters if _names(hints.get(p), injected)]
        self._kinds = {n: p.kind for n, p in signature.parameters.items() if n not in self._context}
        self._all_kinds = {n: p.kind for n, p in signature.parameters.items()}
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for parameter in signature.parameters.values():
            if parameter.name not in self._context:
                hint = hints.get(parameter.name, Any)
                fields[parameter.name] = _field(parameter, hint, described, defaults)
        self._defaults = defaults
        validator = _validator(name, fields)
        self.schema = _schema(name, validator, defaults)
        self._validate = validator.validator.validate_json
        self._loose = _has_untyped(self.schema)

    def parse(self, text: str) -> dict[str, Any] | Repaired:
        """The bound arguments by name; raises `InvalidArguments`. A default that was not sent is
        absent, so the function's own applies."""
        if self._loose or "NaN" in text or "Infinity" in text:
            decode(text)  # refuses what pydantic would let through where anything goes
        try:
            return cast("dict[str, Any]", self._validate(text))
        except ValidationError as error:
            return self._recover(text, error)

    def _recover(self, text: str, error: ValidationError) -> Repaired | dict[str, Any]:
        values, repairs = decode(text)
        if values and not self._kinds:
            return Repaired(
                {}, (*repairs, f"ignored {len(values)} arguments of a tool that takes none")
            )
        mended, more = coerce(values, self.schema)
        repairs += more
        try:
            prepared = self._validate(compact_json(mended))
        except ValidationError as still:
            raise refuse(self._name, self.schema, self._misfits(mended, still)) from None
        return Repaired(prepared, repairs) if repairs else prepared

    def _misfits(self, values: dict[str, Any], error: ValidationError) -> list[str]:
        lines = unknown_names(values, self.schema)
        for found in error.errors(include_url=False, include_context=False):
            path = ".".join(str(step)[:80] for step in found["loc"])
            if found["type"] == "extra_forbidden" and len(found["loc"]) == 1:
                continue
            got = "" if found["type"] == "missing" else f" (got {json_type(found['input'])})"
            lines.append(f"{path}: {found['msg']}{got}")
        return lines[:9]

    def caller(self, function: Callable[..., Any]) -> Callable[[Any, dict[str, Any]], Any]:
        """`call(ctx, arguments)`: binds as the signature says, the context injected by name."""
        simple = {_Kind.POSITIONAL_OR_KEYWORD, _Kind.KEYWORD_ONLY}
        if all(kind in simple for kind in self._all_kinds.values()):
            if not self._context:
                return lambda ctx, arguments: function(**arguments)
            if len(self._context) == 1:
                name = self._context[0]
                return lambda ctx, arguments: function(**arguments, **{name: ctx})
        return lambda ctx, arguments: self._bound(function, ctx, arguments)

    def _bound(self, function: Callable[..., Any], ctx: Any, arguments: dict[str, Any]) -> Any:
        given = {**arguments, **dict.fromkeys(self._context, ctx)}
        positional: list[Any] = []
        named: dict[str, Any] = {}
        rest = list(
            given.get(
                next((n for n, k in self._kinds.items() if k is _Kind.VAR_POSITIONAL), ""), ()
            )
        )
        for name, kind in self._all_kinds.items():
            if kind is _Kind.VAR_KEYWORD:
                named.update(given.get(name) or {})
            elif kind is _Kind.VAR_POSITIONAL:
                positional.extend(rest)
            elif kind is _Kind.KEYWORD_ONLY:
                if name in given:
                    named[name] = given[name]
            elif kind is _Kind.POSITIONAL_ONLY or rest:  # all before *args go by position
                if name in given:
                    positional.append(given[name])
                elif name in self._defaults or any(n in given for n in self._after(name)):
                    positional.append(self._defaults[name])
            elif name in given:
                named[name] = given[name]
        return function(*positional, **named)

    def _after(self, name: str) -> list[str]:
        names = list(self._all_kinds)
        return names[names.index(name) + 1 :]


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InvalidDefinition(f"tool {name!r}: its signature cannot be read: {error}") from error


def _hints(name: str, function: Any) -> dict[str, Any]:
    """Resolved in the module that defines the function, as `typing` does it."""
    target = inspect.unwrap(
        function.func if hasattr(function, "func") and not inspect.isroutine(function) else function
    )
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise InvalidDefinition(
            f"tool {name!r}: an annotation cannot be resolved: {error}"
        ) from error


def _names(hint: Any, injected: type[object]) -> bool:
    """Whether an annotation is `injected`, or a union or Annotated of it."""
    if hint is injected:
        return True
    if typing.get_origin(hint) in (typing.Union, types.UnionType, Annotated):
        return any(_names(inner, injected) for inner in typing.get_args(hint))
    return False


def _field(
    parameter: inspect.Parameter, hint: Any, described: Mapping[str, str], defaults: dict[str, Any]
) -> Any:
    """The TypedDict entry of one parameter; its default, if any, goes into `defaults`."""
    default = parameter.default
    if parameter.kind is _Kind.VAR_POSITIONAL:
        hint, default = list[hint], []
    elif parameter.kind is _Kind.VAR_KEYWORD:
        hint, default = dict[str, hint], {}
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
        default = (
            inspect.Parameter.empty
            if default.is_required()
            else default.get_default(call_default_factory=True)
        )
    elif (
        inner := _annotated_default(hint)
    ) is not PydanticUndefined and default is inspect.Parameter.empty:
        default = inner
    if default is None:
        hint = hint | None if isinstance(hint, type) else typing.Optional[hint]  # noqa: UP045
    if described.get(parameter.name) and not _describes(hint):
        hint = Annotated[hint, pydantic.Field(description=described[parameter.name])]
    if default is inspect.Parameter.empty:
        return hint
    defaults[parameter.name] = default
    return NotRequired[hint]


def _annotated_default(hint: Any) -> Any:
    infos = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldInfo)]
    return next(
        (info.default for info in infos if info.default is not PydanticUndefined), PydanticUndefined
    )


def _describes(hint: Any) -> bool:
    return any(
        isinstance(m, FieldInfo) and m.description for m in getattr(hint, "__metadata__", ())
    )


def _validator(name: str, fields: dict[str, Any]) -> pydantic.TypeAdapter[Any]:
    make_shape: Any = TypedDict  # a checker wants a literal; a signature gives names at run time
    shape = make_shape("arguments", fields)
    shape.__pydantic_config__ = _CONFIG
    try:
        return pydantic.TypeAdapter(shape)
    except (
        PydanticSchemaGenerationError,
        PydanticUndefinedAnnotation,
        pydantic.PydanticUserError,
    ) as error:
        raise InvalidDefinition(f"tool {name!r}: {str(error).splitlines()[0]}") from error


def _schema(
    name: str, validator: pydantic.TypeAdapter[Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        schema = validator.json_schema(schema_generator=_Schema)
    except PydanticInvalidForJsonSchema as error:
        raise InvalidDefinition(f"tool {name!r}: {str(error).splitlines()[0]}") from error
    schema.pop("title", None)
    for parameter, default in defaults.items():
        properties = schema.get("properties", {})
        if (
            parameter in properties
            and (json_default := _jsonable(default)) is not PydanticUndefined
        ):
            properties[parameter] = {**properties[parameter], "default": json_default}
    return {"type": "object", "properties": {}, **schema}


def _jsonable(default: Any) -> Any:
    """A default as JSON, or undefined where JSON cannot hold it: the schema then says none."""
    try:
        return to_jsonable_python(default)
    except ValueError:
        return PydanticUndefined


def _has_untyped(schema: Any) -> bool:
    """Whether some value may be anything, where the validator would let NaN and infinities in."""
    if isinstance(schema, Mapping):
        node = cast("Mapping[str, Any]", schema)
        if node.get("additionalProperties") is True or node.get("items") == {}:
            return True
        says = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
        for key, inner in node.items():
            if key in ("properties", "$defs"):
                if any(_has_untyped(v) or not any(s in v for s in says) for v in inner.values()):
                    return True
            elif key in ("anyOf", "oneOf", "allOf", "items") and _has_untyped(inner):
                return True
        return False
    return is_array(schema) and any(map(_has_untyped, schema))
