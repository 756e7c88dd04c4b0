"""How a result too long for a model is cut: one end of a text, the structure of a JSON value.

The first of the bounds on a result, and the tool's own (`Format`); `middleware.result_limit` is the
last. Rules B6–B11 with their traps mended: text is cut as text and not as quoted JSON (T-B6), caps
hold with notice and hint inside (T-B8, T-B11), an error's message is reserved first (T-B1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from toolcrib.content import DataPart, Failure, Part, TextPart, ToolResult
from toolcrib.definition import Format
from toolcrib.jsonable import NotJson, clean, jsonable
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.results import RENDERED
from toolcrib.shorten import shorten

__all__ = ["Keep", "Truncation", "always_fits", "count_lines", "cut", "formatted"]

Keep: TypeAlias = Callable[[str], str | None]
"""Keeps a whole text and gives its id, or None where it could not: a spill store, for one call."""

Style: TypeAlias = Literal["tail", "head"]

_MARK = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Truncation:
    """What was cut of a result: in its meta under "truncation", only where something was (B8).

    Shown bytes and lines are those of the result itself, without notice and hint. `style` is "json"
    where a JSON value was shortened. `result_id` names the whole text, where it was kept.
    """

    original_bytes: int
    original_lines: int
    shown_bytes: int
    shown_lines: int
    style: Literal["tail", "head", "json"]
    recovery_hint: str = ""
    result_id: str = ""


def always_fits(format: Format) -> int:
    """So many characters are within the caps, whatever they are: a character has at most four
    bytes, and a line at least one character."""
    return min(format.max_bytes // 4, format.max_lines)


def count_lines(text: str) -> int:
    """Lines that end in a line feed, and a last one that does not (rule B7)."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def cut(text: str, max_bytes: int, max_lines: int, style: Style) -> str:
    """One end of `text` within both caps, whole characters only; `text` itself where it fits.

    By lines, whole lines are kept; where the bytes are what runs out, the line at the cut is not
    whole (rule B7; T-B7, T-B8).
    """
    return _cut(text, max_bytes, max_lines, style)[0]


def _cut(text: str, max_bytes: int, max_lines: int, style: Style) -> tuple[str, int]:
    """`cut`, and how many lines are left."""
    if max_bytes <= 0 or max_lines <= 0:
        return "", 0
    window = text[:max_bytes] if style == "head" else text[-max_bytes:]
    if not window.isascii():
        data = window.encode("utf-8", "replace")
        data = data[:max_bytes] if style == "head" else data[-max_bytes:]
        window = data.decode("utf-8", "ignore")  # what is ignored is the character at the cut
    if len(window) == len(text):
        window = text
    lines = count_lines(window)
    if lines <= max_lines:
        return window, lines
    kept = _first_lines(window, max_lines) if style == "head" else _last_lines(window, max_lines)
    return kept, max_lines


def _first_lines(text: str, lines: int) -> str:
    end = -1
    for _ in range(lines):
        end = text.index("\n", end + 1)
    return text[: end + 1]


def _last_lines(text: str, lines: int) -> str:
    start = len(text) - text.endswith("\n")
    for _ in range(lines):
        start = text.rindex("\n", 0, start)
    return text[start + 1 :]


def formatted(result: ToolResult, format: Format, keep: Keep | None = None) -> ToolResult:
    """`result` within the caps of `format`; the same object where it fits or renders itself (B6).

    Text and data count together; images, sounds and files stay and count nowhere here. `keep` gets
    the whole text where something is cut, and is not called otherwise. A failure's message is
    reserved first, its partial result gets what is left (B10).
    """
    if RENDERED in result.meta:
        return result
    whole = result.text
    lines = count_lines(whole)
    size = _size(whole)
    if size <= format.max_bytes and lines <= format.max_lines:
        return result
    result_id = (keep(whole) if keep is not None else None) or ""
    job = _Job(result, format, size, lines, result_id)
    failure = result.failure
    if failure is not None:
        last = result.content[-1]
        if isinstance(last, TextPart) and last.text == failure.message:
            return _with_message(job, result.content[:-1], failure)
        short = cut(failure.message, format.max_bytes, format.max_lines, format.style)
        job = replace(job, result=replace(result, failure=replace(failure, message=short)))
    return _replaced(job, result.content, *job.within(result.content, format))


