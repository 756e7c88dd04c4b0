"""The command line: `toolcrib list | search | call | run | check | sources | import FILE`.

Shows and asks; tools are called through an `Assembly`, like any other host does.
"""

from toolcrib.cli.app import main

__all__ = ["main"]
