"""A call in words for people: what a tool's display hint makes of its arguments (rule B12).

For screens, logs and exports. Never on the wire: that is always made of the call's own arguments
(T-B2). A hint's fault is its own; the display then falls back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from toolcrib.content import ToolCall
from toolcrib.definition import DisplayHint, ToolDefinition
from toolcrib.jsonable import NotJson, clean, json_text
from toolcrib.jsonvalue import is_object

__all__ = ["display"]

logger = logging.getLogger("toolcrib.display")


def display(call: ToolCall, definitions: Iterable[ToolDefinition]) -> str | None:
    """What people are shown of `call`; None where its arguments are to be shown as they are: no
    such tool, no hint, arguments that are no JSON object (yet), a hint that gives None or fails.

    The first definition of that name counts. A value with `markdown()` says itself, a string is
    itself, anything else its JSON.
    """
    hint = next((d.display_hint for d in definitions if d.name == call.name), None)
    if hint is None:
        return None
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):  # still being streamed, or never JSON
        return None
    return _said(hint, arguments, call.name) if is_object(arguments) else None


def _said(hint: DisplayHint, arguments: dict[str, Any], name: str) -> str | None:
    try:
        value = hint(arguments)
        markdown = getattr(value, "markdown", None)
        if callable(markdown):
            value = markdown()
        if value is None:
            return None
        return clean(value) if isinstance(value, str) else json_text(value)[0]
    except NotJson as error:
        logger.warning("the display hint of tool %r gave %s", name, error)
    except Exception:  # the hint's own fault must not hurt who shows the call
        logger.exception("the display hint of tool %r failed", name)
    return None
