"""Who asks a server, and how it is proved: bearer tokens, OAuth for machines and for people.

OAuth itself (discovery, registration, PKCE, every check of an answer) is the SDK's. Here is what a
deployment needs round it: what is declared (`declared`); where tokens are kept, and that one at a
time renews them (`grant`, `store`, `account`, `file_store`, `private_files`, `keyring_store`,
`turns`); when they are renewed, and what is said when they cannot be (`challenge`, `credential`,
`oauth`, `provider`, `redirects`, `exchange`, `fault`, `issued`); how that joins a connection
(`flow`); the login of a person (`login`, `loopback`).
"""

from toolcrib.sources.mcp.auth.declared import (
    Auth,
    AuthorizationCode,
    Bearer,
    ClientCredentials,
)
from toolcrib.sources.mcp.auth.file_store import FileStore
from toolcrib.sources.mcp.auth.grant import Grant, TokenKey
from toolcrib.sources.mcp.auth.store import MemoryStore, TokenStore

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
