"""Configurations of other MCP clients: Claude Code and Desktop, VS Code, Cursor.

Two uses of one reading: `usable` gives the servers for a source (`settings: {config: FILE}`),
`imported` a deployment file to keep (`toolcrib import`).

Reading order: jsonc (JSON with comments) · dialect (references) · fields, server (one server) ·
client_file (one file) · envfile, resolving (to servers) · discretion, variables (what may be
printed) · said, references, translating, writing (to YAML). Nothing here starts or connects
anything.
"""

from toolcrib.deploy.clients.client_file import ClientFile, read_client_file
from toolcrib.deploy.clients.dialect import DIALECTS, Dialect, dialect_named
from toolcrib.deploy.clients.resolving import usable
from toolcrib.deploy.clients.writing import Imported, imported

__all__ = [
    "DIALECTS",
    "ClientFile",
    "Dialect",
    "Imported",
    "dialect_named",
    "imported",
    "read_client_file",
    "usable",
]
