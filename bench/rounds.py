"""What a round costs with many tools registered and 32 in view; CPU, in ratio to a bare floor.

The floor picks the same 32 definitions out of a dict. No assertion: a figure to read.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from toolcrib import Assembly, Budget, Dynamic, define_tool
from toolcrib.sources import FunctionSource

VISIBLE = 32


async def _nothing(ctx: Any, arguments: Any) -> str:
    return "ok"


def _tools(count: int) -> list[Any]:
    schema = {"type": "object", "properties": {"record": {"type": "string"}}}
    return [
        define_tool(f"tool_{n:06}", description=f"Tool {n}", input_schema=schema, execute=_nothing)
        for n in range(count)
    ]


def _cpu(work: Callable[[], object], times: int = 2000) -> float:
    """Microseconds of CPU for one `work()`: the median of five slices."""
    slices: list[float] = []
    for _ in range(5):
        began = time.process_time_ns()
        for _ in range(times):
            work()
        slices.append((time.process_time_ns() - began) / times / 1000)
    return statistics.median(slices)


async def measure(count: int) -> dict[str, float]:
    """Microseconds per round at `count` tools: the first kind fresh, the second in one session."""
    source = FunctionSource(_tools(count), name="bench")
    dynamic = Dynamic(budget=Budget(VISIBLE, 10**6))
    async with Assembly([source], dynamic=dynamic) as assembly:
        session = assembly.session()
        names = [f"tool_{n * (count // VISIBLE):06}" for n in range(VISIBLE - 1)]
        session.discover(*names)
        turn = session.turn()
        assert len(turn.round().definitions) == VISIBLE
        by_name = {d.name: d for d in assembly.catalog.definitions}
        sent = turn.round().names
        floor = _cpu(lambda: [by_name[name] for name in sent])
        one = _cpu(lambda: session.turn().round().definitions)
        return {"tools": count, "floor_us": floor, "round_us": one, "ratio": one / floor}


def main() -> None:
    for count in (1_000, 10_000):
        found = asyncio.run(measure(count))
        print(
            f"{found['tools']:>7,} tools, {VISIBLE} in view:"
            f" round {found['round_us']:6.1f} µs, floor {found['floor_us']:5.1f} µs,"
            f" {found['ratio']:.0f} ×"
        )


if __name__ == "__main__":
    main()
