"""Which engine an index stands on, where none was named. What an engine is, says `engine`."""

from __future__ import annotations

from toolcrib.ranking.engine import Engine

__all__ = ["fastest"]


def fastest() -> Engine:
    """A new engine, on numpy where that is installed; it is imported here and not before."""
    try:
        from toolcrib.ranking.packed import Packed
    except ImportError:
        from toolcrib.ranking.scan import Scan

        return Scan()
    return Packed()
