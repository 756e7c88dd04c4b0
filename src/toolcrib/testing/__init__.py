"""Checks for what others implement: a tool, a source, a middleware.

Each plays the contract through and raises `AssertionError` with every violation it found, so it can
stand in any test suite. Ours pass them.
"""

from toolcrib.testing.middlewares import check_middleware
from toolcrib.testing.sources import check_source
from toolcrib.testing.tools import check_tool

__all__ = ["check_middleware", "check_source", "check_tool"]
