"""What the server can do about a message. Values only; doing it is the transports'.

A transport does one act after the other, and asks for the next when the last is done: what an
answer costs (a wait, a death) happens where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "Act",
    "Acts",
    "Asked",
    "Block",
    "Die",
    "Forget",
    "Half",
    "HangUp",
    "Listen",
    "Message",
    "Raw",
    "Refuse",
    "Resume",
    "Say",
    "Stay",
    "Tell",
    "Wait",
]

Message: TypeAlias = dict[str, Any]


class Asked(NamedTuple):
    """A message of the client. Its method is "start" for the server's own start."""

    method: str
    id: Any
    params: Message


class Say(NamedTuple):
    """Sends a message to whoever asked."""

    message: Message


class Tell(NamedTuple):
    """Sends a notification to everybody who listens for such."""

    method: str


class Listen(NamedTuple):
    """Begins a subscription; the message acknowledges it."""

    message: Message


class Raw(NamedTuple):
    """Writes what is no message where messages are expected."""

    data: bytes


class Half(NamedTuple):
    """Sends the first half of a message."""

    message: Message


class Wait(NamedTuple):
    """Waits; other messages are answered meanwhile."""

    seconds: float


class Block(NamedTuple):
    """Waits; over stdio nothing else is answered meanwhile."""

    seconds: float


class Die(NamedTuple):
    """Ends the process at once."""

    status: int = 1


class HangUp(NamedTuple):
    """Closes the connection, and lives on."""


class Stay(NamedTuple):
    """Over stdio: the end of the input no longer ends the server."""


class Refuse(NamedTuple):
    """Answers with an HTTP status and an empty body."""

    status: int


class Forget(NamedTuple):
    """Forgets every HTTP session, and says so with a status; with a code too where it is not 0."""

    status: int
    code: int


class Resume(NamedTuple):
    """Breaks the event stream off after its first event's id. The message comes on the GET after
    `drops` resumptions that bring nothing."""

    message: Message
    drops: int


Act: TypeAlias = (
    Say | Tell | Listen | Raw | Half | Wait | Block | Die | HangUp | Refuse | Forget | Resume | Stay
)
Acts: TypeAlias = Iterator[Act]
