"""Anything remote in twenty lines: a name, a list of tools, a call (guide B's RemoteSource).

For sources that need no supervision of their own; an MCP server is `sources.mcp`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolcrib.arguments import SchemaParser
from toolcrib.definition import ToolDefinition
from toolcrib.manifest import ManifestTool, Stages
from toolcrib.names import exposed_names, namespace
from toolcrib.results import to_result
from toolcrib.sources.contract import Publish
from toolcrib.tool import CallContext

__all__ = ["MountedSource", "RemoteSource", "RemoteTool", "mount"]

logger = logging.getLogger("toolcrib.sources")

RemoteTool = ToolDefinition
"""A remote tool as its source describes it: the name is the source's own, without namespace."""


class RemoteSource(Protocol):
    """A foreign place with tools: what a user writes to mount one."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Iterable[ToolDefinition] | Awaitable[Iterable[ToolDefinition]]: ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> object: ...


def mount(remote: RemoteSource, *, prefix: str | None = None) -> MountedSource:
    """`remote` as a source: its tools become `<prefix>__<tool>` (default prefix: its name).

    The arguments are checked against each tool's schema before `remote.call` gets them, with the
    remote's own name for the tool; what it returns is taken as from a function tool.
    """
    return MountedSource(remote, namespace(remote.name if prefix is None else prefix))


@dataclass(frozen=True, slots=True)
class MountedSource:
    """A `RemoteSource` under its namespace. Lists once, when it is opened."""

    remote: RemoteSource
    namespace: str

    @property
    def name(self) -> str:
        return self.remote.name

    async def open(self, publish: Publish) -> None:
        listed = self.remote.tools()
        definitions = await listed if inspect.isawaitable(listed) else listed
        publish(self._tools(definitions))

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Ready as soon as it is open."""

    async def close(self) -> None:
        """Calls the remote's own `close()` or `aclose()`, if it has one."""
        close = getattr(self.remote, "aclose", None) or getattr(self.remote, "close", None)
        if close is not None and inspect.isawaitable(done := close()):
            await done

    def _tools(self, definitions: Iterable[ToolDefinition]) -> list[ManifestTool[Any]]:
        """Of several of one name the first is offered (NM05)."""
        listed: dict[str, ToolDefinition] = {}
        for definition in definitions:
            if definition.name in listed:
                logger.warning("%r lists %r twice: the first is used", self.name, definition.name)
            listed.setdefault(definition.name, definition)
        shown = exposed_names(self.namespace, listed)
        return [self._tool(definition, shown[name]) for name, definition in listed.items()]

    def _tool(self, definition: ToolDefinition, exposed: str) -> ManifestTool[Any]:
        original, remote = definition.name, self.remote
        shown = replace(definition, name=exposed)

        async def execute(ctx: CallContext, arguments: Mapping[str, Any]) -> object:
            return await remote.call(original, dict(arguments))

        stages = Stages(SchemaParser(shown), execute, lambda value: to_result(shown.name, value))
        return ManifestTool(shown, stages, kind="remote", original=original)
