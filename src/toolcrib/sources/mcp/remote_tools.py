"""The tools themselves: calls that go to a server, whatever connection it has at that moment.

A tool outlives its connection; while the server is down, it says so. Listing is `mirror`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from toolcrib.arguments import SchemaParser
from toolcrib.content import ToolResult
from toolcrib.definition import Annotations, ToolDefinition
from toolcrib.manifest import ManifestTool, Stages
from toolcrib.names import exposed_name
from toolcrib.results import to_result
from toolcrib.sources.mcp.faults import AnswerLost, Forbidden, ServerFault, Unreadable
from toolcrib.sources.mcp.health import OnProgress
from toolcrib.sources.mcp.mirror import Mirrored
from toolcrib.sources.mcp.pages import all_pages
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.shapes import list_of, object_of
from toolcrib.sources.mcp.translate import result_of
from toolcrib.tool import CallContext

__all__ = ["Server", "remote_tool", "resource_tools"]

Execute = Callable[[CallContext, Mapping[str, Any]], Awaitable[object]]


class Server(Protocol):
    """Where requests go: a supervised server. `request` raises `NotAvailable`, `Forbidden`,
    `AnswerLost`, `ServerFault` or `Unreadable`."""

    name: str

    async def request(
        self, method: str, params: dict[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]: ...


def remote_tool(server: Server, mirrored: Mirrored) -> ManifestTool[Any]:
    """The tool that `mirrored` describes, called on `server` by the server's own name for it."""
    remote = mirrored.remote

    async def call(ctx: CallContext, arguments: Mapping[str, Any]) -> ToolResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            ctx.progress(progress, total, message or "")

        params = {"name": remote, "arguments": dict(arguments)}
        answer = await server.request("tools/call", params, report)
        kind = answer.get("resultType", "complete")
        if kind == "input_required":
            return ToolResult.failed(
                "tool_error",
                f"MCP server {server.name!r} wants to ask a person before it goes on with"
                f" {remote!r}, and nobody is there to ask: the call was not finished",
            )
        if kind != "complete":
            raise Unreadable(f"its answer is of the unknown kind {str(kind)[:50]!r}")
        return result_of(remote, answer)

    return _tool(server, mirrored.definition, remote, call)


def _tool(
    server: Server, definition: ToolDefinition, remote: str, call: Execute
) -> ManifestTool[Any]:
    name = definition.name

    async def execute(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        try:
            return await call(ctx, arguments)
        except AnswerLost as error:
            return ToolResult.failed(
                "outcome_unknown",
                f"MCP server {server.name!r} was lost during the call of {remote!r} ({error}): it"
                " may or may not have been executed. Find out before you call it again",
            )
        except Forbidden as error:
            return ToolResult.failed(
                "denied", f"MCP server {server.name!r} refused the call of {remote!r}: {error}"
            )
        except ServerFault as error:
            return ToolResult.failed("tool_error", str(error) or "the server gave an error")
        except Unreadable as error:
            return ToolResult.failed(
                "invalid_output",
                f"MCP server {server.name!r} answered the call of {remote!r} against the protocol:"
                f" {error}; the call itself did run",
            )

    stages = Stages(SchemaParser(definition), execute, lambda value: to_result(name, value))
    return ManifestTool(definition, stages, kind="mcp", source=server.name, original=remote)


def resource_tools(server: Server, declared: McpServer) -> list[ManifestTool[Any]]:
    """list_resources and read_resource of a server, as tools (A11.8)."""

    async def list_resources(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        async def ask(page: dict[str, Any]) -> dict[str, Any]:
            return await server.request("resources/list", page)

        listed, _ = await all_pages(ask, "resources")
        return [_renamed(item, _LISTED) for item in listed]

    async def read_resource(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        answer = await server.request("resources/read", {"uri": arguments["uri"]})
        return [_renamed(item, _READ) for item in list_of(answer.get("contents"))]

    listing = _bridge(declared, "list_resources", "Lists the resources that {} offers.", {})
    reading = _bridge(
        declared,
        "read_resource",
        "Reads one resource of {} by its URI, as list_resources gives it.",
        {"uri": {"type": "string", "pattern": r"\S", "description": "The URI of the resource."}},
    )
    return [
        _tool(server, listing, "list_resources", list_resources),
        _tool(server, reading, "read_resource", read_resource),
    ]


def _bridge(
    declared: McpServer, name: str, description: str, properties: Mapping[str, Any]
) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolDefinition(
        exposed_name(declared.namespace, name),
        description.format(f"the MCP server {declared.name!r}"),
        {**schema, "required": list(properties)} if properties else schema,
        annotations=Annotations(read_only=True),
        meta={"server": declared.name, "remote_name": name},
    )


_LISTED = {name: name for name in ("uri", "name", "title", "description")} | {
    "mimeType": "mime_type",
    "size": "size",
}
_READ = {"uri": "uri", "mimeType": "mime_type", "text": "text", "blob": "blob_base64"}


def _renamed(item: object, names: Mapping[str, str]) -> dict[str, Any]:
    given = object_of(item)
    return {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs) is not None}
