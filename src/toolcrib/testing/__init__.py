"""Checks for what others implement: a tool, a source, a middleware, a ranker; and how well a ranker
finds what it should.

Each check plays the contract through and raises `AssertionError` with every violation it found, so
it can stand in any test suite. Ours pass them.
"""

from toolcrib.testing.middlewares import check_middleware
from toolcrib.testing.rankers import check_ranker
from toolcrib.testing.retrieval import Case, Missed, Retrieval, evaluate
from toolcrib.testing.sources import check_source
from toolcrib.testing.tools import check_tool

__all__ = [
    "Case",
    "Missed",
    "Retrieval",
    "check_middleware",
    "check_ranker",
    "check_source",
    "check_tool",
    "evaluate",
]
