"""What servers ask, relayed to the host of the session it is for; refused where there is none.

Before 2026-07-28 a server asks on its own, since then in its answers: "legacy" and "modern".
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from servers.http_peer import JSON, STREAM, Peer, event, peer, reply
from servers.support import BOUND, HERE, QUICK, Host, children, hosting, raw, source, until
from toolcrib import Assembly
from toolcrib.answers import completed, misfits
from toolcrib.content import ImagePart, TextPart, ToolCall, ToolResult
from toolcrib.errors import InvalidDefinition
from toolcrib.host import (
    CANCELLED,
    DECLINED,
    Elicitation,
    ElicitationAnswer,
    Root,
    SamplingAnswer,
    SamplingRequest,
    abilities_of,
    accepted,
)
from toolcrib.policy import Policies, Policy
from toolcrib.sources.mcp import McpServer, McpSource
from toolcrib.sources.mcp.asking.questions import (
    Asker,
    Caller,
    Refused,
    capabilities,
    elicitation,
    sampled,
    sampling,
)
from toolcrib.sources.mcp.calls.clock import Clock
from toolcrib.sources.mcp.settings import ServerSettings

ERAS = ["legacy", "modern"]
ALL = frozenset({"elicit", "sample", "roots"})

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "mail": {"type": "string", "format": "email"},
        "seats": {"type": "integer", "default": 2, "maximum": 9},
    },
    "required": ["name"],
}
ASK = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
ERRAND = {"mode": "url", "message": "Sign in", "url": "https://x.test/a?b=1", "elicitationId": "1"}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
        "maxTokens": 50,
        "systemPrompt": "be brief",
        "temperature": 0.5,
        "stopSequences": ["."],
        "modelPreferences": {"hints": [{"name": "small"}, {"name": "large"}]},
    },
}
ROOTS = {"method": "roots/list"}


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


class Person:
    """A host that can only elicit; `answer` is what it says, or does."""

    def __init__(self, answer: Any = DECLINED) -> None:
        self.answer = answer
        self.asked: list[Elicitation] = []
        self.given_up = 0

    async def elicit(self, question: Elicitation) -> ElicitationAnswer:
        self.asked.append(question)
        try:
            return await self.answer() if callable(self.answer) else self.answer
        except asyncio.CancelledError:
            self.given_up += 1
            raise


class Model:
    """A host that can only sample."""

    def __init__(self, answer: SamplingAnswer | None) -> None:
        self.answer = answer
        self.asked: list[SamplingRequest] = []

    async def sample(self, request: SamplingRequest) -> SamplingAnswer | None:
        self.asked.append(request)
        return self.answer


class Place:
    """A host that only has roots."""

    async def roots(self) -> list[Root]:
        return [Root("file:///work"), Root("file:///data", "Data")]


@dataclass(frozen=True)
class Conversation:
    host: Any = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


async def never() -> Any:
    await asyncio.Event().wait()


async def stopped(clock: Clock) -> None:
    with clock.stopped():
        await never()


async def fails() -> Any:
    raise ValueError("s3" + "cret")


def settings(**given: Any) -> dict[str, Any]:
    return {"settings": ServerSettings(**{"reconnect_wait": 0.0, **given})}


def asking(era: str, abilities: Any = ALL, flags: Any = (), **given: Any) -> McpSource:
    return source(raw(era=era, declared=settings(**given), **dict(flags)), abilities=abilities)


async def call(
    at: Host, host: Any, tool: str, *, deadline: float | None = None, **arguments: Any
) -> ToolResult:
    wanted = ToolCall("call-1", tool, json.dumps(arguments))
    async with asyncio.timeout(BOUND):
        return await at.executor.execute(wanted, session=Conversation(host), deadline=deadline)


async def said(at: Host, host: Any, **arguments: Any) -> Any:
    """What the server was answered: a result, or an error; or why the call failed."""
    result = await call(at, host, "raw__want", **arguments)
    if result.failure:
        return str(result)
    told = json.loads(str(result))
    return told if isinstance(told, dict) else {"result": told[-1]["inputResponses"]["k"]}


# -- pure


def test_what_a_host_can_do_is_what_it_has_methods_for():
    assert abilities_of(None) == abilities_of(object()) == frozenset()
    assert abilities_of(Person()) == {"elicit"}
    assert abilities_of(Model(None)) == {"sample"}
    assert abilities_of(Place()) == {"roots"}
    assert capabilities(()) == {}
    told = capabilities(ALL)
    assert told == {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


def test_SEP_1034_a_field_left_out_takes_its_default_and_no_other_does():
    question = Elicitation("s", "?", FORM)
    assert completed(question, {"name": "Ana"}) == {"name": "Ana", "seats": 2}
    assert completed(question, {"seats": 3}) == {"seats": 3}
    assert completed(Elicitation("s", "?", {"properties": 7}), {}) == {}


def test_an_answer_is_checked_and_the_words_repeat_nothing_of_it():
    question = Elicitation("s", "?", FORM)
    assert misfits(question, {"name": "Ana", "mail": "a@b.test"}) == []
    for wrong in (
        {},
        {"name": "s"},
        {"name": "Ana", "mail": "s3cret"},
        {"name": "Ana", "more": "s3cret"},
        {"name": "Ana", "seats": 10},
    ):
        words = misfits(question, wrong)
        assert words
        assert "s3cret" not in str(words)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"message": "?", "requestedSchema": {"type": "string"}},
        {"message": "?", "requestedSchema": {"type": "object"}},
        {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": 1}}}},
        {"message": "?", "mode": "smoke", "requestedSchema": FORM},
        {"message": "?", "mode": "url"},
        {"message": "?", "mode": "url", "url": "javascript:alert(1)"},
        {"message": "?", "mode": "url", "url": "file:///etc/passwd"},
        {"message": "?", "mode": "url", "url": "https://[x"},
    ],
)
def test_a_question_that_cannot_be_put_is_refused(params: dict[str, Any]):
    with pytest.raises(Refused):
        elicitation(Asker("s"), Caller(None), params)


@pytest.mark.parametrize(
    "wrong",
    [
        {"maxTokens": 0},
        {"maxTokens": True},
        {"maxTokens": None},
        {"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]},
        {"messages": [7]},
        {"tools": [{"name": "t"}]},
        {"toolChoice": {"mode": "required"}},
    ],
)
def test_sampling_that_was_not_offered_is_refused(wrong: dict[str, Any]):
    with pytest.raises(Refused):
        sampling(Asker("s"), Caller(None), {**SAMPLE["params"], **wrong})  # type: ignore[dict-item]


def test_an_image_of_a_model_is_sent_as_one():
    wire = sampled(SamplingAnswer(ImagePart(b"\x89PNG", "image/png"), "m", "maxTokens"))
    assert wire["content"] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    assert wire["stopReason"] == "maxTokens"


def test_a_root_is_a_file():
    with pytest.raises(InvalidDefinition, match="file://"):
        Root("https://x.test")


@pytest.mark.parametrize("wrong", [{"ask_timeout": 0}, {"input_rounds": 0}])
def test_what_the_settings_cannot_be(wrong: dict[str, Any]):
    with pytest.raises(InvalidDefinition):
        ServerSettings(**wrong)


async def test_a_clock_that_is_stopped_runs_to_its_deadline_only():
    now = time.monotonic()
    async with Clock(now + 0.001, 0.001):
        clock = Clock(now + 0.001, 0.001)
    clock = Clock(time.monotonic() + 0.01, 0.01)
    begun = asyncio.get_running_loop()
    done = begun.create_future()
    begun.call_later(0.05, done.set_result, None)
    async with clock:
        with clock.stopped():
            with clock.stopped():
                await done  # five times as long as it has
            clock.alive()
        assert 0.0 < clock.left < 0.02
    with pytest.raises(TimeoutError):
        async with Clock(now + 60.0, None, time.monotonic() + 0.01) as _:
            await never()
    late = Clock(now + 60.0, 60.0, time.monotonic() + 0.01)
    with pytest.raises(TimeoutError):
        async with late:
            await stopped(late)
    assert "did not answer" in late.why


# -- both eras


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_reaches_the_host_and_its_answer_the_server(era: str):
    person = Person(accepted({"name": "Ana"}))
    async with hosting(asking(era)) as at:
        answer = await said(at, person, **ASK)
        assert answer == {"result": {"action": "accept", "content": {"name": "Ana", "seats": 2}}}
    assert person.asked == [Elicitation("raw", "Who?", FORM, "", "raw__want", "call-1")]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [DECLINED, CANCELLED])
async def test_no_is_said_without_values(era: str, answer: ElicitationAnswer):
    async with hosting(asking(era)) as at:
        person = Person(ElicitationAnswer(answer.action, {"name": "s3cret"}))
        assert await said(at, person, **ASK) == {"result": {"action": answer.action}}


@pytest.mark.parametrize("era", ERAS)
async def test_an_errand_is_agreed_to_and_nothing_else(era: str):
    person = Person(accepted({"name": "s3cret"}))
    async with hosting(asking(era)) as at:
        answer = await said(at, person, method="elicitation/create", params=ERRAND)
        assert answer == {"result": {"action": "accept"}}
    assert person.asked[0].url == "https://x.test/a?b=1"
    assert not person.asked[0].schema


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_is_asked(era: str):
    model = Model(SamplingAnswer(TextPart("hi"), "small-1"))
    async with hosting(asking(era)) as at:
        answer = (await said(at, model, **SAMPLE))["result"]
    assert answer["content"] == {"type": "text", "text": "hi"}
    assert (answer["role"], answer["model"], answer["stopReason"]) == (
        "assistant",
        "small-1",
        "endTurn",
    )
    (asked,) = model.asked
    assert asked.messages[0].content == (TextPart("hello"),)
    assert (asked.max_tokens, asked.system_prompt, asked.temperature) == (50, "be brief", 0.5)
    assert (asked.hints, asked.stop_sequences) == (("small", "large"), (".",))


@pytest.mark.parametrize("era", ERAS)
async def test_roots_are_told(era: str):
    async with hosting(asking(era)) as at:
        answer = await said(at, Place(), **ROOTS)
    told = [{"uri": "file:///work"}, {"uri": "file:///data", "name": "Data"}]
    assert answer == {"result": {"roots": told}}


async def test_a_legacy_server_is_told_at_connecting_what_hosts_can_be_asked():
    async with hosting(asking("legacy", {"elicit"})) as at:
        told = json.loads(str(await call(at, None, "raw__hello")))["capabilities"]
        assert told == {"elicitation": {"form": {}, "url": {}}}
    async with hosting(asking("legacy", ())) as at:
        assert json.loads(str(await call(at, None, "raw__hello")))["capabilities"] == {}
        person = Person(accepted({"name": "Ana"}))
        assert "not supported" in (await said(at, person, **ASK))["error"]["message"]
        assert person.asked == []


async def test_a_modern_server_is_told_with_each_call_what_its_own_host_can_be_asked():
    async with hosting(asking("modern", ())) as at:

        async def told(host: Any) -> Any:
            meta = json.loads(str(await call(at, host, "raw__meta")))
            return meta["io.modelcontextprotocol/clientCapabilities"]

        assert await told(None) == {}
        assert await told(Person()) == {"elicitation": {"form": {}, "url": {}}}
        assert await told(Model(None)) == {"sampling": {}}


async def test_a_legacy_server_is_refused_where_the_session_has_no_host():
    async with hosting(asking("legacy")) as at:
        assert await said(at, None, **ASK) == {"result": {"action": "decline"}}
        assert "nobody here" in (await said(at, None, **SAMPLE))["error"]["message"]
        assert "nobody here" in (await said(at, Person(), **ROOTS))["error"]["message"]
        assert await said(at, Model(None), **ASK) == {"result": {"action": "decline"}}


@pytest.mark.parametrize("host", [None, Model(None)])
async def test_a_modern_server_that_asks_what_it_must_not_ends_its_call(host: Any):
    async with hosting(asking("modern")) as at:
        result = await call(at, host, "raw__want", **ASK)
        assert result.failure
        assert result.failure.kind == "tool_error"
        assert "nobody" in str(result)


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_does_not_let_its_model_be_asked(era: str):
    async with hosting(asking(era)) as at:
        answer = await said(at, Model(None), **SAMPLE)
        assert "does not let its model be asked" in str(answer)
        if era == "legacy":
            assert answer["error"]["code"] == -1


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_fails_has_cancelled_and_its_secrets_are_in_no_log(
    era: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    async with hosting(asking(era)) as at:
        assert await said(at, Person(fails), **ASK) == {"result": {"action": "cancel"}}
        assert await said(at, Person("yes"), **ASK) == {"result": {"action": "cancel"}}
        wrong: Any = SamplingAnswer("text", "m")  # type: ignore[arg-type]
        assert "gave no answer" in str(await said(at, Model(wrong), **SAMPLE))
    assert "ValueError" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_that_does_not_fit_is_not_sent(era: str, caplog: pytest.LogCaptureFixture):
    async with hosting(asking(era)) as at:
        for wrong in ({"name": "Ana", "mail": "s3cret"}, {}, {"name": {1, 2}}):
            person = Person(accepted(wrong))
            assert await said(at, person, **ASK) == {"result": {"action": "cancel"}}
    assert "mail" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("value", [float("nan"), b"x", "\ud800", {1}])
async def test_an_answer_that_JSON_cannot_hold_costs_no_more_than_itself(era: str, value: Any):
    schema = {"type": "object", "properties": {"any": {}}}
    asked = {"message": "?", "requestedSchema": schema}
    async with hosting(asking(era)) as at:
        person = Person(accepted({"any": value}))
        answer = await said(at, person, method="elicitation/create", params=asked)
        assert answer == {"result": {"action": "cancel"}}
        assert at.health().attempts == 1


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_that_fits_is_in_no_log(era: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "toolcrib")
    person = Person(accepted({"name": "s3cret"}))
    async with hosting(asking(era)) as at:
        assert "s3cret" in str(await said(at, person, **ASK))
    assert "s3cret" not in repr(person.answer)
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("toolcrib")]
    assert not any("s3cret" in line for line in ours)


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_never_answers_has_cancelled(era: str):
    person = Person(never)
    async with hosting(asking(era, ask_timeout=0.05)) as at:
        assert await said(at, person, **ASK) == {"result": {"action": "cancel"}}
    assert person.given_up == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_does_not_even_end_is_left_behind(era: str):
    release = asyncio.Event()

    async def stubborn() -> ElicitationAnswer:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return DECLINED

    async with hosting(asking(era, ask_timeout=0.05)) as at:
        assert await said(at, Person(stubborn), **ASK) == {"result": {"action": "cancel"}}
        release.set()


@pytest.mark.parametrize("era", ERAS)
async def test_waiting_for_a_person_is_no_time_of_the_server(era: str):
    loop = asyncio.get_running_loop()

    async def slow() -> ElicitationAnswer:
        done = loop.create_future()
        loop.call_later(0.5, done.set_result, None)
        await done
        return accepted({"name": "Ana"})

    async with hosting(asking(era, call_timeout=0.4, idle_timeout=0.3)) as at:
        assert (await said(at, Person(slow), **ASK))["result"]["action"] == "accept"


@pytest.mark.parametrize("era", ERAS)
async def test_the_callers_deadline_goes_on_meanwhile(era: str):
    person = Person(never)
    async with hosting(asking(era)) as at:
        late = time.monotonic() + 0.2
        result = await call(at, person, "raw__want", deadline=late, **ASK)
        assert result.failure
        assert result.failure.kind == "timeout"
        await until(lambda: person.given_up)
        assert str(await call(at, None, "raw__echo", text="on")) == "on"


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_asks_no_longer(era: str):
    person = Person(never)
    async with hosting(asking(era)) as at:
        wanted = asyncio.create_task(call(at, person, "raw__want", **ASK))
        await until(lambda: person.asked)
        wanted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wanted
        await until(lambda: person.given_up)
        assert str(await call(at, None, "raw__echo", text="on")) == "on"
        assert at.health().attempts == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_dies_while_a_person_is_asked(era: str):
    person = Person(never)
    async with hosting(asking(era)) as at:
        process = await at.pid()
        wanted = asyncio.create_task(call(at, person, "raw__want", **ASK))
        await until(lambda: person.asked)
        os.kill(process, signal.SIGKILL)
        if era == "legacy":
            result = await wanted
            assert result.failure
            assert result.failure.kind == "outcome_unknown"
            await until(lambda: person.given_up)
        else:  # it waits for nothing: its question stands
            await at.ready()
            wanted.cancel()
            await asyncio.wait((wanted,))


@pytest.mark.parametrize("era", ERAS)
async def test_two_sessions_are_each_asked_their_own(era: str):
    hosts = [Person(accepted({"name": name})) for name in ("Ana", "Ben")]
    async with hosting(asking(era)) as at:
        for host, name in zip(hosts, ("Ana", "Ben"), strict=True):
            assert (await said(at, host, **ASK))["result"]["content"]["name"] == name
    assert [len(host.asked) for host in hosts] == [1, 1]


@pytest.mark.parametrize("era", ERAS)
async def test_secrets_that_were_declared_are_not_shown_to_a_person(era: str):
    person = Person()
    declared = {**settings(), "env": {"TOKEN": "t0ken-secret"}}
    asked = {"message": "Is t0ken-secret yours?", "requestedSchema": FORM}
    mcp = source(raw(era=era, declared=declared), abilities=ALL)
    async with hosting(mcp) as at:
        await said(at, person, method="elicitation/create", params=asked)
    assert person.asked[0].message == "Is *** yours?"


@pytest.mark.parametrize("era", ERAS)
async def test_an_assembly_has_a_host_and_its_sessions_may_have_their_own(era: str):
    ours, theirs = Person(accepted({"name": "Ana"})), Person()
    server = raw(era=era, declared=settings())
    async with Assembly([McpSource([server], **QUICK)], host=ours) as assembly:
        outside = await assembly.call("raw__want", ASK)
        assert "accept" in str(outside)
        session = assembly.session()
        assert "accept" in str(await session.call("raw__want", ASK))
        assert "decline" in str(await assembly.session(host=theirs).call("raw__want", ASK))
        again = assembly.resume(session.state(), host=theirs)
        assert "decline" in str(await again.call("raw__want", ASK))
    assert (len(ours.asked), len(theirs.asked)) == (2, 2)


async def test_a_host_may_be_set_until_the_assembly_is_opened():
    server = raw(declared=settings())
    assembly = Assembly([McpSource([server], **QUICK)])
    assembly.host = Person(accepted({"name": "Ana"}))
    async with assembly:
        assert "accept" in str(await assembly.call("raw__want", ASK))


async def test_a_conversations_own_connection_says_what_its_own_host_can_do():
    declared = {**settings(), "per_session": True}
    async with hosting(source(raw(declared=declared))) as at:
        person = Person(accepted({"name": "Ana"}))
        assert (await said(at, person, **ASK))["result"]["action"] == "accept"
        assert "not supported" in str(await said(at, None, **ASK))


# -- over pipes, where a question does not say whose it is


@asynccontextmanager
async def two_calls(at: Host, one: Any, other: Any) -> AsyncIterator[None]:
    """While calls of these hosts hang."""
    begun = [asyncio.Event(), asyncio.Event()]
    tasks = [
        asyncio.create_task(
            at.executor.execute(
                ToolCall(str(n), "raw__hang", "{}"),
                session=Conversation(host),
                on_progress=lambda p, n=n: begun[n].set(),
            )
        )
        for n, host in enumerate((one, other))
    ]
    try:
        async with asyncio.timeout(BOUND):
            await asyncio.gather(*(each.wait() for each in begun))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_calls_of_one_host_are_asked_for_together_and_of_several_refused():
    one, other = Person(accepted({"name": "Ana"})), Person()
    async with hosting(asking("legacy")) as at:
        async with two_calls(at, one, one):
            assert (await said(at, one, **ASK))["result"]["action"] == "accept"
        assert (one.asked[0].tool, one.asked[0].call_id) == ("", "")
        async with two_calls(at, one, other):
            assert "whose it is" in (await said(at, one, **ASK))["error"]["message"]
        async with two_calls(at, one, None):
            assert "whose it is" in (await said(at, one, **ASK))["error"]["message"]
    assert (len(one.asked), len(other.asked)) == (1, 0)


async def answered(at: Host) -> Any:
    """What the server was answered to what it asked outside any call."""
    async with asyncio.timeout(BOUND):
        while True:
            for note in json.loads(str(await call(at, None, "raw__notes"))):
                if "answered" in note:
                    return note["answered"]


async def test_a_question_outside_any_call_is_refused():
    async with hosting(asking("legacy", flags={"early": "roots/list"})) as at:
        assert "nobody waits" in (await answered(at))["error"]["message"]


async def test_a_question_does_not_outlive_its_call():
    person = Person(never)
    async with hosting(asking("legacy")) as at:
        await call(at, person, "raw__want", first=True, **ASK)
        assert "error" in await answered(at) or person.asked == []
        assert person.given_up == len(person.asked)


async def test_a_server_may_take_its_question_back():
    person = Person(never)
    async with hosting(asking("legacy")) as at:
        wanted = asyncio.create_task(call(at, person, "raw__want", **ASK))
        await until(lambda: person.asked)
        await call(at, person, "raw__withdraw")
        assert str(await wanted) == "never mind"
        await until(lambda: person.given_up)


@pytest.mark.parametrize("bound", ["MAX_OPEN", "MAX_ASKED"])
async def test_there_is_an_end_of_questions(bound: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"toolcrib.sources.mcp.link.asked.{bound}", 0)
    async with hosting(asking("legacy")) as at:
        assert "asks too much" in (await said(at, Person(), **ASK))["error"]["message"]


async def test_a_bad_question_is_an_error_of_the_server():
    async with hosting(asking("legacy")) as at:
        answer = await said(at, Person(), method="elicitation/create", params={"message": "?"})
        assert answer["error"]["code"] == -32602
        answer = await said(at, Model(None), **{**SAMPLE, "params": {"maxTokens": "many"}})
        assert answer["error"]["code"] == -32602


# -- since 2026-07-28: rounds


async def rounds(at: Host, host: Any, **arguments: Any) -> list[dict[str, Any]]:
    result = await call(at, host, "raw__want", **arguments)
    assert not result.failure, result
    return list(json.loads(str(result)))


async def test_the_state_comes_back_as_it_was_under_another_id_each_time():
    states = ['\u2028 ö😀\\"\x00', "", '{"a": 1 }']
    async with hosting(asking("modern")) as at:
        made = await rounds(at, Person(), rounds=3, states=states, **ASK)
    assert [one.get("requestState") for one in made] == [None, *states]
    assert len({one["id"] for one in made}) == 4
    assert [("inputResponses" in one) for one in made] == [False, True, True, True]


async def test_without_a_state_none_is_sent_and_a_state_alone_is_enough():
    async with hosting(asking("modern")) as at:
        made = await rounds(at, Person(), **ASK)
        assert "requestState" not in made[1]
        made = await rounds(at, Person(), silent=True, rounds=2, states=["a", "b"])
        assert [one.get("requestState") for one in made] == [None, "a", "b"]
        assert not any("inputResponses" in one for one in made)


async def test_MC02_each_round_is_a_request_with_an_idempotency_key_of_its_own():
    async with hosting(asking("modern")) as at:
        at.registry.govern(Policies({"raw__want": Policy(idempotent=True)}))
        made = await rounds(at, Person(), silent=True, rounds=2, states=["a", "b"])
        assert len({one["key"] for one in made}) == 3


async def test_several_questions_are_answered_one_after_the_other():
    open_now = most = 0

    async def one_by_one() -> ElicitationAnswer:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        for _ in range(5):
            await asyncio.sleep(0)
        open_now -= 1
        return DECLINED

    requests = dict.fromkeys("zab", ASK)
    async with hosting(asking("modern")) as at:
        made = await rounds(at, Person(one_by_one), requests=requests)
    assert [*made[1]["inputResponses"]] == ["z", "a", "b"]
    assert most == 1


async def test_there_is_an_end_of_rounds():
    person = Person()
    async with hosting(asking("modern", input_rounds=3)) as at:
        assert len(await rounds(at, person, rounds=3, **ASK)) == 4
        result = await call(at, person, "raw__want", rounds=4, **ASK)
        assert result.failure
        assert result.failure.kind == "tool_error"
        assert "after 3 answers" in str(result)
    assert len(person.asked) == 6


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("invalid_output", {"states": [7], **ASK}),
        ("invalid_output", {"silent": True}),
        ("invalid_output", {"requests": {}}),
        ("tool_error", {"requests": {"k": 7}}),
        ("tool_error", {"requests": {"k": {"method": "tools/list"}}}),
        ("tool_error", {"requests": {str(n): ASK for n in range(100)}}),
        ("tool_error", {"method": "elicitation/create", "params": {"message": "?"}}),
    ],
)
async def test_questions_that_are_none_end_the_call(kind: str, wrong: dict[str, Any]):
    person = Person()
    async with hosting(asking("modern")) as at:
        result = await call(at, person, "raw__want", **wrong)
        assert result.failure
        assert result.failure.kind == kind, result
        assert str(await call(at, None, "raw__echo", text="on")) == "on"
    assert person.asked == []


async def test_a_prompt_may_ask_too():
    declared = {**settings(), "prompts": True}
    async with hosting(source(raw(era="modern", asks=1, declared=declared))) as at:
        result = await call(at, Place(), "raw__get_prompt", name="greet", arguments={"what": "x"})
        assert result.value["messages"][0]["text"] == "Hello x"
        refused = await call(at, None, "raw__get_prompt", name="greet")
        assert refused.failure
        assert "nobody is there to ask" in str(refused)


# -- over HTTP, where a question comes on the stream of its call


def over_http(one: Peer, **given: Any) -> McpSource:
    declared: dict[str, Any] = {"liveness": 0.0, **settings(**given)}
    return source(McpServer("web", "http", url=one.url, **declared), abilities=ALL)


def ask_on_its_stream(one: Peer, status: int = 202, error: Any = None) -> None:
    """Each call is answered by a question, and then with what was answered to that, or `error`."""
    calls: dict[str, Any] = {}

    def on_call(body: dict[str, Any]) -> Any:
        question = f"q{body['id']}"
        calls[question] = body["id"]
        return STREAM, {}, [{"jsonrpc": "2.0", "id": question, **ASK}]

    def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        if body.get("id") not in calls or "method" in body:
            return None
        id = calls.pop(body["id"])
        answer = body.get("result") or body.get("error")
        told = {"content": [{"type": "text", "text": json.dumps(answer)}]}
        failed = {"jsonrpc": "2.0", "id": id, "error": error}
        last = event(failed if error else reply(id, told))
        # Later than our own 2xx or 5xx, so that this is what is known of the answer by then.
        asyncio.get_running_loop().call_later(0.05, one.streams[id].write, last)
        return status, {}, b""

    one.on_call, one.gate = on_call, gate


async def test_two_sessions_at_once_are_each_asked_on_their_own_stream():
    both = asyncio.Barrier(2)

    def waits(name: str) -> Callable[[], Awaitable[ElicitationAnswer]]:
        async def answer() -> ElicitationAnswer:
            async with asyncio.timeout(BOUND):
                await both.wait()  # both are asked at one time
            return accepted({"name": name})

        return answer

    async with peer() as one, hosting(over_http(one)) as at:
        ask_on_its_stream(one)
        hosts = Person(waits("Ana")), Person(waits("Ben"))
        answers = await asyncio.gather(*(call(at, host, "web__act") for host in hosts))
        assert [json.loads(str(each))["content"]["name"] for each in answers] == ["Ana", "Ben"]
        assert [len(host.asked) for host in hosts] == [1, 1]
        assert hosts[0].asked[0].tool == "web__act"
        assert json.loads(str(await call(at, None, "web__act"))) == {"action": "decline"}


async def test_what_becomes_of_an_answer_on_the_wire_is_not_what_becomes_of_the_call():
    async with peer() as one, hosting(over_http(one)) as at:
        ask_on_its_stream(one, status=503, error={"code": -32603, "message": "no such row"})
        result = await call(at, Person(), "web__act")
        assert result.failure
        assert result.failure.kind == "tool_error"  # and not lost, as after a 503 of its own
        assert at.health("web").state == "ready"


async def test_a_modern_peer_is_sent_the_request_again():
    def on_call(body: dict[str, Any]) -> Any:
        told = body["params"].get("inputResponses")
        if told is None:
            asked = {"resultType": "input_required", "inputRequests": {"k": ASK}}
            return 200, JSON, reply(body["id"], asked)
        content = [{"type": "text", "text": json.dumps(told["k"])}]
        return 200, JSON, reply(body["id"], {"resultType": "complete", "content": content})

    async with peer(modern=True) as one, hosting(over_http(one)) as at:
        one.on_call = on_call
        hosts = Person(accepted({"name": "Ana"})), Person()
        answers = await asyncio.gather(*(call(at, host, "web__act") for host in hosts))
        assert [json.loads(str(each))["action"] for each in answers] == ["accept", "decline"]
        assert one.calls() == 4


# -- servers of the SDK


def sdk(era: str) -> McpSource:
    server = McpServer(
        "sdk", "stdio", command=sys.executable, args=(str(HERE / "sdk_asking.py"),), **settings()
    )
    mcp = source(server, abilities=ALL)
    mcp._members[0]._era.mode = "legacy" if era == "legacy" else "auto"
    return mcp


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_of_the_SDK_asks_in_the_way_of_its_era(era: str):
    async with hosting(sdk(era)) as at:
        person = Person(accepted({"place": "Rome"}))
        assert str(await call(at, person, "sdk__book")) == "3 nights in Rome"
        assert person.asked[0].message == "Where to?"
        assert at.health("sdk").era == ("2025-11-25" if era == "legacy" else "2026-07-28")
        refused = await call(at, Person(), "sdk__book")
        assert refused.failure
        assert "decline" in str(refused)
        alone = await call(at, None, "sdk__book")
        assert alone.failure
        assert alone.failure.kind == "tool_error"
        if era == "legacy":
            assert str(await call(at, person, "sdk__confirm")) == "accept"
            assert str(await call(at, Person(never_fits), "sdk__confirm")) == "cancel"


async def never_fits() -> ElicitationAnswer:
    return accepted({"place": 7})
