"""From the first attempt to the last process: A10.1 to A10.8, MC03, MC04, with the fault server."""

from __future__ import annotations

import asyncio
import time

import pytest

from servers.faulty import (
    LEGACY,
    MODERN,
    VERSIONS,
    Cell,
    answered,
    cells,
    faulty,
    health,
    kind,
    ready,
    serving,
)
from servers.support import BOUND, NO_WAIT, Host, alive, hosting, source, until
from toolcrib.errors import ConfigurationError, NotAvailable, NotReady

FOR_LONG = {"first_backoff": 60.0, "max_backoff": 60.0, "stop_timeout": 0.2}


# -- attempts


@cells()
async def test_A10_1_a_hung_server_does_not_hold_the_closing(cell: Cell):
    async with faulty(cell, "hang@any") as server:
        mcp = source(server.declare(), connect_timeout=60.0, stop_timeout=0.2)
        opening = asyncio.create_task(mcp.open(Host(mcp).publish))
        await until(lambda: len(server.journal) >= 2)
        began = time.monotonic()
        await mcp.close()
        await opening
        assert time.monotonic() - began < 3.0
        assert mcp.health()[0].state == "closed"


@cells()
async def test_A10_2_failed_attempts_follow_each_other_ever_later_until_one_succeeds(cell: Cell):
    bounds = {"first_backoff": 0.02, "max_backoff": 5.0}
    began = time.monotonic()
    async with serving(cell, "crash_before@any*3", bounds=bounds) as (server, host):
        assert health(host).state == "degraded"
        await ready(host)
        assert time.monotonic() - began >= 0.02 + 0.04 + 0.08
        assert health(host).attempts == len(server.starts) == 4
        assert health(host).era == VERSIONS[cell[1]]


@cells(LEGACY)
async def test_A10_3_a_version_nobody_knows_fails_the_opening_for_good(cell: Cell):
    async with faulty(cell, "version=1999-01-01") as server:
        mcp = source(server.declare(required=True))
        with pytest.raises(ConfigurationError, match=r"'faulty'.*1999-01-01"):
            await mcp.open(lambda tools: None)
        with pytest.raises(ConfigurationError, match="1999-01-01"):
            await mcp.wait_ready(BOUND)
        assert mcp.health()[0].state == "given_up"
        assert len(server.heard("initialize")) == 1
        await mcp.close()


@cells()
async def test_A10_3_T_A18_words_of_a_rejection_without_its_code_are_retried(cell: Cell):
    async with serving(cell, "error=-32603@any") as (server, host):
        assert health(host).state == "degraded"
        server.misbehave()
        await ready(host)
        assert str(await host.call("faulty__echo", text="on")) == "on"


@cells()
async def test_A10_4_wait_ready_waits_bounded_and_once_ready_returns_at_once(cell: Cell):
    async with serving(cell, "error@tools/list", required=True, bounds=FOR_SHORT) as (server, host):
        with pytest.raises(NotReady, match="'faulty'"):
            await host.source.wait_ready(0.02)
        server.misbehave()
        await host.source.wait_ready(BOUND)
        server.misbehave("error@any")
        await server.restart()
        await host.source.wait_ready(0.0)


FOR_SHORT = {"first_backoff": 0.01, "max_backoff": 0.02}


@cells()
async def test_A10_4_closing_wakes_who_waits(cell: Cell):
    async with serving(cell, "error@tools/list", required=True) as (_, host):
        waiting = asyncio.create_task(host.source.wait_ready())
        await asyncio.sleep(0)
        await host.source.close()
        with pytest.raises(NotAvailable):
            await waiting


@cells()
async def test_A10_5_closing_in_mid_call_ends_it_and_nothing_is_connected_after(cell: Cell):
    async with serving(cell, bounds={"stop_timeout": 0.2}) as (server, host):
        call = asyncio.create_task(host.call("faulty__slow", seconds=30))
        await until(lambda: server.heard("tools/call"))
        await asyncio.gather(host.source.close(), host.source.close())
        assert kind(await call) == "outcome_unknown"
        assert kind(await host.call("faulty__echo", text="x")) == "not_available"
        await host.source.close()
        assert len(server.starts) == 1
        assert len(server.heard("tools/list")) == 1


