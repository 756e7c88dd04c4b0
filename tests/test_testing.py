"""The checks of `toolcrib.testing`: ours pass them, and each finds what it is for."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Plain
from toolcrib import ToolDefinition, ToolResult, define_tool, tool
from toolcrib.discovery.search_tool import search_tool
from toolcrib.middleware import (
    ResultLimitSettings,
    Settings,
    Telemetry,
    concurrency,
    recover,
    result_limit,
    standard,
    timeout,
)
from toolcrib.sources import FunctionSource, mount
from toolcrib.testing import check_middleware, check_source, check_tool

SERVER = Path(__file__).parent / "servers" / "raw.py"


@tool
def shout(text: str = "hey") -> str:
    """Say it louder."""
    return text.upper()


async def _execute(ctx: Any, arguments: Any) -> str:
    return "done"


OURS = [
    shout,
    define_tool("knowledge.read", description="Read a document.", execute=_execute),
    Plain("plain", "fine", description="By hand."),
]


@pytest.mark.parametrize("ours", OURS, ids=lambda one: one.definition.name)
async def test_our_tools_pass(ours: Any) -> None:
    await check_tool(ours)


async def test_the_search_tool_passes_but_for_its_session() -> None:
    with pytest.raises(Exception, match="within a session"):
        await check_tool(search_tool(), '{"query": "x"}')


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Plain("a.b", "x", description="d"), "no model can call it 'a.b'"),
        (Plain("t", "x"), "no description"),
        (Plain("t", "x", description="d", schema={"type": "object", "cents": {}}), "cents"),
        (Plain("t", 5, description="d"), "returned a int"),
    ],
)
async def test_a_broken_tool_is_told(broken: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        await check_tool(broken)


class Remote:
    name = "remote"

    async def tools(self) -> list[ToolDefinition]:
        return [ToolDefinition("look", "Look.")]

    async def call(self, name: str, arguments: Any) -> object:
        return {"name": name}


async def test_our_sources_pass() -> None:
    from toolcrib.sources import mcp

    await check_source(lambda: FunctionSource([shout]))
    await check_source(lambda: mount(Remote()))
    await check_source(lambda: mcp.stdio("raw", sys.executable, "-S", str(SERVER)))
    await check_source(lambda: mcp.stdio("missing", "no-such-program-anywhere"))


async def test_a_broken_source_is_told() -> None:
    class Late(FunctionSource):
        async def open(self, publish: Any) -> None:
            async def again() -> None:
                while True:
                    await asyncio.sleep(0)
                    publish(self.tools)

            self.task = asyncio.create_task(again())

    made: list[Late] = []

    def make() -> Late:
        made.append(Late([shout]))
        return made[-1]

    with pytest.raises(AssertionError, match=r"published after close[\s\S]*left tasks behind"):
        await check_source(make)
    made[-1].task.cancel()


FIVE = Settings(True, True, ResultLimitSettings(2000), 5.0, 2)


@pytest.mark.parametrize(
    "ours",
    [recover, Telemetry(), result_limit(100), concurrency(1), timeout(5), *standard(FIVE)],
)
async def test_our_middlewares_pass(ours: Any) -> None:
    await check_middleware(ours)


async def test_a_broken_middleware_is_told() -> None:
    async def twice(invocation: Any, call_next: Any) -> ToolResult:
        await call_next(invocation)
        return await call_next(invocation)

    async def hides(invocation: Any, call_next: Any) -> ToolResult:
        await call_next(invocation)
        return ToolResult.ok("all is well")

    async def deaf(invocation: Any, call_next: Any) -> ToolResult:
        try:
            return await call_next(invocation)
        except asyncio.CancelledError:
            return ToolResult.ok("whatever")

    async def text(invocation: Any, call_next: Any) -> Any:
        return "text"

    for broken, says in (
        (twice, "2 times"),
        (hides, "success"),
        (deaf, "swallowed"),
        (text, "a str"),
    ):
        with pytest.raises(AssertionError, match=says):
            await check_middleware(broken)
