"""Group CC: calls at once, time-outs, cancellation, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from conftest import ended, outcome
from isolated import functions
from toolcrib import Assembly, InvalidDefinition, ToolCall, ToolLimits, tool
from toolcrib.bounded import stragglers
from toolcrib.middleware import timeout


async def gone(pid: int, within: float = 3.0) -> bool:
    """Whether a process ends within the bound: other processes set no event to wait for."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
            return True
        await asyncio.sleep(0.01)
    return False


async def test_CC01_sync_tools_run_beside_the_loop_and_beside_each_other() -> None:
    together = threading.Barrier(2)
    ticks = 0

    @tool
    def slow() -> str:
        together.wait(5)  # only if both run at once
        time.sleep(0.2)
        return "done"

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async with Assembly([slow]) as tools:
        ticker = asyncio.create_task(tick())
        results = await ended(asyncio.gather(tools.call("slow"), tools.call("slow")))
        ticker.cancel()
    assert [outcome(result) for result in results] == ["done", "done"]
    assert ticks >= 8


async def test_CC02_hung_threads_are_left_behind_and_later_calls_and_close_go_on() -> None:
    release = threading.Event()

    @tool(timeout=0.1)
    def hangs() -> str:
        release.wait(30)
        return "late"

    @tool
    def quick() -> str:
        return "quick"

    try:
        assembly = await Assembly([hangs, quick]).open()
        results = await ended(asyncio.gather(*(assembly.call("hangs") for _ in range(50))))
        assert {outcome(result) for result in results} == {"timeout"}
        assert any("may still be running" in result.text for result in results)
        assert outcome(await ended(assembly.call("quick"))) == "quick"
        assert assembly.executor.threads.abandoned >= 32
        await ended(assembly.close(), 3)
    finally:
        release.set()


async def test_CC04_a_tool_that_does_not_let_go_is_left_behind_after_a_short_grace() -> None:
    release = asyncio.Event()

    async def cleans_up_for_long() -> str:
        try:
            await asyncio.sleep(30)
        finally:
            await release.wait()
        return ""

    async def swallows() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ""

    before = stragglers()
    async with Assembly([cleans_up_for_long, swallows], middlewares=[timeout(0.1)]) as tools:
        for name in ("cleans_up_for_long", "swallows"):
            result = await ended(tools.call(name), 1)
            assert outcome(result) == "timeout"
            assert "may still be running" in result.text
        assert stragglers() == before + 2
        release.set()
        async with asyncio.timeout(5):
            while stragglers() > before:
                await asyncio.sleep(0)


async def test_CC07_of_a_thousand_calls_eight_run_at_once_and_cancelling_ends_them_all() -> None:
    running, most, started = 0, 0, 0
    half = asyncio.Event()

    @tool
    async def work(number: int) -> str:
        nonlocal running, most, started
        running, started = running + 1, started + 1
        most = max(most, running)
        if started == 500:
            half.set()
        try:
            await asyncio.sleep(0 if number < 500 else 30)
        finally:
            running -= 1
        return str(number)

    limits = ToolLimits(calls=5000)
    calls = [ToolCall(str(n), "work", f'{{"number": {n}}}') for n in range(1000)]
    async with Assembly([work], limits=limits) as tools:
        few = await ended(tools.session().turn().round().execute(calls[:400]), 20)
        assert [result.call_id for result in few] == [call.id for call in calls[:400]]
        assert [result.text for result in few] == [str(n) for n in range(400)]
        started = 0
        batch = asyncio.create_task(tools.session().turn().round().execute(calls))
        await ended(half.wait(), 20)
        batch.cancel()
        await asyncio.wait((batch,), timeout=2)
        assert batch.cancelled()
        assert (most, running) == (8, 0)
        assert started < 520


async def test_CC08_a_process_is_killed_with_what_it_started(tmp_path: Path) -> None:
    written = tmp_path / "pids"
    async with Assembly([functions.starts_children_and_hangs]) as tools:
        result = await ended(tools.call("starts_children_and_hangs", pids=str(written)), 10)
        assert outcome(result) == "timeout"
        assert "may still be running" not in result.text
        if not written.exists():
            pytest.fail("the limit was too short for the process to start its children")
        for pid in map(int, written.read_text().split()):
            assert await gone(pid)


async def test_CC08_cancelling_the_caller_kills_the_process_too(tmp_path: Path) -> None:
    written = tmp_path / "pids"
    endless = tool(name="endless", isolation="process")(
        functions.starts_children_and_hangs.function
    )
    async with Assembly([endless]) as tools:
        call = asyncio.create_task(tools.call("endless", pids=str(written)))
        async with asyncio.timeout(10):
            while not written.exists():
                await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait((call,), timeout=3)
        assert call.cancelled()
        for pid in map(int, written.read_text().split()):
            assert await gone(pid)


async def test_CC09_nothing_is_repeated_by_itself_after_a_time_out(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    wrote = threading.Event()

    @tool(timeout=0.05, effects="write")
    def append() -> str:
        time.sleep(0.15)
        with ledger.open("a") as file:
            file.write("line\n")
        wrote.set()
        return "written"

    async with Assembly([append]) as tools:
        assert outcome(await tools.call("append")) == "timeout"
        assert await asyncio.to_thread(wrote.wait, 5)
    assert ledger.read_text() == "line\n"


async def test_a_process_of_its_own_answers_fails_and_dies_like_any_other_tool() -> None:
    made = [functions.where, functions.dies, functions.says_no, functions.breaks, functions.leaves]
    async with Assembly(made) as tools:
        one, two = await ended(
            asyncio.gather(tools.call("where", label="a"), tools.call("where")), 20
        )
        assert one.text.startswith("a ") and two.text.startswith("x ")
        pids = {int(one.text.split()[1]), int(two.text.split()[1]), os.getpid()}
        assert len(pids) == 3
        assert outcome(await ended(tools.call("dies"), 10)) == "internal"
        assert (await ended(tools.call("says_no"), 10)).text == "not today"
        broke = await ended(tools.call("breaks"), 10)
        assert outcome(broke) == "internal"
        assert "hunter2" not in broke.text
        assert outcome(await ended(tools.call("leaves"), 10)) == "internal"
        wrong = await tools.call("where", label=1)
        assert outcome(wrong) == "invalid_arguments"


def test_what_no_other_process_could_run_is_refused_when_it_is_defined() -> None:
    def inner() -> str:
        return ""

    async def asynchronous() -> str:
        return ""

    for function, says in ((inner, "top level"), (asynchronous, "sync functions")):
        with pytest.raises(InvalidDefinition, match=says):
            tool(isolation="process")(function)
