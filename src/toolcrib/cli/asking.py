"""Questions of servers, put to the person at a terminal: a host for `chat`.

What is shown and how a line is read as a value. Where it is shown and read is the caller's `ask`;
what becomes of an answer, the source's.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from toolcrib.answers import misfits
from toolcrib.cli.terminal import visible
from toolcrib.host import CANCELLED, DECLINED, Elicitation, ElicitationAnswer, accepted
from toolcrib.jsonvalue import is_array, is_object

__all__ = ["Ask", "Asking", "choices", "value_of"]

Ask: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Shows a text and gives the line that came as its answer; None at the end of the input."""

ATTEMPTS: Final = 3
"""How often a form is put that was filled in wrongly."""

NO: Final = "!no"
YES_WORDS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class _Stopped(Exception):
    """The person does not answer: `answer` says how."""

    def __init__(self, answer: ElicitationAnswer) -> None:
        super().__init__()
        self.answer = answer


class Asking:
    """Puts one question at a time, however many servers ask. A form is asked field by field."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._turn = asyncio.Lock()

    async def elicit(self, question: Elicitation) -> ElicitationAnswer:
        async with self._turn:
            try:
                return await (self._errand(question) if question.url else self._form(question))
            except _Stopped as stopped:
                return stopped.answer

    async def _errand(self, question: Elicitation) -> ElicitationAnswer:
        """The person opens the address: nothing here does."""
        said = f"{_heading(question)}\n  {visible(question.url)}\n"
        while True:
            line = await self._line(f"{said}Open this address yourself, if you trust it. y or n: ")
            if line.lower() in YES_WORDS:
                return accepted() if YES_WORDS[line.lower()] else DECLINED

    async def _form(self, question: Elicitation) -> ElicitationAnswer:
        said = f"{_heading(question)}\n({NO} says no, an empty line leaves a field out)\n"
        for _ in range(ATTEMPTS):
            values = await self._values(question, said)
            if not (wrong := misfits(question, values)):
                return accepted(values)
            said = "".join(f"! {visible(one)}\n" for one in wrong)
        return CANCELLED

    async def _values(self, question: Elicitation, said: str) -> dict[str, Any]:
        fields = question.schema["properties"]
        if not fields:
            await self._line(f"{said}ok? ")
        values: dict[str, Any] = {}
        for name, field in fields.items():
            described: Mapping[str, Any] = field if is_object(field) else {}
            values |= await self._value(name, described, said)
            said = ""
        return values

    async def _value(self, name: str, field: Mapping[str, Any], said: str) -> dict[str, Any]:
        while line := await self._line(said + _prompt(name, field)):
            try:
                return {name: value_of(field, line)}
            except ValueError as error:
                said = f"! {error}\n"
        return {name: field["default"]} if "default" in field else {}

    async def _line(self, text: str) -> str:
        line = await self._ask(text)
        if line is None:
            raise _Stopped(CANCELLED)
        if line.strip() == NO:
            raise _Stopped(DECLINED)
        return line.strip()


def choices(field: Mapping[str, Any]) -> list[str]:
    """What a field lets choose from; empty where it takes other values."""
    where = field.get("items") if field.get("type") == "array" else field
    if not is_object(where):
        return []
    if is_array(listed := where.get("enum")):
        return [str(one) for one in listed]
    titled = where.get("oneOf") or where.get("anyOf")
    return [str(one.get("const")) for one in titled if is_object(one)] if is_array(titled) else []


def value_of(field: Mapping[str, Any], line: str) -> Any:
    """What a person's `line` means for `field`. Raises `ValueError`, in words for them."""
    kind, among = field.get("type"), choices(field)
    if kind == "array":
        return [_chosen(among, one.strip()) for one in line.split(",") if one.strip()]
    if among:
        return _chosen(among, line)
    if kind == "boolean":
        if line.lower() not in YES_WORDS:
            raise ValueError("answer y or n")
        return YES_WORDS[line.lower()]
    if kind in ("integer", "number"):
        return _number(line, int if kind == "integer" else float)
    return line


def _number(line: str, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(line)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("this is no number" if kind is float else "this is no whole number")
    return number


def _chosen(among: list[str], said: str) -> str:
    if among and said not in among:
        raise ValueError(f"choose from {', '.join(map(visible, among))}")
    return said


def _heading(question: Elicitation) -> str:
    about = f" (for {visible(question.tool)})" if question.tool else ""
    return f"MCP server {question.server!r}{about} asks: {visible(question.message)}"


def _prompt(name: str, field: Mapping[str, Any]) -> str:
    title, described = str(field.get("title") or name), field.get("description")
    words = [visible(title if not described else f"{title}: {described}")]
    if among := choices(field):
        words.append(f"({', '.join(map(visible, among))})")
    if "default" in field:
        words.append(f"[{visible(json.dumps(field['default'], ensure_ascii=False))}]")
    return " ".join(words) + " > "
