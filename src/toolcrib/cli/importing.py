"""`toolcrib import`: the file of another MCP client, printed as a deployment file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolcrib.cli.exits import Exit
from toolcrib.cli.terminal import print_json
from toolcrib.deploy.clients import dialect_named, imported, read_client_file

__all__ = ["import_file"]


async def import_file(file: Path, format: str, json: bool) -> Exit:
    """Prints the deployment file, or with `json` that and what was left out, as an object."""
    read = read_client_file(file, dialect_named(format))
    found = imported(read, os.environ)
    if not json:
        print(found.text, end="", file=sys.__stdout__)
        return Exit.OK
    print_json(
        {
            "file": read.file,
            "format": read.dialect,
            "deployment": found.text,
            "servers": found.servers,
            "left_out": [
                {"server": one.name, "reason": one.reason, "is_fault": one.is_fault}
                for one in found.left_out
            ],
            "notes": found.notes,
        }
    )
    return Exit.OK
