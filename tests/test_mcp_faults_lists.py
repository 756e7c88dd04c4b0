"""Lists that do not end, change or lie: MC11, MC12, MC13, A10.9, A11.1 to A11.3, T-A8g, T-A12."""

from __future__ import annotations

import time
from typing import Any

import pytest

from servers.faulty import SWIFT, Cell, answered, cells, faulty, health, kind, serving
from servers.support import source, until
from toolcrib.assembly import Assembly
from toolcrib.discovery.policy import Dynamic
from toolcrib.sources.mcp.settings import ServerSettings


@cells()
@pytest.mark.parametrize("cursor", ["same", "empty", "pair"])
async def test_MC11_an_endless_list_ends_with_a_warning_and_no_duplicates(
    cell: Cell, cursor: str, caplog: pytest.LogCaptureFixture
):
    async with serving(cell, f"endless={cursor}") as (server, host):
        assert health(host).state == "ready"
        assert host.names.count("faulty__echo") == 1
        assert len(server.heard("tools/list")) <= 4
        cursors = [(entry["params"] or {}).get("cursor") for entry in server.heard("tools/list")]
        assert cursors.count("") == (cursor == "empty")
    assert any("does not come to an end" in record.message for record in caplog.records)


@cells()
async def test_MC11_ever_new_pages_end_at_the_cap_or_in_time(cell: Cell):
    bounds = {"list_timeout": 0.25, "first_backoff": 60.0, "max_backoff": 60.0}
    async with serving(cell, "endless=distinct", bounds=bounds) as (server, host):
        assert health(host).state in ("ready", "degraded")
        assert len(server.heard("tools/list")) <= 1001


@cells()
async def test_MC12_all_pages_are_read_with_the_cursor_as_it_came(cell: Cell):
    async with serving(cell, "pages=10") as (server, host):
        assert {f"faulty__t{i}" for i in range(45)} <= set(host.names)
        assert len(host.names) == len({*host.names})
        cursors = [(entry["params"] or {}).get("cursor") for entry in server.heard("tools/list")]
        assert cursors == [None, *(f"ÄÖ=={at}" for at in range(10, 51, 10))]


@cells()
async def test_MC13_a_new_tool_is_in_the_next_turn_and_in_the_search_index(cell: Cell):
    async with faulty(cell) as server:
        settings = ServerSettings(**SWIFT)
        mcp = source(server.declare(settings=settings, liveness=0.0))
        async with Assembly([mcp], dynamic=Dynamic()) as assembly:
            session = assembly.session()
            server.misbehave("extra_tool=zebra")
            await assembly.call("faulty__tell")
            await until(lambda: assembly.catalog.get("faulty__zebra"))
            found = await session.search("zebra", 3)
            assert [hit.name for hit in found.hits][:1] == ["faulty__zebra"]
            session.require("faulty__zebra")
            assert "faulty__zebra" in session.turn().round().names
            assert str(await assembly.call("faulty__zebra")).startswith("zebra")


@cells()
async def test_MC13_T_A12_added_changed_and_lost_tools_are_followed(cell: Cell):
    async with serving(cell) as (server, host):
        echo, act = host.tool("faulty__echo"), host.tool("faulty__act")
        server.misbehave("changed_definition", "extra_tool=beta")
        await host.call("faulty__tell")
        await until(lambda: "faulty__beta" in host.names)
        assert host.tool("faulty__echo") is not echo
        assert host.tool("faulty__echo").definition.description == "Says something else."
        assert host.tool("faulty__act") is act
        server.misbehave("lost_tool=act")
        await host.call("faulty__tell")
        await until(lambda: "faulty__act" not in host.names)
        assert kind(await host.call("faulty__act")) == "not_found"
        assert kind(await host.call("faulty__beta")) == "not_found"
        assert host.tool("faulty__echo").definition == echo.definition
        assert health(host).attempts == 1


@cells()
async def test_MC13_a_storm_of_changes_costs_few_readings_and_the_newest_list_wins(cell: Cell):
    async with serving(cell) as (server, host):
        server.misbehave("storm=1000*1", "extra_tool=beta")
        assert str(await host.call("faulty__echo", text="calm")) == "calm"
        await until(lambda: "faulty__beta" in host.names)
        assert str(await host.call("faulty__echo", text="on")) == "on"
        assert len(server.heard("tools/list")) <= 8
        assert health(host).attempts == 1


