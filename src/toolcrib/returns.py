"""A function's return annotation as its output schema, where that says something.

Said of a record or a container with typed contents: a dataclass, pydantic model, TypedDict, named
tuple, `dict[str, int]`, `list[Row]`. Not of str, int, None and the like, which every text is; not
of a union; not of content parts, `ToolResult`, bytes and iterators, which become content and no
structured value. Whether a result fits is `output`'s.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from typing import Any

from toolcrib.jsonvalue import is_object

__all__ = ["output_schema"]


def output_schema(annotation: Any) -> Mapping[str, Any] | None:
    """The JSON Schema of what a function with that (resolved) return annotation gives; None where
    it has none to speak of. Never raises: a tool without it works as well."""
    if not _may_say_something(annotation):
        return None
    import pydantic  # paid by the first function that needs it, not by every import
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic.json_schema import GenerateJsonSchema

    from toolcrib.fields import typed

    class Untitled(GenerateJsonSchema):
        """Without the titles pydantic derives from names: they cost tokens and say nothing."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    try:
        schema = pydantic.TypeAdapter(typed(annotation)).json_schema(
            mode="serialization", schema_generator=Untitled
        )
    except (pydantic.PydanticUserError, PydanticInvalidForJsonSchema, TypeError, NameError):
        return None  # a type pydantic does not know: the function is a tool all the same
    schema.pop("title", None)  # the class's name
    return schema if _is_informative(schema) else None


def _may_say_something(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _may_say_something(typing.get_args(annotation)[0])
    if origin is not None:
        is_container = origin in (dict, list, tuple, set, frozenset) or (
            isinstance(origin, type) and issubclass(origin, Mapping)
        )
        return is_container and not any(map(_is_content, typing.get_args(annotation)))
    if not inspect.isclass(annotation) or _is_content(annotation):
        return False
    record: type[Any] = annotation
    return (
        dataclasses.is_dataclass(record)
        or typing.is_typeddict(record)
        or hasattr(record, "model_json_schema")
        or hasattr(record, "_fields")
    )


def _is_content(annotation: Any) -> bool:
    """Ours: a part or a result; or a union of such."""
    inner = typing.get_args(annotation)
    if inner:
        return any(map(_is_content, inner))
    return getattr(annotation, "__module__", "") == "toolcrib.content"


def _is_informative(schema: Mapping[str, Any]) -> bool:
    """Whether the root is an object or array whose contents are typed."""
    root: Any = schema
    reference = schema.get("$ref", "")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        root = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
    if not is_object(root):
        return False
    if root.get("type") == "object":
        return bool(root.get("properties")) or is_object(root.get("additionalProperties"))
    return root.get("type") == "array" and bool(root.get("items") or root.get("prefixItems"))
