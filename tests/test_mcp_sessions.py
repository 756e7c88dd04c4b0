"""Servers that keep state: a connection of its own for each conversation; and what a server offers
beside tools (A11.8)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from servers.http_peer import peer
from servers.support import BOUND, Host, alive, children, descriptors, hosting, raw, source, until
from toolcrib.content import ToolCall, ToolResult
from toolcrib.principal import LOCAL, Principal
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.settings import ServerSettings

ERAS = ["legacy", "modern"]


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


@dataclass(frozen=True)
class Conversation:
    id: str


ANA, BEN, CAT = (Conversation(name) for name in ("ana", "ben", "cat"))


def own(era: str = "legacy", **settings: Any) -> McpServer:
    given = ServerSettings(**{"reconnect_wait": 0.0, **settings})
    return raw(era=era, declared={"per_session": True, "settings": given})


async def call(
    host: Host, session: Conversation | None, name: str = "pid", who: Principal = LOCAL, **args: Any
) -> ToolResult:
    wanted = ToolCall(uuid.uuid4().hex, f"raw__{name}", json.dumps(args))
    async with asyncio.timeout(BOUND):
        return await host.executor.execute(wanted, session=session, principal=who)


async def pid(host: Host, session: Conversation | None, who: Principal = LOCAL) -> int:
    result = await call(host, session, who=who)
    assert not result.failure, result
    return int(result.value["pid"])


@pytest.mark.parametrize("era", ERAS)
async def test_each_conversation_has_a_connection_of_its_own_from_its_first_call(era: str):
    async with hosting(source(own(era))) as host:
        assert len(children()) == 1  # the shared one, for the list and for calls outside
        shared = await pid(host, None)
        first = await asyncio.gather(*(pid(host, ANA) for _ in range(5)))
        other = await pid(host, BEN)
        assert len({*first}) == 1
        assert len({shared, first[0], other}) == 3
        assert await pid(host, ANA) == first[0]
        assert len(children()) == 3
        assert host.health().attempts == 1
    assert not any(map(alive, (shared, first[0], other)))


async def test_one_id_under_two_principals_is_two_conversations():
    async with hosting(source(own())) as host:
        one, two = Principal("one"), Principal("two")
        assert await pid(host, ANA, one) != await pid(host, ANA, two)


async def test_without_per_session_all_share_one():
    async with hosting(source(raw())) as host:
        assert len({await pid(host, each) for each in (ANA, BEN, None)}) == 1


async def test_a_full_house_closes_the_conversation_that_was_silent_longest():
    async with hosting(source(own(max_sessions=2))) as host:
        ana, ben = await pid(host, ANA), await pid(host, BEN)
        assert await pid(host, ANA) == ana  # ben is the one that was silent longer now
        await pid(host, CAT)
        await until(lambda: not alive(ben))
        assert await pid(host, ANA) == ana
        assert await pid(host, BEN) != ben


async def test_where_all_are_at_work_a_further_conversation_is_told_so():
    async with hosting(source(own(max_sessions=1))) as host:
        begun = asyncio.Event()
        wanted = ToolCall("1", "raw__hang", "{}")
        busy = asyncio.create_task(
            host.executor.execute(wanted, session=ANA, on_progress=lambda p: begun.set())
        )
        async with asyncio.timeout(BOUND):
            await begun.wait()
        refused = await call(host, BEN)
        assert refused.failure
        assert refused.failure.kind == "not_available"
        assert "each of 1 conversations" in str(refused)
        busy.cancel()
        await asyncio.wait((busy,))
        assert await pid(host, BEN)


async def test_a_silent_conversation_is_closed_and_begins_anew():
    async with hosting(source(own(session_idle=0.1))) as host:
        ana = await pid(host, ANA)
        await until(lambda: not alive(ana) and len(children()) == 1)
        assert await pid(host, ANA) != ana


async def test_a_conversations_server_that_was_killed_is_started_again():
    settings = {"reconnect_wait": 5.0}
    async with hosting(source(own(**settings))) as host:
        shared, ana = await pid(host, None), await pid(host, ANA)
        os.kill(ana, signal.SIGKILL)
        result = await call(
            host, ANA
        )  # its death may be seen only now: then the outcome is unknown
        while result.failure:
            assert result.failure.kind in ("outcome_unknown", "not_available")
            result = await call(host, ANA)
        assert result.value["pid"] not in (ana, shared)
        assert await pid(host, None) == shared


async def test_the_list_comes_from_the_shared_connection_alone():
    settings = {"list_quiet": 0.01, "list_longest": 0.1}
    async with hosting(source(own(**settings))) as host:
        await call(host, ANA, "grow")
        await call(host, ANA, "echo", text="x")
        await asyncio.sleep(0.05)
        assert "raw__beta" not in host.names
        await call(host, None, "grow")
        await until(lambda: "raw__beta" in host.names)


async def test_thirty_conversations_in_four_places_leave_no_process_and_no_descriptor():
    async with hosting(source(own(max_sessions=4))) as host:
        await pid(host, None)
        before, tasks = descriptors(), len(asyncio.all_tasks())
        for number in range(15):
            await asyncio.gather(
                pid(host, Conversation(f"a{number}")), pid(host, Conversation(f"b{number}"))
            )
            assert len(children()) <= 1 + 4 + 4  # the shared one, four, and as many that are ending
        member = host.source._members[0]
        assert len(member.sessions) == 4
        await member.sessions.close()
        await until(lambda: len(children()) == 1)
        assert descriptors() <= before
        assert len(asyncio.all_tasks()) <= tasks
        closed = await call(host, ANA)
        assert closed.failure
        assert closed.failure.kind == "not_available"


async def test_over_http_each_conversation_has_a_session_id_of_its_own():
    async with peer() as one:
        web = McpServer("raw", "http", url=one.url, liveness=0.0, per_session=True)
        async with hosting(source(web)) as host:
            for who in (ANA, BEN, ANA, None):
                assert str(await call(host, who, "act")) == "ok"
        ids = [h["mcp-session-id"] for _, h, b in one.requests if b.get("method") == "tools/call"]
        assert len({*ids}) == 3
        assert ids[0] == ids[2]
        assert sum(verb == "DELETE" for verb, _, _ in one.requests) == 3


# -- beside tools


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_are_listed_and_got_as_tools(era: str):
    async with hosting(source(raw(era=era, declared={"prompts": True}))) as host:
        listed = (await host.call("raw__list_prompts")).value
        wanted = [{"name": "what", "required": True}]
        assert listed == [{"name": "greet", "description": "Greets", "arguments": wanted}]
        got = await host.call("raw__get_prompt", name="greet", arguments={"what": "world"})
        assert got.value["description"] == "Greets"
        assert got.value["messages"][0] == {"role": "user", "text": "Hello world"}
        assert got.value["messages"][1]["content"]["type"] == "image"
        assert (await host.call("raw__get_prompt", name="greet")).value["messages"]
        wrong = await host.call("raw__get_prompt", name="greet", arguments={"what": 1})
        assert wrong.failure
        assert wrong.failure.kind == "invalid_arguments"


async def test_prompts_are_offered_only_when_asked_for_and_lose_to_the_servers_own_tools():
    async with hosting(source(raw())) as host:
        assert "raw__list_prompts" not in host.names
    more = json.dumps([{"name": "get_prompt", "description": "own"}])
    async with hosting(source(raw(tools=more, declared={"prompts": True}))) as host:
        assert host.tool("raw__get_prompt").definition.description == "own"


async def test_resource_templates_are_listed_with_the_resources():
    one = {"uri": "memo://one", "name": "one"}
    async with hosting(source(raw(declared={"resources": True}))) as host:
        assert (await host.call("raw__list_resources")).value == [one]
    async with hosting(source(raw(templates=1, declared={"resources": True}))) as host:
        listed = (await host.call("raw__list_resources")).value
        assert listed == [one, {"uri_template": "memo://{n}", "name": "memo"}]
