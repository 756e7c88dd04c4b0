"""What a call of an MCP tool costs through source and executor, against the bare SDK client.

One server each on the same script (`chaos/ledger_server.py`, over stdio), slices of echoes in turn,
CPU of this process only. No assertion: figures to read, the ratio above all.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from toolcrib import Assembly
from toolcrib.sources import mcp

SERVER = str(Path(__file__).parent.parent / "chaos" / "ledger_server.py")
SLICES, ECHOES = 15, 400

Echo = Callable[[], Awaitable[object]]


async def slice_of(echo: Echo) -> tuple[float, float]:
    """Microseconds of CPU, and of time, for one echo."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(ECHOES):
        await echo()
    each = 1e6 / ECHOES
    return (time.process_time() - cpu) * each, (time.perf_counter() - wall) * each


async def compared(era: str, folder: Path) -> list[tuple[float, float, float, float]]:
    args = ["-S", "-I", SERVER, str(folder / "ledger"), str(folder / "starts"), era]
    source = mcp.stdio("s", sys.executable, *args)
    server: Any = StdioServerParameters(command=sys.executable, args=args)
    mode: Any = "legacy" if era == "legacy" else "auto"
    async with Client(server, mode=mode) as client, Assembly([source]) as assembly:
        await client.list_tools()

        async def bare() -> object:
            return await client.call_tool("echo", {"key": "hello"})

        async def ours() -> object:
            return await assembly.call("s__echo", {"key": "hello"})

        assert str(await ours()) == "hello"
        found: list[tuple[float, float, float, float]] = []
        for _ in range(SLICES):
            found.append((*await slice_of(bare), *await slice_of(ours)))
        return found


def main() -> None:
    print("| era | SDK: CPU µs | ours: CPU µs | CPU ratio | SDK: calls/s | ours: calls/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for era in ("legacy", "modern"):
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(compared(era, Path(folder)))
        cpu, wall, our_cpu, our_wall = map(statistics.median, zip(*found, strict=True))
        ratio = statistics.median(ours / bare for bare, _, ours, _ in found)
        print(
            f"| {era} | {cpu:.0f} | {our_cpu:.0f} | {ratio:.2f} |"
            f" {1e6 / wall:,.0f} | {1e6 / our_wall:,.0f} |"
        )


if __name__ == "__main__":
    main()
