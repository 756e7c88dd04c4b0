"""The server on its own stdin and stdout, one JSON message a line."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from toolcrib.testing.fault_server.acts import (
    Act,
    Acts,
    Block,
    Die,
    Half,
    HangUp,
    Listen,
    Message,
    Raw,
    Say,
    Stay,
    Tell,
    Wait,
)
from toolcrib.testing.fault_server.protocol import (
    SUBSCRIPTION,
    NoMessage,
    Server,
    notification,
    read,
    wire,
)

__all__ = ["serve"]


def serve(server: Server) -> None:
    """Serves until the input ends."""
    pipes = _Pipes(server)
    pipes.do(server.start())
    buffer = b""
    while chunk := os.read(0, 1 << 20):
        *lines, buffer = (buffer + chunk).split(b"\n")
        for one in lines:
            pipes.hear(one)
    while pipes.stays:
        time.sleep(60)


class _Pipes:
    """Does what a server of two pipes can do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._subscriptions: list[Any] = []
        self._writing = threading.Lock()
        self.stays = False

    def hear(self, data: bytes) -> None:
        """One line of the client."""
        try:
            message = read(data)
        except NoMessage as error:
            self._write(line(self._server.not_understood(error)))
        else:
            self.do(self._server.answer(message))

    def do(self, acts: Acts) -> None:
        """In order; what comes after a wait is done while others are answered."""
        for act in acts:
            if isinstance(act, Wait) and act.seconds > 0:
                threading.Thread(target=self._later, args=(act.seconds, acts), daemon=True).start()
                return
            self._do(act)

    def _later(self, seconds: float, acts: Acts) -> None:
        time.sleep(seconds)
        self.do(acts)

    def _do(self, act: Act) -> None:
        match act:
            case Say(message):
                self._write(line(message))
            case Half(message):
                whole = line(message)
                self._write(whole[: len(whole) // 2])
            case Raw(data):
                self._write(data)
            case Tell(method):
                self._tell(method)
            case Listen(message):
                self._subscriptions.append(message["params"]["_meta"][SUBSCRIPTION])
                self._write(line(message))
            case Block(seconds):
                time.sleep(seconds)
            case Die(status):
                os._exit(status)
            case HangUp():
                self._hang_up()
            case Stay():
                self.stays = True
            case _:
                pass  # what only HTTP has

    def _hang_up(self) -> None:
        """The pipe is closed; its number is not left to the next file that is opened."""
        with self._writing:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
        self.stays = True

    def _tell(self, method: str) -> None:
        of: list[Any] = self._subscriptions if self._server.modern else [None]
        for subscription in of:
            self._write(line(notification(method, subscription)))

    def _write(self, data: bytes) -> None:
        with self._writing:
            left = memoryview(data)
            while left:
                left = left[os.write(1, left) :]


def line(message: Message) -> bytes:
    return wire(message) + b"\n"
