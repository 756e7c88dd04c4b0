"""Looking into foreign JSON, where anything may stand where anything was promised."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

__all__ = ["list_of", "object_of", "text_of"]


def object_of(value: object) -> dict[str, Any]:
    """The JSON object `value`, or an empty one where it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The JSON list `value`, or an empty one where it is none."""
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The string `value`, or an empty one where it is none."""
    return value if isinstance(value, str) else ""
