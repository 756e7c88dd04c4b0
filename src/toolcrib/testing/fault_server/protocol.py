"""The protocol, both eras: a message of the client in, acts out. Knows no transport.

It is lenient: what a client must send with a request in 2026-07-28 is not insisted upon, and what
is no message is answered with an error and noted.
"""

from __future__ import annotations

import json
from typing import Final, cast

from toolcrib.testing.fault_server.acts import Acts, Asked, Listen, Message, Say
from toolcrib.testing.fault_server.home import Home
from toolcrib.testing.fault_server.table import through
from toolcrib.testing.fault_server.tools import TOOLS, Call, call

__all__ = ["ERAS", "SUBSCRIPTION", "NoMessage", "Server", "notification", "read", "wire"]

ERAS: Final = ("legacy", "modern", "silent")
"""legacy: 2025-11-25 · modern: 2026-07-28 · silent: legacy, ignoring methods it does not know."""

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
CAPABLE: Final = {"tools": {"listChanged": True}, "resources": {}}
WHO: Final = {"name": "fault server", "version": "1"}
MEMO: Final = {"uri": "memo://one", "name": "one", "mimeType": "text/plain", "size": 8}
CACHE: Final = {"ttlMs": 0, "cacheScope": "private"}


class Server:
    """One server of `era`; what it knows of faults, and where it notes what happens, is `home`."""

    def __init__(self, era: str, home: Home) -> None:
        self.modern = era == "modern"
        self.silent = era == "silent"
        self.home = home

    def start(self) -> Acts:
        """What it does before its first message."""
        self.home.note(method="start")
        asked = Asked("start", None, {})
        return through(self.home.faults(asked), asked, iter(()))

    def not_understood(self, error: NoMessage, **seen: object) -> Message:
        """Notes what came and was no message; what is answered."""
        self.home.note(method="", sent=error.sent, **seen)
        return {"jsonrpc": "2.0", "id": None, "error": {"code": error.code, "message": str(error)}}

    def answer(self, message: Message, **seen: object) -> Acts:
        """What it does about one message; `seen` is noted with it."""
        method = message.get("method")
        if not isinstance(method, str):
            return iter(())  # an answer of the client, to a question never asked
        asked = Asked(method, message.get("id"), _object(message.get("params")))
        self.home.note(method=method, id=asked.id, params=asked.params, **seen)
        return through(self.home.faults(asked), asked, self._acts(asked))

    def _acts(self, asked: Asked) -> Acts:
        if asked.id is None:
            return iter(())
        if asked.method == "tools/call":
            return self._called(asked)
        if asked.method == "subscriptions/listen" and self.modern:
            return iter([Listen(acknowledgement(asked))])
        result = self._result(asked)
        if result is not None:
            return iter([said(asked, self._finished(result))])
        return iter(()) if self.silent else iter([unknown(asked)])

    def _called(self, asked: Asked) -> Acts:
        arguments = _object(asked.params.get("arguments"))
        made = Call(asked.id, arguments, _object(asked.params.get("_meta")), self.home)
        for act in call(str(asked.params.get("name")), made):
            if isinstance(act, Say) and "result" in act.message:
                act = said(asked, self._finished(act.message["result"]))
            yield act

    def _result(self, asked: Asked) -> Message | None:
        """The result of a request, None where the era has no such method."""
        if asked.method == "initialize" and not self.modern:
            return {"protocolVersion": "2025-11-25", "capabilities": CAPABLE, "serverInfo": WHO}
        if asked.method == "server/discover" and self.modern:
            return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABLE, **CACHE}
        if asked.method == "ping" and not self.modern:
            return {}
        if asked.method == "resources/read":
            return {"contents": [{"uri": asked.params.get("uri"), "text": "remember"}], **CACHE}
        lists = {"tools/list": {"tools": TOOLS}, "resources/list": {"resources": [MEMO]}}
        return {**lists[asked.method], **CACHE} if asked.method in lists else None

    def _finished(self, result: Message) -> Message:
        return {"resultType": "complete", **result} if self.modern else result


def said(asked: Asked, result: Message) -> Say:
    return Say({"jsonrpc": "2.0", "id": asked.id, "result": result})


def unknown(asked: Asked) -> Say:
    error = {"code": -32601, "message": f"no method {asked.method}"}
    return Say({"jsonrpc": "2.0", "id": asked.id, "error": error})


def acknowledgement(asked: Asked) -> Message:
    """What a subscription's stream begins with."""
    params = {
        "_meta": {SUBSCRIPTION: asked.id},
        "notifications": asked.params.get("notifications", {}),
    }
    method = "notifications/subscriptions/acknowledged"
    return {"jsonrpc": "2.0", "method": method, "params": params}


class NoMessage(ValueError):
    """What a client sent is no JSON-RPC message."""

    def __init__(self, sent: bytes, code: int, why: str) -> None:
        super().__init__(why)
        self.sent = sent[:1000].decode(errors="replace")
        self.code = code


def read(data: bytes) -> Message:
    """The message in `data`. Raises `NoMessage`."""
    try:
        message = json.loads(data)
    except ValueError:
        raise NoMessage(data, -32700, "this is not JSON") from None
    if not isinstance(message, dict):
        raise NoMessage(data, -32600, "a message is a JSON object")
    return cast("Message", message)


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}


def wire(message: Message) -> bytes:
    """Raw Unicode rather than escapes, so that U+2028 and its like travel as they are; what UTF-8
    cannot hold is escaped."""
    try:
        return json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(message).encode()


def notification(method: str, subscription: object = None) -> Message:
    """A notification as it is told to everybody, or within a subscription."""
    if subscription is None:
        return {"jsonrpc": "2.0", "method": method}
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION: subscription}}}
