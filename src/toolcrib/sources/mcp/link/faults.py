"""What went wrong, judged by types and codes alone (T-A18: a text is never searched for words).

Pure: from an exception or an error answer to one of a few meanings, and to words without secrets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import anyio
import httpx2
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from pydantic import ValidationError

from toolcrib.sources.mcp.failures import NotSent, Rejected
from toolcrib.sources.mcp.wire.session import UnsupportedVersion

__all__ = [
    "CLOSED",
    "NO_ANSWER",
    "Fate",
    "Seen",
    "fate",
    "is_rejection",
    "leaf",
    "words",
]


CLOSED: Final = "it closed the connection"
ADVICE: Final = {
    401: ": it wants a credential, or another one: see its headers or auth",
    403: ": its credential is not enough: see its headers or auth",
    404: ": is this its Streamable HTTP address? (SSE is not spoken)",
    405: ": is this its Streamable HTTP address? (SSE is not spoken)",
}
NO_ANSWER: Final = "it took the request and gave no answer"

Fate: TypeAlias = Literal["answered", "unreadable", "not_sent", "turned_away", "stale", "lost"]
"""What became of a request that failed.

answered: the server's own error · unreadable: an answer that is none · not_sent: it never left ·
turned_away: refused before anything happened · stale: the same, because the session is no longer
valid · lost: sent, and no answer will come.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the transport saw of a request that failed: whether any byte may have left, the HTTP
    status that answered it (0: none), whether it gave the request up, as no answer can come, and
    whether the whole connection was of no more use by then."""

    sent: bool
    status: int = 0
    abandoned: bool = False
    gone: bool = False


def fate(code: int, seen: Seen, *, http: bool, modern: bool) -> Fate:
    """What an error answer of `code` means. The SDK gives local faults codes of their own, which a
    server may use too: what was seen tells them apart."""
    status = seen.status
    if code == CONNECTION_CLOSED and not seen.sent:
        return "not_sent"  # whatever else is known by now: nobody answers what never left
    if 300 <= status < 400:
        return "turned_away"  # a redirect to elsewhere, which is not followed
    if status < 400 and (seen.abandoned or (seen.gone and code == CONNECTION_CLOSED)):
        return "lost"
    if code == PARSE_ERROR:
        return "unreadable"
    if code in (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION):
        return "stale"  # refused because of what we learned at connecting: learn it again
    if not http:
        return "answered"
    if not modern and (status == 404 or code == INVALID_REQUEST):
        return "stale"  # a server says of a session it forgot: 404, or -32600 with any status
    if status >= 500 and code in (INTERNAL_ERROR, CONNECTION_CLOSED):
        return "lost"  # a proxy's answer says nothing about what the server behind it did
    if status >= 400 and (code == INTERNAL_ERROR or status in (401, 403) or not modern):
        return "turned_away"
    return "answered"


def leaf(error: BaseException) -> BaseException:
    """The first fault inside an exception group, which holds no cancellations."""
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error)
        error = inside.exceptions[0]
    return error


def is_rejection(error: BaseException, status: int) -> bool:
    """Whether a connection failed for what no retry can mend: HTTP 401 or 403, or no protocol
    version in common. A command or host that is missing today may be there tomorrow (A10.3)."""
    error = leaf(error)
    if isinstance(error, Rejected | UnsupportedVersion):
        return True
    if isinstance(error, MCPError):
        return status in (401, 403) or error.code == UNSUPPORTED_PROTOCOL_VERSION
    return False


def words(error: BaseException, status: int = 0) -> str:
    """A fault in words that can follow "MCP server 'x' is not available: "."""
    error = leaf(error)
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        return f"it cannot be started: {error.strerror}: {error.filename!r}"
    if isinstance(error, httpx2.ConnectError):
        return "its address refuses the connection or cannot be reached"
    if isinstance(error, httpx2.TimeoutException):
        return "it did not take the connection or the request in time"
    if isinstance(error, httpx2.TransportError):
        return CLOSED
    if isinstance(error, ValidationError):
        return "it answered with what the protocol does not allow"
    if isinstance(error, MCPError) and status >= 300:
        return f"it answered HTTP {status}{ADVICE.get(status, '')}"
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return CLOSED
    if isinstance(error, MCPError):
        return f"it answered with error {error.code}: {error.message[:200]}"
    if isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError | EOFError):
        return CLOSED
    text = str(error).strip().splitlines()
    if isinstance(error, Rejected | UnsupportedVersion | TimeoutError | NotSent):
        return text[0][:1000] if text else "it did not answer in time"
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
