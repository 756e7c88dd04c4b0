"""Whole requests by the official SDK clients to a server that checks them by the wire rules.

Definitions, histories with calls, results, errors and images; native deferral; what comes back is
read from the SDK's own objects. Shared corpus: a sample of its batches, all of them with `soak`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic as anthropic_sdk
import openai as openai_sdk
import pytest
from google import genai
from google.genai import types as genai_types

from checkers.common import looks_like_base64
from checkers.nasty import NASTY
from checkers.server import CHAT, CONTENT, MESSAGE, RESPONSE, Provider, provider
from test_providers_corpus import batches, shared_corpus
from toolcrib import DataPart, FilePart, ImagePart, TextPart, ToolCall, ToolDefinition, ToolResult
from toolcrib.discovery.search_tool import Found, Hit, found_result
from toolcrib.discovery.search_tool import search_tool as make_search_tool
from toolcrib.names import exposed_name
from toolcrib.providers import anthropic, gemini, openai
from toolcrib.providers.history import Answers, Assistant, Message, User

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01" + bytes(range(256)) * 9
NASTY_TOOLS = [
    ToolDefinition(exposed_name("", f"{at}-{case}"), f"About {case}.", schema)
    for at, (case, schema) in enumerate(NASTY.items())
]
HISTORY: list[Message] = [
    User((TextPart("look at this"), ImagePart(PNG, "image/png"), TextPart("and say"))),
    Assistant(
        "I will look.",
        (
            ToolCall("toolu_01", "see", '{"id": 1917043659912705297}'),
            ToolCall("call.with/odd:signs", "1st_tool", ""),
            ToolCall("x" * 100, "none", "null"),
        ),
    ),
    Answers(
        (
            ToolResult((TextPart("done"),), call_id="x" * 100),
            ToolResult((TextPart("a picture"), ImagePart(PNG, "image/jpg")), call_id="toolu_01"),
            ToolResult.failed("tool_error", "no such row", partial=(ImagePart(PNG, "image/png"),)),
        )
    ),
    Assistant("", (ToolCall("toolu_01", "see", "[1, 2]"), ToolCall("c2", "see", '{"a":1}x'))),
    Answers(
        (
            ToolResult((DataPart({"$ref": "#/x", "n": 10**30}),), call_id="toolu_01"),
            ToolResult((), call_id="c2"),
        )
    ),
    Assistant("That is all."),
    User.of("thanks \ud83d"),
    Assistant("Once more.", (ToolCall("c3", "see", '"{\\"a\\": 1}"'), ToolCall("c4", "see", "{}"))),
    Answers((ToolResult((FilePart("file:///a", "a", "text/plain"),), call_id="c3"),)),
    User.of("and?"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


class Sdk:
    """Each provider's own client, and one way to send: tools and messages, the reply as it is."""

    def __init__(self, server: Provider) -> None:
        self.openai = openai_sdk.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        self.anthropic = anthropic_sdk.Anthropic(base_url=server.url, api_key="x", max_retries=0)
        self.gemini = genai.Client(
            api_key="x", http_options=genai_types.HttpOptions(base_url=server.url)
        )

    def chat(self, tools: Any, messages: Any) -> Any:
        given = {"tools": tools} if tools else {}
        return self.openai.chat.completions.create(model="m", messages=messages, **given)

    def responses(self, tools: Any, messages: Any) -> Any:
        given = {"tools": tools} if tools else {}
        return self.openai.responses.create(model="m", input=messages, **given)

    def messages(self, tools: Any, messages: Any) -> Any:
        return self.anthropic.messages.create(
            model="m", max_tokens=9, tools=tools, messages=messages
        )

    def contents(self, tools: Any, contents: Any) -> Any:
        config: Any = {"tools": tools, "automatic_function_calling": {"disable": True}}
        return self.gemini.models.generate_content(
            model="gemini-3-pro", contents=contents, config=config
        )

    def close(self) -> None:
        self.openai.close()
        self.anthropic.close()
        self.gemini.close()


@pytest.fixture(scope="module")
def sdk(server: Provider) -> Iterator[Sdk]:
    clients = Sdk(server)
    yield clients
    clients.close()