# -- probes


@cells(LEGACY)
@pytest.mark.parametrize("fault", ["error=-32601@ping", "hang@ping"])
async def test_A10_6_a_legacy_server_whose_ping_fails_is_closed_once_and_replaced(
    cell: Cell, fault: str
):
    async with serving(cell, liveness=0.05, bounds={"stop_timeout": 0.3}) as (server, host):
        server.misbehave(f"{fault}*1")
        await until(lambda: health(host).attempts == 2)
        await ready(host)
        await until(lambda: len(server.heard("ping")) >= 3)
        assert health(host).attempts == 2
        if cell[0] == "http":
            assert len({e["session"] for e in server.heard("DELETE")}) == 1
            assert len(server.heard("DELETE")) == 1
        else:
            first, second = server.starts
            assert (alive(first), alive(second)) == (False, True)


@cells(MODERN)
async def test_A10_6_T_A8b_a_modern_server_is_never_pinged(cell: Cell):
    async with serving(cell, liveness=0.02) as (server, host):
        assert str(await host.call("faulty__slow", seconds=0.2)) == "awake"
        assert server.heard("ping") == []
        assert health(host).attempts == 1


@cells()
async def test_A10_6_A9_2_without_liveness_nothing_is_asked(cell: Cell):
    async with serving(cell, liveness=0.0) as (server, host):
        before = len(server.journal)
        assert str(await host.call("faulty__slow", seconds=0.2)) == "awake"
        later = [e["method"] for e in server.journal[before:]]
        # The streams for changes are opened once, in their own time.
        assert [m for m in later if m not in ("GET", "subscriptions/listen")] == ["tools/call"]
        assert health(host).attempts == 1


@cells(LEGACY)
async def test_A10_6_a_server_that_is_busy_with_a_call_is_not_replaced(cell: Cell):
    async with serving(cell, liveness=0.03) as (server, host):
        server.misbehave("busy=0.2*1")
        assert str(await host.call("faulty__echo", text="x")) == "x"
        assert health(host).attempts == 1


# -- deaths


@cells()
async def test_A10_7_T_A8c_a_lost_call_alone_brings_the_server_back(cell: Cell):
    async with serving(cell) as (server, host):
        server.misbehave("crash_before*1")
        assert kind(await host.call("faulty__echo", text="x")) == "outcome_unknown"
        await until(lambda: len(server.starts) == 2 and health(host).state == "ready")
        assert str(await answered(host, text="back")) == "back"


@cells()
async def test_A10_8_a_death_while_idle_is_mended(cell: Cell):
    # Over HTTP only the modern era has a stream whose end tells; the legacy one is probed.
    probed = 0.05 if cell == ("http", "legacy") else 0.0
    async with serving(cell, liveness=probed) as (server, host):
        await host.call("faulty__echo", text="x")
        await server.restart()
        before = len(server.heard("tools/call"))
        await until(lambda: server.journal[-1]["pid"] != server.starts[0])
        await until(lambda: len(server.starts) == 2 and health(host).state == "ready")
        assert len(server.heard("tools/call")) == before
        assert str(await answered(host, text="back")) == "back"


@cells()
async def test_A10_8_while_it_is_down_its_tools_stay_and_others_are_unaffected(cell: Cell):
    async with faulty(cell) as server, faulty(cell, name="other") as other:
        both = [one.declare(settings=NO_WAIT, liveness=0.0) for one in (server, other)]
        async with hosting(source(*both, **FOR_LONG)) as host:
            names = host.names
            if cell[0] == "http":
                await server.stop()
            else:
                server.misbehave("crash_before@any")
                await server.restart()
            async with asyncio.timeout(BOUND):
                while kind(down := await host.call("faulty__echo", text="x")) != "not_available":
                    pass
            assert "'faulty'" in str(down)
            assert host.names == names
            assert str(await host.call("other__echo", text="up")) == "up"
            assert host.health("other").attempts == 1
