"""The contract of a tool (`tool.Tool`), played through."""

from __future__ import annotations

import asyncio
import inspect

from toolcrib.content import ToolResult
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidSchema
from toolcrib.names import is_exposed_name
from toolcrib.schema import compile_schema, validate_schema
from toolcrib.testing.findings import Findings
from toolcrib.tool import CallContext, Tool

__all__ = ["check_tool"]

PATIENCE = 10.0


async def check_tool(tool: Tool, arguments: str = "{}") -> None:
    """Checks `tool` and calls it once with `arguments`, the text of a JSON object it accepts.

    Raises `AssertionError` if its name cannot be shown to a model, its schema cannot describe
    parameters or does not compile, its definition changes between two looks, `execute` is no
    coroutine function, takes longer than 10 seconds, or gives anything but a result or text that
    JSON can hold. What `execute` raises, the check raises.
    """
    found = Findings(tool)
    definition = tool.definition
    found.expect(is_exposed_name(definition.name), f"no model can call it {definition.name!r}")
    found.expect(definition.description.strip(), "it has no description: no model will choose it")
    found.expect(
        tool.definition.fingerprint == definition.fingerprint, "its definition is not stable"
    )
    try:
        validate_schema(definition.input_schema)
        compile_schema(definition.input_schema)
    except InvalidSchema as error:
        found.expect(False, f"its input schema: {error}")
    work = tool.execute(CallContext(definition.name, "check"), arguments)
    found.expect(inspect.isawaitable(work), "execute is not async")
    if inspect.isawaitable(work):
        async with asyncio.timeout(PATIENCE):
            _check_result(found, await work)
    found.tell()


def _check_result(found: Findings, result: object) -> None:
    if isinstance(result, str):
        result = ToolResult.ok(result)
    found.expect(isinstance(result, ToolResult), f"it returned a {type(result).__name__}")
    if isinstance(result, ToolResult):
        try:
            compact_json(result.to_json())
        except (TypeError, ValueError) as error:
            found.expect(False, f"its result is not JSON: {error}")
