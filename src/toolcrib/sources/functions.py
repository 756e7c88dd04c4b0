"""Python objects as a source: there at once, nothing to close but the tools themselves."""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.sources.contract import Publish
from toolcrib.tool import Tool

__all__ = ["FunctionSource"]


class FunctionSource:
    """Publishes a fixed list of tools."""

    def __init__(self, tools: Iterable[Tool], *, name: str = "functions") -> None:
        self._name = name
        self.tools = tuple(tools)

    @property
    def name(self) -> str:
        return self._name

    async def open(self, publish: Publish) -> None:
        publish(self.tools)

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Ready as soon as it is open."""

    async def close(self) -> None:
        """Nothing to end."""
