"""What a server offers beside tools, as tools: its resources (A11.8) and its prompts.

They ask the server at each call; nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcrib.definition import Annotations, ToolDefinition
from toolcrib.manifest import ManifestTool
from toolcrib.names import exposed_name
from toolcrib.sources.mcp.calls.repeats import Calls
from toolcrib.sources.mcp.catalogue.remote_tools import asking
from toolcrib.sources.mcp.content.pages import all_pages
from toolcrib.sources.mcp.content.shapes import list_of, object_of, text_of
from toolcrib.sources.mcp.failures import ServerFault
from toolcrib.sources.mcp.server import McpServer
from toolcrib.tool import CallContext

__all__ = ["prompt_tools", "resource_tools"]

NAMES: Final = {name: name for name in ("name", "title", "description")}
LISTED: Final = {"uri": "uri", **NAMES, "mimeType": "mime_type", "size": "size"}
TEMPLATE: Final = {"uriTemplate": "uri_template", **NAMES, "mimeType": "mime_type"}
READ: Final = {"uri": "uri", "mimeType": "mime_type", "text": "text", "blob": "blob_base64"}
PROMPT: Final = {**NAMES, "arguments": "arguments"}


def resource_tools(server: Calls, declared: McpServer) -> list[ManifestTool[Any]]:
    """list_resources (templates among them) and read_resource of a server."""

    async def list_resources(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        listed = await _list(server, ctx, "resources/list", "resources")
        try:
            templates = await _list(server, ctx, "resources/templates/list", "resourceTemplates")
        except ServerFault:  # it knows none
            templates = []
        return [_renamed(one, LISTED) for one in listed] + [
            _renamed(one, TEMPLATE) for one in templates
        ]

    async def read_resource(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        answer = await server.send(ctx, "resources/read", {"uri": arguments["uri"]})
        return [_renamed(item, READ) for item in list_of(answer.get("contents"))]

    listing = _bridge(declared, "list_resources", "Lists the resources that {} offers.", {})
    reading = _bridge(
        declared,
        "read_resource",
        "Reads one resource of {} by its URI, as list_resources gives it; a uri_template stands for"
        " many: fill in what it has in braces.",
        {"uri": {"type": "string", "pattern": r"\S", "description": "The URI of the resource."}},
    )
    return [
        asking(server, listing, "list_resources", list_resources),
        asking(server, reading, "read_resource", read_resource),
    ]


def prompt_tools(server: Calls, declared: McpServer) -> list[ManifestTool[Any]]:
    """list_prompts and get_prompt of a server."""

    async def list_prompts(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        listed = await _list(server, ctx, "prompts/list", "prompts")
        return [_renamed(one, PROMPT) for one in listed]

    async def get_prompt(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
        given = {"name": arguments["name"], "arguments": dict(arguments.get("arguments", {}))}
        answer = await server.send(ctx, "prompts/get", given)
        messages = [_message(item) for item in list_of(answer.get("messages"))]
        return {**_renamed(answer, {"description": "description"}), "messages": messages}

    listing = _bridge(declared, "list_prompts", "Lists the prompts that {} offers.", {})
    getting = _bridge(
        declared,
        "get_prompt",
        "Gets one prompt of {} by its name, as list_prompts gives it.",
        {
            "name": {"type": "string", "pattern": r"\S", "description": "The prompt's name."},
            "arguments": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Its arguments, by their names.",
            },
        },
    )
    return [
        asking(server, listing, "list_prompts", list_prompts),
        asking(server, getting, "get_prompt", get_prompt),
    ]


async def _list(server: Calls, ctx: CallContext, method: str, key: str) -> list[Any]:
    async def ask(page: dict[str, Any]) -> dict[str, Any]:
        return await server.send(ctx, method, page)

    listed, _ = await all_pages(ask, key)
    return listed


def _bridge(
    declared: McpServer, name: str, description: str, properties: Mapping[str, Any]
) -> ToolDefinition:
    """A tool that changes nothing; the first of `properties` is required."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolDefinition(
        exposed_name(declared.namespace, name),
        description.format(f"the MCP server {declared.name!r}"),
        {**schema, "required": [*properties][:1]} if properties else schema,
        annotations=Annotations(read_only=True),
        meta={"server": declared.name, "remote_name": name},
    )


def _message(item: object) -> dict[str, Any]:
    message = object_of(item)
    content = object_of(message.get("content"))
    if content.get("type") == "text":
        return {"role": text_of(message.get("role")), "text": text_of(content.get("text"))}
    return {"role": text_of(message.get("role")), "content": message.get("content")}


def _renamed(item: object, names: Mapping[str, str]) -> dict[str, Any]:
    given = object_of(item)
    return {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs) is not None}
