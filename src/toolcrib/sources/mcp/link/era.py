"""Which protocol era a server speaks, remembered from one connection to the next."""

from __future__ import annotations

from mcp import MCPError
from mcp.client.session import DISCOVER_TIMEOUT_SECONDS
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from toolcrib.sources.mcp.link.faults import leaf

__all__ = ["Era"]


class Era:
    """How to begin the next connection to one server.

    The SDK asks for the modern era first, and a legacy server that ignores the question costs 10 s:
    that is paid once. `mode` is the SDK's; `is_known` says whether the server was ever there.
    """

    def __init__(self, connect_timeout: float) -> None:
        self.mode = "auto"
        self.is_known = False
        self._too_short = connect_timeout <= DISCOVER_TIMEOUT_SECONDS

    def connected(self, modern: bool) -> None:
        """Learns from a connection that came about."""
        # A modern server answers the probe at once: asking again is free and notices a downgrade.
        self.mode = "auto" if modern else "legacy"
        self.is_known = True

    def failed(self, error: BaseException) -> bool:
        """Learns from one that did not; whether what was remembered may be why."""
        error, before = leaf(error), self.mode
        if isinstance(error, TimeoutError):
            # Perhaps the question alone took all the time there is.
            self.mode = "legacy" if before == "auto" and self._too_short else "auto"
        elif isinstance(error, MCPError) and error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            self.mode = "auto"
        return before == "legacy" and self.mode == "auto"
