"""What the tests of conversations share: tools to find, calls that search, and what was told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from conftest import Plain
from toolcrib import Session, ToolCall, ToolResult
from toolcrib.providers.history import Assistant

SEARCH = "tool_search"


def some(*names: str) -> list[Plain]:
    """Tools that the word "common" finds, all of them, and its name each."""
    return [Plain(name, f"{name} ran", description=f"common {name}") for name in names]


def birds(count: int) -> list[Plain]:
    """bird_0, bird_1, …: the word "bird" finds them all."""
    return [Plain(f"bird_{at}", "sings", description="A bird") for at in range(count)]


def only(*names: str) -> set[str]:
    """These names and that of the search."""
    return {*names, SEARCH}


def searching(query: str, limit: int | None = None, id: str = "s") -> ToolCall:
    """A call that searches."""
    arguments = {"query": query} | ({} if limit is None else {"limit": limit})
    return ToolCall(id, SEARCH, json.dumps(arguments))


def asks(*calls: str | tuple[str, str], text: str = "") -> Assistant:
    """A model's answer with `calls`, c0, c1, …: of a name, or of a name with arguments."""
    pairs = [(call, "{}") if isinstance(call, str) else call for call in calls]
    return Assistant(text, tuple(ToolCall(f"c{at}", *pair) for at, pair in enumerate(pairs)))


def told(result: ToolResult) -> dict[str, Any]:
    """What a search that succeeded answered."""
    assert result.failure is None, result
    (part,) = result.content
    return dict(part.to_json()["value"])


async def search(session: Session, query: str, limit: int | None = None) -> dict[str, Any]:
    """What a search in a round of its own, in a turn of its own, answers."""
    (result,) = await session.turn().round().execute([searching(query, limit)])
    return told(result)


def hits(answer: dict[str, Any]) -> list[str]:
    return [hit["name"] for hit in answer["hits"]]


def reasons(answer: dict[str, Any]) -> dict[str, str]:
    """Why what was found is not exposed."""
    return {one["name"]: one["reason"] for one in answer.get("failed", [])}


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """A saved state as a store that knows only floats gives it back (trap T-A19)."""
    found: dict[str, Any] = json.loads(json.dumps(state), parse_int=float)
    return found


class Loads:
    """A load that gives `made`, or fails while `fails`, and counts how often it began; `held`
    until `goes_on` is set."""

    def __init__(self, made: Any, *, held: bool = False) -> None:
        self.made = made
        self.count = 0
        self.fails = False
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.is_done = False
        if not held:
            self.goes_on.set()

    async def __call__(self) -> Any:
        self.count += 1
        self.begun.set()
        await self.goes_on.wait()
        if self.fails:
            raise OSError("secret: host db7 is down")
        self.is_done = True
        return self.made
