"""An MCP server that misbehaves on demand: stdio and HTTP, both eras, standard library only.

    python -m toolcrib.testing.fault_server --list
    python -m toolcrib.testing.fault_server --stdio --era modern --fault 'crash_during*1'

Reading order: acts (what a transport can do) · faults (what one is), answer_faults, list_faults,
process_faults, http_faults, table · home (its files) · tools · protocol (a message in, acts out) ·
over_stdio · over_http, sessions, answering, streams · cli. It imports nothing of toolcrib, so that
`command` starts it in a few hundredths of a second; who starts and stops it is
`toolcrib.testing.faulty`.
"""

from __future__ import annotations

import os
import sys

__all__ = ["command"]


def command(*arguments: str) -> list[str]:
    """The command line that starts the server without importing the library."""
    here = os.path.dirname(os.path.abspath(__file__))
    return [sys.executable, "-S", "-I", os.path.join(here, "__main__.py"), *arguments]
