"""The parts of a stream, wherever it was cut: the same reply. Pure, without SDK and server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.streaming import (
    USAGE,
    Call,
    Event,
    Reply,
    chat_events,
    messages_events,
    responses_events,
)
from toolcrib.models.chat_parts import ChatParts
from toolcrib.models.failures import Broken, failure
from toolcrib.models.messages_parts import MessagesParts
from toolcrib.models.response import Response, Usage
from toolcrib.models.responses_parts import ResponsesParts
from toolcrib.models.streaming import Parts
from toolcrib.models.telling import Telling, whole
from toolcrib.providers import anthropic, openai
from toolcrib.providers.history import Assistant

Make = Callable[[], Parts]
Encode = Callable[[Reply], Iterable[Event]]
Read = Callable[[dict[str, Any]], Assistant]
APIS: dict[str, tuple[Make, Encode, Read]] = {
    "chat": (ChatParts, chat_events, openai.reply),
    "responses": (ResponsesParts, responses_events, openai.reply),
    "anthropic": (MessagesParts, messages_events, anthropic.reply),
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.dictionaries(
    st.text("abc_", min_size=1, max_size=3),
    st.recursive(
        st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=3)
    ),
    max_size=3,
)
calls = st.lists(st.tuples(st.sampled_from(["one", "two"]), values, st.booleans()), max_size=4)


def fed(parts: Parts, events: Iterable[Event]) -> str:
    return "".join(parts.feed(data) for _, data in events if isinstance(data, dict))


@pytest.mark.parametrize("api", APIS)
@given(text=texts, asked=calls, steps=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_however_it_is_cut_it_is_the_same_reply(
    api: str, text: str, asked: list[tuple[str, dict[str, Any], bool]], steps: tuple[int, int]
) -> None:
    make, encode, read = APIS[api]
    made = tuple(
        Call(f"c{at}", name, json.dumps(arguments, ensure_ascii=ascii))
        for at, (name, arguments, ascii) in enumerate(asked)
    )
    parts = make()
    told = fed(parts, encode(Reply(text, made, steps=steps)))
    said = read(parts.reply())
    assert said.text == told
    assert said.text == text or api == "responses"  # there, a line is a message
    assert said.text.replace("\n", "") == text.replace("\n", "")
    got = [(call.id, call.name, json.loads(call.arguments)) for call in said.calls]
    assert got == [(f"c{at}", name, arguments) for at, (name, arguments, _) in enumerate(asked)]
    assert parts.usage == Usage(*USAGE)


@pytest.mark.parametrize("api", APIS)
@given(text=texts, cut=st.integers(0, 60))
def test_a_part_of_a_stream_is_no_reply(api: str, text: str, cut: int) -> None:
    make, encode, _ = APIS[api]
    events = list(encode(Reply(text, (Call("c", "one", "{}"),))))
    necessary = len(events) - (3 if api == "chat" else 1)  # the tokens and [DONE] are not
    parts = make()
    fed(parts, events[: min(cut, necessary)])
    with pytest.raises(Broken):
        parts.reply()


@given(st.text(), st.lists(st.integers(0, 60)))
def test_what_is_told_is_whole_characters_and_all_of_them(text: str, cuts: list[int]) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [
        units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)
    ]
    heard: list[str] = []
    telling = Telling(heard.append)
    ends = sorted({min(cut, len(halves)) for cut in cuts} | {0, len(halves)})
    for begin, end in itertools.pairwise(ends):
        telling("".join(halves[begin:end]))
    telling.end(whole(text))
    assert "".join(heard) == whole(text)
    for piece in heard:
        piece.encode()


def test_an_input_that_came_whole_is_kept_beside_an_empty_delta() -> None:
    block = {"type": "tool_use", "id": "c", "name": "one", "input": {"a": 1}}
    parts = MessagesParts()
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
        {"type": "content_block_start", "index": 1, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": ""},
        },
        {"type": "message_stop"},
    ]
    assert [parts.feed(event) for event in events] == ["x", "", "", ""]
    assert anthropic.reply(parts.reply()).calls[0].arguments == '{"a":1}'
    assert parts.last_arguments == '{"a":1}'


def test_citations_are_kept_with_their_text() -> None:
    text: dict[str, Any] = {"type": "text", "text": ""}
    parts = MessagesParts()
    fed(parts, [("", {"type": "content_block_start", "index": 0, "content_block": text})])
    for delta in (
        {"type": "text_delta", "text": "It says so."},
        {"type": "citations_delta", "citation": {"cited_text": "so"}},
        {"type": "of_another_year"},
    ):
        parts.feed({"type": "content_block_delta", "index": 0, "delta": delta})
    fed(parts, [("", {"type": "of_another_year"}), ("", {"type": "message_stop"})])
    kept = {"type": "text", "text": "It says so.", "citations": [{"cited_text": "so"}]}
    assert parts.reply() == {"content": [kept]}


def test_two_responses_add_up_and_stand_in_a_transcript_as_messages() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33)
    said = Response("x", usage=Usage(1), stop="stop")
    assert isinstance(said, Assistant)
    assert (said.text, said.usage.input, said.stop) == ("x", 1, "stop")


@pytest.mark.parametrize(
    "body",
    ["a page", {"error": "words"}, {"error": {"code": 7}}, {"detail": [1]}, None, [], 7],
)
def test_whatever_a_server_writes_is_told_and_bounded(body: object) -> None:
    class Said(Exception):
        def __init__(self) -> None:
            super().__init__("x" * 9_000)
            self.body = body
            self.status_code = 503

    failed = failure(Said(), [None, ""], told=False)
    assert failed.status == 503 and failed.may_pass
    assert 10 < len(str(failed)) < 1_100
