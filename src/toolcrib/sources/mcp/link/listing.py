"""The whole list of a server's tools, as it lists them. What is made of it is `catalogue`'s."""

from __future__ import annotations

import logging
from typing import Any

from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from toolcrib.sources.mcp.content.pages import all_pages
from toolcrib.sources.mcp.wire.session import RawSession

__all__ = ["listed_tools"]

logger = logging.getLogger("toolcrib.mcp")


async def listed_tools(session: RawSession, server: str) -> list[Any]:
    """The wire form of every tool. The caller bounds the time."""

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await session.raw("tools/list", params or None)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and not params:
                return {}  # a server of resources alone
            raise

    listed, complete = await all_pages(ask, "tools")
    if not complete:
        logger.warning(
            "MCP server %r: its list of tools does not come to an end; took the first %d",
            server,
            len(listed),
        )
    return listed
