"""Plays a script against an assembly through a real session, as a model would lead it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.assembly import Assembly
from toolcrib.cli.script import Scripted, ScriptedRound
from toolcrib.content import ToolCall, ToolResult
from toolcrib.definition import compact_json
from toolcrib.errors import ConfigurationError
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.turn import Round

__all__ = ["Played", "PlayedRound", "play"]

_REFERENCE = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)((?:\.[\w-]+)*)\s*\}\}")


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """What one round sent, and the calls with their results."""

    number: int
    say: str
    names: tuple[str, ...]
    new: tuple[str, ...]
    bytes: int
    tokens: int
    calls: tuple[tuple[ToolCall, ToolResult], ...]


@dataclass(frozen=True, slots=True)
class Played:
    """The whole conversation; `listing_bytes` is what all definitions cost in one request."""

    rounds: tuple[PlayedRound, ...]
    tools: int
    listing_bytes: int

    @property
    def sent_bytes(self) -> int:
        """Bytes of definitions sent over all rounds."""
        return sum(one.bytes for one in self.rounds)

    @property
    def failed(self) -> bool:
        return any(result.is_error for one in self.rounds for _, result in one.calls)


async def play(
    assembly: Assembly, script: Sequence[ScriptedRound], tell: Callable[[PlayedRound], None]
) -> Played:
    """Leads the conversation, telling each round as it ends."""
    session = assembly.session()
    results: dict[str, ToolResult] = {}
    rounds: list[PlayedRound] = []
    seen: set[str] = set()
    async with session.turn() as turn:
        for number, scripted in enumerate(script, 1):
            round = turn.round()
            calls = [
                _call(f"{number}.{at}", one, results) for at, one in enumerate(scripted.calls, 1)
            ]
            answers = await _answers(round, calls)
            results.update(
                {one.id: a for one, a in zip(scripted.calls, answers, strict=True) if one.id}
            )
            new = tuple(name for name in round.names if name not in seen)
            seen.update(new)
            played = PlayedRound(
                number,
                scripted.say,
                round.names,
                new,
                round.bytes,
                round.tokens,
                tuple(zip(calls, answers, strict=True)),
            )
            tell(played)
            rounds.append(played)
    definitions = assembly.catalog.definitions
    return Played(tuple(rounds), len(definitions), sum(d.wire_bytes for d in definitions))


async def _answers(round: Round, calls: Sequence[ToolCall]) -> list[ToolResult]:
    if not calls:
        round.accept()
        return []
    return await round.execute(calls)


def _call(id: str, scripted: Scripted, results: Mapping[str, ToolResult]) -> ToolCall:
    filled = _filled(scripted.arguments, results)
    return ToolCall(id, scripted.tool, "{}" if filled is None else _text(filled))


def _filled(value: Any, results: Mapping[str, ToolResult]) -> Any:
    if is_object(value):
        return {key: _filled(inner, results) for key, inner in value.items()}
    if is_array(value):
        return [_filled(inner, results) for inner in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole is not None:
        return _part(whole, results)
    return _REFERENCE.sub(lambda found: _text(_part(found, results)), value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def _part(found: re.Match[str], results: Mapping[str, ToolResult]) -> Any:
    result = results.get(found[1])
    if result is None:
        raise ConfigurationError(f"{found[0]}: no earlier call has the id {found[1]!r}")
    steps = found[2].split(".")[1:]
    if not steps:
        return result.text
    try:
        value: Any = json.loads(result.text)
        for step in steps:
            value = value[int(step)] if is_array(value) else value[step]
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigurationError(f"{found[0]}: the result has no such part: {error}") from error
    return value
