"""MCP servers as a self-healing source (extra `mcp`); docs/mcp.md is for who uses it.

Reading order: server, settings, overrides, servers (what is declared), checks (of which kind it
must be) · declare (the short way) · login (of a person) · source, member (what joins the rooms to a
registry), health · then the rooms, the lowest last: catalogue (lists → tools) · calls (one call) ·
keep (supervision) · link (one connection), changes, connection (its contract), failures · wire
(below the SDK) · asking (what servers ask) · content (shapes) · auth (credentials). A room imports
only those after it.
"""

from toolcrib.sources.mcp.catalogue.mirror import Rejection
from toolcrib.sources.mcp.declare import http, stdio
from toolcrib.sources.mcp.health import Health
from toolcrib.sources.mcp.overrides import Overrides
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.servers import Reloaded
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.sources.mcp.source import McpSource

__all__ = [
    "Health",
    "McpServer",
    "McpSource",
    "Overrides",
    "Rejection",
    "Reloaded",
    "ServerSettings",
    "http",
    "stdio",
]
