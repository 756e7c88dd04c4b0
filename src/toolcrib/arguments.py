"""From the text a model sent to the arguments of a call, or to a refusal it can act on.

Strict first; then the few recoveries of the decision table, each of them noted; never a guess:
what is cut off or glued together is refused (`decoding`), slips are put right (`mending`). What the
arguments mean is the tool's own parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import pydantic_core

from toolcrib.decoding import decode
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.errors import InvalidArguments, InvalidSchema, NotAvailable
from toolcrib.jsonvalue import is_object
from toolcrib.mending import coerce
from toolcrib.misfits import bounded, unknown
from toolcrib.schema import Checker, compile_schema

__all__ = [
    "JsonArguments",
    "Repaired",
    "SchemaParser",
    "accepted",
    "coerce",
    "decode",
    "encode",
    "refuse",
    "unknown_names",
]

MAX_ACCEPTED = 40

_WRAPPERS = {"arguments", "args", "input", "inputs", "parameters", "params", "tool_input"}


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


def accepted(schema: Mapping[str, Any]) -> str:
    """The accepted names as text for the model: `a (required), b`; at most 40."""
    properties = _properties(schema)
    required: set[str] = set(schema.get("required") or ())
    first = sorted(properties, key=lambda name: name not in required)[:MAX_ACCEPTED]
    if len(properties) <= MAX_ACCEPTED:
        first = list(properties)
    names = [f"{name[:80]} (required)" if name in required else name[:80] for name in first]
    if (more := len(properties) - len(first)) > 0:
        names.append(f"and {more} more")
    return ", ".join(names) or "none"


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if is_object(found) else {}


def refuse(
    name: str, schema: Mapping[str, Any], values: Mapping[str, Any], misfits: list[str]
) -> InvalidArguments:
    """The refusal of a call of the tool `name`: what is wrong, and what it takes."""
    wrong = "; ".join(misfits) or "they do not fit"
    return InvalidArguments(
        f"invalid arguments for {name!r}: {wrong}. Accepted: {accepted(schema)}."
        + _unwrap_hint(schema, values)
    )


def _unwrap_hint(schema: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """For a call that packs everything into one key (AR18). Only told, never unwrapped: what the
    key holds was not checked as arguments by whoever approved the call."""
    unlisted = [name for name in islice(values, 2) if name not in _properties(schema)]
    if len(values) == 1 and unlisted and unlisted[0] in _WRAPPERS:
        return f" Send them at the top level, not inside {unlisted[0]!r}."
    return ""


def unknown_names(values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """A line for each name that `schema` does not list, with the nearest one it does."""
    properties = _properties(schema)
    return bounded(unknown((name for name in values if name not in properties), properties))


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

    `parser(text)` gives `JsonArguments`, or `Repaired` holding them; raises `InvalidArguments`, and
    `NotAvailable` with the reason for a tool whose schema cannot be used (JS20). The schema is
    compiled at the first call; what fits it is handed on as it was sent.
    """

    __slots__ = ("_checker", "_definition")

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._checker: Checker | None = None

    def __call__(self, text: str) -> JsonArguments | Repaired:
        checker = self._checker or self._compiled()
        values, repairs = decode(text)
        if not checker.fits(values, len(text)):
            values, more = self._mended(checker, values)
            repairs += more
        if not repairs:
            return JsonArguments(
                values, text if values and text.startswith("{") else compact_json(values)
            )
        return Repaired(JsonArguments(values, compact_json(values)), repairs)

    def _compiled(self) -> Checker:
        try:
            self._checker = compile_schema(self._definition.input_schema)
        except InvalidSchema as error:
            raise NotAvailable(
                f"tool {self._definition.name!r} cannot be called: {error}"
            ) from error
        return self._checker

    def _mended(
        self, checker: Checker, values: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        schema = self._definition.input_schema
        closed = schema.get("additionalProperties") is False
        if closed and not schema.get("properties") and checker.fits({}):
            return {}, (f"ignored {len(values)} arguments of a tool that takes none",)
        mended, repairs = coerce(values, schema)
        if repairs and checker.fits(mended):
            return mended, repairs
        misfits = checker.misfits(mended)
        if closed:  # the names themselves are told with the nearest ones
            names = unknown_names(values, schema)
            misfits = [*names, *(m for m in misfits if not (names and m.startswith("takes no ")))]
        raise refuse(self._definition.name, schema, values, misfits)