@dataclass(frozen=True, slots=True)
class _Job:
    """One cut: the result, its format, its measures, and the id of the whole text."""

    result: ToolResult
    format: Format
    size: int
    lines: int
    result_id: str

    def within(self, content: tuple[Part, ...], room: Format) -> tuple[Part, Truncation]:
        """The text of `content` within `room`, and what was cut of it."""
        value, is_data = _json_value(self.result, content)
        if value is not None and room.max_bytes >= 2:
            return self._shortened(value, is_data, room)
        text = ToolResult(content).text
        size = _size(text)
        if size <= room.max_bytes and (lines := count_lines(text)) <= room.max_lines:
            return TextPart(text), self._truncation(size, lines, room.style)
        longest = self._truncation(self.size, self.lines, room.style)
        for footer in (self._footer, self._notice):
            most = footer(longest)
            left = room.max_bytes - _size(most) - 1, room.max_lines - count_lines(most)
            if left[0] >= room.max_bytes // 2 and left[1] >= 1:
                shown, lines = _cut(text, *left, room.style)
                told = self._truncation(_size(shown), lines, room.style)
                gap = "\n" if shown and not shown.endswith("\n") else ""
                return TextPart(f"{shown}{gap}{footer(told)}"), told
        # no room for words about it
        shown, lines = _cut(text, room.max_bytes, room.max_lines, room.style)
        return TextPart(shown), self._truncation(_size(shown), lines, room.style)

    def _shortened(self, value: Any, is_data: bool, room: Format) -> tuple[Part, Truncation]:
        longest = self._truncation(room.max_bytes, 1, "json")
        text = shorten(value, room.max_bytes, longest.recovery_hint)
        told = self._truncation(_size(text), 1, "json")
        if told.recovery_hint != longest.recovery_hint:  # it says how much is shown
            text = shorten(value, room.max_bytes, told.recovery_hint)
        return (DataPart(json.loads(text)) if is_data else TextPart(text)), told

    def _truncation(
        self, shown_bytes: int, shown_lines: int, style: Literal["tail", "head", "json"]
    ) -> Truncation:
        told = Truncation(
            self.size, self.lines, shown_bytes, shown_lines, style, "", self.result_id
        )
        return replace(told, recovery_hint=self._hint(told))

    def _hint(self, told: Truncation) -> str:
        """The tool's own hint, filled in once, and where to read the whole text."""
        template = self.format.recovery_hint
        names: dict[str, Any] = {
            "original_bytes": told.original_bytes,
            "original_lines": told.original_lines,
            "shown_bytes": told.shown_bytes,
            "shown_lines": told.shown_lines,
            "style": told.style,
            "next_offset": told.shown_lines + 1,
            "recovery_hint": "",
            **({"result_id": told.result_id} if told.result_id else {}),
            **_extras(self.result.meta),
        }
        said = _MARK.sub(lambda found: str(names.get(found[1], found[0])), template)
        if told.result_id and told.result_id not in said:
            read = f'The whole result: read_tool_result(id="{told.result_id}")'
            said = f"{said}\n{read}" if said else read
        return clean(said)

    def _notice(self, told: Truncation) -> str:
        end = "beginning" if told.style == "head" else "end"
        return (
            f"[{told.shown_lines} lines shown of {told.original_lines} total,"
            f" {told.shown_bytes} bytes of {told.original_bytes}: the {end}]"
        )

    def _footer(self, told: Truncation) -> str:
        notice = self._notice(told)
        return f"\n{told.recovery_hint}\n{notice}" if told.recovery_hint else notice


def _with_message(job: _Job, partial: tuple[Part, ...], failure: Failure) -> ToolResult:
    """A failure: its message whole, if it can be, and as much of the partial result as fits."""
    format, message = job.format, failure.message
    size, lines = _size(message) + 1, count_lines(message) + 1  # the line break between the two
    left = format.max_bytes - size, format.max_lines - lines
    if not partial or min(left) < 1:
        part, told = job.within((TextPart(message),), format)
        media = tuple(p for p in partial if not isinstance(p, TextPart | DataPart))
        said = part.text if isinstance(part, TextPart) else message
        result = replace(job.result, failure=replace(failure, message=said))
        return _noted(result, (*media, part), told)
    part, told = job.within(partial, replace(format, max_bytes=left[0], max_lines=left[1]))
    kept = _replaced(job, partial, part, told)
    return replace(kept, content=(*kept.content, TextPart(message)))


def _replaced(job: _Job, content: tuple[Part, ...], part: Part, told: Truncation) -> ToolResult:
    """The result with `part` in the place of the first text of `content`, the others gone."""
    kept: list[Part] = []
    is_placed = False
    for old in content:
        if not isinstance(old, TextPart | DataPart):
            kept.append(old)
        elif not is_placed:
            kept.append(part)
            is_placed = True
    return _noted(job.result, tuple(kept), told)


def _noted(result: ToolResult, content: tuple[Part, ...], told: Truncation) -> ToolResult:
    return replace(result, content=content, meta={**result.meta, "truncation": told})


def _json_value(result: ToolResult, content: tuple[Part, ...]) -> tuple[Any, bool]:
    """The object or array that the content is, and whether it is a data part; None for a text, and
    for what a tool wrote as a text itself."""
    texts = [part for part in content if isinstance(part, TextPart | DataPart)]
    if len(texts) != 1:
        return None, False
    if isinstance(only := texts[0], DataPart):
        value: Any = only.value
        return (value, True) if is_object(value) or is_array(value) else (None, False)
    is_ours = result.value is not None and not isinstance(result.value, str | bytes)
    if not is_ours or only.text[:1] not in ("{", "["):
        return None, False
    try:
        return jsonable(json.loads(only.text))[0], False
    except (ValueError, RecursionError, NotJson):  # a text that only looks like it
        return None, False


def _extras(meta: Mapping[str, Any]) -> dict[str, str | int]:
    return {name: value for name, value in meta.items() if isinstance(value, str | int)}


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
