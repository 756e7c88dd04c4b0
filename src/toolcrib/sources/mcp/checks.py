"""Whether what a user gives is of the kind it must be: Python itself does not ask.

One check for each kind, all of which raise `InvalidDefinition` with what it is about; whose that is
is added by whoever declares. No text that is given is shown: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, cast

from toolcrib.errors import InvalidDefinition

__all__ = ["mapping", "number", "text", "texts"]


def text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidDefinition(f"{what} must be a text, not {_kind(value)}")
    return value


def texts(what: str, value: object) -> tuple[str, ...]:
    """A list is taken, one text is not: its letters would be the list."""
    if isinstance(value, str):
        raise InvalidDefinition(f"{what} must be a list of texts, not one text: put it in [ ]")
    if not isinstance(value, Iterable):
        raise InvalidDefinition(f"{what} must be a list of texts, not {_kind(value)}")
    given = enumerate(cast("Iterable[object]", value))
    return tuple(text(f"{what}[{number}]", one) for number, one in given)


def mapping(what: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidDefinition(f"{what} must be a mapping of texts to texts, not {_kind(value)}")
    given = cast("Mapping[object, object]", value)
    return {
        text(f"each name in {what}", key): text(f"{what}[{key!r}]", one)
        for key, one in given.items()
    }


def number(what: str, value: object, least: Literal["> 0", "≥ 0"]) -> None:
    """A time or another amount. A deployment file says times as `30s`, Python as 30.0."""
    if not isinstance(value, int | float):
        raise InvalidDefinition(
            f"{what} must be a number {least} (times are in seconds), not {_kind(value)}"
        )
    if not 0 <= value < float("inf") or (value == 0 and least == "> 0"):
        raise InvalidDefinition(f"{what} {value!r} is not a number {least}")


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"
