"""The server as Streamable HTTP: sessions and a GET stream (legacy), POST alone (2026-07-28).

A process of its own holds the port and starts the server in a child, anew whenever it ends, as a
service manager would. The child ends with its parent, however that ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from http.server import ThreadingHTTPServer

from toolcrib.testing.fault_server.answering import Handler
from toolcrib.testing.fault_server.protocol import Server
from toolcrib.testing.fault_server.sessions import Sessions

__all__ = ["serve"]

AGAIN = 0.02
"""Seconds before a child that ended is replaced: one that dies at its start must not spin."""


def serve(server: Server, port: int, leashed: bool) -> None:
    """Listens on the loopback `port` (0: any) and says on stdout which it is, and the process of
    each start. `leashed`: ends with its standard input."""
    listening = socket.create_server(("127.0.0.1", port), backlog=128)
    _say(url=f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
    alive, held = os.pipe()
    with suppress(KeyboardInterrupt):
        while True:
            if (child := os.fork()) == 0:
                os.close(held)
                _serve(server, listening, [alive, 0] if leashed else [alive])
            os.waitpid(child, 0)
            if leashed and _is_cut():
                return
            time.sleep(AGAIN)


def _serve(server: Server, listening: socket.socket, leashes: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent ends, and this with it
    threading.Thread(target=_end_with_any, args=(leashes,), daemon=True).start()
    acts = server.start()
    _say(pid=os.getpid())
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    web.daemon_threads = True
    web.socket.close()
    web.socket = listening
    web.server_name, web.server_port = listening.getsockname()[:2]
    Handler.sessions = Sessions(server)
    Handler.sessions.begin(acts)
    web.serve_forever()


def _end_with_any(leashes: list[int]) -> None:
    """Ends this process once one of these is at its end."""
    while True:
        for ready in select.select(leashes, [], [])[0]:
            if not os.read(ready, 4096):
                os._exit(0)


def _is_cut() -> bool:
    ready, _, _ = select.select([0], [], [], 0)
    return bool(ready) and not os.read(0, 4096)


def _say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")