Tools = Callable[[list[ToolDefinition]], list[dict[str, Any]]]
Write = Callable[[list[Message]], list[dict[str, Any]]]
FORMATS: dict[str, tuple[str, Tools, Write]] = {
    "chat": ("chat", lambda d: openai.tools(d), lambda h: openai.messages(h)),
    "chat strict": ("chat", lambda d: openai.tools(d, strict=True), lambda h: openai.messages(h)),
    "responses": (
        "responses",
        lambda d: openai.tools(d, api="responses"),
        lambda h: openai.messages(h, api="responses"),
    ),
    "anthropic": ("messages", lambda d: anthropic.tools(d), lambda h: anthropic.messages(h)),
    "gemini": ("contents", lambda d: gemini.tools(d), lambda h: gemini.messages(h)),
    "gemini openapi": (
        "contents",
        lambda d: gemini.tools(d, form="openapi"),
        lambda h: gemini.messages(h),
    ),
}


@pytest.mark.parametrize("which", FORMATS)
def test_a_whole_request_passes_from_the_sdk_to_the_checker(
    which: str, sdk: Sdk, server: Provider
) -> None:
    send, tools, write = FORMATS[which]
    server.refused.clear()
    getattr(sdk, send)(tools(NASTY_TOOLS), write(HISTORY))
    assert server.refused == []


@pytest.mark.parametrize("which", FORMATS)
def test_RS09_what_the_sdk_sent_holds_images_only_where_they_belong(
    which: str, sdk: Sdk, server: Provider
) -> None:
    send, _, write = FORMATS[which]
    getattr(sdk, send)([], write(HISTORY)) if send != "messages" else sdk.messages(
        anthropic.tools(NASTY_TOOLS[:1]), write(HISTORY)
    )
    sent = server.requests[-1]
    texts: list[str] = []
    waiting: list[Any] = [sent]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            texts += [
                v
                for k, v in each.items()
                if k in ("text", "content", "output", "error") and isinstance(v, str)
            ]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    assert texts and not any(looks_like_base64(text) for text in texts)
    assert json.dumps(sent).count("iVBORw0KGgo") >= 2


def calls_reply(which: str) -> dict[str, Any]:
    arguments = {"n": 1917043659912705297, "q": "é"}
    text = json.dumps(arguments)
    if which == "chat":
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "see", "arguments": text}},
                {"id": "c2", "type": "function", "function": {"name": "see", "arguments": ""}},
            ],
        }
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        return {**CHAT, "choices": [choice]}
    if which == "responses":
        one = {"type": "function_call", "id": "fc_1", "status": "completed", "name": "see"}
        output = [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {**one, "call_id": "c1", "arguments": text},
            {**one, "call_id": "c2", "id": "fc_2", "arguments": ""},
        ]
        return {**RESPONSE, "output": output}
    if which == "messages":
        content = [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "c1", "name": "see", "input": arguments},
            {"type": "tool_use", "id": "c2", "name": "see", "input": {}},
        ]
        return {**MESSAGE, "stop_reason": "tool_use", "content": content}
    parts = [
        {"text": "hm", "thought": True},
        {"functionCall": {"name": "see", "args": arguments}, "thoughtSignature": "c2lnbmVk"},
        {"functionCall": {"name": "see", "args": {}}},
    ]
    return {**CONTENT, "candidates": [{"content": {"role": "model", "parts": parts}}]}


PROVIDERS: dict[str, Any] = {
    "chat": openai,
    "responses": openai,
    "messages": anthropic,
    "contents": gemini,
}


@pytest.mark.parametrize("which", PROVIDERS)
def test_calls_are_read_from_the_sdks_object_and_from_its_dict_and_answered(
    which: str, sdk: Sdk, server: Provider
) -> None:
    room = PROVIDERS[which]
    api = {"api": which} if room is openai else {}
    tools = room.tools([ToolDefinition("see", "See.")], **api)
    start = room.messages([User.of("hi")], **api)
    server.replies.append(calls_reply(which))
    server.refused.clear()
    reply = getattr(sdk, which)(tools, start)

    calls = room.calls(reply)
    assert room.calls(reply.model_dump(mode="json", by_alias=True)) == calls
    assert [call.name for call in calls] == ["see", "see"]
    assert json.loads(calls[0].arguments) == {"n": 1917043659912705297, "q": "é"}
    results = [
        ToolResult((TextPart("1"), ImagePart(PNG, "image/png")), call_id=calls[0].id),
        ToolResult.failed("tool_error", "db down"),
    ]
    results[1] = ToolResult(results[1].content, results[1].failure, call_id=calls[1].id)

    # by hand: what the model said, then our answers
    said = room.messages([room.reply(reply)], **api)
    getattr(sdk, which)(tools, [*start, *said, *room.results(results, calls, **api)])
    # as a history
    history = [User.of("hi"), room.reply(reply), Answers(tuple(results))]
    getattr(sdk, which)(tools, room.messages(history, **api))
    # crossing: the same history to each of the others
    for other, (send, other_tools, write) in FORMATS.items():
        getattr(sdk, send)(other_tools([ToolDefinition("see", "See.")]), write(history))
        assert server.refused == [], other
    # what only this provider understands is replayed to it
    whole = json.dumps(room.messages(history, **api))
    kept = {"responses": "rs_1", "messages": '"signature"', "contents": "c2lnbmVk", "chat": "c1"}
    assert kept[which] in whole


