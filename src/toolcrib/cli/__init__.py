"""The command line: `toolcrib list | search | call | run | check FILE`.

Shows and asks; everything it does goes through an `Assembly`, like any other host.
"""

from toolcrib.cli.app import main

__all__ = ["main"]
