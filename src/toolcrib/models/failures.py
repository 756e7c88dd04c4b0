"""How a request to a model fails, in words of ours.

An SDK's exception holds the request with its headers, keys included, and quotes whatever a server
wrote. `ModelFailed` holds neither: status and words, masked. It is raised without its cause, so
that no traceback prints what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from toolcrib.errors import MissingExtra, ToolcribError
from toolcrib.jsonvalue import is_object
from toolcrib.redact import Redactor

__all__ = ["Broken", "ModelFailed", "failure", "missing"]

MOST = 1_000
"""Characters of a server's own words that are kept."""
OFTEN_PASSES: Final = frozenset({408, 409, 429})

Kind: TypeAlias = Literal["refused", "unreachable", "cut", "error"]


def missing(extra: str) -> MissingExtra:
    """What to raise where the SDK of `extra` is not there."""
    return MissingExtra(
        f"models of {extra} need an extra that is not installed: pip install 'toolcrib[{extra}]'",
        name=extra,
    )


class ModelFailed(ToolcribError):
    """A request brought no whole response; nothing of it may be used.

    `kind`: `refused` (an HTTP status, see `status`), `unreachable` (no connection, or none in
    time), `cut` (the stream ended before the response did), `error` (the stream said so itself).
    `told`: some text had been told by then, so whoever asks again tells it twice.
    """

    def __init__(
        self, message: str, kind: Kind = "error", *, status: int | None = None, told: bool = False
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.status = status
        self.told = told

    @property
    def may_pass(self) -> bool:
        """Whether the same request may well succeed later."""
        if self.status is not None:
            return self.status in OFTEN_PASSES or self.status >= 500
        return True


class Broken(Exception):
    """Inside this room only: a stream that says itself, or shows, that no response comes of it."""

    def __init__(self, message: str, kind: Kind = "error") -> None:
        super().__init__(message)
        self.kind: Kind = kind


def failure(
    error: Exception, secrets: Iterable[str | None], *, told: bool, begun: bool = True
) -> ModelFailed:
    """`error` of an SDK, of its transport or of a stream's parts as ours. `begun`: something of
    the response had come by then; `told`: some of its text."""
    words = Redactor(secret for secret in secrets if secret).text(_words(error))[:MOST]
    if isinstance(error, Broken):
        return ModelFailed(words, error.kind, told=told)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return ModelFailed(f"HTTP {status}: {words}", "refused", status=status, told=told)
    if getattr(error, "body", None) is not None:  # an error event in a stream that began well
        return ModelFailed(words, "error", told=told)
    if begun or isinstance(error, ValueError):  # or what came was no JSON, no UTF-8
        return ModelFailed(f"the response was cut off: {words}", "cut", told=told)
    return ModelFailed(f"the model cannot be reached: {words}", "unreachable")


def _words(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    inner: Any = body.get("error", body) if is_object(body) else body
    if is_object(inner) and isinstance(inner.get("message"), str):
        kind = inner.get("type") or inner.get("code")
        return f"{kind}: {inner['message']}" if isinstance(kind, str) else inner["message"]
    if isinstance(inner, str) and inner.strip():
        return inner.strip()
    cause = error.__cause__
    own = str(error) or type(error).__name__
    return f"{own} ({cause})" if cause is not None and str(cause) else own