SEARCH = make_search_tool().definition
LATE = [ToolDefinition(f"late_{n}", f"Tool {n}.", {"type": "object"}) for n in range(30)]
FOUND = Found("late", (Hit("late_1", "Tool 1.", 2.0), Hit("late_2", "", 1.0)), ("late_1", "late_2"))


def test_anthropic_defers_and_answers_a_search_with_references(sdk: Sdk, server: Provider) -> None:
    server.refused.clear()
    tools = anthropic.tools([SEARCH, *LATE[:2]], deferred=LATE)
    assert [t.get("defer_loading", False) for t in tools] == [False] + [True] * 30
    call = ToolCall("s1", SEARCH.name, '{"query": "late"}')
    history: list[Message] = [
        User.of("hi"),
        Assistant("", (call, ToolCall("s2", SEARCH.name, '{"query": "no"}'))),
        Answers(
            (
                ToolResult(found_result(FOUND).content, None, FOUND, "s1"),
                ToolResult.failed("invalid_arguments", "query is blank"),
            )
        ),
    ]
    written = anthropic.messages(history, deferred=LATE)
    assert written[2]["content"][0]["content"] == [
        {"type": "tool_reference", "tool_name": "late_1"},
        {"type": "tool_reference", "tool_name": "late_2"},
    ]
    sdk.messages(tools, written)
    alone = anthropic.results([ToolResult((), None, FOUND, "s1")], [call], deferred=LATE)
    assert alone[0]["content"][0]["content"] == written[2]["content"][0]["content"]
    assert "tool_reference" not in json.dumps(anthropic.messages(history))
    assert server.refused == []


def test_openai_responses_searches_by_the_client(sdk: Sdk, server: Provider) -> None:
    server.refused.clear()
    tools = openai.tools([SEARCH, *LATE[:2]], api="responses", deferred=LATE)
    assert [(t["type"], t.get("execution")) for t in tools] == [("tool_search", "client")]
    item = {
        "type": "tool_search_call",
        "id": "ts_1",
        "call_id": "s1",
        "execution": "client",
        "status": "completed",
        "arguments": {"query": "late"},
    }
    server.replies.append({**RESPONSE, "output": [item]})
    start = openai.messages([User.of("hi")], api="responses")
    reply = sdk.responses(tools, start)
    calls = openai.calls(reply)
    assert calls == [ToolCall("s1", SEARCH.name, '{"query":"late"}')]
    result = ToolResult(found_result(FOUND).content, None, FOUND, "s1")
    answer = openai.results([result], calls, api="responses", deferred=LATE)
    assert answer[0]["type"] == "tool_search_output"
    assert [t["name"] for t in answer[0]["tools"]] == ["late_1", "late_2"]
    said = openai.messages([openai.reply(reply)], api="responses", deferred=LATE)
    sdk.responses(tools, [*start, *said, *answer])
    for first in (openai.reply(reply), Assistant("", tuple(calls))):  # replayed, or from elsewhere
        history: list[Message] = [User.of("hi"), first, Answers((result,))]
        sdk.responses(tools, openai.messages(history, api="responses", deferred=LATE))
        sdk.chat([], openai.messages(history))
    failed = [User.of("hi"), openai.reply(reply), Answers((ToolResult.failed("denied", "no"),))]
    sdk.responses(tools, openai.messages(failed, api="responses", deferred=LATE))
    assert server.refused == []


def send_corpus(sdk: Sdk, server: Provider, every: int) -> None:
    server.refused.clear()
    for at, batch in enumerate(batches(shared_corpus())):
        if at % every:
            continue
        for send, tools, write in FORMATS.values():
            getattr(sdk, send)(tools(batch), write(HISTORY))
            server.requests.clear()
    assert server.refused == []


def test_a_sample_of_the_shared_corpus_by_the_sdks(sdk: Sdk, server: Provider) -> None:
    send_corpus(sdk, server, 40)


@pytest.mark.soak
def test_the_whole_shared_corpus_by_the_sdks(sdk: Sdk, server: Provider) -> None:
    send_corpus(sdk, server, 1)
