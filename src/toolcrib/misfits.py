"""What does not fit, in words for a model: the path, what was expected, the type of what it got.

Never a value, nothing at all of a secret one, and never endless. Whether something fits is `schema`
and `parameters`; this only speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from toolcrib.names import nearest
from toolcrib.secret import secret_at

__all__ = [
    "Misfit",
    "article",
    "bounded",
    "json_type",
    "line",
    "path_of",
    "quoted",
    "unknown",
    "worded",
]

MAX_LINES = 8
MAX_LINE = 300
MAX_NAMES = 5
_PLAIN_STEP = re.compile(r"[\w$@-]{1,80}\Z")
SECRET = "not accepted (it is secret, so nothing is said of its value)"

_JSON_TYPES: dict[type[object], str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
}


def json_type(value: object) -> str:
    """The JSON type of a parsed value: object, array, string, boolean, integer, number, null."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "number"
    return _JSON_TYPES.get(type(value)) or type(value).__name__


def article(noun: str) -> str:
    """A JSON type with its article."""
    return noun if noun == "null" else f"an {noun}" if noun[0] in "aio" else f"a {noun}"


def quoted(name: str) -> str:
    """A name a model made up: quoted, escaped and cut, so that it reads as a name (AR17)."""
    return repr(name if len(name) <= 80 else name[:79] + "…")


def line(root: object, steps: Sequence[object], what: str) -> str:
    """`path: what`, for the value at `steps` below one that `root` describes."""
    hidden = secret_at(root, steps)
    if hidden is not None:
        steps, what = steps[:hidden], SECRET
    path = path_of(steps)
    text = f"{path}: {what}" if path else what
    return text if len(text) <= MAX_LINE else text[: MAX_LINE - 1] + "…"


def path_of(steps: Iterable[object]) -> str:
    """A path as text: names and positions joined by dots, odd names quoted."""
    return ".".join(map(_step, steps))


def _step(step: object) -> str:
    text = str(step)
    return text if _PLAIN_STEP.match(text) else quoted(text)


def bounded(lines: Iterable[str]) -> list[str]:
    """The first 8 different lines, and a word if there are more."""
    found: dict[str, None] = {}
    for each in lines:
        if len(found) == MAX_LINES and each not in found:
            return [*found, "… and more"]
        found[each] = None
    return list(found)


def unknown(names: Iterable[str], known: Iterable[str]) -> Iterable[str]:
    """A line for each unknown name, with the nearest known one (AR16). Made as they are asked for:
    looking for near names takes its time."""
    listed = list(known)
    for name in names:
        close = nearest(name[:80], listed, 1)
        yield f"unknown argument {quoted(name)}" + (
            f", did you mean {close[0]!r}?" if close else ""
        )


class Misfit(Protocol):
    """One error as the validator gives it."""

    @property
    def message(self) -> str: ...
    @property
    def instance_path(self) -> list[str | int]: ...
    @property
    def instance(self) -> Any: ...
    @property
    def kind(self) -> Any: ...


def worded(root: object, errors: Iterable[Misfit]) -> list[str]:
    """The lines of a validator's errors about a value that `root` describes."""
    return bounded(line(root, error.instance_path, _what(root, error)) for error in errors)


def _what(root: object, error: Misfit) -> str:
    kind = error.kind
    match kind.name:
        case "type":
            return f"expected {' or '.join(sorted(kind.types))} (got {json_type(error.instance)})"
        case "required":
            return f"{quoted(kind.property)} is missing"
        case "additionalProperties" | "unevaluatedProperties":
            names = ", ".join(map(quoted, kind.unexpected[:MAX_NAMES]))
            more = len(kind.unexpected) - MAX_NAMES
            return f"takes no {names}" + (f" and {more} more" if more > 0 else "")
        case "propertyNames":
            return "a name in it is not allowed"
        case "pattern" if error.message.startswith("Error"):
            return "its pattern takes too long to check"
        case "anyOf" | "oneOf" if "not valid under any" in error.message:
            return _none_of(root, error)
        case _:
            return error.message.removeprefix("value ")


def _none_of(root: object, error: Misfit) -> str:
    """Of a union: the types it takes where the type is wrong, else how near it came."""
    here = error.instance_path
    branches: list[list[Misfit]] = [list(branch) for branch in error.kind.context]
    types: set[str] = set()
    deeper: list[list[Misfit]] = []
    for branch in branches:
        wrong = [e for e in branch if e.kind.name == "type" and e.instance_path == here]
        if wrong:
            types.update(*(e.kind.types for e in wrong))
        elif branch:
            deeper.append(branch)
    if not deeper:
        return f"expected {' or '.join(sorted(types))} (got {json_type(error.instance)})"
    best = min(deeper, key=len)[0]
    inner = line(root, best.instance_path, _what(root, best))
    return f"fits none of {len(branches)} alternatives; nearest: {inner}"
