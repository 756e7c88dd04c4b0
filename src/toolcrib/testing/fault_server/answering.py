"""One HTTP request of the client, and the acts about it as an HTTP answer."""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler
from typing import Any

from toolcrib.testing.fault_server.acts import (
    Act,
    Acts,
    Block,
    Die,
    Forget,
    Half,
    HangUp,
    Listen,
    Message,
    Raw,
    Refuse,
    Resume,
    Say,
    Tell,
    Wait,
)
from toolcrib.testing.fault_server.protocol import SUBSCRIPTION, NoMessage, read, wire
from toolcrib.testing.fault_server.sessions import Sessions
from toolcrib.testing.fault_server.streams import Stream, event, hung_up

__all__ = ["Handler"]

JSON = "application/json"
SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"
NO_METHOD = -32601


class Handler(BaseHTTPRequestHandler):
    """Answers with JSON where the first act is the answer, else with an event stream."""

    sessions: Sessions
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _session = ""
    _asked: Message
    _begun = _events = False

    def do_POST(self) -> None:
        self._begun, self._events, self._asked = False, False, {}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self._asked = read(body)
        except NoMessage as error:
            return self._json(400, self.sessions.server.not_understood(error, **self._seen))
        self._session = self.headers.get(SESSION, "")
        if (refused := self._refusal()) and not self._is_first:
            self._note(self._asked.get("method"), refused=refused)
            return self._plain(refused)
        if self._asked.get("method") == "initialize" and not self.sessions.server.modern:
            self._session = self.sessions.new()
        self._do(self.sessions.server.answer(self._asked, **self._seen))
        return None

    def do_GET(self) -> None:
        self._begun, self._events, self._asked = False, False, {}
        last = self.headers.get("Last-Event-ID")
        self._note("GET", last=last)
        if self.sessions.server.modern:
            return self._plain(405)
        if not self.sessions.knows(self.headers.get(SESSION, "")):
            return self._plain(404)
        self._begin_events()
        if last is None:
            self._stream(Stream())
        elif (message := self.sessions.rest_of(last)) is not None:
            self.wfile.write(event(message))
        return None

    def do_DELETE(self) -> None:
        self._begun, self._events, self._asked = False, False, {}
        session = self.headers.get(SESSION, "")
        self._note("DELETE")
        if self.sessions.server.modern:
            return self._plain(405)
        self.sessions.end(session)
        return self._plain(200)

    @property
    def _is_first(self) -> bool:
        return self._asked.get("method") == "initialize"

    def _refusal(self) -> int:
        """The status for a request outside any session; 0 for one that may pass."""
        if self.sessions.server.modern or (self.sessions.server.silent and not self._session):
            return 0
        if not self._session:
            return 400
        return 0 if self.sessions.knows(self._session) else 404

    def _note(self, method: object, **more: object) -> None:
        self.sessions.server.home.note(method=method, **self._seen, **more)

    @property
    def _seen(self) -> dict[str, Any]:
        """The headers that a test may ask for."""
        noted = {"session": SESSION, "authorization": "Authorization", "version": VERSION}
        return {key: self.headers.get(header) for key, header in noted.items()}

    def _do(self, acts: Acts) -> None:
        for act in acts:
            if self._act(act):
                return
        if self._begun:
            return
        if self._asked.get("id") is None:
            self._plain(202)
        elif hung_up(self.connection, None):  # no answer, ever
            self.close_connection = True

    def _act(self, act: Act) -> bool:
        """Does one act; whether nothing more can be done about this request."""
        match act:
            case Say(message):
                self._say(message)
            case Half(message):
                self._half(message)
            case Raw(data):
                self._begin_events()
                self.wfile.write(b"data: %b\n\n" % b" ".join(data.split()) if data else b"")
            case Tell(method):
                self.sessions.tell(method)
            case Listen(message):
                self._begin_events()
                self.wfile.write(event(message))
                self._stream(Stream(message["params"]["_meta"][SUBSCRIPTION]))
            case Wait(seconds) | Block(seconds):
                return seconds > 0 and hung_up(self.connection, seconds)
            case Die(status):
                os._exit(status)
            case _:
                self._break(act)
                return True
        return False

    def _break(self, act: Act) -> None:
        match act:
            case Refuse(status):
                self._plain(status)
            case Forget(status, code):
                self.sessions.forget()
                self._forgotten(status, code)
            case Resume(message, drops):
                self._begin_events()
                self.wfile.write(event(None, self.sessions.broke_off(message, drops)))
            case HangUp():
                self._begun = self.close_connection = True
            case _:
                pass  # what only stdio has

    def _forgotten(self, status: int, code: int) -> None:
        if not code:
            return self._plain(status)
        error = {"code": code, "message": "Session not found"}
        id = self._asked.get("id") if status == 200 else None
        return self._json(status, {"jsonrpc": "2.0", "id": id, "error": error})

    def _say(self, message: Message) -> None:
        is_answer = "method" not in message
        if is_answer and not self._begun:
            code = message.get("error", {}).get("code")
            modern = self.sessions.server.modern
            return self._json(404 if modern and code == NO_METHOD else 200, message)
        if self._begin_events():
            self.wfile.write(event(message))
        return None

    def _half(self, message: Message) -> None:
        data = wire(message)
        if self._begun:
            self.wfile.write(event(message)[: len(data) // 2])
        else:
            self._head(200, JSON, len(data))
            self.wfile.write(data[: len(data) // 2])

    def _stream(self, stream: Stream) -> None:
        self.sessions.opened(stream)
        try:
            stream.run(self.connection)
        except OSError:
            pass  # gone in the middle of a message
        finally:
            self.sessions.closed(stream)

    def _begin_events(self) -> bool:
        """Whether events can be sent: not after an answer that was JSON."""
        if not self._begun:
            self.close_connection = self._events = True  # its end is the stream's end
            self._head(200, "text/event-stream", None)
        return self._events

    def _json(self, status: int, message: Message) -> None:
        if self._begun:
            return
        data = wire(message)
        self._head(status, JSON, len(data))
        self.wfile.write(data)

    def _plain(self, status: int) -> None:
        self._head(status, "text/plain", 0)

    def _head(self, status: int, kind: str, length: int | None) -> None:
        self._begun = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if self.close_connection:
            self.send_header("Connection", "close")
        if self._asked.get("method") == "initialize" and self._session:
            self.send_header(SESSION, self._session)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what happened is in the journal."""
