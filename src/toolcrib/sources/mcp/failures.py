"""How a request, or a connection, can fail: one exception for each thing that follows from it.

What an error on the wire is of these is `link.faults`'; what a caller is told, `catalogue`'s.
"""

from __future__ import annotations

__all__ = [
    "AnswerLost",
    "Forbidden",
    "NotSent",
    "Rejected",
    "ServerFault",
    "TooLate",
    "Unanswered",
    "Unreadable",
]


class Rejected(Exception):
    """No retry can mend it: the configuration is wrong."""


class NotSent(Exception):
    """The request was not executed: it never left, or was turned away."""


class Forbidden(Exception):
    """The server understood who asks, and does not let them do this: nothing was executed."""


class AnswerLost(Exception):
    """The request left and no answer will come: it may have been executed."""


class TooLate(Exception):
    """The call's time is over. It may have been executed."""


class ServerFault(Exception):
    """The server answered with a JSON-RPC error; its text is for the model."""


class Unanswered(Exception):
    """The server wants an answer first that nobody here gives: the call was not finished."""


class Unreadable(Exception):
    """The server answered, but not with what the protocol says."""
