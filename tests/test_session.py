"""Sessions, turns and rounds: what is checked, counted and accepted (C15, DESIGN 4)."""

from __future__ import annotations

import asyncio

import pytest

from conftest import Plain, ended, outcome
from toolcrib import (
    UNLIMITED,
    Assembly,
    Dynamic,
    InvalidDefinition,
    Policy,
    ToolCall,
    ToolLimits,
    tool,
)


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(f"c{at}", name) for at, name in enumerate(names)]


async def test_a_static_session_shows_everything_but_the_hidden_by_name() -> None:
    policies = {"dark": Policy(exposure="hidden")}
    async with Assembly([Plain(n) for n in ("b", "a", "dark")], policies=policies) as tools:
        session = tools.session()
        session.require("dark")
        assert set(session.turn().round().names) == {"a", "b", "dark"}
        assert tools.session().turn().round().names == ("a", "b")


async def test_a_requirement_is_seen_in_the_next_round_of_a_static_session() -> None:
    policies = {"dark": Policy(exposure="hidden")}
    async with Assembly([Plain(n) for n in ("a", "dark")], policies=policies) as tools:
        session = tools.session()
        assert session.turn().round().names == ("a",)
        session.require("dark")
        assert session.turn().round().names == ("a", "dark")


async def test_a_static_session_appends_what_comes_later() -> None:
    async with Assembly([Plain("m")]) as tools:
        session = tools.session()
        assert session.turn().round().names == ("m",)
        tools.registry.add(Plain("a"))
        assert session.turn().round().names == ("m", "a")
        tools.registry.replace(Plain("m"), "program")
        assert session.turn().round().names == ("m", "a")
        assert tools.session().turn().round().names == ("a", "m")


async def test_A8_1_one_undefined_name_and_nothing_of_the_batch_runs() -> None:
    ran = Plain("ran", "ran")
    async with Assembly([ran, Plain("far")], dynamic=Dynamic(always=["ran"])) as tools:
        turn = tools.session().turn()
        current = turn.round()
        verdict = current.check(calls("ran", "far", "nowhere"))
        assert not verdict.accepted
        results = await current.execute(calls("ran", "far", "nowhere"))
    assert [outcome(r) for r in results] == ["cancelled", "undefined_tool", "undefined_tool"]
    assert "not run" in results[0].text
    assert "tool_search" in results[1].text
    assert "'far'" in results[1].text
    assert [r.call_id for r in results] == ["c0", "c1", "c2"]
    assert ran.got == []
    assert (turn.calls, turn.iterations, turn.closed) == (0, 0, False)


async def test_check_and_accept_change_nothing_where_the_response_is_invalid() -> None:
    async with Assembly([Plain("a")], dynamic=Dynamic()) as tools:
        session = tools.session()
        view = session.view
        current = session.turn().round()
        current.check(calls("tool_search"))
        current.accept(calls("a"))
        assert session.view.pool is view.pool
        assert current.check([]).accepted


async def test_the_hint_says_what_is_possible_without_a_search() -> None:
    async with Assembly([Plain("a")]) as tools:
        (result,) = await tools.session().turn().round().execute(calls("b"))
    assert "tool_search" not in result.text
    assert "use one of the tools" in result.text


async def test_a_round_checks_against_its_own_list_not_a_later_one() -> None:
    async with Assembly([Plain("a", "ran")], dynamic=Dynamic()) as tools:
        session = tools.session()
        early = session.turn().round()
        session.discover("a")
        late = session.turn().round()
        assert outcome((await early.execute(calls("a")))[0]) == "undefined_tool"
        assert outcome((await late.execute(calls("a")))[0]) == "ran"


async def test_C15_over_the_iterations_nothing_runs_and_the_turn_is_closed() -> None:
    plain = Plain("a", "ran")
    async with Assembly([plain], limits=ToolLimits(iterations=3)) as tools:
        session = tools.session()
        turn = session.turn()
        for _ in range(3):
            assert outcome((await turn.round().execute(calls("a")))[0]) == "ran"
        results = await turn.round().execute(calls("a", "a"))
        assert [outcome(r) for r in results] == ["limited", "limited"]
        assert "3" in results[0].text
        assert turn.closed
        assert outcome((await turn.round().execute(calls("a")))[0]) == "limited"
        assert len(plain.got) == 3
        assert outcome((await session.turn().round().execute(calls("a")))[0]) == "ran"


async def test_C15_over_the_calls_nothing_of_the_batch_runs() -> None:
    plain = Plain("a", "ran")
    async with Assembly([plain]) as tools:
        turn = tools.session().turn(ToolLimits(calls=5))
        assert [outcome(r) for r in await turn.round().execute(calls(*"aaa"))] == ["ran"] * 3
        assert [outcome(r) for r in await turn.round().execute(calls(*"aaa"))] == ["limited"] * 3
        assert turn.closed
    assert len(plain.got) == 3


