"""The client that the official MCP conformance suite drives: our source, and nothing else of MCP.

The suite starts it with the address of its server as last argument and names the scenario in the
environment. Whatever the scenario, it does what an agent would: attach the server, look at its
tools, and make the calls that the scenario's context asks for, or one of each tool.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from toolcrib import Assembly, ToolDefinition
from toolcrib.sources import mcp

PATIENCE = 20.0


def sample(schema: Any) -> Any:
    """A value that fits a simple schema: its default, its first alternative, or the plainest."""
    if not isinstance(schema, dict):
        return "text"
    for word in ("default", "const"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return arguments(schema)
    plain: dict[Any, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": []}
    return plain.get(kind, "text")


def arguments(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {name: sample(one) for name, one in properties.items()}


def calls_of(
    context: dict[str, Any], definitions: tuple[ToolDefinition, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """The calls to make, as (tool, arguments). A tool that wants to be shown a schema is shown the
    one of its neighbour, as the client has it."""
    asked = [(one["name"], one["arguments"]) for one in context.get("toolCalls", ())]
    if asked:
        return asked
    made = [(one.name, arguments(one.input_schema)) for one in definitions]
    for _, given in made:
        if "schema" in given:
            given["schema"] = next(
                dict(one.input_schema)
                for one in definitions
                if "schema" not in one.input_schema.get("properties", {})
            )
    return made


async def make(assembly: Assembly, calls: list[tuple[str, dict[str, Any]]]) -> None:
    for name, given in calls:
        result = await assembly.call(name, given)
        print(name, "→", result.failure or str(result)[:200], flush=True)


async def main() -> int:
    url = sys.argv[-1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    print("scenario", scenario, "context", sorted(context), flush=True)
    source = mcp.http("server", url, prefix="", required=True)
    async with Assembly([source]) as assembly:
        await assembly.wait_ready(PATIENCE)
        await make(assembly, calls_of(context, assembly.catalog.definitions))
        print("health", source.health(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
