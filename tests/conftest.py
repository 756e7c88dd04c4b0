"""What the tests of the core rooms share: bounds on waiting, and words for a result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from hypothesis import settings

from toolcrib import CallContext, ToolDefinition, ToolResult

T = TypeVar("T")

settings.register_profile("toolcrib", deadline=None, print_blob=True)
settings.load_profile("toolcrib")


async def ended(work: Awaitable[T], within: float = 5.0) -> T:
    """What `work` gives, in a task of its own; a test that would wait for ever fails instead."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait((task,), timeout=within)
    if not done:
        task.cancel()
        raise AssertionError(f"did not end within {within} s")
    if task.cancelled():
        raise AssertionError("was cancelled, though nobody outside cancelled it")
    return task.result()


def floor() -> float:
    """CPU seconds that a fixed piece of work takes here and now: what bounds of work are said in,
    as machines differ."""
    began = time.process_time()
    assert sum(i & 1 for i in range(1_000_000)) == 500_000
    return time.process_time() - began


def outcome(result: ToolResult) -> str:
    """The kind of a failed result, the text of another."""
    return result.failure.kind if result.failure is not None else result.text


class Plain:
    """A tool written out by hand: the contract and nothing else."""

    def __init__(
        self,
        name: str,
        answer: Callable[[CallContext, str], Awaitable[Any]] | Any = "",
        *,
        description: str = "",
        schema: dict[str, Any] | None = None,
    ) -> None:
        self.definition = ToolDefinition(name, description, schema or {})
        self._answer = answer
        self.got: list[str] = []

    async def execute(self, ctx: CallContext, arguments: str) -> Any:
        self.got.append(arguments)
        return await self._answer(ctx, arguments) if callable(self._answer) else self._answer


class Closing(Plain):
    """One that has something to close, and writes down when that was done."""

    def __init__(self, name: str, closed: list[str], answer: Any = "") -> None:
        super().__init__(name, answer)
        self.closed = closed

    async def aclose(self) -> None:
        self.closed.append(self.definition.name)


def sized(name: str, size: int) -> ToolDefinition:
    """A definition of exactly `size` bytes on the wire."""
    bare = ToolDefinition(name)
    made = ToolDefinition(name, "x" * (size - bare.wire_bytes))
    assert made.wire_bytes == size, f"{name!r} alone takes {bare.wire_bytes} bytes"
    return made


class Sized(Plain):
    """A tool whose definition takes exactly `size` bytes."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.definition = sized(name, size)


def names(definitions: Iterable[ToolDefinition]) -> list[str]:
    return [definition.name for definition in definitions]
