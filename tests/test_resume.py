"""A conversation goes on elsewhere: from its saved state, or from its transcript alone (TS06)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Plain, outcome
from conversing import SEARCH, Loads, asks, birds, reasons, searching, through_json, told
from toolcrib import (
    Assembly,
    DataPart,
    Discovery,
    Dynamic,
    InvalidDefinition,
    LazyTool,
    NotAvailable,
    Session,
    TextPart,
    ToolCall,
    ToolLimits,
    ToolResult,
)
from toolcrib.loop import ScriptedModel, run
from toolcrib.providers.history import Answers, Message, User

DYNAMIC = Dynamic(always=["clock"], discovery=Discovery(idle_rounds=2))


def tools_() -> list[Plain]:
    return [*birds(4), Plain("clock", "noon"), Plain("dark", "x", description="Night")]


def finding(query: str) -> tuple[str, str]:
    return SEARCH, searching(query, 2).arguments


async def talk(session: Session, messages: list[Message]) -> None:
    """Two user turns: a search, a call of what it found and of what is always there, an answer."""
    messages.append(User.of("Which birds are there?"))
    first = ScriptedModel(asks(finding("bird")), asks(("bird_1", "{}"), ("clock", "{}")), "Two.")
    await run(session, first, messages)
    messages.append(User.of("And at night?"))
    await run(session, ScriptedModel(asks(finding("night")), "One."), messages)


async def test_a_resumed_session_sends_byte_for_byte_what_the_first_would_have_sent() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as here:
        session = here.session()
        await talk(session, [])
        session.require("bird_3")
        state = through_json(session.state())
        after = session.turn().round()
        async with Assembly(reversed(tools_()), dynamic=DYNAMIC) as there:
            resumed = there.resume(state)
            assert resumed.turn().round().names == after.names
            assert [d.schema_json for d in resumed.turn().round().definitions] == [
                d.schema_json for d in after.definitions
            ]
            assert resumed.state() == session.state()
            assert outcome(await resumed.call("bird_3")) == "sings"


async def test_what_is_gone_meanwhile_is_not_sent_and_not_an_error() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        session = tools.session()
        session.discover("bird_0", "bird_1")
        state = session.state()
        tools.registry.remove("bird_0")
        assert tools.resume(state).turn().round().names == ("clock", SEARCH, "bird_1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version 2"),
        ({"version": None}, "None"),
        ({"tools": {"a": [1, 2]}}, "last use, touch, rank"),
        ({"tools": {"a": [1, 2, "3"]}}, "'3'"),
        ({"tools": [1]}, "list"),
        ({"rounds": 1.5}, "1.5"),
        ({"rounds": float("inf")}, "inf"),
        ({"rounds": -1}, "negative"),
        ({"rounds": True}, "True"),
        ({"sent": ["a", "a"]}, "once"),
        ({"sent": [1]}, "texts"),
        ({"sent": "abc"}, "str"),
        ({"sent": [f"tool_{at}" for at in range(100_001)]}, "100001 names are more than 100000"),
        ({"touches": 2, "tools": {"a": [0, 2, 0], "b": [0, 2, 1]}}, "two tools with one touch"),
        ({"required": {"a": None}}, "None"),
    ],
)
async def test_anything_that_is_no_saved_state_is_refused(
    change: dict[str, Any], says: str
) -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        state = tools.session().state()
        with pytest.raises(InvalidDefinition, match="no saved state") as caught:
            tools.resume({**state, **change})
        assert says in str(caught.value)
        del state["sent"]
        with pytest.raises(InvalidDefinition, match="'sent' is missing"):
            tools.resume(state)


@pytest.mark.parametrize("evict", ["idle", "pressure", "never-in-turn"])
async def test_TS06_what_a_transcript_shows_is_the_state_that_was(evict: Any) -> None:
    dynamic = Dynamic(always=["clock"], discovery=Discovery(idle_rounds=2, evict=evict))
    async with Assembly(tools_(), dynamic=dynamic) as tools:
        session, messages = tools.session(), list[Message]()
        await talk(session, messages)
        derived = tools.resume_from(messages)
        assert derived.state() == session.state()
        assert derived.turn().round().names == session.turn().round().names


async def test_a_search_answer_that_became_text_is_still_read() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        session, messages = tools.session(), list[Message]()
        await talk(session, messages)
        plain = [as_text(message) for message in messages]
        assert plain != messages
        assert tools.resume_from(plain).state() == session.state()


def as_text(message: Message, *before: str) -> Message:
    """As a store keeps it that knows only texts; `before` stand in front of each result."""
    if not isinstance(message, Answers):
        return message
    prose = tuple(map(TextPart, before))
    return Answers(
        tuple(
            ToolResult(
                (
                    *prose,
                    *(
                        TextPart(json.dumps(part.value)) if isinstance(part, DataPart) else part
                        for part in result.content
                    ),
                ),
                call_id=result.call_id,
            )
            for result in message.results
        )
    )


async def test_prose_and_other_json_in_front_of_a_search_answer_do_not_hide_it() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        session, messages = tools.session(), list[Message]()
        await talk(session, messages)
        noted = [as_text(message, "Found these:", "7") for message in messages]
        assert tools.resume_from(noted).state() == session.state()


async def test_of_a_search_answer_that_was_cut_nothing_is_taken_in() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        cut = ToolResult((TextPart('{"query": "bird", "hits": [{"name": "bi…'),), call_id="c0")
        derived = tools.resume_from([asks(finding("bird")), Answers((cut,))])
        assert (derived.view.pool.rounds, dict(derived.view.pool.tools)) == (1, {})


async def test_what_a_search_did_not_take_in_is_not_in_the_pool_though_its_answer_is_text() -> None:
    gone = Loads(None)
    gone.fails = True
    dynamic = Dynamic(discovery=Discovery(max_admitted=1))
    broken = LazyTool("bird_9", "A bird", load=gone)
    async with Assembly([*birds(3), broken], dynamic=dynamic) as tools:
        session = tools.session()
        said = asks((SEARCH, '{"query": "bird"}'))
        results = await session.turn().round().execute(said.calls)
        assert reasons(told(results[0])) == {
            "bird_1": "admission_budget",
            "bird_2": "admission_budget",
            "bird_9": "load_failed",
        }
        for answers in (Answers(tuple(results)), as_text(Answers(tuple(results)))):
            derived = tools.resume_from([said, answers])
            assert set(derived.view.pool.tools) == {"bird_0"}
            assert derived.state() == session.state()


async def test_a_call_without_a_result_and_a_result_without_a_call_touch_nothing() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        sung = (TextPart("sings"),)
        answers = Answers((ToolResult(sung, call_id="c1"), ToolResult(sung, call_id="x")))
        derived = tools.resume_from([asks("bird_0", "bird_1", "bird_2"), answers])
        assert set(derived.view.pool.tools) == {"bird_1"}


async def test_TS06_after_a_compaction_the_session_still_has_what_was_revealed() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        session, messages = tools.session(), list[Message]()
        await talk(session, messages)
        before = session.turn().round().names
        messages[:] = [User.of("(a summary of what was said)")]
        assert session.turn().round().names == before, "nothing is read from the history"
        derived = tools.resume_from(messages)
        assert "dark" not in derived.turn().round().names
        (result,) = await derived.turn().round().execute([ToolCall("c", "dark")])
        assert outcome(result) == "undefined_tool"
        assert SEARCH in result.text, "it says how to reveal it"


async def test_refused_and_limited_steps_of_a_transcript_count_for_nothing() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC, limits=ToolLimits(calls=1)) as tools:
        session, messages = tools.session(), list[Message]()
        turn = session.turn()
        for said in (
            asks(("dark", "{}")),
            asks(finding("bird")),
            asks(("bird_0", "{}")),
            asks(("clock", "{}")),
        ):
            results = await turn.round().execute(said.calls)
            messages += [said, Answers(tuple(results))]
        assert [outcome(m.results[0]) for m in messages if isinstance(m, Answers)][2:] == [
            "limited",
            "limited",
        ]
        assert tools.resume_from(messages).state() == session.state()


async def test_a_static_assembly_has_no_state_to_derive() -> None:
    async with Assembly(tools_()) as tools:
        with pytest.raises(NotAvailable):
            tools.resume_from([])
