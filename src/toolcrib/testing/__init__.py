"""Checks for what others implement, how well a ranker finds, and a server to withstand.

`check_tool`, `check_source`, `check_middleware` and `check_ranker` play a contract through and
raise `AssertionError` with every violation found; `evaluate` measures a ranker on your own cases.
`FaultServer` is an MCP server that misbehaves on demand, for tests of a whole agent. All stand in
any test suite; ours uses them.
"""

from toolcrib.testing.faulty import FaultServer
from toolcrib.testing.middlewares import check_middleware
from toolcrib.testing.rankers import check_ranker
from toolcrib.testing.retrieval import Case, Missed, Retrieval, evaluate
from toolcrib.testing.sources import check_source
from toolcrib.testing.tools import check_tool

__all__ = [
    "Case",
    "FaultServer",
    "Missed",
    "Retrieval",
    "check_middleware",
    "check_ranker",
    "check_source",
    "check_tool",
    "evaluate",
]
