"""Budgets beyond the guide, when tools leave, and what a round reports of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Sized, outcome
from conversing import SEARCH, birds, searching, told
from toolcrib import (
    Assembly,
    Budget,
    Discovery,
    Dynamic,
    InvalidDefinition,
    Session,
    ToolCall,
    ToolDefinition,
    ToolLimits,
)
from toolcrib.discovery.tokens import Tokens


def accept(session: Session, rounds: int = 1) -> None:
    for _ in range(rounds):
        session.turn().round().accept()


async def test_searches_beyond_the_turns_limit_are_limited_each_for_itself() -> None:
    limits = ToolLimits(searches=2)
    async with Assembly(birds(3), dynamic=Dynamic(), limits=limits) as tools:
        session = tools.session()
        turn = session.turn()
        calls = [searching(f"bird_{at}", 1, f"s{at}") for at in range(3)]
        one, two, three = await turn.round().execute(calls)
        assert [told(one)["exposed"], told(two)["exposed"]] == [["bird_0"], ["bird_1"]]
        assert outcome(three) == "limited"
        assert "its 2 searches" in three.text
        (sung,) = await turn.round().execute([ToolCall("c", "bird_0")])
        assert outcome(sung) == "sings", "the turn goes on"
        assert turn.round().report().used.searches == 2
        (again,) = await session.turn().round().execute([searching("bird_2", 1)])
        assert told(again)["exposed"] == ["bird_2"], "another turn counts anew"


async def test_searches_of_one_round_take_in_no_more_new_tools_than_allowed() -> None:
    dynamic = Dynamic(discovery=Discovery(max_admitted=2))
    async with Assembly(birds(5), dynamic=dynamic) as tools:
        session = tools.session()
        turn = session.turn()
        one, two = await turn.round().execute(
            [searching("bird_0", 1, "a"), searching("bird", 4, "b")]
        )
        assert told(one)["exposed"] == ["bird_0"]
        found = told(two)
        assert found["exposed"] == ["bird_0", "bird_1"]
        assert found["failed"] == [
            {"name": "bird_2", "reason": "admission_budget"},
            {"name": "bird_3", "reason": "admission_budget"},
        ]
        report = turn.round().report()
        assert (report.admitted, report.max_admitted) == (2, 2)
        (more,) = await turn.round().execute([searching("bird", 4)])
        assert told(more)["exposed"] == ["bird_0", "bird_1", "bird_2", "bird_3"], "a new round"


async def test_a_token_budget_bounds_what_is_in_view_by_the_hosts_own_counter() -> None:
    asked: list[str] = []

    def counter(definition: ToolDefinition) -> int:
        asked.append(definition.name)
        return 10 if definition.name.startswith("bird") else 5

    budget = Budget(max_tokens=25, counter=counter)
    async with Assembly(birds(4), dynamic=Dynamic(budget=budget)) as tools:
        session = tools.session()
        turn = session.turn()
        (found,) = await turn.round().execute([searching("bird", 4)])
        assert told(found)["exposed"] == ["bird_0", "bird_1"]
        assert told(found)["failed"][0] == {"name": "bird_2", "reason": "visible_budget"}
        report = turn.round().report()
        assert (report.tokens, report.max_tokens, report.tokens_are) == (25, 25, "counted")
        assert report.waiting == ("bird_2", "bird_3")
        assert len(asked) == len(set(asked)), "each definition is counted once"


async def test_without_a_counter_tokens_are_an_estimate_and_labelled_so() -> None:
    async with Assembly([Sized("a", 400)]) as tools:
        report = tools.session().turn().round().report()
        assert (report.bytes, report.tokens, report.tokens_are) == (400, 100, "an estimate")
        assert (report.max_tokens, report.max_bytes) == (None, None)


async def test_a_report_says_what_of_the_prefix_was_kept() -> None:
    dynamic = Dynamic(always=["a"])
    tools_ = [Sized("a", 100), Sized("b", 200), Sized("c", 300)]
    async with Assembly(tools_, dynamic=dynamic) as tools:
        session = tools.session()
        turn = session.turn()
        first = turn.round().report()
        assert (first.prefix_bytes, first.added) == (0, ("a", SEARCH))
        session.discover("b", "c")
        second = turn.round().report()
        assert second.prefix_definitions == 2
        assert second.prefix_bytes == first.bytes
        assert second.added == ("b", "c")
        tools.registry.remove("b")
        tools.registry.replace(Sized("c", 301), "program")
        third = turn.round().report()
        assert (third.prefix_definitions, third.prefix_bytes) == (2, first.bytes)
        assert (third.dropped, third.changed) == (("b",), ("c",))
        same = turn.round().report()
        assert same.prefix_bytes == same.bytes == third.bytes
        assert json.loads(json.dumps(same.to_json()))["prefix_bytes"] == same.bytes


async def test_evict_pressure_lets_go_only_where_there_is_no_room_and_then_of_half() -> None:
    dynamic = Dynamic(discovery=Discovery(max_tools=4, idle_rounds=1, evict="pressure"))
    async with Assembly(birds(6), dynamic=dynamic) as tools:
        session = tools.session()
        session.discover(*(f"bird_{at}" for at in range(4)))
        accept(session, 30)
        assert session.turn().round().names == (SEARCH, *(f"bird_{at}" for at in range(4)))
        await session.call("bird_0")
        assert session.discover("bird_4").evicted == ("bird_1", "bird_2", "bird_3")
        assert session.turn().round().names == (SEARCH, "bird_0", "bird_4")
        tools.registry.remove("bird_0")
        accept(session)
        assert set(session.view.pool.tools) == {"bird_4"}
        assert session.discover("bird_1", "bird_2", "bird_3", "bird_5").evicted == ("bird_4",)


async def test_evict_never_in_turn_keeps_a_turns_prefix_and_lets_go_when_the_next_begins() -> None:
    dynamic = Dynamic(
        budget=Budget(max_definitions=3),
        discovery=Discovery(idle_rounds=1, evict="never-in-turn"),
    )
    async with Assembly(birds(4), dynamic=dynamic) as tools:
        session = tools.session()
        turn = session.turn()
        (found,) = await turn.round().execute([searching("bird", 2)])
        assert told(found)["exposed"] == ["bird_0", "bird_1"]
        for _ in range(5):
            turn.round().accept()
        (more,) = await turn.round().execute([searching("bird_2 bird_3", 2)])
        assert told(more)["failed"] == [
            {"name": "bird_2", "reason": "visible_budget"},
            {"name": "bird_3", "reason": "over_budget"},
        ]
        assert "evicted" not in told(more)
        assert turn.round().names == (SEARCH, "bird_0", "bird_1")
        following = session.turn()
        assert following.round().names == (SEARCH, "bird_2"), "what was idle has left"


async def test_a_requirement_does_not_break_a_turns_prefix_where_it_is_held() -> None:
    dynamic = Dynamic(budget=Budget(max_definitions=2), discovery=Discovery(evict="never-in-turn"))
    async with Assembly(birds(3), dynamic=dynamic) as tools:
        session = tools.session()
        session.discover("bird_0")
        turn = session.turn()
        assert turn.round().names == (SEARCH, "bird_0")
        session.require("bird_1")
        assert turn.round().names == (SEARCH, "bird_0")
        assert session.turn().round().names == (SEARCH, "bird_1")


@pytest.mark.parametrize(
    "wrong", [{"max_admitted": -1}, {"evict": "always"}, {"load_timeout": -1.0}]
)
def test_what_can_never_be_right_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDefinition, match=next(iter(wrong))):
        Discovery(**wrong)
    with pytest.raises(InvalidDefinition, match="no limit"):
        ToolLimits(searches=-1)


def test_a_counter_is_asked_once_for_each_definition_until_too_many_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.discovery.tokens.MAX_REMEMBERED", 2)
    asked: list[str] = []

    def counter(definition: ToolDefinition) -> int:
        asked.append(definition.name)
        return len(definition.name)

    tokens = Tokens(counter)
    for name in ("a", "bb", "a", "bb", "ccc", "ccc", "a"):
        assert tokens.of(ToolDefinition(name)) == len(name)
    assert asked == ["a", "bb", "ccc", "a"], "the third makes room by forgetting both"
