"""A server of the SDK that asks, in the way of either era: `python sdk_asking.py [PORT]`."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel, Field

server = MCPServer("asking")


class Trip(BaseModel):
    place: str = Field(min_length=2)
    nights: int = 3


def trip() -> Elicit[Trip]:
    return Elicit("Where to?", Trip)


@server.tool()
def book(trip: Annotated[Trip, Resolve(trip)]) -> str:
    """Books a trip."""
    return f"{trip.nights} nights in {trip.place}"


@server.tool()
async def confirm(ctx: Context) -> str:
    """Asks on its own, as servers did before 2026-07-28."""
    said = await ctx.elicit("Sure?", Trip)
    return said.action


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
