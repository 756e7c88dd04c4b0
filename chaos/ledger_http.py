"""The server of `ledger_server.py` over Streamable HTTP: a process that accepts the port, and a
child that serves it and is replaced whenever it dies, as a service manager would.

    python -S -I ledger_http.py LEDGER STARTS legacy|modern

Says its port on stdout, and ends with its standard input. Before 2026-07-28 it has sessions, and a
child knows only its own.
"""

import json
import os
import select
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ledger_server import ERA, STARTS, note, reply

AGAIN = 0.02
OPENING = ("initialize", "server/discover")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, session = message.get("method"), self.headers.get("mcp-session-id")
        mine = f"session-{os.getpid()}"
        if "id" not in message:
            self.say(202)
        elif method == "subscriptions/listen" and ERA == "modern":
            self.listen(message["id"], message["params"])
        elif (
            ERA == "legacy" and method not in ("initialize", "server/discover") and session != mine
        ):
            self.say(404)
        else:
            headers = {"mcp-session-id": mine} if method == "initialize" else {}
            answer = {"jsonrpc": "2.0", "id": message["id"], **reply(message)}
            self.say(200, json.dumps(answer).encode(), **headers)

    def do_GET(self):
        self.say(405)

    def do_DELETE(self):
        self.say(200)

    def listen(self, id, params):
        """An event stream that ends with the process."""
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        values = {"_meta": meta, "notifications": params["notifications"]}
        method = "notifications/subscriptions/acknowledged"
        said = json.dumps({"jsonrpc": "2.0", "method": method, "params": values})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"event: message\ndata: {said}\n\n".encode())
        self.close_connection = True
        while not select.select([self.connection], [], [], 60)[0]:
            pass

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Web(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that hung up."""


def serve(listening):
    def end_with_input():
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=end_with_input, daemon=True).start()
    note(STARTS, os.getpid())
    web = Web(("127.0.0.1", 0), Handler, bind_and_activate=False)
    web.socket.close()
    web.socket = listening
    web.serve_forever()


def main():
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    os.write(1, f"{listening.getsockname()[1]}\n".encode())
    while True:
        if (child := os.fork()) == 0:
            serve(listening)
        os.waitpid(child, 0)
        if select.select([0], [], [], 0)[0] and not os.read(0, 1):
            return
        time.sleep(AGAIN)


main()
