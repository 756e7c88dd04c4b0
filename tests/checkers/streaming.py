"""A loopback server that streams as the providers do, for the official SDK clients: OpenAI's chat
completions and responses, Anthropic's messages. Checks and keeps each request, then plays a reply.

Written from the wire alone; imports nothing of toolcrib. Bytes are written a few at a time, so that
chunks end inside JSON strings and inside UTF-8 sequences; deltas end inside escapes.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from checkers import anthropic, openai
from checkers.common import Refused, need

USAGE = (120, 34, 100)
"""Input (with what was cached), output, cached."""
BYTES = 97

Event = tuple[str, dict[str, Any] | str]
"""Its name (blank: none is written) and its data; a string is written as it is."""


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """What the model says. `then` is what happens after `cut` of its events instead of the rest:
    `drop` the connection, `end` the body early, an `error` event, or `hold` still until the client
    goes away. `status` other than 200 is an HTTP error with `message`."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: str = ""
    then: Literal["", "drop", "end", "error", "hold"] = ""
    cut: int = 0
    status: int = 200
    message: str = "the server is on fire"
    headers: tuple[tuple[str, str], ...] = ()
    bytes: int = BYTES
    steps: tuple[int, int] = (5, 3)
    """Characters of text and of arguments in one delta."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """Instead of all that: exactly these."""


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


# -- the three protocols --------------------------------------------------------------------------


def chat_events(reply: Reply) -> Iterator[Event]:
    def chunk(delta: dict[str, Any] | None, stop: str | None = None, **more: Any) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        choices = [] if delta is None else [choice]
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return "", {**head, "choices": choices, "usage": None, **more}

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    yield "", ": a comment keeps the connection alive"
    for piece in pieces(reply.text, reply.steps[0]):
        yield chunk({"content": piece})
    for at, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        opened = {"index": at, "id": call.id, "type": "function", "function": function}
        yield chunk({"tool_calls": [opened]})
    split = [pieces(call.arguments, reply.steps[1]) for call in reply.calls]
    for turn in range(max(map(len, split), default=0)):  # the calls of a message interleaved
        for at, parts in enumerate(split):
            if turn < len(parts):
                part = {"index": at, "function": {"arguments": parts[turn]}}
                yield chunk({"tool_calls": [part]})
    yield chunk({}, reply.stop or ("tool_calls" if reply.calls else "stop"))
    counts = {
        "prompt_tokens": USAGE[0],
        "completion_tokens": USAGE[1],
        "total_tokens": USAGE[0] + USAGE[1],
        "prompt_tokens_details": {"cached_tokens": USAGE[2]},
    }
    yield chunk(None, usage=counts)
    yield "", "data: [DONE]"


def responses_events(reply: Reply) -> Iterator[Event]:
    items: list[dict[str, Any]] = []
    number = iter(range(100_000))
    frame = {
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "output": items,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip

    def event(name: str, /, **data: Any) -> Event:
        return name, {"type": name, "sequence_number": next(number), **data}

    started = {**frame, "status": "in_progress", "output": []}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    if reply.thinking:
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
        yield event("response.output_item.added", output_index=0, item=item)
        yield event("response.output_item.done", output_index=0, item=item)
        items.append(item)
    for text in filter(None, reply.text.split("\n")):  # a message each
        yield from _message(event, len(items), pieces(text, reply.steps[0]))
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        items.append({**item, "content": [part]})
        yield event("response.output_item.done", output_index=len(items) - 1, item=items[-1])
    for call in reply.calls:
        at, own = len(items), f"fc_{call.id}"
        named = {"type": "function_call", "id": own, "call_id": call.id, "name": call.name}
        empty = {**named, "arguments": "", "status": "in_progress"}
        yield event("response.output_item.added", output_index=at, item=empty)
        for piece in pieces(call.arguments, reply.steps[1]):
            yield event(
                "response.function_call_arguments.delta",
                output_index=at, item_id=own, delta=piece,
            )  # fmt: skip
        yield event(
            "response.function_call_arguments.done",
            output_index=at, item_id=own, arguments=call.arguments, name=call.name,
        )  # fmt: skip
        items.append({**named, "arguments": call.arguments, "status": "completed"})
        yield event("response.output_item.done", output_index=at, item=items[-1])
    counts = {
        "input_tokens": USAGE[0],
        "output_tokens": USAGE[1],
        "total_tokens": USAGE[0] + USAGE[1],
        "input_tokens_details": {"cached_tokens": USAGE[2]},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    status = "incomplete" if reply.stop else "completed"
    details = {"reason": reply.stop} if reply.stop else None
    ended = {**frame, "status": status, "incomplete_details": details, "usage": counts}
    yield event(f"response.{status}", response=ended)


def _message(event: Any, at: int, deltas: list[str]) -> Iterator[Event]:
    where: dict[str, Any] = {"output_index": at, "item_id": "msg_1", "content_index": 0}
    head = {"type": "message", "id": "msg_1", "role": "assistant"}
    empty = {"type": "output_text", "text": "", "annotations": []}
    opened = {**head, "status": "in_progress", "content": []}
    yield event("response.output_item.added", output_index=at, item=opened)
    yield event("response.content_part.added", **where, part=empty)
    for piece in deltas:
        yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
    whole = "".join(deltas)
    yield event("response.output_text.done", **where, text=whole, logprobs=[])
    yield event("response.content_part.done", **where, part={**empty, "text": whole})


def messages_events(reply: Reply) -> Iterator[Event]:
    def event(name: str, /, **data: Any) -> Event:
        return name, {"type": name, **data}

    def delta(at: int, kind: str, **data: Any) -> Event:
        return event("content_block_delta", index=at, delta={"type": kind, **data})

    fresh = USAGE[0] - USAGE[2]
    counts = {
        "input_tokens": fresh,
        "output_tokens": 1,
        "cache_read_input_tokens": USAGE[2],
        "cache_creation_input_tokens": 0,
    }
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
    open_end = {"stop_reason": None, "stop_sequence": None}
    yield event("message_start", message={**head, **open_end, "usage": counts})
    yield event("ping")
    at = 0
    if reply.thinking:
        block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
        yield event("content_block_start", index=at, content_block=block)
        for piece in pieces(reply.thinking, reply.steps[0]):
            yield delta(at, "thinking_delta", thinking=piece)
        yield delta(at, "signature_delta", signature="EqQB")
        yield event("content_block_stop", index=at)
        at += 1
    if reply.text:
        yield event("content_block_start", index=at, content_block={"type": "text", "text": ""})
        for piece in pieces(reply.text, reply.steps[0]):
            yield delta(at, "text_delta", text=piece)
            yield event("ping")
        yield event("content_block_stop", index=at)
        at += 1
    for call in reply.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event("content_block_start", index=at, content_block=block)
        yield delta(at, "input_json_delta", partial_json="")
        for piece in pieces(call.arguments, reply.steps[1]):
            yield delta(at, "input_json_delta", partial_json=piece)
        yield event("content_block_stop", index=at)
        at += 1
    stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
    ended = {"stop_reason": stop, "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": USAGE[1]})
    yield event("message_stop")


def cut_at(events: Sequence[Event], where: str) -> int:
    """How many of `events` come before the text `where`, and two of those that carry on with it."""
    found = next(at for at, (_, data) in enumerate(events) if where in json.dumps(data))
    return found + 2


def error_event(path: str, message: str) -> Event:
    if path.endswith("/messages"):
        inner = {"type": "overloaded_error", "message": message}
        return "error", {"type": "error", "error": inner}
    if path.endswith("/responses"):
        return "error", {
            "type": "error", "sequence_number": 9, "code": "server_error", "message": message,
            "param": None,
        }  # fmt: skip
    return "", {"error": {"message": message, "type": "server_error", "code": None}}


# -- the server -----------------------------------------------------------------------------------


class Streams(ThreadingHTTPServer):
    """Plays `replies`, one a request. `requests` are the bodies that came, `refused` every rule
    they broke; `held` is set while a reply holds still, `gone` once its client went away."""

    daemon_threads = True

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[Refused] = []
        self.held = threading.Event()
        self.gone = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def events(self, path: str, request: dict[str, Any]) -> tuple[Reply, list[Event]]:
        need(request.get("stream") is True, "stream", "not asked for")
        if path.endswith("/chat/completions"):
            openai.check_chat(request)
            encode = chat_events
        elif path.endswith("/responses"):
            openai.check_responses(request)
            encode = responses_events
        else:
            need(path.endswith("/v1/messages"), "path", path)
            anthropic.check(request)
            encode = messages_events
        need(bool(self.replies), "reply", "none is left")
        reply = self.replies.pop(0)
        events = list(reply.events or encode(reply))
        if not (request.get("stream_options") or {}).get("include_usage"):  # asked for in chat only
            events = [event for event in events if '"prompt_tokens"' not in json.dumps(event)]
        return reply, events


class _Handler(BaseHTTPRequestHandler):
    server: Streams
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(request)
        self.server.headers.append({key.lower(): value for key, value in self.headers.items()})
        path = self.path.split("?")[0]
        try:
            reply, events = self.server.events(path, request)
        except Refused as refusal:
            self.server.refused.append(refusal)
            self._fail(Reply(status=400, message=str(refusal)))
            return
        if reply.status != 200:
            self._fail(reply)
            return
        try:
            self._stream(path, reply, events)
        except OSError:  # the client went away while we wrote
            self.server.gone.set()
            self.close_connection = True

    def _fail(self, reply: Reply) -> None:
        error = {"message": reply.message, "type": "api_error", "code": None}
        data = json.dumps({"type": "error", "error": error}).encode()
        self.send_response(reply.status)
        for name, value in (("content-type", "application/json"), *reply.headers):
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, path: str, reply: Reply, events: list[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        whole = events if not reply.then else events[: reply.cut]
        if reply.then == "error":
            whole = [*whole, error_event(path, reply.message)]
        data = b"".join(map(_written, whole))
        for at in range(0, len(data), reply.bytes):
            self._chunk(data[at : at + reply.bytes])
        if reply.then == "hold":
            self._hold()
        if reply.then in ("drop", "hold"):
            self.close_connection = True
        else:
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _hold(self) -> None:
        self.server.held.set()
        ready, _, _ = select.select([self.connection], [], [], 20)
        if ready and not self.connection.recv(1, socket.MSG_PEEK):
            self.server.gone.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: what was refused is kept."""


def _written(event: Event) -> bytes:
    name, data = event
    if isinstance(data, str):
        return f"{data}\n\n".encode()
    head = f"event: {name}\n" if name else ""
    text = json.dumps(data, ensure_ascii=False)
    try:
        return f"{head}data: {text}\n\n".encode()
    except UnicodeEncodeError:  # half a surrogate pair is only written as an escape
        return f"{head}data: {json.dumps(data)}\n\n".encode()


@contextmanager
def streams(*replies: Reply) -> Iterator[Streams]:
    """A running server; at the end, no request may have broken a rule."""
    server = Streams(replies)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    assert server.refused == []
