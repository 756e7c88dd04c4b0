"""What an authorization server granted, as it is kept: values, and their JSON.

Pure. Where it is kept is `store`, how it is got is `oauth`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from toolcrib.frozen import NOTHING
from toolcrib.jsonvalue import is_object

__all__ = ["Grant", "TokenKey"]

EARLY = 10.0
"""Seconds before its end, at most a tenth of its life, in which a token is renewed: it must outlive
its request's way."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """Whose tokens: of which server, for which client (with its issuer, where that is declared) and
    scope. Two declarations that differ in any of it never share tokens."""

    server: str = field(repr=False)
    client: str = ""
    scope: str = ""

    @property
    def text(self) -> str:
        """It as one text, the same in every process."""
        return json.dumps([self.server, self.client, self.scope])

    @property
    def digest(self) -> str:
        """It as a short name that tells nothing."""
        return sha256(self.text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens, with what is needed to renew them: the client as it is registered, and the metadata
    of the servers (JSON as they sent it). Times are Unix time; `expires_at` None: not known."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    obtained_at: float = 0.0
    scope: str | None = None
    client: Mapping[str, Any] = field(default=NOTHING, repr=False)
    issuer: Mapping[str, Any] = field(default=NOTHING, repr=False)
    resource: Mapping[str, Any] = field(default=NOTHING, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        client_secret = self.client.get("client_secret")
        found = (self.access_token, self.refresh_token, client_secret)
        return tuple(one for one in found if isinstance(one, str) and one)

    def is_expired(self, now: float | None = None) -> bool:
        """Whether its time is over, or all but."""
        if self.expires_at is None:
            return False
        early = min(EARLY, (self.expires_at - self.obtained_at) / 10)
        return self.expires_at - early <= (time.time() if now is None else now)

    def to_json(self) -> dict[str, Any]:
        kept = ("client", "issuer", "resource")
        return asdict(self) | {name: dict(getattr(self, name)) for name in kept}

    @classmethod
    def from_json(cls, value: object) -> Grant | None:
        """The grant that `to_json` gave; None for anything else."""
        if not is_object(value) or not isinstance(value.get("access_token"), str):
            return None
        held = {name: value.get(name) for name in cls.__slots__}
        known: dict[str, Any] = {name: one for name, one in held.items() if one is not None}
        sound = all(isinstance(known[name], kind) for name, kind in _KINDS.items() if name in known)
        return cls(**known) if sound else None


_KINDS: Mapping[str, Any] = {
    "refresh_token": str,
    "expires_at": float | int,
    "obtained_at": float | int,
    "scope": str,
    "client": dict,
    "issuer": dict,
    "resource": dict,
}
