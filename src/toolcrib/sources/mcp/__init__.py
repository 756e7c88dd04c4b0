"""MCP servers as a self-healing source (extra `mcp`); docs/mcp.md is for who uses it.

Reading order: server, settings, overrides, servers (what is declared) · declare (the short way) ·
source, member (join the rest to a registry) · keep, breaker, watch, changes, standing, health
(supervision) · per_session · link, starting, era, inflight, connection (one connection) · session,
dispatcher, wire, streamable, endpoint, process, descendants, outgoing (below the SDK) · faults
(what went wrong) · repeats, clock, hearing (one call) · questions, relay, asked, rounds (what
servers ask) · listing, pages, mirror, remote_tools, bridges, translate, shapes (what comes
through).
"""

from toolcrib.sources.mcp.declare import http, stdio
from toolcrib.sources.mcp.health import Health
from toolcrib.sources.mcp.mirror import Rejection
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
