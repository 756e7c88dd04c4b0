"""A conversation goes on elsewhere: from its saved state, or from its transcript alone (TS06)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Plain, outcome
from toolcrib import (
    Assembly,
    DataPart,
    Discovery,
    Dynamic,
    InvalidDefinition,
    NotAvailable,
    Session,
    TextPart,
    ToolCall,
    ToolLimits,
    ToolResult,
)
from toolcrib.loop import ScriptedModel, run
from toolcrib.providers.history import Answers, Assistant, Message, User

SEARCH = "tool_search"
DYNAMIC = Dynamic(always=["clock"], discovery=Discovery(idle_rounds=2))


def tools_() -> list[Plain]:
    birds = [Plain(f"bird_{at}", "sings", description="A bird") for at in range(4)]
    return [*birds, Plain("clock", "noon"), Plain("dark", "x", description="Night")]


def calling(*calls: tuple[str, str]) -> Assistant:
    return Assistant(calls=tuple(ToolCall(f"c{at}", *call) for at, call in enumerate(calls)))


def searching(query: str, limit: int = 2) -> tuple[str, str]:
    return SEARCH, json.dumps({"query": query, "limit": limit})


async def talk(session: Session, messages: list[Message]) -> None:
    """Two user turns: a search, a call of what it found and of what is always there, an answer."""
    messages.append(User.of("Which birds are there?"))
    first = ScriptedModel(
        calling(searching("bird")), calling(("bird_1", "{}"), ("clock", "{}")), "Two."
    )
    await run(session, first, messages)
    messages.append(User.of("And at night?"))
    await run(session, ScriptedModel(calling(searching("night")), "One."), messages)


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """As a store that knows only floats gives it back (trap T-A19)."""

    def floats(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: floats(one) for key, one in value.items()}
        if isinstance(value, list):
            return [floats(one) for one in value]
        return float(value) if isinstance(value, int) else value

    found: dict[str, Any] = json.loads(json.dumps(floats(state)))
    return found


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


async def test_the_state_goes_on_ageing_where_it_was() -> None:
    async with Assembly(tools_(), dynamic=DYNAMIC) as tools:
        session = tools.session()
        session.discover("bird_0")
        session.turn().round().accept()
        resumed = tools.resume(through_json(session.state()))
        resumed.turn().round().accept()
        assert "bird_0" in resumed.turn().round().names
        resumed.turn().round().accept()
        assert "bird_0" not in resumed.turn().round().names


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


def as_text(message: Message) -> Message:
    if not isinstance(message, Answers):
        return message
    return Answers(
        tuple(
            ToolResult(
                tuple(
                    TextPart(json.dumps(part.value)) if isinstance(part, DataPart) else part
                    for part in result.content
                ),
                call_id=result.call_id,
            )
            for result in message.results
        )
    )


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
            calling(("dark", "{}")),
            calling(searching("bird")),
            calling(("bird_0", "{}")),
            calling(("clock", "{}")),
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
