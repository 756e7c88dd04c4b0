"""Grants in the keyring of the operating system (extra `keyring`), where there is a real one."""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import Any, Protocol, cast

from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp.auth.stores.grant import Grant, TokenKey

__all__ = ["KeyringStore", "usable_keyring"]

_SERVICE = "toolcrib"
_NO_KEYRING = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
"""Backends that keep nothing, or keep it in a file that others could read."""


class Keyring(Protocol):
    """A backend of the `keyring` package, as far as we use it."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def usable_keyring() -> Keyring | None:
    """The keyring of this user; None without the package, or without a real backend."""
    try:
        package = importlib.import_module("keyring")
        backend: Any = package.get_keyring()
    except Exception:  # backends fail in ways of their own, a broken D-Bus for one
        return None
    # Several in a row (`keyring.backends.chainer`): the first keeps what is set.
    keeps = next(iter(getattr(backend, "backends", ())), backend)
    if type(keeps).__module__.startswith(_NO_KEYRING) or getattr(keeps, "priority", 0) <= 0:
        return None
    return cast("Keyring", backend)


class KeyringStore:
    """Each grant is one entry of the service `toolcrib`, named by a digest of its key."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    async def get(self, key: TokenKey) -> Grant | None:
        held = await asyncio.to_thread(self._read, key)
        try:
            return Grant.from_json(json.loads(held)) if held else None
        except (ValueError, RecursionError):
            return None

    async def set(self, key: TokenKey, grant: Grant) -> None:
        held = json.dumps(grant.to_json())
        try:
            await asyncio.to_thread(self._keyring.set_password, _SERVICE, key.digest, held)
        except Exception as error:
            raise _failed(error) from error

    async def forget(self, key: TokenKey) -> bool:
        if await asyncio.to_thread(self._read, key) is None:
            return False
        try:
            await asyncio.to_thread(self._keyring.delete_password, _SERVICE, key.digest)
        except Exception as error:
            raise _failed(error) from error
        return True

    def _read(self, key: TokenKey) -> str | None:
        try:
            return self._keyring.get_password(_SERVICE, key.digest)
        except Exception as error:
            raise _failed(error) from error

    def __repr__(self) -> str:
        return f"KeyringStore({type(self._keyring).__name__})"


def _failed(error: Exception) -> ConfigurationError:
    return ConfigurationError(f"the keyring of the system failed: {type(error).__name__}")
