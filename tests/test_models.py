"""The real models through their SDKs, against loopback servers that stream as the providers do.

Every request is checked by the wire rules (`checkers`). Must show 3 of issue 4, for all three APIs;
and that nothing that can happen to a stream breaks the transcript (rule C20).
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import anthropic as anthropic_sdk
import openai as openai_sdk
import pytest

from checkers.streaming import (
    USAGE,
    Call,
    Event,
    Reply,
    Streams,
    chat_events,
    cut_at,
    messages_events,
    responses_events,
    streams,
)
from conftest import ended
from toolcrib import Assembly, ConfigurationError, Dynamic, NotFound, ToolLimits, tool
from toolcrib.errors import InvalidDefinition
from toolcrib.loop import Model, Recovery, TextCame, ToolLimitError, UndefinedTool, run
from toolcrib.models import ModelFailed, Response, Usage, model_named
from toolcrib.models.anthropic import AnthropicModel
from toolcrib.models.openai import OpenAIModel
from toolcrib.models.streaming import StreamingModel
from toolcrib.providers.history import Answers, Assistant, Message, User

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Api: TypeAlias = Literal["chat", "responses", "anthropic"]
KEY = "sk-very-secret-key-0123456789"
RAN: list[str] = []
ODD = 'größer "b\\n" 世界 🧰'


@tool
async def rename_branch(old: str, new: str) -> str:
    """Rename a git branch."""
    RAN.append(f"{old}->{new}")
    return f"renamed {old} to {new}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@pytest.fixture(params=["chat", "responses", "anthropic"])
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


def made(api: Api, server: Streams, *, retries: int = 0, **settings: Any) -> StreamingModel:
    """A model on a client of ours. No TLS here, and loading certificates is most of a test."""
    if api == "anthropic":
        anthropic = anthropic_sdk.AsyncAnthropic(
            base_url=server.url,
            api_key=KEY,
            max_retries=retries,
            http_client=anthropic_sdk.DefaultAsyncHttpxClient(verify=False),
        )
        return AnthropicModel("m", client=anthropic, **settings)
    client = openai_sdk.AsyncOpenAI(
        base_url=f"{server.url}/v1",
        api_key=KEY,
        max_retries=retries,
        http_client=openai_sdk.DefaultAsyncHttpxClient(verify=False),
    )
    return OpenAIModel("m", client=client, api=api, **settings)


@asynccontextmanager
async def playing(
    api: Api, *replies: Reply, retries: int = 0, **settings: Any
) -> AsyncIterator[tuple[Streams, StreamingModel]]:
    with streams(*replies) as server:
        model = made(api, server, retries=retries, **settings)
        try:
            yield server, model
        finally:
            client: Any = vars(model)["_client"]
            await client.close()


def rename(call_id: str, old: str = "a", new: str = "b") -> Call:
    arguments = json.dumps({"old": old, "new": new}, ensure_ascii=False)
    return Call(call_id, "rename_branch", arguments)


SEARCH = Reply(
    "Ich schaue nach: 世界 🧰",
    (Call("s1", "tool_search", '{"query": "rename a git branch"}'),),
    thinking="Which tool?",
)


def asked() -> list[Message]:
    return [User.of("Call branch a b from now on.")]


def kinds(messages: list[Message]) -> str:
    """U(ser), A(nswer of the model), R(esults): the transcript at a glance."""
    letters = {"User": "U", "Answers": "R"}
    return "".join(letters.get(type(one).__name__, "A") for one in messages)


def told(events: list[Any]) -> str:
    return "".join(one.text for one in events if isinstance(one, TextCame))


# -- must show 3 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 1_000])
async def test_search_call_answer(api: Api, size: int) -> None:
    """`size` bytes at a time: cut inside JSON strings, escapes and UTF-8 sequences."""
    said_by_the_model = (
        SEARCH,
        Reply("", (rename("c1", ODD), rename("c2"), rename("c3", "", "x" * 500))),
        Reply("Getan: 世界 ist größer. 🧰"),
    )
    replies = tuple(replace(one, bytes=size) for one in said_by_the_model)
    messages, events = asked(), list[Any]()
    async with (
        playing(api, *replies, system="Be brief.") as (server, model),
        Assembly([rename_branch], dynamic=Dynamic()) as tools,
    ):
        said = await run(tools.session(), model, messages, on_event=events.append)
    assert said.text == replies[2].text
    assert told(events) == replies[0].text + replies[2].text
    assert kinds(messages) == "UARARA"
    assert [f"{ODD}->b", "a->b", f"->{'x' * 500}"] == RAN
    assert isinstance(step := messages[3], Response)
    assert [call.id for call in step.calls] == ["c1", "c2", "c3"]
    assert isinstance(answers := messages[4], Answers)
    assert [one.call_id for one in answers.results] == ["c1", "c2", "c3"]
    assert [len(one["tools"]) for one in server.requests] == [1, 2, 2]
    assert "Be brief." in json.dumps(server.requests[0])


async def test_tokens_are_kept_for_each_response_and_summed(api: Api) -> None:
    messages = asked()
    async with (
        playing(api, SEARCH, Reply("Done.")) as (_, model),
        Assembly([rename_branch], dynamic=Dynamic()) as tools,
    ):
        said = await run(tools.session(), model, messages)
    one = Usage(*USAGE)
    assert isinstance(said, Response)
    assert isinstance(first := messages[1], Response)
    assert (said.usage, first.usage, model.usage) == (one, one, one + one)
    assert said.stop == {"chat": "stop", "responses": "completed", "anthropic": "end_turn"}[api]


async def test_the_providers_own_blocks_are_replayed_whole(api: Api) -> None:
    messages = asked()
    async with (
        playing(api, SEARCH, Reply("Done.")) as (server, model),
        Assembly([rename_branch], dynamic=Dynamic()) as tools,
    ):
        await run(tools.session(), model, messages)
    second = server.requests[1]
    if api == "responses":
        replayed = [item.get("type") for item in second["input"]]
        assert replayed == [None, "reasoning", "message", "function_call", "function_call_output"]
        assert second["input"][1]["encrypted_content"] == "gAAA"
    elif api == "anthropic":
        thinking, text, use = second["messages"][1]["content"]
        assert thinking == {"type": "thinking", "thinking": "Which tool?", "signature": "EqQB"}
        assert text["text"] == SEARCH.text
        assert use["input"] == {"query": "rename a git branch"}
    else:
        assert second["messages"][1]["content"] == SEARCH.text


async def test_A8_a_model_that_calls_an_undiscovered_tool_recovers(api: Api) -> None:
    hidden = Reply("Renaming.", (rename("h1"), Call("h2", "tool_search", "{}")))
    messages = asked()
    async with (
        playing(api, hidden, SEARCH, Reply("", (rename("c1"),)), Reply("Done.")) as (
            server,
            model,
        ),
        Assembly([rename_branch], dynamic=Dynamic()) as tools,
    ):
        await run(tools.session(), model, messages, recovery=Recovery())
    assert RAN == ["a->b"]
    assert kinds(messages) == "UARARA"
    assert "which is not among the" in json.dumps(server.requests[1])
    assert "which is not among the" not in json.dumps(server.requests[2])
    assert "h1" not in json.dumps(server.requests[1:])
    assert model.usage.output == 4 * USAGE[1]  # the rejected response was paid for too


async def test_A8_6_without_recovery_it_ends_with_the_transcript_as_it_was(api: Api) -> None:
    messages = asked()
    async with (
        playing(api, Reply("", (rename("h1"),))) as (_, model),
        Assembly([rename_branch], dynamic=Dynamic()) as tools,
    ):
        with pytest.raises(UndefinedTool):
            await run(tools.session(), model, messages)
    assert messages == asked() and RAN == []


async def test_C15_one_that_never_stops_is_ended_by_the_limit_with_the_steps_kept(
    api: Api,
) -> None:
    replies = [Reply("", (rename(f"c{at}"),)) for at in range(4)]
    messages = asked()
    async with (
        playing(api, *replies, Reply("Again.")) as (server, model),
        Assembly([rename_branch], limits=ToolLimits(iterations=3)) as tools,
    ):
        session = tools.session()
        with pytest.raises(ToolLimitError):
            await run(session, model, messages)
        assert kinds(messages) == "UARARAR"
        assert len(RAN) == 3
        messages.append(User.of("and?"))
        assert (await run(session, model, messages)).text == "Again."
    assert len(server.requests) == 5


# -- what can happen to a stream ------------------------------------------------------------------


@asynccontextmanager
async def failing(
    api: Api, bad: Reply, kind: str, messages: list[Message]
) -> AsyncIterator[ModelFailed]:
    """One step that works, then `bad`; afterwards the same transcript goes on."""
    replies = (Reply("", (rename("c1"),)), bad, Reply("Still here."))
    async with playing(api, *replies) as (server, model), Assembly([rename_branch]) as tools:
        session = tools.session()
        with pytest.raises(ModelFailed) as raised:
            await ended(run(session, model, messages))
        assert raised.value.kind == kind
        assert kinds(messages) == "UAR"
        assert len(server.requests) == 2, "a response that had begun is never asked for again"
        yield raised.value
        assert (await run(session, model, messages)).text == "Still here."
    assert kinds(messages) == "UARA"
    assert RAN == ["a->b"]


TALKS = Reply("A long text. " * 5, (rename("c2"),))
ENCODED: dict[Api, Callable[[Reply], Iterable[Event]]] = {
    "chat": chat_events,
    "responses": responses_events,
    "anthropic": messages_events,
}


def broken(api: Api, then: Literal["drop", "end", "error", "hold"], where: str) -> Reply:
    """What TALKS says, as far as `where` and a little further."""
    cut = cut_at(list(ENCODED[api](TALKS)), where)
    return replace(TALKS, then=then, cut=cut, message=f"out of capacity for {KEY}")


@pytest.mark.parametrize("then", ["drop", "end"])
@pytest.mark.parametrize("where", ["A lon", "rename_branch"])
async def test_C20_a_cut_stream_leaves_the_transcript_whole(
    api: Api, then: Literal["drop", "end"], where: str
) -> None:
    async with failing(api, broken(api, then, where), "cut", asked()) as failed:
        assert failed.told


async def test_C20_a_stream_cut_before_its_last_event_is_no_response(api: Api) -> None:
    last = -3 if api == "chat" else -1  # the end, the tokens and [DONE] in chat
    async with failing(api, replace(TALKS, then="end", cut=last), "cut", asked()):
        pass


@pytest.mark.parametrize("cut", [0, 1])
async def test_C20_cut_before_any_text_nothing_was_told(api: Api, cut: int) -> None:
    async with failing(api, replace(TALKS, then="end", cut=cut), "cut", asked()) as failed:
        assert not failed.told


async def test_C20_an_error_event_in_the_stream(api: Api) -> None:
    async with failing(api, broken(api, "error", "A lon"), "error", asked()) as failed:
        assert "out of capacity for [redacted]" in str(failed)
        assert failed.told and failed.may_pass


@pytest.mark.parametrize(
    ("status", "passes"), [(429, True), (500, True), (529, True), (401, False)]
)
async def test_C20_an_http_error_is_told_with_its_status_and_without_the_key(
    api: Api, status: int, passes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bad = Reply(status=status, message=f"no good: key {KEY} at 12:00")
    async with failing(api, bad, "refused", asked()) as failed:
        assert (failed.status, failed.may_pass, failed.told) == (status, passes, False)
        assert f"HTTP {status}: api_error: no good: key [redacted]" in str(failed)
        assert failed.__cause__ is None and failed.__context__ is None
    assert KEY not in caplog.text.replace(bad.message, "")


async def test_the_sdk_may_retry_until_a_response_has_begun(api: Api) -> None:
    busy = Reply(status=429, headers=(("retry-after-ms", "1"),))
    async with playing(api, busy, busy, Reply("At last."), retries=2) as (server, model):
        said = await ended(model.respond(asked(), (), lambda text: None))
    assert said.text == "At last."
    assert len(server.requests) == 3


@pytest.mark.parametrize("cut", [1, 9])
async def test_once_begun_nothing_is_retried_not_even_by_the_sdk(api: Api, cut: int) -> None:
    bad = replace(TALKS, then="drop", cut=cut)
    async with playing(api, bad, Reply("Twice?"), retries=2) as (server, model):
        with pytest.raises(ModelFailed, match="cut off"):
            await ended(model.respond(asked(), (), lambda text: None))
    assert len(server.requests) == 1


async def test_nobody_there_is_told_as_such(api: Api) -> None:
    async with playing(api) as (server, model):
        server.server_close()
        with pytest.raises(ModelFailed, match="cannot be reached") as raised:
            await ended(model.respond(asked(), (), lambda text: None))
    assert raised.value.kind == "unreachable" and raised.value.may_pass


async def test_C20_cancelled_in_the_middle_of_a_stream(api: Api) -> None:
    held = broken(api, "hold", "A lon")
    messages, begun = asked(), asyncio.Event()

    def on_event(event: Any) -> None:
        if isinstance(event, TextCame):
            begun.set()

    async with (
        playing(api, Reply("", (rename("c1"),)), held, Reply("Yes?")) as (server, model),
        Assembly([rename_branch]) as tools,
    ):
        session = tools.session()
        running = asyncio.create_task(run(session, model, messages, on_event=on_event))
        await ended(begun.wait())
        running.cancel()
        await asyncio.wait((running,), timeout=5)
        assert running.cancelled()
        assert await asyncio.to_thread(server.gone.wait, 5), "the connection was left open"
        assert kinds(messages) == "UAR"
        assert (await run(session, model, messages)).text == "Yes?"


async def test_a_listener_that_raises_ends_the_stream(api: Api) -> None:
    def listens(text: str) -> None:
        raise ZeroDivisionError

    async with playing(api, broken(api, "hold", "A lon")) as (server, model):
        with pytest.raises(ZeroDivisionError):
            await ended(model.respond(asked(), (), listens))
        assert await asyncio.to_thread(server.gone.wait, 5)


# -- what a model may say -------------------------------------------------------------------------


OUT_OF_TOKENS = {"chat": "length", "responses": "max_output_tokens", "anthropic": "max_tokens"}


@pytest.mark.parametrize("arguments", ["", '{"old": "a", "ne'])
async def test_a_call_cut_by_the_token_limit_never_runs(api: Api, arguments: str) -> None:
    cut = Reply("Now:", (Call("c2", "rename_branch", arguments),), stop=OUT_OF_TOKENS[api])
    async with failing(api, cut, "cut", asked()) as failed:
        assert "ran out of tokens" in str(failed) and "'rename_branch'" in str(failed)


async def test_a_text_cut_by_the_token_limit_is_a_response_that_says_so(api: Api) -> None:
    async with playing(api, Reply("Once upon", stop=OUT_OF_TOKENS[api])) as (_, model):
        said = await model.respond(asked(), (), lambda text: None)
    assert said.text == "Once upon"
    assert isinstance(said, Response) and said.stop == OUT_OF_TOKENS[api]


@pytest.mark.parametrize("arguments", ['{"old": "a", new', "[1]", '"text"'])
async def test_C18_malformed_arguments_are_refused_by_the_tool_and_the_turn_goes_on(
    api: Api, arguments: str
) -> None:
    bad = Reply("", (Call("c1", "rename_branch", arguments),))
    messages = asked()
    async with (
        playing(api, bad, Reply("", (rename("c2"),)), Reply("Done.")) as (_, model),
        Assembly([rename_branch]) as tools,
    ):
        await run(tools.session(), model, messages)
    assert isinstance(answers := messages[2], Answers)
    assert answers.results[0].failure is not None
    assert answers.results[0].failure.kind == "invalid_arguments"
    assert RAN == ["a->b"]


async def test_a_call_without_arguments(api: Api) -> None:
    @tool
    def now() -> str:
        """What time it is."""
        return "noon"

    messages = asked()
    async with (
        playing(api, Reply("", (Call("c1", "now", ""),)), Reply("Noon.")) as (_, model),
        Assembly([now]) as tools,
    ):
        await run(tools.session(), model, messages)
    assert isinstance(answers := messages[2], Answers)
    assert answers.results[0].text == "noon"


async def test_strict_tools_come_back_without_the_nulls_of_strict_mode() -> None:
    @tool
    def greet(name: str, title: str = "Dr.") -> str:
        """Greet someone."""
        return f"{title} {name}"

    call = Call("c1", "greet", '{"name": "Ada", "title": null}')
    messages = asked()
    async with (
        playing("chat", Reply("", (call,)), Reply("Hi."), strict=True) as (server, model),
        Assembly([greet]) as tools,
    ):
        await run(tools.session(), model, messages)
    assert server.requests[0]["tools"][0]["function"]["strict"] is True
    assert isinstance(step := messages[1], Assistant)
    assert json.loads(step.calls[0].arguments) == {"name": "Ada"}
    assert isinstance(answers := messages[2], Answers)
    assert answers.results[0].text == "Dr. Ada"


async def test_options_are_fields_of_the_request(api: Api) -> None:
    async with playing(api, Reply("."), options={"temperature": 0.5}) as (server, model):
        await model.respond(asked(), (), lambda text: None)
    assert server.requests[0]["temperature"] == 0.5
    assert "tools" not in server.requests[0]


# -- other servers --------------------------------------------------------------------------------


def chunk(delta: dict[str, Any], stop: str | None = None) -> Event:
    return "", {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def fragment(**fields: Any) -> Event:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return chunk({"tool_calls": [{**fields, "function": function}]})


LAX: dict[str, tuple[Event, ...]] = {
    "whole calls, all with index 0": (
        fragment(index=0, id="c1", name="rename_branch", arguments='{"old": "a", "new": "b"}'),
        fragment(index=0, id="c2", name="rename_branch", arguments='{"old": "c", "new": "d"}'),
    ),
    "no index, the name every time": (
        fragment(id="c1", name="rename_branch", arguments='{"old": "a",'),
        fragment(id="c1", name="rename_branch", arguments='"new": "b"}'),
        fragment(id="c2", name="rename_branch", arguments='{"old": "c", "new": "d"}'),
    ),
    "arguments as an object, no ids": (
        fragment(index=0, name="rename_branch", arguments={"old": "a", "new": "b"}),
        fragment(index=1, name="rename_branch", arguments={"old": "c", "new": "d"}),
    ),
}


@pytest.mark.parametrize("case", LAX)
async def test_a_server_that_streams_calls_in_its_own_way(case: str) -> None:
    calls = Reply(events=(*LAX[case], chunk({}, "stop"), ("", "data: [DONE]")))
    async with (
        playing("chat", calls, Reply("Done.")) as (_, model),
        Assembly([rename_branch]) as tools,
    ):
        await run(tools.session(), model, asked())
    assert RAN == ["a->b", "c->d"]


async def test_a_pair_of_surrogates_cut_in_two_is_put_together() -> None:
    halves = [chunk({"content": half}) for half in ("a\ud83e", "\uddf0", "b\ud83e")]
    heard: list[str] = []
    async with playing("chat", Reply(events=(*halves, chunk({}, "stop")))) as (_, model):
        said = await model.respond(asked(), (), heard.append)
    assert said.text == "a🧰b\ufffd" == "".join(heard)


async def test_a_response_with_its_text_in_the_last_event_only_is_told_at_the_end() -> None:
    part = {"type": "output_text", "text": "All at once.", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    frame = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    event = {"type": "response.completed", "response": frame}
    heard: list[str] = []
    async with playing("responses", Reply(events=(("response.completed", event),))) as (_, model):
        said = await model.respond(asked(), (), heard.append)
    assert heard == [said.text] == ["All at once."]


@pytest.mark.parametrize("junk", ["data: {no json", "data: \x00", "<html>busy</html>"])
async def test_what_is_no_stream_is_cut(api: Api, junk: str) -> None:
    async with playing(api, Reply(events=(("", f"event: message_start\n{junk}"),))) as (_, model):
        with pytest.raises(ModelFailed) as raised:
            await model.respond(asked(), (), lambda text: None)
    assert raised.value.kind == "cut"


# -- making one -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["openai:m", "anthropic:m"])
async def test_a_server_of_ones_own_needs_no_key(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with streams(Reply("Hello.")) as server:
        base = f"{server.url}/v1" if spec.startswith("openai") else server.url
        async with model_named(spec, base_url=base, system="Be.") as model:
            assert (await model.respond(asked(), (), lambda text: None)).text == "Hello."
    assert server.requests[0]["model"] == "m"


@pytest.mark.parametrize("spec", ["openai:m", "anthropic:m"])
def test_without_a_key_the_error_names_the_variable(
    spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # where the SDK looks for credentials
    with pytest.raises(ConfigurationError, match="_API_KEY"):
        model_named(spec)


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "gemini:m", ":m"])
def test_an_unknown_model_is_refused_with_what_to_write(spec: str) -> None:
    with pytest.raises(NotFound, match="openai:NAME or anthropic:NAME"):
        model_named(spec)


def test_a_client_and_a_base_url_contradict_each_other() -> None:
    client = openai_sdk.AsyncOpenAI(api_key=KEY)
    with pytest.raises(InvalidDefinition):
        OpenAIModel("m", client=client, base_url="http://127.0.0.1/v1")


@pytest.mark.parametrize("make", [OpenAIModel, AnthropicModel])
def test_a_model_is_a_loop_model_and_its_repr_holds_no_key(
    make: Callable[..., StreamingModel],
) -> None:
    model: Model = make("m", api_key=KEY)
    assert repr(model) == f"<{make.__name__} 'm'>"
    assert KEY not in repr(vars(model))


@pytest.mark.parametrize("extra", ["openai", "anthropic"])
def test_a_missing_sdk_is_told_with_its_extra_and_models_themselves_need_none(extra: str) -> None:
    code = (
        f"import sys; sys.modules[{extra!r}] = None\n"
        "import toolcrib.models as m\n"
        "assert not {'openai', 'anthropic', 'httpx2'} & {k for k, v in sys.modules.items() if v}\n"
        f"try: m.model_named('{extra}:x')\n"
        "except ImportError as e: print(type(e).__name__, e)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert told.stdout.startswith("MissingExtra"), told.stderr
    assert f"pip install 'toolcrib[{extra}]'" in told.stdout
