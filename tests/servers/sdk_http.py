"""An HTTP server of the SDK, both eras on /mcp: `python sdk_http.py PORT`."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def hang() -> str:
    """Never answers."""
    import anyio

    await anyio.sleep_forever()
    return ""


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no such row")


def beta() -> str:
    """Was not there before."""
    return "beta"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool, and says so in both eras."""
    server.add_tool(beta)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("memo://one", mime_type="text/plain")
def one() -> str:
    """A memo."""
    return "remember"


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
