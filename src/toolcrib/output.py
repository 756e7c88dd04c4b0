"""What becomes of each result before the chain sees it: checked, redacted, cut to its format.

A step of the executor, in every assembly (DESIGN §4). For a tool without output schema, in an
assembly without redactor, a short text costs one comparison of lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from toolcrib.content import ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.errors import InvalidSchema
from toolcrib.format import always_fits, formatted
from toolcrib.redact import Redactor
from toolcrib.results import structured
from toolcrib.schema import compile_schema
from toolcrib.tool import CallContext

__all__ = ["AS_IT_IS", "Deliver", "Delivery", "Keeper", "checked", "delivering"]


class Keeper(Protocol):
    """Keeps whole texts: `spill.SpillStore`."""

    def keep(self, text: str, ctx: CallContext) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """What an assembly does with every result, beyond each tool's own format."""

    spill: Keeper | None = None
    redactor: Redactor | None = None


AS_IT_IS = Delivery()

Deliver: TypeAlias = Callable[[CallContext, ToolResult], ToolResult]


def delivering(
    definition: ToolDefinition, delivery: Delivery, *, is_strict: bool = False
) -> tuple[int, Deliver]:
    """The step for one tool; and how many characters a single text may have so that the step would
    give it back as it is (-1: never)."""
    spill, redactor, format = delivery.spill, delivery.redactor, definition.format
    has_schema = definition.output_schema is not None

    def deliver(ctx: CallContext, result: ToolResult) -> ToolResult:
        if has_schema and result.failure is None:
            result = checked(definition, result, is_strict=is_strict)
        if redactor is not None:
            result = redactor.result(result)  # before any cut, which could divide a secret
        keep = None if spill is None else partial(spill.keep, ctx=ctx)
        return formatted(result, format, keep)

    return (-1 if has_schema or redactor is not None else always_fits(format)), deliver


def checked(definition: ToolDefinition, result: ToolResult, *, is_strict: bool) -> ToolResult:
    """`result` with its misfits to the output schema under "warnings" in its meta (RS08); with
    `is_strict` such a result is the failure `invalid_output`."""
    misfits = _misfits(definition, result)
    if not misfits:
        return result
    if not is_strict:
        return result.with_meta(warnings=(*result.meta.get("warnings", ()), *misfits))
    return ToolResult.failed(
        "invalid_output",
        f"tool {definition.name!r} gave a result that does not fit its own output schema"
        f" ({'; '.join(misfits)}); the call itself did run",
        value=result.value,
    )


def _misfits(definition: ToolDefinition, result: ToolResult) -> list[str]:
    try:
        checker = compile_schema(definition.output_schema or {})
    except InvalidSchema as error:
        return [f"its output schema cannot be used: {error}"]
    value = structured(result)
    if checker.fits(value):
        return []
    if result.value is None:
        return ["it declares an output schema, but gave no structured value"]
    return checker.misfits(value)
