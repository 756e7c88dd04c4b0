"""`auth:` of one MCP server in a deployment file: its types and their keys.

Judged while the file is read; no token is fetched and no keyring opened. What the types mean is
`sources.mcp.auth`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolcrib.deploy.decode import Decoder, Field, record, required
from toolcrib.deploy.places import At
from toolcrib.deploy.scalars import choice, integer, name, not_a_text, text

if TYPE_CHECKING:
    from toolcrib.sources.mcp.auth import Auth

__all__ = ["auth"]


class _Reread:
    """A text of the file whose references are looked up anew each time."""

    def __init__(self, at: At) -> None:
        self._at = at

    def __call__(self) -> str:
        return self._at.silent.expand()


def _token(at: At) -> str | Callable[[], str]:
    """A text as it is written; one that names variables is read at each connect."""
    found = name(at)
    return _Reread(at) if at.text_node().from_outside else found


def _made(kind: str, **values: Any) -> Any:
    if importlib.util.find_spec("mcp") is None:
        return values  # that the extra is missing was noted, the file is refused anyway
    from toolcrib.sources.mcp import auth as types

    return getattr(types, kind)(**values)


def _of(kind: str, keys: dict[str, Decoder[Any] | Field]) -> Decoder[Any]:
    def make(type: str, **values: Any) -> Any:
        return _made(kind, **values)

    return record(make, {"type": required(_type), **keys})


_type = choice("bearer", "client_credentials", "authorization_code")

_TYPES: dict[str, Decoder[Any]] = {
    "bearer": _of("Bearer", {"token": required(_token)}),
    "client_credentials": _of(
        "ClientCredentials",
        {
            "client_id": required(name),
            "client_secret": text,
            "issuer": name,
            "scope": text,
            "method": choice("client_secret_basic", "client_secret_post", "private_key_jwt"),
            "private_key": text,
            "algorithm": name,
        },
    ),
    "authorization_code": _of(
        "AuthorizationCode",
        {
            "client_id": name,
            "client_secret": text,
            "scope": text,
            "client_metadata_url": name,
            "redirect_port": integer(1),
        },
    ),
}


def auth(at: At) -> Auth:
    """Decodes one `auth:`; its `type` says which other keys there are."""
    not_a_text(at)
    entry = at.map_node().by_key.get("type")
    if entry is None:
        at.reject(f"missing required key 'type': one of {', '.join(_TYPES)}")
    decoded: Auth = _TYPES[_type(at.under(entry))](at)
    return decoded
