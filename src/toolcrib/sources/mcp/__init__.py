"""MCP servers as a self-healing source (extra `mcp`).

Reading order: server (what is declared) · declare (the short way) · source (joins the rest to
a registry) · keep, health (supervision) · link, era (one connection) · session, wire, process,
outgoing (below the SDK) · faults (what went wrong) · pages, mirror, remote_tools, translate,
shapes (what comes through).
"""

from toolcrib.sources.mcp.declare import http, stdio
from toolcrib.sources.mcp.health import Health
from toolcrib.sources.mcp.mirror import Rejection
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.source import McpSource

__all__ = ["Health", "McpServer", "McpSource", "Rejection", "http", "stdio"]
