"""CF03: a source that runs goes on with another declaration of its servers, and a deployment with a
newer reading of its file; only what changed is connected to anew."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.http_peer import peer
from servers.support import BOUND, NO_WAIT, RAW, Host, hosting, raw, source, until, with_token
from toolcrib.assembly import Assembly
from toolcrib.deploy import loads, standard_types
from toolcrib.errors import ConfigurationError, InvalidDefinition, NotAvailable, NotFound
from toolcrib.sources import FunctionSource
from toolcrib.sources.mcp import McpServer, Reloaded
from toolcrib.sources.mcp.servers import difference


def web(url: str, **headers: str) -> McpServer:
    return McpServer("web", "http", url=url, headers=headers, liveness=0.0, settings=NO_WAIT)


async def reloaded(host: Host, *servers: McpServer) -> Reloaded:
    async with asyncio.timeout(BOUND):
        return await host.source.reload(servers)


async def test_CF03_only_the_server_that_is_declared_otherwise_is_connected_to_anew(tmp_path: Path):
    token = tmp_path.name
    first, second = raw("a", token=token), raw("b", token=token, declared={"env": {"X": "1"}})
    async with peer() as one, hosting(source(first, second, web(one.url))) as host:
        before = await host.pid("a__pid"), await host.pid("b__pid")
        second = replace(second, env={"X": "2"})
        done = await reloaded(host, second, first, web(one.url))
        assert done == Reloaded(changed=("b",))
        await host.ready("b")
        after = await host.pid("a__pid"), await host.pid("b__pid")
        assert after[0] == before[0]
        assert after[1] != before[1]
        assert sorted(with_token(token)) == sorted(after)
        assert one.count("initialize") == 1
        assert [health.attempts for health in host.source.health()] == [1, 1, 1]


async def test_CF03_a_header_that_changed_goes_with_the_requests_of_a_new_connection():
    async with peer() as one, hosting(source(web(one.url, Authorization="Bearer 1"))) as host:
        assert await reloaded(host, web(one.url, Authorization="Bearer 2")) == Reloaded(
            changed=("web",)
        )
        await host.ready("web")
        assert str(await host.call("web__act")) == "ok"
        assert one.requests[-1][1]["authorization"] == "Bearer 2"
        assert one.count("initialize") == 2


async def test_servers_come_and_go_and_their_tools_with_them(tmp_path: Path):
    token = tmp_path.name
    async with hosting(source(raw("a", token=token))) as host:
        assert await reloaded(host, raw("b", token=token)) == Reloaded(("b",), (), ("a",))
        await host.ready("b")
        assert {name.partition("__")[0] for name in host.names} == {"b"}
        assert len(with_token(token)) == 1
        assert [health.name for health in host.source.health()] == ["b"]


async def test_until_a_changed_server_is_listed_its_tools_stay_and_are_not_available():
    async with hosting(source(raw("a"))) as host:
        names = host.names
        await reloaded(host, replace(raw("a", start="hang"), liveness=0.0))
        assert host.names == names
        result = await host.call("a__echo", text="x")
        assert result.failure
        assert result.failure.kind == "not_available"
        assert "'a'" in str(result)
        await reloaded(host, raw("a"))
        assert str(await host.again("a__echo", text="x")) == "x"
        assert host.names == names


async def test_nothing_changed_is_nothing_done():
    async with hosting(source(raw("a"))) as host:
        told: list[Any] = []
        host.source.subscribe(told.append)
        tool, published = host.tool("a__echo"), host.registry.catalog.revision
        assert await reloaded(host, raw("a")) == Reloaded()
        assert host.tool("a__echo") is tool
        assert host.registry.catalog.revision == published
        assert told == []


async def test_reloads_at_once_come_one_after_another_and_the_last_counts(tmp_path: Path):
    token = tmp_path.name
    async with hosting(source(raw("a", token=token))) as host:
        many = [raw("a", token=token, version=f"2025-0{at}-18") for at in range(1, 6)]
        many.append(raw("a", token=token))
        async with asyncio.timeout(BOUND):
            await asyncio.gather(*(host.source.reload([one]) for one in many))
        await host.ready("a")
        assert host.source.servers == (many[-1],)
        await until(lambda: len(with_token(token)) == 1)


async def test_a_source_closed_meanwhile_starts_nothing(tmp_path: Path):
    token = tmp_path.name
    async with hosting(source(raw("a", token=token, stubborn=1))) as host:
        newer = raw("a", token=token)
        reload = asyncio.create_task(host.source.reload([newer]))
        await until(lambda: host.source.servers == (newer,))
        async with asyncio.timeout(BOUND):
            await host.source.close()
            await reload
        assert with_token(token) == []
        with pytest.raises(NotAvailable, match="was closed"):
            await reloaded(host, raw("a"))


@asynccontextmanager
async def given_up(host: Host, *servers: McpServer) -> AsyncGenerator[None]:
    """A reload that is under way, and whose caller was cancelled."""
    waiting = asyncio.create_task(host.source.reload(servers))
    await until(lambda: host.source.servers == servers)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    yield


async def test_a_reload_that_nobody_waits_for_any_more_is_carried_through(tmp_path: Path):
    token = tmp_path.name
    old = raw("a", token=token, stubborn=1), raw("gone", token=token)
    async with hosting(source(*old)) as host:
        async with given_up(host, raw("a", token=token)):
            await host.ready("a")
        assert {name.partition("__")[0] for name in host.names} == {"a"}
        assert len(with_token(token)) == 1


async def test_closing_ends_what_a_reload_that_was_given_up_has_not_ended_yet(tmp_path: Path):
    token = tmp_path.name
    async with (
        hosting(source(raw("a", token=token, stubborn=1))) as host,
        given_up(host, raw("b", token=token)),
        asyncio.timeout(BOUND),
    ):
        assert with_token(token) != []
        await host.source.close()
        assert with_token(token) == []


async def test_a_source_opened_while_it_is_reloaded_starts_each_server_once(tmp_path: Path):
    starts = tmp_path / "starts"
    mcp = source(raw("a"))
    host, newer = Host(mcp), raw("a", starts=starts)
    reload = asyncio.create_task(mcp.reload([newer]))
    while mcp.servers != (newer,):
        await asyncio.sleep(0)
    assert not reload.done()
    async with asyncio.timeout(BOUND):
        await mcp.open(host.publish)
        await reload
        await host.ready("a")
        await mcp.reload([newer, raw("b")])  # a turn later, a second process would have started
        await host.ready("b")
        await mcp.close()
    assert len(starts.read_text().splitlines()) == 1


async def test_who_waits_for_a_required_server_waits_for_the_one_in_its_place():
    hung = raw("a", start="hang", declared={"required": True})
    mcp = source(hung)
    host = Host(mcp)
    opening = asyncio.create_task(mcp.open(host.publish))
    await until(lambda: host.health("a").attempts)
    waiting = asyncio.create_task(mcp.wait_ready(BOUND))
    await asyncio.sleep(0)
    async with asyncio.timeout(2 * BOUND):
        await mcp.reload([raw("a", declared={"required": True})])
        await waiting
        assert host.health("a").state == "ready"
        await opening
        await mcp.close()


async def test_tools_that_only_stay_give_way_to_those_that_are_listed():
    def named(name: str, prefix: str) -> McpServer:
        return raw(name, declared={"prefix": prefix})

    async with hosting(source(named("a", "x"), named("b", "y"))) as host:
        names = host.names
        await reloaded(host, named("a", "y"), named("b", "x"))
        await host.ready("a")
        await host.ready("b")
        assert sorted(host.names) == sorted(names)
        assert str(await host.call("x__echo", text="1")) == "1"


async def test_a_declaration_that_cannot_be_changes_nothing():
    async with hosting(source(raw("a"))) as host:
        for wrong in [(raw("b"), raw("b")), ()]:
            with pytest.raises(InvalidDefinition):
                await reloaded(host, *wrong)
        assert str(await host.call("a__echo", text="on")) == "on"


NAMES = st.sampled_from("abcd")
DECLARED = st.dictionaries(NAMES, st.integers(0, 2)).map(
    lambda given: [raw(name, token=token) for name, token in given.items()]
)


@given(DECLARED, DECLARED)
def test_from_one_declaration_to_another_every_name_is_in_one_place(before: Any, after: Any):
    done = difference(before, after)
    old, new = {one.name for one in before}, {one.name for one in after}
    assert {*done.added} == new - old
    assert {*done.removed} == old - new
    same = {one.name for one in before if one in after}
    assert {*done.changed} == (old & new) - same
    assert difference(after, after) == Reloaded()


# -- a deployment

FILE = """
resources:
  servers:
    kind: tool.Source
    impl: mcp
    settings:
      servers:
        - {{name: same, transport: stdio, command: {python}, args: [-S, -I, {raw}]}}
        - {{name: other, transport: stdio, command: {python}, args: [-S, -I, {raw}],
           env: {{X: "${{env:X}}"}}}}
  {more}
  tools:
    kind: tool.Assembly
    impl: {impl}
    deps: {{tool: servers}}
