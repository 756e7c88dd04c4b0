"""The contract: what a tool is, and what it is handed with each call.

A contract on one screen; how a call is split into stages is `manifest`, who runs them `executor`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolcrib.content import ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.host import Host
from toolcrib.policy import NO_POLICY, Policy
from toolcrib.principal import LOCAL, Principal

__all__ = [
    "CallContext",
    "Cancellation",
    "Executed",
    "Progress",
    "ProgressHandler",
    "SessionInfo",
    "Tool",
    "closer_of",
]


logger = logging.getLogger("toolcrib.executor")


@runtime_checkable
class Tool(Protocol):
    """Anything callable by a model.

    `execute` gets the arguments as the text of a JSON object that fits `definition.input_schema`.
    It returns what the model shall see, raises `ToolError` to say what went wrong, and may define
    `close()` or `aclose()`, called once after it was withdrawn and its last call ended.
    """

    @property
    def definition(self) -> ToolDefinition: ...

    async def execute(self, ctx: CallContext, arguments: str) -> ToolResult | str: ...


def closer_of(tool: Tool) -> Callable[[], object] | None:
    """What closes `tool`: its `on_close`, `aclose` or `close`, the first there is; may be async."""
    found: Callable[[], object] | None = (
        getattr(tool, "on_close", None)
        or getattr(tool, "aclose", None)
        or getattr(tool, "close", None)
    )
    return found


class SessionInfo(Protocol):
    """What a tool may know of the conversation it is called in."""

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is: `current` of `total` (None: unknown), in the tool's own unit."""

    call_id: str
    current: float
    total: float | None = None
    message: str = ""


ProgressHandler = Callable[[Progress], None]

Executed = Callable[[str], None]
"""Told the name of a tool whose execution begins: a session keeps it in view."""


class Cancellation:
    """Whether a call should stop; readable from any thread, where no cancellation reaches."""

    __slots__ = ("_requested",)

    def __init__(self) -> None:
        self._requested = False

    @property
    def requested(self) -> bool:
        return self._requested

    def request(self) -> None:
        self._requested = True

    def raise_if_requested(self) -> None:
        """Raises `asyncio.CancelledError` once the call was cancelled or ran out of time."""
        if self._requested:
            raise asyncio.CancelledError("the call was cancelled")


class CallContext:
    """One call, as its tool sees it. Made by the executor; lives as long as the call.

    `deadline` is a `time.monotonic()` moment or None, set by the caller or inherited by a nested
    call. `policy` is the record in force for the tool, `host` who can be asked on behalf of the
    conversation. A function tool gets the context in the parameter annotated with this class.
    """

    __slots__ = (
        "_cancellation",
        "_on_progress",
        "call_id",
        "deadline",
        "host",
        "in_own_task",
        "name",
        "on_executed",
        "policy",
        "principal",
        "session",
        "still_running",
    )

    def __init__(
        self,
        name: str,
        call_id: str = "",
        principal: Principal = LOCAL,
        session: SessionInfo | None = None,
        deadline: float | None = None,
        on_progress: ProgressHandler | None = None,
        on_executed: Executed | None = None,
    ) -> None:
        self.name = name
        self.call_id = call_id
        self.principal = principal
        self.session = session
        self.deadline = deadline
        self._on_progress = on_progress
        self.on_executed = on_executed
        self.policy: Policy = NO_POLICY
        self.host: Host | None = None
        self._cancellation: Cancellation | None = None
        self.in_own_task = False
        """Whether the call runs in a task that only the executor cancels."""
        self.still_running = False
        """Whether the call was given up while its thread goes on."""

    @property
    def cancellation(self) -> Cancellation:
        found = self._cancellation
        if found is None:
            found = self._cancellation = Cancellation()
        return found

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """`toolcrib.tool.<name>`, each record carrying `call_id`."""
        logger = logging.getLogger(f"toolcrib.tool.{self.name}")
        return logging.LoggerAdapter(logger, {"call_id": self.call_id})

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """Tells the host how far the call is; nothing happens where no host listens. The host's
        handler runs in the thread that reports."""
        if self._on_progress is None:
            return
        try:
            self._on_progress(Progress(self.call_id, current, total, message))
        except Exception:  # the host's fault is not the tool's
            logger.exception("the progress handler of call %r failed", self.call_id)

    def __repr__(self) -> str:
        return f"<CallContext {self.name!r} call {self.call_id!r} by {self.principal.id!r}>"
