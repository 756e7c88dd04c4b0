"""The gate on processes that start at once: in which order, and that no place or loop is lost."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from servers.support import BOUND, hosting, raw, source, until
from toolcrib.sources.mcp.link import starting
from toolcrib.sources.mcp.link.starting import AT_ONCE, Turn


async def started(order: list[str], name: str, begin: Callable[[], Awaitable[None]]) -> None:
    await begin()
    order.append(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_that_was_there_before_starts_before_those_that_never_were(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(starting, "AT_ONCE", 1)
    order: list[str] = []
    first, new, newer, again = Turn(), Turn(), Turn(), Turn()
    await first.begin()
    waiting = [
        asyncio.create_task(started(order, "new", new.begin)),
        asyncio.create_task(started(order, "newer", newer.begin)),
        asyncio.create_task(started(order, "again", again.begin_again)),
    ]
    await settled()
    for turn in (first, again, new):
        assert len(order) < 3
        turn.end()
        await settled()
    assert order == ["again", "new", "newer"]
    await asyncio.gather(*waiting)


async def test_who_gives_up_waiting_leaves_the_place_to_the_next(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(starting, "AT_ONCE", 1)
    for is_given in (False, True):
        order: list[str] = []
        first, second, third = Turn(), Turn(), Turn()
        async with asyncio.timeout(BOUND):
            await first.begin()
        given_up = asyncio.create_task(started(order, "second", second.begin))
        last = asyncio.create_task(started(order, "third", third.begin))
        await settled()
        if is_given:
            first.end()  # the place is the second's now, which has not run since
            given_up.cancel()
        else:
            given_up.cancel()
            await settled()
            first.end()
        async with asyncio.timeout(BOUND):
            await last
        assert order == ["third"]
        third.end()
        third.end()  # safe twice


def test_a_loop_that_is_over_is_kept_by_no_gate():
    async def crowded() -> weakref.ref[asyncio.AbstractEventLoop]:
        turns = [Turn() for _ in range(AT_ONCE + 1)]
        tasks = [asyncio.create_task(turn.begin()) for turn in turns]
        await settled()
        turns[0].end()
        await asyncio.gather(*tasks)
        for turn in turns:
            turn.end()
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(crowded())
    gc.collect()
    assert loop() is None


async def test_a_server_that_dies_is_back_although_others_hang_at_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(starting, "AT_ONCE", 2)
    monkeypatch.setattr(starting, "YIELDS_AFTER", 0.2)
    async with hosting(source(raw("a"), connect_timeout=2.0)) as host:
        hung = [raw(f"h{at}", start="hang", token=tmp_path.name) for at in range(30)]
        await host.source.reload([raw("a"), *hung])
        await host.killed("a")  # a fifteenth of what those before it would take
        await until(lambda: host.health("a").state == "ready")
