"""The parameters of a Python function: their JSON Schema and their parse.

One pydantic validator per function, over the JSON text itself. Strict down into the function's own
models: a model that sends "3" for a whole number is put right only by `mending`, which notes it.
How the function is called is `binding`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from pydantic_core import ValidationError

from toolcrib.arguments import Repaired, coerce, decode, refuse, unknown_names
from toolcrib.binding import Binding
from toolcrib.decoding import may_overflow
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidArguments, InvalidSchema
from toolcrib.fields import fields_of, schema_of, validator_of
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.misfits import bounded, json_type, line, quoted
from toolcrib.refs import pointed
from toolcrib.schema import compile_schema

__all__ = ["Parameters"]

logger = logging.getLogger("toolcrib.function")

MANY = 1_000
"""Errors of one call, from which pydantic's own list of them is not made: it would take seconds."""


class Parameters:
    """What `function` takes, less the parameters annotated with `injected`.

    `described` gives a text per parameter; a name there that is no parameter is logged (PY22).
    Raises `InvalidDefinition` naming the parameter whose annotation cannot be resolved or has no
    JSON Schema.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        described: Mapping[str, str],
        injected: type[object],
    ) -> None:
        self._name = name
        self._binding = Binding(name, function, injected)
        if strangers := described.keys() - self._binding.names - {"self", "cls"}:
            listed = ", ".join(map(quoted, sorted(strangers)))
            logger.warning("tool %r: its docstring describes %s, no parameter of it", name, listed)
        fields = fields_of(name, self._binding, described)
        validator = validator_of(name, fields)
        self.schema = schema_of(name, validator, fields)
        self.returns: Any = self._binding.returns
        """The return annotation, resolved."""
        self._defaults = {n: field.default for n, field in fields.items() if field.has_default}
        self._validate = validator.validator.validate_json
        self._loose = not _Numbers(self.schema).are_ours(self.schema)

    def parse(self, text: str) -> dict[str, Any] | Repaired:
        """The arguments by parameter; raises `InvalidArguments`. A default that was not sent is
        absent, so the function's own applies."""
        if self._loose and ("NaN" in text or "Infinity" in text or may_overflow(text)):
            decode(text)  # refuses what pydantic would let through where anything goes
        try:
            return cast("dict[str, Any]", self._validate(text, strict=True))
        except ValidationError as error:
            return self._recover(text, error)

    def _recover(self, text: str, error: ValidationError) -> Repaired | dict[str, Any]:
        values, repairs = decode(text)
        if values and not self._binding.parameters:
            return Repaired(
                {}, (*repairs, f"ignored {len(values)} arguments of a tool that takes none")
            )
        mended, more = coerce(values, self.schema)
        repairs += more
        if not repairs and error.error_count() > MANY:
            raise self._refusal(values, error) from None
        try:
            prepared = self._validate(compact_json(mended), strict=True)
        except ValidationError as still:
            raise self._refusal(mended, still) from None
        return Repaired(prepared, repairs) if repairs else prepared

    def _refusal(self, values: dict[str, Any], error: ValidationError) -> InvalidArguments:
        if error.error_count() > MANY:
            return refuse(self._name, self.schema, values, self._too_many(values))
        lines = [*unknown_names(values, self.schema), *self._worded(error)]
        return refuse(self._name, self.schema, values, bounded(lines))

    def _too_many(self, values: dict[str, Any]) -> list[str]:
        try:
            found = compile_schema(self.schema).misfits(values)
        except InvalidSchema:
            found = []
        return found or ["more than a thousand of the values do not fit"]

    def _worded(self, error: ValidationError) -> Iterable[str]:
        for found in error.errors(include_url=False):
            steps, kind = found["loc"], found["type"]
            if kind == "extra_forbidden":
                if len(steps) > 1:  # those at the top have been named already
                    yield line(self.schema, steps, "not a name it takes")
                continue
            said = found["msg"]
            if kind == "union_tag_invalid":  # pydantic's text quotes the value
                said = f"expected one of {found.get('ctx', {}).get('expected_tags', '')}"
            elif kind not in ("missing", "value_error"):
                said = f"{said} (got {json_type(found['input'])})"
            yield line(self.schema, steps, said)

    def caller(self, function: Callable[..., Any]) -> Callable[[Any, dict[str, Any]], Any]:
        """`call(ctx, arguments)`: binds as the signature says, the context injected by name."""
        return self._binding.caller(function, self._defaults)


class _Numbers:
    """Whether every number a schema takes is checked by our own validator. Not so where anything
    goes, and not in a model, which has rules of its own: there NaN and infinities could pass."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._seen: set[str] = set()

    def are_ours(self, schema: object, *, in_model: bool = False) -> bool:
        if not is_object(schema):
            return False
        if isinstance(reference := schema.get("$ref"), str):
            if reference in self._seen:
                return True
            self._seen.add(reference)
            return self.are_ours(pointed(self._root, reference), in_model=True)
        for keyword in ("anyOf", "oneOf"):
            if is_array(branches := schema.get(keyword)):
                return all(self.are_ours(each, in_model=in_model) for each in branches)
        if "enum" in schema or "const" in schema:
            return True
        parts = self._parts(schema)
        if parts is None:
            return schema.get("type") == "number" and not in_model
        return all(self.are_ours(each, in_model=in_model) for each in parts)

    def _parts(self, schema: dict[str, Any]) -> list[object] | None:
        """What else has to be looked at; None for a number and for what does not say its type."""
        match schema.get("type"):
            case "string" | "integer" | "boolean" | "null":
                return []
            case "array":
                prefix: list[object] = list(schema.get("prefixItems", ()))
                is_closed = bool(prefix) and schema.get("maxItems") == len(prefix)
                return prefix if is_closed else [*prefix, schema.get("items")]
            case "object":
                rest = schema.get("additionalProperties")
                listed = list(schema.get("properties", {}).values())
                # a model that ignores what it does not know has no additionalProperties, and no
                # place to keep any; of an object without members the rest is all there is
                return listed if rest is False or (listed and rest is None) else [*listed, rest]
            case _:
                return None
