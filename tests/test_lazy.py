"""Lazy tools: known by name, made when needed (A5.4, A5.8, A5.13, T-A9, T-A15)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import Closing, Plain, ended, outcome
from conversing import SEARCH, Loads, search
from toolcrib import (
    Assembly,
    CallContext,
    Discovery,
    Dynamic,
    InvalidDefinition,
    LazyTool,
    NotAvailable,
    Policy,
    ToolCall,
    tool,
)


@tool
def cities(country: str, limit: int = 5) -> str:
    """The cities of a country."""
    return f"{limit} of {country}"


def lazy_cities(loads: Callable[[], Awaitable[Any]], **said: Any) -> LazyTool:
    return LazyTool("cities", "Geography", load=loads, **said)


async def test_A5_4_an_unloaded_tool_is_ranked_by_its_placeholder_and_hits_are_loaded() -> None:
    loads = Loads(cities)
    async with Assembly([lazy_cities(loads)], dynamic=Dynamic()) as assembly:
        session = assembly.session()
        assert (await search(session, "country"))["hits"] == []
        assert loads.count == 0
        found = await search(session, "geography")
        assert found["exposed"] == ["cities"]
        assert loads.count == 1
        (definition,) = [d for d in session.turn().round().definitions if d.name == "cities"]
        assert definition == cities.definition
        assert (await search(session, "country"))["exposed"] == ["cities"], "found by what it is"


async def test_A5_4_search_with_load_loads_everything_first_and_failures_only_warn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good, bad = Loads(cities), Loads(None)
    bad.fails = True
    tools = [lazy_cities(good), LazyTool("broken", "Nothing", load=bad)]
    async with Assembly(tools, dynamic=Dynamic(search_with_load=True)) as assembly:
        with caplog.at_level(logging.WARNING, "toolcrib.lazy"):
            found = await search(assembly.session(), "country")
        assert found["exposed"] == ["cities"]
        assert "failed" not in found
        assert "broken" in caplog.text


@pytest.mark.parametrize("gives", [None, "text", Plain("other")], ids=["none", "text", "other"])
async def test_A5_13_T_A9_what_is_no_tool_of_that_name_is_load_failed_and_never_exposed(
    gives: Any,
) -> None:
    loads = Loads(gives)
    async with Assembly([lazy_cities(loads)], dynamic=Dynamic()) as assembly:
        session = assembly.session()
        found = await search(session, "geography")
        assert found["failed"] == [{"name": "cities", "reason": "load_failed"}]
        assert "exposed" not in found
        assert session.turn().round().names == (SEARCH,)


async def test_T_A9_a_load_that_failed_is_tried_again_by_the_next_search_and_the_next_call() -> (
    None
):
    loads = Loads(cities)
    loads.fails = True
    async with Assembly([lazy_cities(loads)], dynamic=Dynamic()) as assembly:
        session = assembly.session()
        assert "exposed" not in await search(session, "geography")
        failed = await assembly.call("cities", country="Peru")
        assert outcome(failed) == "not_available"
        assert "db7" not in failed.text
        assert loads.count == 2
        loads.fails = False
        assert (await search(session, "geography"))["exposed"] == ["cities"]
        assert str(await assembly.call("cities", country="Peru")) == "5 of Peru"
        assert loads.count == 3


async def test_T_A15_a_slow_load_blocks_neither_other_hits_nor_other_sessions() -> None:
    slow, fast = Loads(Plain("atlas")), Loads(cities)
    slow.goes_on.clear()
    tools = [LazyTool("atlas", "Geography maps", load=slow), lazy_cities(fast)]
    dynamic = Dynamic(discovery=Discovery(load_timeout=0.05))
    async with Assembly(tools, dynamic=dynamic) as assembly:
        one, two = assembly.session(), assembly.session()
        waiting = asyncio.create_task(search(one, "geography"))
        await ended(slow.begun.wait())
        assert len(assembly.catalog) == 3, "the catalogue is read meanwhile"
        assert str(await ended(two.call("cities", country="Chad"))) == "5 of Chad"
        found = await ended(waiting)
        assert found["exposed"] == ["cities"]
        assert found["failed"] == [{"name": "atlas", "reason": "load_failed"}]
        slow.goes_on.set()
        assert (await search(one, "maps"))["exposed"] == ["atlas"]
        assert slow.count == 1, "the load that nobody waited for went on"


async def test_one_load_serves_all_who_wait_and_giving_up_does_not_end_it() -> None:
    loads = Loads(cities)
    loads.goes_on.clear()
    async with Assembly([lazy_cities(loads)]) as assembly:
        first = asyncio.create_task(assembly.call("cities", country="Mali"))
        second = asyncio.create_task(assembly.call("cities", country="Togo"))
        await ended(loads.begun.wait())
        first.cancel()
        loads.goes_on.set()
        assert str(await ended(second)) == "5 of Togo"
        assert loads.count == 1
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_call_loads_the_tool_and_checks_the_arguments_against_what_it_really_takes() -> (
    None
):
    async with Assembly([lazy_cities(Loads(cities))]) as assembly:
        old = assembly.session().turn().round()
        assert old.definitions[0].input_schema == {"type": "object"}
        refused, done = await old.execute(
            [
                ToolCall("a", "cities", '{"land": "Peru"}'),
                ToolCall("b", "cities", '{"country": "Peru"}'),
            ]
        )
        assert outcome(refused) == "invalid_arguments"
        assert outcome(done) == "5 of Peru"
        (again,) = await old.execute([ToolCall("c", "cities", '{"country": "Oman"}')])
        assert outcome(again) == "5 of Oman", "an older round calls the same tool"


async def test_a_synchronous_load_runs_in_a_thread_and_its_system_exit_ends_nothing() -> None:
    def make() -> Any:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return cities

    def leave() -> Any:
        raise SystemExit(3)

    tools = [LazyTool("cities", load=make), LazyTool("gone", load=leave)]
    async with Assembly(tools) as assembly:
        assert str(await assembly.call("cities", country="Cuba")) == "5 of Cuba"
        assert outcome(await assembly.call("gone")) == "not_available"


async def test_a_load_that_takes_too_long_fails_and_one_that_cancels_itself_too() -> None:
    async def never() -> Any:
        await asyncio.Event().wait()

    async def cancels() -> Any:
        raise asyncio.CancelledError

    tools = [LazyTool("slow", load=never, timeout=0.02), LazyTool("odd", load=cancels)]
    async with Assembly(tools) as assembly:
        assert outcome(await ended(assembly.call("slow"))) == "not_available"
        assert outcome(await ended(assembly.call("odd"))) == "not_available"
    with pytest.raises(InvalidDefinition, match="timeout"):
        LazyTool("slow", load=never, timeout=0)


async def test_the_real_tool_is_closed_once_and_a_load_under_way_is_ended() -> None:
    closed: list[str] = []
    stuck = Loads(None)
    stuck.goes_on.clear()
    tools = [
        LazyTool("used", load=Loads(Closing("used", closed, "ok"))),
        LazyTool("idle", load=Loads(Closing("idle", closed))),
        LazyTool("stuck", load=stuck),
    ]
    async with Assembly(tools) as assembly:
        assert outcome(await assembly.call("used")) == "ok"
        waiting = asyncio.create_task(assembly.call("stuck"))
        await ended(stuck.begun.wait())
    assert outcome(await ended(waiting)) == "not_available"
    assert closed == ["used"]


async def test_publishing_a_lazy_tool_again_keeps_it_loaded_and_its_policy_counts() -> None:
    pinned = Plain("pinned", "here")
    pinned.policy = Policy(exposure="always")  # type: ignore[attr-defined]
    loads = Loads(pinned)
    lazy = LazyTool("pinned", "Later", load=loads)
    async with Assembly([], dynamic=Dynamic()) as assembly:
        assembly.registry.publish("s", [lazy])
        session = assembly.session()
        assert session.turn().round().names == (SEARCH,)
        assert outcome(await assembly.call("pinned")) == "here"
        assert not assembly.registry.publish("s", [lazy])
        assert "pinned" in session.turn().round().names
        assert loads.count == 1


async def test_a_search_waits_for_a_load_that_is_under_way_and_begins_none_of_its_own() -> None:
    slow = Loads(Plain("atlas"), held=True)

    async def next_one() -> Any:
        slow.goes_on.set()  # begun only once the search waits for the better hit
        return cities

    tools = [LazyTool("atlas", "Maps, geography maps", load=slow), lazy_cities(next_one)]
    async with Assembly(tools, dynamic=Dynamic()) as assembly:
        calling = asyncio.create_task(assembly.call("atlas"))
        await ended(slow.begun.wait())
        found = await ended(search(assembly.session(), "geography maps"))
        assert found["exposed"] == ["atlas", "cities"]
        assert not (await ended(calling)).is_error
        assert slow.count == 1


async def test_a_plain_function_may_give_the_tool_later() -> None:
    loads = Loads(cities)
    async with Assembly([LazyTool("cities", load=lambda: loads())]) as assembly:
        assert str(await assembly.call("cities", country="Laos")) == "5 of Laos"


async def test_a_lazy_tool_is_a_tool_by_itself_until_it_is_closed() -> None:
    lazy = LazyTool("plain", "By hand", load=Loads(Plain("plain", "fine")))
    assert repr(lazy) == "<LazyTool 'plain', not loaded>"
    assert await lazy.execute(CallContext("plain"), "{}") == "fine"
    assert repr(lazy) == "<LazyTool 'plain', loaded>"
    never = LazyTool("never", load=Loads(Plain("never")))
    await never.aclose()
    with pytest.raises(NotAvailable, match="'never' was withdrawn"):
        await never.load()


async def test_a_load_that_runs_out_of_memory_ends_the_search_instead_of_being_no_hit() -> None:
    async def exhausts() -> Any:
        raise MemoryError

    async with Assembly([lazy_cities(exhausts)], dynamic=Dynamic()) as assembly:
        with pytest.raises(MemoryError):
            await ended(search(assembly.session(), "geography"))
