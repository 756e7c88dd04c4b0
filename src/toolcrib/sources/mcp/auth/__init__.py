"""Who asks a server, and how it is proved: bearer tokens, OAuth for machines and for people.

OAuth itself (discovery, registration, PKCE, every check of an answer) is the SDK's. Here is what a
deployment needs round it: what is declared (`declared`); what a connection shows (`credential`) and
how that joins its requests (`flow`); which texts are secret (`issued`); where tokens are kept
(`stores`); how they are got and renewed (`oauth`); where a login ends (`loopback`).
"""

from toolcrib.sources.mcp.auth.declared import (
    Auth,
    AuthorizationCode,
    Bearer,
    ClientCredentials,
)
from toolcrib.sources.mcp.auth.stores.file_store import FileStore
from toolcrib.sources.mcp.auth.stores.grant import Grant, TokenKey
from toolcrib.sources.mcp.auth.stores.store import MemoryStore, TokenStore

__all__ = [
    "Auth",
    "AuthorizationCode",
    "Bearer",
    "ClientCredentials",
    "FileStore",
    "Grant",
    "MemoryStore",
    "TokenKey",
    "TokenStore",
]
