"""The tools themselves: calls that go to a server, whatever connection it has at that moment.

A tool outlives its connection; while the server is down, it says so. What is listed is `mirror`,
sending `calls`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from toolcrib.arguments import SchemaParser
from toolcrib.content import FailureKind, ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.manifest import ManifestTool, Stages
from toolcrib.results import to_result
from toolcrib.sources.mcp.calls.repeats import Calls
from toolcrib.sources.mcp.catalogue.mirror import Mirrored
from toolcrib.sources.mcp.content.translate import result_of
from toolcrib.sources.mcp.failures import (
    AnswerLost,
    Forbidden,
    ServerFault,
    TooLate,
    Unanswered,
    Unreadable,
)
from toolcrib.tool import CallContext

__all__ = ["asking", "remote_tool"]

Execute: TypeAlias = Callable[[CallContext, Mapping[str, Any]], Awaitable[object]]

FAILURES: Final = (AnswerLost, Forbidden, ServerFault, TooLate, Unanswered, Unreadable)


def remote_tool(server: Calls, mirrored: Mirrored) -> ManifestTool[Any]:
    """The tool that `mirrored` describes, called on `server` by the server's own name for it."""
    remote = mirrored.remote

    async def call(ctx: CallContext, arguments: Mapping[str, Any]) -> ToolResult:
        params = {"name": remote, "arguments": dict(arguments)}
        answer = await server.send(ctx, "tools/call", params)
        kind = answer.get("resultType", "complete")
        if kind != "complete":
            raise Unreadable(f"its answer is of the unknown kind {str(kind)[:50]!r}")
        return result_of(remote, answer)

    return asking(server, mirrored.definition, remote, call)


def asking(
    server: Calls, definition: ToolDefinition, remote: str, call: Execute
) -> ManifestTool[Any]:
    """A tool whose `call` asks `server`, with each way that can fail as a failure."""
    name = definition.name

    async def execute(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        try:
            return await call(ctx, arguments)
        except FAILURES as error:
            return ToolResult.failed(*_failure(error, server.name, remote))

    stages = Stages(SchemaParser(definition), execute, lambda value: to_result(name, value))
    return ManifestTool(definition, stages, kind="mcp", source=server.name, original=remote)


def _failure(error: Exception, server: str, remote: str) -> tuple[FailureKind, str]:
    """What a call of `remote` failed with, and what is said of that to the model."""
    match error:
        case AnswerLost():
            return "outcome_unknown", (
                f"MCP server {server!r} was lost during the call of {remote!r} ({error}): it may or"
                " may not have been executed. Find out before you call it again"
            )
        case TooLate():
            return "timeout", (
                f"MCP server {server!r} was given up during the call of {remote!r}: {error}. It was"
                " told to stop, and may have executed the call all the same"
            )
        case Forbidden():
            return "denied", f"MCP server {server!r} refused the call of {remote!r}: {error}"
        case Unanswered():
            return "tool_error", (
                f"MCP server {server!r} did not finish the call of {remote!r}: {error}"
            )
        case Unreadable():
            return "invalid_output", (
                f"MCP server {server!r} answered the call of {remote!r} against the protocol:"
                f" {error}; the call itself did run"
            )
        case _:
            return "tool_error", str(error) or "the server gave an error"
