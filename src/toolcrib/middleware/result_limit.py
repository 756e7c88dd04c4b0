"""The last bound of a result: characters of text, encoded bytes of everything else (rule A12.3).

Caps are hard: the marker is counted inside them, and no cut falls inside a character.
"""

from __future__ import annotations

from dataclasses import replace

from toolcrib.chain import CallNext, Invocation, Middleware
from toolcrib.content import Part, TextPart, ToolResult
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidDefinition

__all__ = ["DEFAULT_MARKER", "DEFAULT_PART_BUDGET", "limit_result", "result_limit"]

DEFAULT_MARKER = "\n…[result truncated]"
DEFAULT_PART_BUDGET = 1024 * 1024
"""Bytes of JSON that images, audio, files and data of one result may take together."""


def result_limit(
    max: int | None = None,
    *,
    marker: str = DEFAULT_MARKER,
    part_budget_bytes: int = DEFAULT_PART_BUDGET,
) -> Middleware:
    """Bounds each result: `max` characters of text (None: unbounded), `part_budget_bytes` of the
    other parts (0 or less: unbounded). Raises `InvalidDefinition` for a `max` below 1."""
    if max is not None and max < 1:
        raise InvalidDefinition(f"result_limit.max is {max!r}: use a number of characters above 0")
    mark = marker or DEFAULT_MARKER

    async def bound(invocation: Invocation, call_next: CallNext) -> ToolResult:
        return limit_result(await call_next(invocation), max, mark, part_budget_bytes)

    return bound


def limit_result(
    result: ToolResult, max_text: int | None, marker: str, part_budget: int
) -> ToolResult:
    """`result` within both budgets; the same object where nothing was too much.

    Other parts that do not fit are dropped, later smaller ones may fit. Text is cut in order and
    the marker stands at the cut; a failure's own message is kept first, its partial result gets
    what is left.
    """
    if len(result.content) == 1 and type(text := result.content[0]) is TextPart:
        if max_text is None or len(text.text) <= max_text:
            return result
        return replace(result, content=_cut(result.content, max_text, marker, result.is_error))
    kept = _within_budget(result.content, part_budget)
    dropped = len(kept) < len(result.content)
    total = sum(len(part.text) for part in kept if isinstance(part, TextPart))
    if max_text is not None and total + (len(marker) if dropped else 0) > max_text:
        return replace(result, content=_cut(kept, max_text, marker, result.is_error))
    if dropped:
        return replace(result, content=_marked(kept, marker, result.is_error))
    return result


def _within_budget(parts: tuple[Part, ...], budget: int) -> tuple[Part, ...]:
    if budget <= 0:
        return parts
    kept: list[Part] = []
    left = budget
    for part in parts:
        if not isinstance(part, TextPart):
            size = len(compact_json(part.to_json()).encode())
            if size > left:
                continue
            left -= size
        kept.append(part)
    return tuple(kept)


def _marked(parts: tuple[Part, ...], marker: str, is_error: bool) -> tuple[Part, ...]:
    note = TextPart(marker)
    return (*parts[:-1], note, parts[-1]) if is_error and parts else (*parts, note)


def _cut(parts: tuple[Part, ...], max_text: int, marker: str, is_error: bool) -> tuple[Part, ...]:
    mark = marker[:max_text]
    room = max_text - len(mark)
    message = ""
    if is_error and parts and isinstance(last := parts[-1], TextPart):
        message = last.text[:room]
        room -= len(message)
        parts = parts[:-1]
    kept: list[Part] = []
    marked = False
    for part in parts:
        if not isinstance(part, TextPart):
            kept.append(part)
        elif not marked and len(part.text) <= room:
            kept.append(part)
            room -= len(part.text)
        elif not marked:
            kept.append(TextPart(part.text[:room] + mark))
            marked = True
    if not marked:
        message += mark
    return (*kept, TextPart(message)) if message else tuple(kept)
