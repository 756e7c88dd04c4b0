"""Checks for what others implement, and a server for what others must withstand.

`check_tool`, `check_source` and `check_middleware` play a contract through and raise
`AssertionError` with every violation found. `FaultServer` is an MCP server that misbehaves on
demand, for tests of a whole agent. All stand in any test suite; ours uses them.
"""

from toolcrib.testing.faulty import FaultServer
from toolcrib.testing.middlewares import check_middleware
from toolcrib.testing.sources import check_source
from toolcrib.testing.tools import check_tool

__all__ = ["FaultServer", "check_middleware", "check_source", "check_tool"]
