"""The middleware contract and how a chain of them becomes one function.

Composition only: which middlewares there are is `middleware`, what stands at the end `executor`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from toolcrib.content import ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.frozen import NOTHING
from toolcrib.jsonvalue import is_object
from toolcrib.policy import Policy
from toolcrib.principal import Principal
from toolcrib.tool import CallContext, SessionInfo

__all__ = ["CallNext", "Invocation", "Middleware", "compose"]


class Invocation(NamedTuple):
    """One call that was resolved, parsed and authorised: what a middleware receives.

    It cannot be changed, and the end of the chain runs what was prepared, so what a middleware
    approved is what is executed.
    """

    tool: ToolDefinition
    policy: Policy
    context: CallContext
    prepared: Any
    """The parsed arguments, in whatever form the tool's own parse gave them."""

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def call_id(self) -> str:
        return self.context.call_id

    @property
    def principal(self) -> Principal:
        return self.context.principal

    @property
    def session(self) -> SessionInfo | None:
        return self.context.session

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name, read-only; empty where the tool's parse made no mapping."""
        return MappingProxyType(self.prepared) if is_object(self.prepared) else NOTHING

    def answer(self, text: str) -> ToolResult:
        """A successful result of this text, given instead of calling the tool."""
        return ToolResult.ok(text)


CallNext: TypeAlias = Callable[[Invocation], Awaitable[ToolResult]]
Middleware: TypeAlias = Callable[[Invocation, CallNext], Awaitable[ToolResult]]
"""`async (invocation, call_next) -> ToolResult`: call on, answer yourself, or change the result."""


def compose(middlewares: Iterable[Middleware], end: CallNext) -> CallNext:
    """One function that runs `middlewares`, the first outermost, round `end`."""
    handler = end
    for middleware in reversed(tuple(middlewares)):
        handler = _link(middleware, handler)
    return handler


def _link(middleware: Middleware, call_next: CallNext) -> CallNext:
    def call(invocation: Invocation) -> Awaitable[ToolResult]:
        return middleware(invocation, call_next)

    return call
