"""The loop: what is asked, what runs, what is kept in the transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from conftest import ended
from conversing import asks
from toolcrib import Assembly, CallContext, Dynamic, ToolCall, ToolDefinition, ToolLimits, tool
from toolcrib.loop import (
    CallsMade,
    ResultsCame,
    RoundBegan,
    ScriptedModel,
    TextCame,
    ToolLimitError,
    UndefinedTool,
    run,
)
from toolcrib.providers.history import Answers, Assistant, Message, User

RAN: list[str] = []


@tool
async def rename_branch(old: str, new: str) -> str:
    """Rename a git branch."""
    RAN.append(f"{old}->{new}")
    return f"renamed {old} to {new}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


SEARCH = asks(("tool_search", '{"query": "rename a git branch"}'), text="Let me look.")
RENAME = asks(("rename_branch", '{"old": "a", "new": "b"}'))


def asked() -> list[Message]:
    return [User.of("Call branch a b from now on.")]


async def test_progress_of_each_call_is_told_to_whoever_leads() -> None:
    @tool
    async def dig(*, ctx: CallContext) -> str:
        """Dig a hole."""
        ctx.progress(1, 2, "half")
        return "dug"

    told: list[tuple[str, float]] = []
    model = ScriptedModel(asks(("dig", "{}"), ("dig", "{}")), "Done.")
    async with Assembly([dig]) as tools:
        await run(
            tools.session(),
            model,
            asked(),
            on_progress=lambda one: told.append((one.call_id, one.current)),
        )
    (request,) = model.requests[1:]
    said = next(one for one in request[0] if isinstance(one, Assistant))
    assert sorted(told) == sorted((call.id, 1) for call in said.calls)


async def test_the_model_searches_calls_what_it_found_and_answers() -> None:
    model = ScriptedModel(SEARCH, RENAME, "Done.")
    messages = asked()
    events: list[Any] = []
    async with Assembly([rename_branch], dynamic=Dynamic()) as tools:
        said = await run(tools.session(), model, messages, on_event=events.append)
    assert said == Assistant("Done.")
    assert RAN == ["a->b"]
    assert [type(one).__name__ for one in messages] == [
        "User", "Assistant", "Answers", "Assistant", "Answers", "Assistant",
    ]  # fmt: skip
    assert isinstance(messages[4], Answers)
    assert messages[4].results[0].text == "renamed a to b"
    assert messages[4].results[0].call_id == "c0"
    assert [[d.name for d in sent] for _, sent in model.requests] == [
        ["tool_search"], ["tool_search", "rename_branch"], ["tool_search", "rename_branch"],
    ]  # fmt: skip
    kinds = [RoundBegan, TextCame, CallsMade, ResultsCame, RoundBegan, CallsMade, ResultsCame]
    assert [type(one) for one in events] == [*kinds, RoundBegan, TextCame]


async def test_A8_1_a_call_of_a_tool_that_was_not_sent_ends_the_run_and_runs_nothing() -> None:
    both = asks(("tool_search", '{"query": "x"}'), ("rename_branch", '{"old": "a", "new": "b"}'))
    messages = asked()
    async with Assembly([rename_branch], dynamic=Dynamic()) as tools:
        session = tools.session()
        with pytest.raises(UndefinedTool, match="rename_branch") as raised:
            await run(session, ScriptedModel(both), messages)
        assert raised.value.call == both.calls[1]
        assert session.view.pool.rounds == 0
    assert messages == asked()
    assert RAN == []


async def test_C15_a_model_that_never_stops_is_ended_by_the_limit_with_the_steps_before_kept() -> (
    None
):
    model = ScriptedModel(*[RENAME] * 9)
    messages = asked()
    async with Assembly([rename_branch], limits=ToolLimits(iterations=3)) as tools:
        with pytest.raises(ToolLimitError, match="3 rounds"):
            await run(tools.session(), model, messages)
    assert len(messages) == 1 + 3 * 2
    assert isinstance(messages[-1], Answers)
    assert len(RAN) == 3


async def test_C15_calls_are_counted_over_the_turn() -> None:
    two = asks(*[("rename_branch", '{"old": "a", "new": "b"}')] * 2)
    messages = asked()
    async with Assembly([rename_branch], limits=ToolLimits(calls=3)) as tools:
        with pytest.raises(ToolLimitError, match="calls"):
            await run(tools.session(), ScriptedModel(two, two), messages)
    assert len(RAN) == 2
    assert len(messages) == 3


async def test_C20_cancelled_in_a_batch_the_transcript_ends_with_the_last_whole_step() -> None:
    begun = asyncio.Event()

    @tool
    async def waits() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(RENAME, asks(("waits", "{}"), ("rename_branch", "{}")))
    messages = asked()
    async with Assembly([rename_branch, waits]) as tools:
        running = asyncio.create_task(run(tools.session(), model, messages))
        await ended(begun.wait())
        running.cancel()
        await asyncio.wait((running,), timeout=3)
        assert running.cancelled()
    assert len(messages) == 3
    assert isinstance(messages[-1], Answers)


async def test_a_failed_call_is_a_result_the_model_goes_on_from() -> None:
    def corrects(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> Assistant:
        answers = messages[-1]
        assert isinstance(answers, Answers)
        assert answers.results[0].is_error
        assert "new: Field required" in answers.results[0].text
        return RENAME

    model = ScriptedModel(asks(("rename_branch", '{"old": "a"}')), corrects, "Done.")
    async with Assembly([rename_branch]) as tools:
        await run(tools.session(), model, asked())
    assert RAN == ["a->b"]


async def test_what_the_model_raises_leaves_the_transcript_as_it_was() -> None:
    messages = asked()
    async with Assembly([rename_branch]) as tools:
        session = tools.session()
        with pytest.raises(IndexError):
            await run(session, ScriptedModel(RENAME), messages)
        assert len(messages) == 3
        assert (await run(session, ScriptedModel("Again."), messages)).text == "Again."


async def test_C13_a_refused_call_is_a_result_in_the_transcript_and_the_model_goes_on() -> None:
    async def never(call: ToolCall, definition: ToolDefinition) -> str:
        return f"{definition.name} is not wanted"

    messages = asked()
    model = ScriptedModel(RENAME, "Then not.")
    async with Assembly([rename_branch]) as tools:
        said = await run(tools.session(), model, messages, approve=never)
    assert said.text == "Then not."
    answers = model.requests[1][0][-1]
    assert isinstance(answers, Answers)
    assert [r.text for r in answers.results] == ["rename_branch is not wanted"]
    assert answers in messages
    assert RAN == []


async def test_C20_cancelled_while_somebody_is_asked_nothing_runs_and_nothing_is_appended() -> None:
    reached = asyncio.Event()

    async def asks_second(call: ToolCall, definition: ToolDefinition) -> str:
        if call.id == "c1":
            reached.set()
            await asyncio.Event().wait()
        return ""

    two = asks(*[("rename_branch", '{"old": "a", "new": "b"}')] * 2)
    messages = asked()
    async with Assembly([rename_branch]) as tools:
        session = tools.session()
        running = asyncio.create_task(
            run(session, ScriptedModel(two), messages, approve=asks_second)
        )
        await ended(reached.wait())
        running.cancel()
        await asyncio.wait((running,), timeout=3)
        assert running.cancelled()
        assert messages == asked()
        assert RAN == []
        assert (await run(session, ScriptedModel("Well."), messages)).text == "Well."


async def test_what_the_approver_raises_ends_the_run_and_leaves_the_transcript_as_it_was() -> None:
    async def fails(call: ToolCall, definition: ToolDefinition) -> str:
        raise OSError("nobody there")

    messages = asked()
    async with Assembly([rename_branch]) as tools:
        with pytest.raises(OSError, match="nobody there"):
            await run(tools.session(), ScriptedModel(RENAME), messages, approve=fails)
    assert messages == asked()
    assert RAN == []
