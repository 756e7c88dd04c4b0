"""Grants in one file of the user's alone, whichever processes use it at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigurationError
from toolcrib.jsonvalue import is_object
from toolcrib.sources.mcp.auth.stores.grant import Grant, TokenKey
from toolcrib.sources.mcp.auth.stores.locks import locked
from toolcrib.sources.mcp.auth.stores.private_files import (
    read_private,
    state_directory,
    write_private,
)

__all__ = ["FileStore"]


class FileStore:
    """`tokens.json` in `directory` (default: toolcrib's own in the user's state). A file that is
    not understood is never overwritten."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = state_directory() if directory is None else directory
        self.path = self.directory / "tokens.json"

    async def get(self, key: TokenKey) -> Grant | None:
        found = await asyncio.to_thread(self._read)
        return Grant.from_json(found.get(key.text))

    async def set(self, key: TokenKey, grant: Grant) -> None:
        def put(grants: dict[str, Any]) -> bool:
            grants[key.text] = grant.to_json()
            return True

        await asyncio.to_thread(self._change, put)

    async def forget(self, key: TokenKey) -> bool:
        def drop(grants: dict[str, Any]) -> bool:
            return grants.pop(key.text, None) is not None

        return await asyncio.to_thread(self._change, drop)

    def _read(self) -> dict[str, Any]:
        data = read_private(self.path)
        if data is None:
            return {}
        try:
            held: object = json.loads(data)
        except (ValueError, RecursionError):
            held = None
        grants = held.get("grants") if is_object(held) else None
        if not is_object(grants):
            raise ConfigurationError(f"{self.path}: holds no tokens of ours: move it away")
        return dict(grants)

    def _change(self, change: Callable[[dict[str, Any]], bool]) -> bool:
        """Lets `change` work on the grants; whether it changed anything."""
        try:
            with locked(self.directory / "tokens.lock"):
                grants = self._read()
                if changed := change(grants):
                    held = {"version": 1, "grants": grants}
                    write_private(self.path, json.dumps(held, indent=1).encode())
                return changed
        except OSError as error:
            said = f"{error.filename or self.path}: {error.strerror}"
            raise ConfigurationError(f"tokens cannot be kept: {said}") from error

    def __repr__(self) -> str:
        return f"FileStore({str(self.directory)!r})"
