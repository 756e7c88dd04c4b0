"""Where grants are kept: the contract, and one store that forgets with the process."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from toolcrib.sources.mcp.auth.stores.grant import Grant, TokenKey

__all__ = ["MemoryStore", "TokenStore"]


@runtime_checkable
class TokenStore(Protocol):
    """Keeps grants by key. Several tasks, threads and processes may use one at once; none of it
    may stop the loop. Raises `ConfigurationError` when it cannot be read or written."""

    async def get(self, key: TokenKey) -> Grant | None: ...

    async def set(self, key: TokenKey, grant: Grant) -> None: ...

    async def forget(self, key: TokenKey) -> bool:
        """Whether there was anything to forget."""
        ...


class MemoryStore:
    """Keeps grants as long as the process runs."""

    def __init__(self) -> None:
        self._grants: dict[TokenKey, Grant] = {}

    async def get(self, key: TokenKey) -> Grant | None:
        return self._grants.get(key)

    async def set(self, key: TokenKey, grant: Grant) -> None:
        self._grants[key] = grant

    async def forget(self, key: TokenKey) -> bool:
        return self._grants.pop(key, None) is not None
