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

import httpx2

from toolcrib import Assembly, ToolDefinition
from toolcrib.host import Elicitation, ElicitationAnswer, accepted
from toolcrib.sources.mcp import McpServer, McpSource
from toolcrib.sources.mcp.auth import Auth, AuthorizationCode, ClientCredentials, MemoryStore

PATIENCE = 20.0
REDIRECT_PORT = 8765
CIMD = "https://conformance-test.local/client-metadata.json"
"""The address the suite knows as a client metadata document."""


class Agreeable:
    """A host that says yes to whatever a server asks, and changes nothing of what it suggests."""

    async def elicit(self, question: Elicitation) -> ElicitationAnswer:
        print("asked", question, flush=True)
        return accepted()


async def person(url: str) -> str:
    """Somebody who grants everything: follows the authorization address to where it leads back."""
    async with httpx2.AsyncClient() as browser:
        response = await browser.get(url, follow_redirects=False)
    print("person", response.status_code, flush=True)
    return response.headers["location"]


def credential(scenario: str, context: dict[str, Any]) -> Auth | None:
    """What the scenario's context says the client is; None outside auth/*."""
    if not scenario.startswith("auth/"):
        return None
    if "client-credentials" in scenario:
        key, issuer = context.get("private_key_pem", ""), context.get("issuer", "")
        return ClientCredentials(
            context["client_id"],
            context.get("client_secret", ""),
            issuer,
            method="private_key_jwt" if key else "client_secret_basic",
            private_key=key,
            algorithm=context.get("signing_algorithm", "RS256"),
        )
    return AuthorizationCode(
        client_id=context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
        client_metadata_url="" if context.get("client_id") else CIMD,
        redirect_port=REDIRECT_PORT,
        person=person,
        store=MemoryStore(),
    )


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
    auth = credential(scenario, context)
    source = McpSource([McpServer("server", "http", url=url, prefix="", required=True, auth=auth)])
    async with Assembly([source], host=Agreeable()) as assembly:
        await assembly.wait_ready(PATIENCE)
        await make(assembly, calls_of(context, assembly.catalog.definitions))
        print("health", source.health(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