@cells()
async def test_MC13_a_change_told_after_each_listing_is_not_read_in_a_loop(cell: Cell):
    async with serving(cell, "storm=1@tools/list") as (server, host):
        assert str(await host.call("faulty__slow", seconds=0.25)) == "awake"
        assert len(server.heard("tools/list")) <= 9
        assert health(host).state == "ready"


@cells()
async def test_A10_9_a_listing_that_fails_keeps_the_tools_and_is_tried_again(cell: Cell):
    async with serving(cell) as (server, host):
        names = host.names
        server.misbehave("error@tools/list*2", "extra_tool=beta")
        await host.call("faulty__tell")
        await until(lambda: len(server.heard("tools/list")) >= 3)
        await until(lambda: "faulty__beta" in host.names)
        assert {*host.names} == {*names, "faulty__beta"}
        assert health(host).attempts == 1


@cells()
async def test_A10_9_a_listing_that_fails_after_a_restart_keeps_the_tools_too(cell: Cell):
    async with serving(cell) as (server, host):
        names = host.names
        server.misbehave("error@tools/list*2")
        await server.restart()
        await until(lambda: len(server.starts) >= 2)
        assert host.names == names
        assert str(await answered(host, text="back")) == "back"
        assert host.names == names


@cells()
@pytest.mark.parametrize(
    ("prefix", "shown"), [(None, "faulty__echo"), ("fs", "fs__echo"), ("", "echo")]
)
async def test_A11_1_the_prefix_is_ours_and_the_call_carries_the_servers_name(
    cell: Cell, prefix: str | None, shown: str
):
    async with serving(cell, prefix=prefix) as (server, host):
        assert str(await host.call(shown, text="x")) == "x"
        assert server.heard("tools/call")[-1]["params"]["name"] == "echo"


@cells()
async def test_A11_2_T_A8g_of_duplicates_the_first_wins_and_the_nameless_are_skipped(cell: Cell):
    async with serving(cell, "duplicates", "senseless") as (_, host):
        assert len(host.names) == len({*host.names}) == health(host).tools
        assert "second" not in {host.tool(name).definition.description for name in host.names}
        assert str(await host.call("faulty__echo", text="x")) == "x"


@cells()
async def test_A11_2_the_bridges_lose_to_the_servers_own_tools(cell: Cell):
    async with serving(cell, "extra_tool=read_resource", resources=True) as (_, host):
        assert host.tool("faulty__read_resource").definition.description == "Named read_resource."
        assert "faulty__list_resources" in host.names


@cells()
async def test_A11_3_descriptions_schemas_and_hints(cell: Cell):
    async with serving(cell, "titles", "bad_schema") as (_, host):
        of: dict[str, Any] = {n: host.tool(f"faulty__{n}").definition for n in LISTED}
        said = [of[name].description for name in LISTED[:3]]
        assert said == ["Title: Words.", "Words.", "Only"]
        assert of["titled"].annotations.read_only is True
        assert of["titled"].annotations.destructive is None
        assert dict(of["loose"].input_schema) == {"type": "object"}
        assert [(r.server, r.tool) for r in host.source.rejected] == [("faulty", "bad")]


LISTED = ["titled", "untitled", "bare", "loose"]


@cells()
async def test_T_A20_odd_names_become_legal_and_unique_and_are_called_by_their_own(cell: Cell):
    async with serving(cell, "odd_names") as (server, host):
        odd = [name for name in host.names if host.tool(name).original not in OWN]
        assert len({*odd}) == 5
        assert all(len(name) <= 64 for name in odd)
        for name in odd:
            await host.call(name)
            assert server.heard("tools/call")[-1]["params"]["name"] == host.tool(name).original


OWN = {"echo", "act", "pid", "env", "slow", "big", "progress", "log", "give", "tell", "misbehave"}


@cells()
async def test_a_list_that_never_comes_is_a_failed_attempt(cell: Cell):
    bounds = {"list_timeout": 0.1, "stop_timeout": 0.2}
    began = time.monotonic()
    async with serving(cell, "hang@tools/list*1", bounds=bounds) as (_, host):
        assert time.monotonic() - began < 5.0
        assert "in time" in health(host).reason or health(host).state == "ready"
        await host.ready("faulty")
        assert str(await host.call("faulty__echo", text="on")) == "on"
