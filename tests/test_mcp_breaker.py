"""When a server is tried again, and how it is said to be: pure, with a scripted connection, and
with real servers (A10.2, MC08, MC15, T-A8)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from servers.http_peer import JSON, peer, refusal
from servers.support import NO_WAIT, hosting, raw, source
from servers.support import until as soon
from test_mcp_keep import BOUND, Peer, Scripted, keeping, nothing, until
from toolcrib.errors import InvalidDefinition, NotAvailable
from toolcrib.sources.mcp import Health, McpServer
from toolcrib.sources.mcp.health import Pace
from toolcrib.sources.mcp.keep.breaker import Breaker
from toolcrib.sources.mcp.keep.keeper import Keeper
from toolcrib.sources.mcp.link.link import Link
from toolcrib.sources.mcp.settings import ServerSettings

PACE = Pace(first_backoff=1.0, max_backoff=30.0, open_after=3, open_pause=60.0)
QUICK = Pace(liveness=0.0, first_backoff=0.001, max_backoff=0.002, open_after=3, open_pause=0.02)


# -- the value


def test_failures_in_a_row_double_the_pause_and_then_open_it():
    breaker, seen = Breaker(), []
    for _ in range(4):
        breaker = breaker.trying().failed(0.0, PACE)
        seen.append((breaker.phase, breaker.pause(PACE)))
    assert seen == [("closed", 1.0), ("closed", 2.0), ("open", 60.0), ("open", 60.0)]


def test_one_that_connects_and_dies_at_once_is_a_failure_and_one_that_lived_is_none():
    breaker = Breaker(failures=2)
    assert breaker.failed(ready_for=29.0, pace=PACE) == Breaker("open", 3)
    assert breaker.failed(ready_for=31.0, pace=PACE) == Breaker("closed", 1)


def test_half_open_is_one_attempt_and_its_failure_opens_it_again_at_once():
    probing = Breaker("open", 3).trying()
    assert probing.phase == "half_open"
    assert probing.failed(0.0, PACE).phase == "open"
    assert probing.failed(100.0, PACE) == Breaker("closed", 1)
    assert Breaker("closed", 1).trying() == Breaker("closed", 1)


def test_pauses_are_the_same_each_time_unless_jitter_is_asked_for():
    breaker = Breaker("closed", 2)
    assert breaker.pause(PACE, luck=0.9) == 2.0
    shaken = Pace(first_backoff=1.0, jitter=0.5)
    assert breaker.pause(shaken, luck=0.0) == 2.0
    assert breaker.pause(shaken, luck=1.0) == 3.0


def test_without_a_pause_of_its_own_an_open_one_waits_the_longest():
    assert Breaker("open", 9).pause(Pace(max_backoff=7.0)) == 7.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"call_timeout": 0.0},
        {"idle_timeout": -1.0},
        {"reconnect_wait": float("nan")},
        {"open_after": 0},
        {"max_sessions": True},
        {"log_level": "loud"},
        {"list_longest": float("inf")},
    ],
)
def test_A9_1_settings_that_can_never_be_right_are_refused(wrong: dict[str, Any]):
    with pytest.raises(InvalidDefinition, match=next(iter(wrong))):
        ServerSettings(**wrong)
    ServerSettings(reconnect_wait=0.0, jitter=0.0, idle_timeout=None, open_pause=None)


# -- the keeper


async def test_a_server_that_fails_in_a_row_is_left_alone_and_found_again():
    peer = Peer(fault=FileNotFoundError(2, "No such file or directory", "npx"))
    async with keeping(peer, QUICK) as keeper:
        await until(lambda: keeper.health.state == "open")
        assert "npx" in keeper.health.reason
        with pytest.raises(NotAvailable, match=r"'srv'.*npx.*tried again later"):
            await keeper.request("tools/call", {})
        assert not await keeper.connected_after(0, 60.0)  # nobody waits for one that is left alone
        peer.script["fault"] = None
        await until(lambda: keeper.health.state == "ready")


async def test_a_server_that_connects_and_dies_at_once_is_left_alone_too():
    peer = Peer()

    async def use(link: Scripted) -> None:
        asyncio.get_running_loop().call_soon(link.end, "it closed the connection")

    async with keeping(peer, QUICK, use) as keeper:
        await until(lambda: keeper.health.state == "open")
        assert peer.opened == 3


async def test_an_attempt_that_hangs_longer_than_the_longest_pause_was_not_sound():
    peer = Peer()

    async def use(link: Any) -> None:
        await asyncio.Event().wait()

    pace = Pace(liveness=0.0, first_backoff=0.001, max_backoff=0.002, use_timeout=0.01)
    async with keeping(peer, pace, use) as keeper:
        await until(lambda: keeper.health.state == "open")


async def test_health_is_told_at_each_change_with_since_and_never_twice_the_same():
    told: list[Health] = []
    peer = Peer(fault=OSError("down"))
    keeper = Keeper("srv", peer.make, nothing, QUICK, on_health=told.append)
    keeper.start()
    await until(lambda: keeper.health.state == "open")
    peer.script["fault"] = None
    await until(lambda: keeper.health.state == "ready")
    peer.links[-1].end("gone")
    await until(lambda: peer.closed == 1)
    await keeper.close()
    states = [one.state for one in told]
    assert states[:3] == ["degraded", "open", "ready"]
    assert states[-1] == "closed"
    assert all(one.reason for one in told if one.state != "ready")
    assert all((a.state, a.reason) != (b.state, b.reason) for a, b in pairwise(told))
    assert all(a.since <= b.since for a, b in pairwise(told))


async def test_who_waits_for_a_connection_is_woken_by_it_and_by_the_closing():
    peer = Peer()
    pace = Pace(liveness=0.0, first_backoff=0.001, max_backoff=0.002, open_after=1000)
    async with keeping(peer, pace) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
            first = keeper.generation
            peer.links[0].end("gone")
            assert await keeper.connected_after(first, 5.0)
            peer.script["fault"] = OSError("down")
            peer.links[-1].end("gone")
            waiting = asyncio.create_task(keeper.connected_after(keeper.generation, 60.0))
            await asyncio.sleep(0)
            await keeper.close()
            assert not await waiting
        assert not await keeper.connected_after(0, 0.0)


def refused() -> MCPError:
    return MCPError(-32603, "Unauthorized")


async def test_MC15_a_credential_that_was_renewed_is_tried_at_once_and_once():
    peer = Peer(fault=refused(), renew=True, status=401)
    slow = Pace(liveness=0.0, first_backoff=60.0, max_backoff=60.0)
    async with keeping(peer, slow) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        assert keeper.health.state == "given_up"
        assert (len(peer.links), peer.renewals) == (2, 1)


async def test_MC15_after_a_renewal_the_server_is_ready_without_a_pause():
    peer = Peer(fault=refused(), renew=True, status=401)
    make = peer.make

    def once() -> Scripted:
        if peer.links:
            peer.script["fault"] = None
        return make()

    peer.make = once  # type: ignore[method-assign]
    slow = Pace(liveness=0.0, first_backoff=60.0, max_backoff=60.0)
    async with keeping(peer, slow) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        assert (keeper.health.state, peer.renewals) == ("ready", 1)


async def test_MC15_a_403_is_never_renewed():
    peer = Peer(fault=refused(), renew=True, status=403)
    async with keeping(peer, QUICK) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        assert (keeper.health.state, peer.renewals) == ("given_up", 0)


# -- real servers


async def test_a_process_that_dies_after_each_start_is_left_alone(tmp_path: Path):
    starts, told = tmp_path / "starts", []
    settings = ServerSettings(open_after=3, open_pause=60.0, reconnect_wait=5.0)
    mcp = source(raw(die="list", starts=starts, declared={"settings": settings}))
    mcp.subscribe(told.append)
    async with hosting(mcp) as host:
        await soon(lambda: host.health().state == "open")
        assert "status 3" in host.health().reason
        result = await host.call("raw__echo", text="x")  # at once, though it might wait
        assert result.failure
        assert result.failure.kind == "not_available"
        assert len(starts.read_text().splitlines()) == 3
    assert [one.state for one in told][-2:] == ["open", "closed"]


async def test_health_events_carry_the_number_of_tools_and_a_listener_that_fails_harms_nobody():
    told: list[Health] = []
    mcp = source(raw())

    def fails(health: Health) -> None:
        raise ValueError("mine")

    mcp.subscribe(fails)
    stop = mcp.subscribe(told.append)
    async with hosting(mcp) as host:
        assert [(one.state, one.tools) for one in told] == [("ready", len(host.names))]
        await host.killed()
        assert [one.state for one in told][1:] == ["degraded"] * (len(told) - 2) + ["ready"]
        stop()
        heard = len(told)
    assert len(told) == heard


async def test_MC08_a_server_that_forgets_every_session_at_once_is_not_connected_in_a_loop():
    async with peer() as one:
        settings = ServerSettings(open_after=4, open_pause=60.0, reconnect_wait=0.0)
        web = McpServer("web", "http", url=one.url, liveness=0.0, settings=settings)
        async with hosting(source(web)) as host:
            one.on_call = lambda body: (200, JSON, refusal(body["id"], -32600, "Session not found"))
            async with asyncio.timeout(BOUND):
                while host.health("web").state != "open":
                    result = await host.call("web__act")
                    assert result.failure
                    assert result.failure.kind == "not_available"
            assert one.count("initialize") == 4


async def test_T_A8_eight_reconnects_over_http_end_every_session_once():
    async with peer() as one:
        web = McpServer("web", "http", url=one.url, liveness=0.0, settings=NO_WAIT)
        async with hosting(source(web)) as host:
            for cycle in range(8):
                one.sessions.clear()
                await host.call("web__act")
                await soon(lambda cycle=cycle: host.health("web").attempts == cycle + 2)
                await host.ready("web")
                assert str(await host.again("web__act")) == "ok"
        ended = [h["mcp-session-id"] for verb, h, _ in one.requests if verb == "DELETE"]
        assert len(ended) == len(set(ended)) == 9


async def test_MC15_a_token_that_was_renewed_serves_the_next_call_and_no_loop_comes_of_it(
    monkeypatch: pytest.MonkeyPatch,
):
    renewals = 0

    async def renew(self: Link) -> bool:
        nonlocal renewals
        renewals += 1
        return True

    monkeypatch.setattr(Link, "renew", renew)
    async with peer() as one:
        settings = ServerSettings(open_after=4, open_pause=60.0)
        web = McpServer("web", "http", url=one.url, liveness=0.0, settings=settings)
        mcp = source(web, first_backoff=60.0, max_backoff=60.0)  # a pause would be seen
        async with hosting(mcp) as host:

            def expired(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
                return None if renewals else (401, {}, b"")

            one.gate = expired
            assert str(await host.call("web__act")) == "ok"
            assert renewals == 1

            def refuses_calls(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
                fresh = body.get("method") in ("initialize", "server/discover", "tools/list")
                return None if fresh else (401, {}, b"")

            one.gate = refuses_calls
            async with asyncio.timeout(BOUND):
                while host.health("web").state != "open":
                    await host.call("web__act")
            assert renewals <= 5
