"""Which shape a JSON value has, in a way type checkers follow: `Any` ends here."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_array", "is_object"]


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is a JSON object (JSON's keys are always strings)."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a JSON array."""
    return isinstance(value, list)
