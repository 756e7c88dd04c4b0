"""A server's list changes while it runs: A10.9, T-A12, MC13, over both transports and both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.http_peer import JSON, Peer, peer, refusal
from servers.support import BOUND, NO_WAIT, Host, children, hosting, raw, source, until
from toolcrib.function import tool
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.changes import Changes, due, follow
from toolcrib.sources.mcp.health import Pace
from toolcrib.sources.mcp.settings import ServerSettings

ERAS = ["legacy", "modern"]
SWIFT = ServerSettings(list_quiet=0.01, list_longest=0.1, reconnect_wait=0.0)
CHANGED = "notifications/tools/list_changed"


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


# -- when a list is due


def test_a_list_is_due_after_quiet_and_at_most_so_long_after_the_first_word():
    assert due(first=10.0, last=10.0, quiet=0.1, longest=1.0) == 10.1
    assert due(first=10.0, last=10.5, quiet=0.1, longest=1.0) == 10.6
    assert due(first=10.0, last=10.99, quiet=0.1, longest=1.0) == 11.0


@asynccontextmanager
async def following(read: Any, **pace: float) -> AsyncIterator[Changes]:
    changes = Changes()
    paced = Pace(**{"list_quiet": 0.01, "list_longest": 0.1, "first_backoff": 0.01, **pace})
    task = asyncio.create_task(follow(changes, lambda: read(changes), paced))
    try:
        yield changes
    finally:
        task.cancel()
        await asyncio.wait((task,), timeout=BOUND)


async def test_a_burst_is_read_once_and_one_reading_runs_at_a_time():
    running, most, readings = 0, 0, 0

    async def read(changes: Changes) -> bool:
        nonlocal running, most, readings
        running, readings = running + 1, readings + 1
        most = max(most, running)
        if readings == 1:
            changes.told()  # while it is read: the newest word is not lost
        await asyncio.sleep(0.01)
        running -= 1
        return True

    async with following(read) as changes:
        for _ in range(1000):
            changes.told()
        await until(lambda: readings == 2)
        await asyncio.sleep(0.15)
    assert (readings, most) == (2, 1)


async def test_a_storm_and_a_server_that_answers_each_reading_with_a_change_cost_a_bounded_number():
    readings = 0

    async def read(changes: Changes) -> bool:
        nonlocal readings
        readings += 1
        changes.told()
        return True

    async with following(read) as changes:
        changes.told()
        await asyncio.sleep(0.5)
    assert 2 <= readings <= 9  # 10, 20, 40, 80, 100, 100, … ms apart


async def test_A10_9_a_reading_that_failed_is_tried_again_ever_later():
    readings = 0

    async def read(changes: Changes) -> bool:
        nonlocal readings
        readings += 1
        return readings == 3

    async with following(read) as changes:
        changes.told()
        await until(lambda: readings == 3)
        await asyncio.sleep(0.15)
    assert readings == 3


# -- real servers


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("liveness", [0.0, 15.0])
async def test_MC13_T_A12_added_changed_and_removed_tools_are_followed(era: str, liveness: float):
    declared = {"settings": SWIFT, "liveness": liveness}
    async with hosting(source(raw(era=era, declared=declared))) as host:
        echo = host.tool("raw__echo")
        assert "raw__beta" not in host.names
        await host.call("raw__grow")
        await until(lambda: "raw__beta" in host.names)
        assert json.loads(str(await host.call("raw__beta", a=1))) == {"a": 1}
        assert host.health().tools == len(host.names)
        before = host.tool("raw__beta")
        await host.call("raw__reword")
        await until(lambda: host.tool("raw__beta") is not before)
        assert "b" in host.tool("raw__beta").definition.input_schema["properties"]
        assert host.tool("raw__echo") is echo
        await host.call("raw__shrink")
        await until(lambda: "raw__beta" not in host.names)
        gone = await host.call("raw__beta", b="x")
        assert gone.failure
        assert gone.failure.kind == "not_found"
        assert host.health().attempts == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_storm_of_a_thousand_changes_ends_with_the_newest_list_and_few_readings(
    era: str, tmp_path: Path
):
    lists = tmp_path / "lists"
    async with hosting(source(raw(era=era, lists=lists, declared={"settings": SWIFT}))) as host:
        await host.call("raw__storm", n=1000)
        await until(lambda: "raw__storm_999" in host.names)
        await asyncio.sleep(0.05)
        assert len([name for name in host.names if "storm_" in name]) == 1
        assert len(lists.read_text().splitlines()) <= 8


async def test_a_server_that_answers_every_listing_with_a_change_is_not_read_in_a_loop(
    tmp_path: Path,
):
    lists = tmp_path / "lists"
    async with hosting(source(raw(lists=lists, nagging=1, declared={"settings": SWIFT}))) as host:
        await asyncio.sleep(0.5)
        assert len(lists.read_text().splitlines()) <= 10
        assert host.health().state == "ready"


@pytest.mark.parametrize("era", ERAS)
async def test_A10_9_a_listing_that_fails_keeps_the_tools_and_is_tried_again(
    era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    lists = tmp_path / "lists"
    async with hosting(source(raw(era=era, lists=lists, declared={"settings": SWIFT}))) as host:
        names = host.names
        await host.call("raw__spoil", n=2)
        await until(lambda: len(lists.read_text().splitlines()) >= 3)
        assert host.names == names
        assert host.health().state == "ready"
        await host.call("raw__grow")
        await until(lambda: "raw__beta" in host.names)
        assert host.health().attempts == 1
    assert any("not taken" in record.getMessage() for record in caplog.records)


async def test_changed_resources_and_prompts_are_no_change_of_tools(tmp_path: Path):
    lists = tmp_path / "lists"
    async with hosting(source(raw(lists=lists, declared={"settings": SWIFT}))) as host:
        await host.call("raw__other_changes")
        await host.call("raw__echo", text="x")
        await asyncio.sleep(0.05)
        assert len(lists.read_text().splitlines()) == 1


async def test_T_A13_a_change_that_wants_a_taken_name_leaves_the_server_and_its_tools_alone():
    declared = {"settings": SWIFT, "prefix": ""}
    async with hosting(source(raw(declared=declared))) as host:

        @tool
        def beta() -> str:
            """Mine."""
            return "mine"

        host.registry.add(beta, "mine")
        await host.call("grow")
        await host.call("other_changes")
        await asyncio.sleep(0.1)
        assert str(await host.call("beta")) == "mine"
        assert str(await host.call("echo", text="on")) == "on"
        assert host.health().state == "ready"
        await host.call("shrink")  # it no longer wants the name
        host.registry.remove("beta")
        await host.call("grow")
        await until(lambda: "beta" in host.names)


# -- over HTTP


@asynccontextmanager
async def scripted(modern: bool) -> AsyncIterator[tuple[Peer, Host]]:
    async with peer(modern=modern) as one:
        server = McpServer("web", "http", url=one.url, liveness=0.0, settings=SWIFT)
        async with hosting(source(server)) as host:
            await until(lambda: one.streams)
            yield one, host


@pytest.mark.parametrize("modern", [False, True])
async def test_MC13_over_http_changes_come_on_the_open_stream(modern: bool):
    async with scripted(modern) as (one, host):
        one.tools = [*one.tools, {"name": "beta", "inputSchema": {"type": "object"}}]
        one.tell(CHANGED)
        await until(lambda: "web__beta" in host.names)
        one.tools = one.tools[:1]
        for _ in range(100):
            one.tell(CHANGED)
        await until(lambda: "web__beta" not in host.names)
        assert one.count("tools/list") <= 5
        assert host.health("web").attempts == 1


async def test_a_modern_stream_that_was_cut_is_opened_again_and_what_was_missed_is_read():
    async with scripted(modern=True) as (one, host):
        one.tools = [*one.tools, {"name": "beta", "inputSchema": {"type": "object"}}]
        (stream,) = one.streams.values()
        stream.close()  # nobody told of the change
        await until(lambda: "web__beta" in host.names)
        assert one.count("subscriptions/listen") == 2
        assert host.health("web").attempts == 1


async def test_a_modern_peer_without_a_stream_is_used_all_the_same():
    async with peer(modern=True) as one:
        said = "no such method"

        def gate(verb: str, headers: Any, body: dict[str, Any]) -> Any:
            refused = body.get("method") == "subscriptions/listen"
            return (404, JSON, refusal(body["id"], -32601, said)) if refused else None

        one.gate = gate
        server = McpServer("web", "http", url=one.url, liveness=0.0, settings=NO_WAIT)
        async with hosting(source(server)) as host:
            assert str(await host.call("web__act")) == "ok"
            assert one.count("subscriptions/listen") == 1


async def test_the_list_is_read_only_once_at_the_start_though_the_stream_is_opened_first():
    async with scripted(modern=True) as (one, host):
        methods = [body.get("method") for _, _, body in one.requests]
        assert methods.index("subscriptions/listen") < methods.index("tools/list")
        await host.call("web__act")
        await asyncio.sleep(0.05)
        assert one.count("tools/list") == 1
