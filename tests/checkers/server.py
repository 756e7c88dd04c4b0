"""A loopback server that the official SDK clients talk to: checks each request, keeps it, answers
with the next scripted reply of that provider."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from checkers import anthropic, gemini, openai
from checkers.common import Refused

CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    ],
}
RESPONSE = {
    "id": "r1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
    ],
}
MESSAGE = {
    "id": "msg1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [{"type": "text", "text": "ok"}],
}
CONTENT = {
    "responseId": "g1",
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
    ],
}


class Provider(ThreadingHTTPServer):
    """All four APIs behind one port. `refused` holds every rule that was broken, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.refused: list[Refused] = []
        self.replies: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/chat/completions"):
            openai.check_chat(request)
            usual = CHAT
        elif path.endswith("/responses"):
            openai.check_responses(request)
            usual = RESPONSE
        elif path.endswith("/v1/messages"):
            anthropic.check(request)
            usual = MESSAGE
        elif found := re.search(r"/models/([^:]+):generateContent", path):
            gemini.check(request, found[1])
            usual = CONTENT
        else:
            raise Refused("path", path)
        return self.replies.pop(0) if self.replies else usual


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(body)
        self.server.requests.append(request)
        try:
            status, reply = 200, self.server.answer(self.path.split("?")[0], request)
        except Refused as refusal:
            self.server.refused.append(refusal)
            status, reply = (
                400,
                {"error": {"message": str(refusal), "code": 400, "type": "invalid"}},
            )
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: what was refused is kept."""


@contextmanager
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
