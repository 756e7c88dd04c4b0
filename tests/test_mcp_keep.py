"""Supervision with a scripted connection: no process, no network (rules A10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import MCPError

from toolcrib.errors import NotAvailable
from toolcrib.sources.mcp.changes import Changes
from toolcrib.sources.mcp.failures import NotSent, Rejected
from toolcrib.sources.mcp.health import Pace
from toolcrib.sources.mcp.keep.keeper import Keeper

BOUND = 5.0
FAST = Pace(liveness=0.01, first_backoff=0.001, max_backoff=0.002, close_timeout=1.0)


class Peer:
    """Makes the connections of one server and counts what is done to them."""

    def __init__(self, **script: Any) -> None:
        self.script = {"pingable": True, "fault": None, "ping": None, **script}
        self.links: list[Scripted] = []
        self.opened = self.closed = self.pings = self.listens = self.overlap = 0
        self.renewals = 0
        self.pinged = asyncio.Event()

    def make(self) -> Scripted:
        self.links.append(Scripted(self))
        return self.links[-1]


class Scripted:
    how_it_ended = ""
    stderr = ""
    version = "2025-11-25"

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.ended = asyncio.Event()
        self.suspect = asyncio.Event()
        self.listening = asyncio.Event()
        self.changes = Changes()
        self.reason = ""
        self.busy = False
        self.aborted = asyncio.Event()
        self.pingable = peer.script["pingable"]
        self.last_status = peer.script.get("status", 0)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        fault = self.peer.script["fault"]
        if fault == "hang":
            await self.aborted.wait()
            raise TimeoutError
        if fault is not None:
            raise fault
        self.peer.opened += 1
        self.peer.overlap = max(self.peer.overlap, self.peer.opened - self.peer.closed)
        try:
            yield
        finally:
            self.peer.closed += 1

    @property
    def is_usable(self) -> bool:
        return not self.ended.is_set()

    def end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.ended.set()

    def abort(self) -> None:
        self.end("closed")
        self.aborted.set()

    def busy_since(self, moment: float) -> bool:
        return self.busy

    async def probe(self) -> None:
        self.peer.pings += 1
        self.peer.pinged.set()
        if self.peer.script["ping"] == "hang":
            await asyncio.Event().wait()
        if self.peer.script["ping"] is not None:
            raise self.peer.script["ping"]

    async def watch_closure(self) -> bool:
        self.peer.listens += 1
        self.listening.set()
        await self.ended.wait()
        return True

    async def renew(self) -> bool:
        self.peer.renewals += 1
        return bool(self.peer.script.get("renew"))

    async def request(self, method: str, params: Any, hears: Any = None) -> dict[str, Any]:
        raise NotSent("not today")


async def nothing(link: Any) -> None:
    pass


@asynccontextmanager
async def keeping(peer: Peer, pace: Pace = FAST, use: Any = nothing) -> AsyncIterator[Keeper]:
    keeper = Keeper("srv", peer.make, use, pace)
    keeper.start()
    try:
        yield keeper
    finally:
        async with asyncio.timeout(BOUND):
            await keeper.close()
        assert peer.opened == peer.closed
        assert peer.overlap <= 1  # the dead one is closed before the next is opened


async def until(happened: Any) -> None:
    async with asyncio.timeout(BOUND):
        while not happened():
            await asyncio.sleep(0.001)


async def test_A10_1_starting_returns_at_once_even_with_a_hung_server():
    async with keeping(Peer(fault="hang")) as keeper:
        assert not keeper.tried.is_set()
        with pytest.raises(NotAvailable, match=r"'srv'.*not connected yet"):
            await keeper.request("tools/call", {})
    assert keeper.health.state == "closed"
    assert keeper.settled.is_set()


async def test_A10_2_a_server_that_cannot_start_is_tried_again_by_one_loop():
    peer = Peer(fault=FileNotFoundError(2, "No such file or directory", "npx"))
    async with keeping(peer) as keeper:
        await until(lambda: keeper.health.attempts >= 3)
        assert keeper.health.state == "degraded"
        await until(lambda: keeper.health.attempts >= 5)
        assert "npx" in keeper.health.reason
        assert len(peer.links) == keeper.health.attempts
        assert not keeper.settled.is_set()


async def test_A10_2_a_connection_that_dies_at_once_waits_ever_longer():
    peer = Peer()

    async def use(link: Scripted) -> None:
        link.end("it closed the connection")

    pace = Pace(liveness=0.0, first_backoff=0.05, max_backoff=30.0)
    async with keeping(peer, pace, use) as keeper:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: keeper.health.attempts == 4)
        assert loop.time() - began >= 0.05 + 0.1 + 0.2


async def test_A10_3_a_rejection_is_given_up_for_good():
    peer = Peer(fault=Rejected("wrong"))
    async with keeping(peer) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        assert (keeper.health.state, keeper.health.reason) == ("given_up", "wrong")
        assert keeper.generation == 0
        with pytest.raises(NotAvailable, match="wrong") as refused:
            await keeper.request("tools/call", {})
        assert "reconnected" not in str(refused.value)
    assert (len(peer.links), keeper.health.state) == (1, "given_up")


@pytest.mark.parametrize("ping", ["hang", MCPError(-32601, "Method not found")])
def test_A10_6_T_A8_a_failed_ping_closes_once_and_reconnects(ping: Any):
    async def scenario() -> None:
        peer = Peer(ping=ping)
        async with keeping(peer) as keeper:
            await until(lambda: peer.opened >= 2)
            assert peer.closed >= peer.opened - 1
            peer.script["ping"] = None
            await until(lambda: keeper.health.state == "ready")

    asyncio.run(scenario())


async def test_A10_6_T_A8b_a_modern_peer_is_watched_and_never_pinged():
    peer = Peer(pingable=False)
    async with keeping(peer) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        await asyncio.sleep(5 * FAST.liveness)
        assert (peer.opened, peer.closed, peer.pings, peer.listens) == (1, 0, 0, 1)


@pytest.mark.parametrize("pingable", [True, False])
async def test_A10_6_liveness_off_asks_nothing_but_to_be_told_of_changes(pingable: bool):
    peer = Peer(pingable=pingable, ping=MCPError(-32601, "x"))
    async with keeping(peer, Pace(liveness=0.0)) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        await asyncio.sleep(0.05)
        listens = 0 if pingable else 1  # older peers tell of changes unasked
        assert (peer.opened, peer.closed, peer.pings, peer.listens) == (1, 0, 0, listens)


async def test_a_suspicion_is_looked_into_even_without_liveness():
    peer = Peer()
    async with keeping(peer, Pace(liveness=0.0, first_backoff=0.001)) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
            peer.links[0].suspect.set()
            await peer.pinged.wait()
        assert keeper.health.state == "ready"
        peer.script["ping"] = MCPError(-32603, "x")
        peer.links[0].suspect.set()
        await until(lambda: peer.opened == 2)


async def test_a_server_at_work_on_a_call_is_not_ended_for_its_silence():
    peer = Peer(ping="hang")
    async with keeping(peer) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        link = peer.links[0]
        link.busy = True
        await until(lambda: peer.pings >= 4)
        assert not link.ended.is_set()
        link.busy = False
        await until(lambda: peer.closed == 1)
        assert "did not answer a probe" in link.reason


async def test_A10_8_while_it_is_down_calls_name_the_server_and_the_reason():
    peer = Peer()
    pace = Pace(liveness=0.0, first_backoff=60.0, max_backoff=60.0)
    async with keeping(peer, pace) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        with pytest.raises(NotAvailable, match="'srv' is not available: not today"):
            await keeper.request("tools/call", {})
        peer.links[0].end("it closed the connection")
        await until(lambda: peer.closed == 1)
        with pytest.raises(NotAvailable, match=r"'srv'.*closed the connection.*reconnected"):
            await keeper.request("tools/call", {})
        assert keeper.generation > 0


async def test_A10_5_close_is_idempotent_and_ends_the_waiting_for_a_retry():
    peer = Peer(fault=OSError("x"))
    keeper = Keeper("srv", peer.make, nothing, Pace(first_backoff=600.0, max_backoff=600.0))
    keeper.start()
    async with asyncio.timeout(BOUND):
        await keeper.tried.wait()
        await keeper.close()
        await keeper.close()
    assert (keeper.health.state, len(peer.links)) == ("closed", 1)


async def test_A10_5_close_without_start_closes():
    keeper = Keeper("srv", Peer().make, nothing, FAST)
    await keeper.close()
    assert keeper.health.state == "closed"
    assert keeper.tried.is_set()


async def test_CC10_a_cancellation_that_the_sdk_made_up_is_a_lost_connection():
    peer = Peer(fault=asyncio.CancelledError("Cancelled via cancel scope"))
    async with keeping(peer) as keeper:
        await until(lambda: keeper.health.attempts >= 3)
        peer.script["fault"] = None
        await until(lambda: keeper.health.state == "ready")


async def test_a_use_that_takes_too_long_is_a_failed_attempt():
    async def use(link: Any) -> None:
        await asyncio.Event().wait()

    peer = Peer()
    pace = Pace(liveness=0.0, first_backoff=0.001, max_backoff=0.001, use_timeout=0.01)
    async with keeping(peer, pace, use) as keeper:
        await until(lambda: peer.closed >= 2)
        assert "in time" in keeper.health.reason


async def test_health_is_a_frozen_value_with_reason_and_since():
    peer = Peer()
    async with keeping(peer) as keeper:
        async with asyncio.timeout(BOUND):
            await keeper.settled.wait()
        health = keeper.health
        assert (health.state, health.era, health.attempts) == ("ready", "2025-11-25", 1)
        peer.links[0].end("gone")
        await until(lambda: keeper.health.state == "degraded" or peer.opened == 2)
        assert health.state == "ready"  # the value that was taken does not change
