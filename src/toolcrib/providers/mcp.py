"""MCP's dictionaries: `Tool` out, `tools/call` parameters in, `CallToolResult` out.

For a gateway. Schemas are sent as they are: MCP takes any JSON Schema with an object at its root.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from toolcrib.content import AudioPart, DataPart, FilePart, ImagePart, Part, ToolCall, ToolResult
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.jsonvalue import is_object
from toolcrib.providers.media import sound
from toolcrib.providers.naming import sent_name, unique
from toolcrib.providers.reading import Reply, as_json, received
from toolcrib.providers.report import Export, Notes
from toolcrib.results import structured as structured_value

__all__ = ["calls", "export", "results", "tools"]


def export(definitions: Iterable[ToolDefinition]) -> Export:
    """`definitions` as MCP tools, in their order; only a name may have to be changed."""
    notes = Notes()
    return Export([_tool(definition, notes) for definition in unique(definitions)], notes.all())


def tools(definitions: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """The tools of `export`."""
    return export(definitions).tools


def _tool(definition: ToolDefinition, notes: Notes) -> dict[str, Any]:
    hints = definition.annotations
    claims = {
        "title": sound(hints.title) if hints.title else None,
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    said = {key: value for key, value in claims.items() if value is not None}
    tool: dict[str, Any] = {"name": sent_name(definition, notes)}
    if hints.title:
        tool["title"] = claims["title"]
    if definition.description:
        tool["description"] = sound(definition.description)
    tool["inputSchema"] = json.loads(sound(definition.schema_json))
    if definition.output_schema is not None:
        tool["outputSchema"] = json.loads(sound(compact_json(definition.output_schema)))
    return {**tool, "annotations": said} if said else tool


def calls(request: Reply) -> list[ToolCall]:
    """The one call in the parameters of `tools/call`, or in the whole JSON-RPC request, whose `id`
    becomes the call's."""
    said = as_json(request)
    params = said.get("params", said)
    if not is_object(params) or not isinstance(params.get("name"), str):
        return []
    call_id = said.get("id")
    text = "" if call_id is None else str(call_id)
    return [ToolCall(text, params["name"], received(params.get("arguments")))]


def results(
    results: Sequence[ToolResult],
    calls: Sequence[ToolCall] = (),
    *,
    definitions: Iterable[ToolDefinition] = (),
) -> list[dict[str, Any]]:
    """Each result as a `CallToolResult`, in their order.

    With `calls` and `definitions`, a success of a tool that declares an output schema carries its
    value as structured content; an error never does: its words are what counts (RS05, RS06).
    """
    structured = {d.name for d in definitions if d.output_schema is not None}
    names = {call.id: call.name for call in calls}
    return [_result(each, names.get(each.call_id, "") in structured) for each in results]


def _result(result: ToolResult, is_structured: bool) -> dict[str, Any]:
    content = [_block(part) for part in result.content]
    written: dict[str, Any] = {"content": content, "isError": result.is_error}
    if is_structured and not result.is_error and is_object(value := structured_value(result)):
        written["structuredContent"] = value
    return written


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart | AudioPart):
        said = part.to_json()
        return {"type": said["type"], "data": said["data"], "mimeType": part.media_type}
    if isinstance(part, FilePart):
        rest = {"mimeType": part.media_type, "description": part.description, "size": part.size}
        given = {key: value for key, value in rest.items() if value not in ("", None)}
        return {"type": "resource_link", "uri": part.uri, "name": part.name or part.uri, **given}
    text = compact_json(part.value) if isinstance(part, DataPart) else part.text
    return {"type": "text", "text": sound(text)}
