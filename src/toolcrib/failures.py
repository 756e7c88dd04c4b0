"""From an exception to a failure the model may see.

Only text that was written for the model passes; everything else stays in the log, under a short
reference that both sides can name.
"""

from __future__ import annotations

import logging
import secrets

from toolcrib.content import FailureKind, ToolResult
from toolcrib.errors import Denied, InvalidArguments, NotAvailable, ToolError
from toolcrib.jsonable import clean
from toolcrib.redact import current
from toolcrib.results import RENDERED, to_result

__all__ = ["MAX_MESSAGE", "failure_of", "internal"]

MAX_MESSAGE = 8_000
"""Characters of a failure's message that no result_limit has bounded."""

_SPOKEN: dict[type[Exception], FailureKind] = {
    InvalidArguments: "invalid_arguments",
    Denied: "denied",
    NotAvailable: "not_available",
}


def failure_of(name: str, error: BaseException, logger: logging.Logger) -> ToolResult:
    """The failure that `error`, raised by the tool `name` or one of its stages, stands for."""
    if isinstance(error, ToolError):
        return _spoken(name, error)
    for kind, spoken in _SPOKEN.items():
        if isinstance(error, kind):
            return ToolResult.failed(spoken, text_of(error)[:MAX_MESSAGE])
    return internal(name, error, logger)


def _spoken(name: str, error: ToolError) -> ToolResult:
    """What the tool said, after what it had found (rule B10)."""
    message, found = text_of(error), error.partial
    if found is None:
        return ToolResult.failed("tool_error", message)
    partial = to_result(name, found)
    failed = ToolResult.failed("tool_error", message, partial=partial.content, value=found)
    return failed.with_meta(**{RENDERED: True}) if RENDERED in partial.meta else failed


def internal(name: str, error: BaseException, logger: logging.Logger) -> ToolResult:
    """The failure `internal`; the exception goes to the log, its text never to the model."""
    reference = secrets.token_hex(4)
    redactor = current.get()
    try:
        if redactor is None:
            logger.error("tool %r failed [%s]", name, reference, exc_info=error)
        else:
            logger.error("tool %r failed [%s]\n%s", name, reference, redactor.error(error))
    except Exception as also:  # an exception whose own text cannot be made
        logger.error("tool %r failed [%s]: %s", name, reference, type(also).__name__)
    return ToolResult.failed(
        "internal",
        f"tool {name!r} failed with an internal error (reference {reference}): it is not known what"
        " it did; try another way, or report the reference",
        reference=reference,
    )


def text_of(error: BaseException) -> str:
    """An exception's text, even of one whose `__str__` raises."""
    try:
        return clean(str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__
