"""A scripted HTTP server in the test's own loop: what it answers is a function of the message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = tuple[int, dict[str, str], Any]
"""Status (0: no answer ever; STREAM: an event stream that stays open), headers, body: a JSON value,
bytes as they are, None for a body that is cut off, the list of a stream's first messages, or what
writes the whole response itself and says whether the connection goes on."""

STREAM = -1

JSON = {"Content-Type": "application/json"}
TOOL = {"name": "act", "inputSchema": {"type": "object"}}


class Peer:
    """A server of either era, the legacy one with sessions. `on_call` answers tools/call, `gate`
    whatever it likes; `hung_up` are the requests whose connection the other side closed;
    `on_target` is told the target of each request."""

    def __init__(self, modern: bool = False) -> None:
        self.modern = modern
        self.tools: list[dict[str, Any]] = [TOOL]
        self.streams: dict[Any, asyncio.StreamWriter] = {}
        self.hung_up: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.sessions: set[str] = set()
        self.on_call: Callable[[dict[str, Any]], Answer] | None = None
        self.gate: Callable[[str, dict[str, str], dict[str, Any]], Answer | None] | None = None
        self.on_target: Callable[[bytes], None] = lambda target: None
        self.port = 0
        self._given = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self) -> int:
        return self.count("tools/call")

    def count(self, method: str) -> int:
        return sum(body.get("method") == method for _, _, body in self.requests)

    def tell(self, method: str) -> None:
        """Sends a notification on every stream that is open."""
        for id, writer in self.streams.items():
            meta = {"io.modelcontextprotocol/subscriptionId": id} if self.modern else {}
            message = {"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}
            writer.write(event(message))

    def answer(self, verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer:
        self.requests.append((verb, headers, body))
        if self.gate and (said := self.gate(verb, headers, body)):
            return said
        if verb == "GET":
            return STREAM, {}, []
        if verb != "POST":
            return 405, {}, b""
        method, id = body.get("method"), body.get("id")
        if self.modern:
            return self.answer_modern(method, id, body)
        if method == "server/discover":
            return 400, {}, b"what is that?"
        if method == "initialize":
            self._given += 1
            self.sessions.add(session := f"session-{self._given}")
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "peer", "version": "1"}
            return 200, {**JSON, "mcp-session-id": session}, reply(id, result)
        if headers.get("mcp-session-id") not in self.sessions:
            return 404, {}, b"no such session"
        if id is None:
            return 202, {}, b""
        if method == "tools/list":
            return 200, JSON, reply(id, {"tools": self.tools})
        if method == "tools/call":
            if self.on_call:
                return self.on_call(body)
            return 200, JSON, reply(id, {"content": [{"type": "text", "text": "ok"}]})
        return 200, JSON, reply(id, {})

    def answer_modern(self, method: Any, id: Any, body: dict[str, Any]) -> Answer:
        done = {"resultType": "complete"}
        if method == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return 200, JSON, reply(id, result | done | {"ttlMs": 0, "cacheScope": "private"})
        if method == "subscriptions/listen":
            meta = {"io.modelcontextprotocol/subscriptionId": id}
            honoured = {"_meta": meta, "notifications": body["params"]["notifications"]}
            method = "notifications/subscriptions/acknowledged"
            return STREAM, {}, [{"jsonrpc": "2.0", "method": method, "params": honoured}]
        if method == "tools/list":
            listed = {"tools": self.tools, "ttlMs": 0, "cacheScope": "private"}
            return 200, JSON, reply(id, listed | done)
        if method == "tools/call" and self.on_call:
            return self.on_call(body)
        return 200, JSON, reply(id, {"content": [{"type": "text", "text": "ok"}]} | done)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.on_target(head.split()[1])
                first, *lines = head.decode("latin-1").strip().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                message = json.loads(body) if body else {}
                status, said, content = self.answer(first.split()[0], headers, message)
                if status in (0, STREAM):
                    await self.stream(reader, writer, message, None if status == 0 else content)
                    return
                if not await respond(writer, status, said, content):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            writer.close()

    async def stream(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        message: dict[str, Any],
        first: list[dict[str, Any]] | None,
    ) -> None:
        """Answers with events or not at all, until the other side is gone."""
        id = message.get("id", "GET")
        if first is not None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            writer.writelines(event(one) for one in first)
            self.streams[id] = writer
        try:
            await reader.read()
            self.hung_up.append(message)
        finally:
            self.streams.pop(id, None)

    def drop(self) -> None:
        """Ends every connection there is."""
        for task in self._tasks:
            task.cancel()


def event(message: dict[str, Any]) -> bytes:
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


def reply(id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def refusal(id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


async def respond(
    writer: asyncio.StreamWriter, status: int, headers: dict[str, str], content: Any
) -> bool:
    """Writes one response; False when the connection was cut."""
    if callable(content):
        return bool(await content(writer))
    cut = content is None
    data = content if isinstance(content, bytes) else b"" if cut else json.dumps(content).encode()
    length = 1000 if cut else len(data)
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {length}"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    await writer.drain()
    return not cut


@asynccontextmanager
async def peer(port: int = 0, *, modern: bool = False) -> AsyncIterator[Peer]:
    """A peer that listens; it stops at the end, and everything that was connected."""
    one = Peer(modern)
    server = await asyncio.start_server(one.serve, "127.0.0.1", port)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        one.drop()
        await server.wait_closed()
        while one._tasks:
            await asyncio.wait(set(one._tasks))
