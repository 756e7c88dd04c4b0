"""What the MCP tests share: raw servers by flag, a registry and executor, bounded waiting."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolcrib.content import ToolCall, ToolResult
from toolcrib.executor import Executor
from toolcrib.registry import Registry
from toolcrib.sources.mcp import McpServer, McpSource
from toolcrib.sources.mcp.settings import ServerSettings

HERE = Path(__file__).parent
RAW = HERE / "raw.py"
BOUND = 10.0
"""Seconds that anything may take before a test says it never happens."""

NO_WAIT = ServerSettings(reconnect_wait=0.0)
"""For tests of what a call finds while the server is down."""

QUICK = {"first_backoff": 0.01, "max_backoff": 0.05, "stop_timeout": 1.0}


def raw(name: str = "raw", *, declared: dict[str, Any] | None = None, **flags: Any) -> McpServer:
    """The raw server as declared server `name`; `flags` are those of raw.py."""
    args = ["-S", "-I", str(RAW), *(f"{key}={value}" for key, value in flags.items())]
    declared = {"settings": NO_WAIT, **(declared or {})}
    return McpServer(name, "stdio", command=sys.executable, args=tuple(args), **declared)


def source(*servers: McpServer, **settings: Any) -> McpSource:
    return McpSource(servers or [raw()], **{**QUICK, **settings})


class Host:
    """A registry and an executor with one source in it, as an assembly would have them."""

    def __init__(self, mcp: McpSource) -> None:
        self.source = mcp
        self.registry = Registry()
        self.executor = Executor(self.registry)
        self.published = 0

    def publish(self, tools: Any) -> object:
        change = self.registry.publish(self.source.name, tools)
        self.published += 1
        return change

    @property
    def names(self) -> list[str]:
        return [d.name for d in self.registry.catalog.definitions]

    def tool(self, name: str) -> Any:
        entry = self.registry.catalog.get(name)
        assert entry is not None
        return entry.tool

    async def call(self, tool: str, /, on_progress: Any = None, **arguments: Any) -> ToolResult:
        call = ToolCall(uuid.uuid4().hex, tool, json.dumps(arguments))
        async with asyncio.timeout(BOUND):
            return await self.executor.execute(call, on_progress=on_progress)

    async def ready(self, name: str = "raw") -> None:
        await until(lambda: self.health(name).state == "ready")

    async def again(self, tool: str, /, **arguments: Any) -> ToolResult:
        """The result of the call once the server is back."""
        async with asyncio.timeout(BOUND):
            while True:
                result = await self.call(tool, **arguments)
                if result.failure is None or result.failure.kind != "not_available":
                    return result
                await asyncio.sleep(0.002)

    def health(self, name: str = "raw") -> Any:
        return next(one for one in self.source.health() if one.name == name)

    async def killed(self, name: str = "raw") -> None:
        """Returns once the server's process was killed while idle and another took its place."""
        attempts = self.health(name).attempts
        os.kill(await self.pid(f"{name}__pid"), signal.SIGKILL)
        await until(lambda: self.health(name).attempts > attempts)
        await self.ready(name)

    async def pid(self, tool: str = "raw__pid") -> int:
        return int((await self.again(tool)).value["pid"])


@asynccontextmanager
async def hosting(mcp: McpSource) -> AsyncIterator[Host]:
    """An open source in its host. When it is closed, no task of it and no descriptor is left."""
    host = Host(mcp)
    tasks, open_files = asyncio.all_tasks(), descriptors()
    try:
        async with asyncio.timeout(BOUND):
            await mcp.open(host.publish)
        yield host
    finally:
        async with asyncio.timeout(BOUND):
            await mcp.close()
        host.registry.close()
        host.executor.close()
        await until(lambda: not working() - tasks)
        await until(lambda: descriptors() <= open_files)


def working() -> set[asyncio.Task[Any]]:
    """The tasks of this loop, without the one the executor keeps ready for a call with a limit."""
    return {task for task in asyncio.all_tasks() if "_Spare" not in repr(task)}


async def until(happened: Callable[[], object]) -> None:
    """Returns once `happened()` is true; for what nobody tells us of, such as another process."""
    async with asyncio.timeout(BOUND):
        while not happened():
            await asyncio.sleep(0.002)


def with_token(token: str) -> list[int]:
    """The processes, zombies left out, that have `token` in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in line:
                found.append(int(entry))
    return found


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> set[int]:
    """Every child of this process, in every thread."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found.update(map(int, Path(f"/proc/self/task/{task}/children").read_text().split()))
        except OSError:
            continue
    return found