"""


def text(more: str = "", impl: str = "memory") -> str:
    return FILE.format(python=sys.executable, raw=RAW, more=more, impl=impl)


async def pid(tools: Assembly, server: str) -> int:
    async with asyncio.timeout(BOUND):
        while (result := await tools.call(f"{server}__pid")).failure:
            await asyncio.sleep(0.002)
    return int(result.value["pid"])


async def test_CF03_a_variable_that_changed_reconnects_the_server_that_has_it_and_no_other():
    built = loads(text(), {"X": "1"}).build()
    async with built as tools:
        before = [await pid(tools, name) for name in ("same", "other")]
        assert await built.reload(loads(text(), {"X": "1"})) == ()
        assert await built.reload(loads(text(), {"X": "2"})) == ("servers",)
        after = [await pid(tools, name) for name in ("same", "other")]
        assert after[0] == before[0]
        assert after[1] != before[1]
        env = json.loads(str(await tools.call("other__env")))
        assert env["X"] == "2"


async def test_of_reloads_of_a_deployment_at_once_the_last_counts():
    built = loads(text(), {"X": "1"}).build()
    async with built as tools:
        await pid(tools, "other")
        newer, first = (loads(text(), {"X": value}) for value in "21")
        async with asyncio.timeout(BOUND):
            done = await asyncio.gather(built.reload(newer), built.reload(first))
        assert done == [("servers",), ("servers",)]
        await pid(tools, "other")
        assert json.loads(str(await tools.call("other__env")))["X"] == "1"
        assert built.deployment is first


@pytest.mark.parametrize(
    ("newer", "fault"),
    [
        (text(impl="middleware"), "resource 'tools' has another impl or other dependencies"),
        (text().replace("  tools:", "  instruments:"), "no resource 'tools' in"),
        (
            text().replace("deps: {tool: servers}", "deps: {tool: servers, registry: own}")
            + "  own: {kind: tool.Registry, impl: memory}\n",
            "resource 'own' is new",
        ),
    ],
)
async def test_what_only_a_new_start_can_take_is_told_and_nothing_is_changed(
    newer: str, fault: str
):
    built = loads(text(), {"X": "1"}).build()
    async with built as tools:
        before = await pid(tools, "other")
        with pytest.raises((ConfigurationError, NotFound), match=fault):
            await built.reload(loads(newer, {"X": "2"}))
        assert await pid(tools, "other") == before


async def test_settings_of_a_type_that_takes_none_while_it_runs_are_told():
    types = standard_types()

    def build(given: Any) -> FunctionSource:
        return FunctionSource([], name=given.name)

    types.register("tool.Source", "sim", build, settings=lambda at: at.notes.environ["X"])
    file = """
resources:
  sim: {kind: tool.Source, impl: sim, settings: {}}
  tools: {kind: tool.Assembly, impl: memory, deps: {tool: sim}}
"""
    built = loads(file, {"X": "1"}, types=types).build()
    async with built:
        assert await built.reload(loads(file, {"X": "1"}, types=types)) == ()
        with pytest.raises(ConfigurationError, match="'sim' has other settings: that takes a new"):
            await built.reload(loads(file, {"X": "2"}, types=types))