async def test_C15_failed_calls_and_searches_count_and_text_only_answers_do_not() -> None:
    async with Assembly([Plain("a", "ran")], dynamic=Dynamic(always=["a"])) as tools:
        turn = tools.session().turn(ToolLimits(calls=3, iterations=2))
        for _ in range(10):
            assert turn.round().accept().accepted
            assert await turn.round().execute([]) == []
        bad = [ToolCall("1", "a", "not json"), ToolCall("2", "tool_search", '{"query": "a"}')]
        assert outcome((await turn.round().execute(bad))[0]) == "invalid_arguments"
        assert (turn.calls, turn.iterations) == (2, 1)
        assert outcome((await turn.round().execute(calls("a")))[0]) == "ran"
        assert outcome((await turn.round().execute(calls("a")))[0]) == "limited"


def test_C3_zero_is_the_default_and_a_negative_limit_is_refused() -> None:
    assert ToolLimits() == ToolLimits(25, 100, 8)
    assert ToolLimits(0, 0, 0) == ToolLimits()
    assert ToolLimits(UNLIMITED, UNLIMITED).iterations == UNLIMITED
    for wrong in ({"iterations": -1}, {"calls": -5}, {"parallel": -1}, {"parallel": UNLIMITED}):
        with pytest.raises(InvalidDefinition, match=next(iter(wrong))):
            ToolLimits(**wrong)


async def test_C15_unlimited_lifts_iterations_and_calls() -> None:
    async with Assembly([Plain("a", "ran")]) as tools:
        turn = tools.session().turn(ToolLimits(UNLIMITED, UNLIMITED))
        for _ in range(120):
            assert outcome((await turn.round().execute(calls("a")))[0]) == "ran"


async def test_a_turn_that_was_left_takes_no_more_calls() -> None:
    async with Assembly([Plain("a", "ran")]) as tools:
        async with tools.session().turn() as turn:
            current = turn.round()
        assert outcome((await current.execute(calls("a")))[0]) == "limited"


async def test_T_C2_the_same_call_id_twice_has_two_results() -> None:
    async with Assembly([Plain("a", "ran")]) as tools:
        same = [ToolCall("x", "a"), ToolCall("x", "a")]
        results = await tools.session().turn().round().execute(same)
    assert [(r.call_id, outcome(r)) for r in results] == [("x", "ran")] * 2


async def test_a_failing_call_does_not_stop_its_siblings() -> None:
    go = asyncio.Event()

    async def wait(ctx: object, arguments: str) -> str:
        await go.wait()
        return "waited"

    async def fail(ctx: object, arguments: str) -> str:
        go.set()
        raise RuntimeError

    async with Assembly([Plain("wait", wait), Plain("fail", fail)]) as tools:
        batch = tools.session().turn().round().execute(calls("wait", "fail", "wait"))
        results = await ended(batch)
    assert [outcome(r) for r in results] == ["waited", "internal", "waited"]


async def test_a_fault_that_must_not_be_contained_ends_the_batch_and_the_others_are_cancelled() -> (
    None
):
    log: list[str] = []
    begun = asyncio.Event()

    async def wait(ctx: object, arguments: str) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cancelled")
        return ""

    async def exhaust(ctx: object, arguments: str) -> str:
        await begun.wait()
        raise MemoryError

    async with Assembly([Plain("wait", wait), Plain("exhaust", exhaust)]) as tools:
        with pytest.raises(MemoryError):
            await ended(tools.session().turn().round().execute(calls("wait", "exhaust")))
    assert log == ["cancelled"]


async def test_a_rounds_cost_is_that_of_its_definitions() -> None:
    async with Assembly([Plain("a", description="d" * 100)]) as tools:
        current = tools.session().turn().round()
        (definition,) = current.definitions
    assert current.bytes == definition.wire_bytes
    assert current.tokens == definition.wire_bytes // 4


async def test_what_a_session_may_call_is_what_its_principal_may() -> None:
    @tool(scopes={"s"})
    async def mine() -> str:
        return "mine"

    async with Assembly([mine]) as tools:
        session = tools.session()
        session.require("mine")
        assert session.turn().round().names == ()
        assert outcome(await session.call("mine")) == "not_found"


async def test_a_search_result_a_middleware_added_to_still_tells_what_the_next_round_sends() -> (
    None
):
    """The promise of A5.11 does not end where a middleware adds a note."""
    from collections.abc import Awaitable, Callable
    from typing import Any

    from toolcrib import DataPart, Discovery, TextPart, ToolResult

    async def note(invocation: Any, call_next: Callable[[Any], Awaitable[ToolResult]]) -> Any:
        result = await call_next(invocation)
        return ToolResult((*result.content, TextPart("note")), result.failure, result.value)

    dynamic = Dynamic(discovery=Discovery(max_tools=1))
    async with Assembly([Plain("a1"), Plain("b1")], dynamic=dynamic, middlewares=[note]) as tools:
        session = tools.session()
        asked = [
            ToolCall("1", "tool_search", '{"query": "a1", "limit": 1}'),
            ToolCall("2", "tool_search", '{"query": "b1", "limit": 1}'),
        ]
        results = await session.turn().round().execute(asked)
        sent = session.turn().round().names
    for result in results:
        (data,) = [part for part in result.content if isinstance(part, DataPart)]
        assert set(data.value.get("exposed", [])) <= set(sent)
