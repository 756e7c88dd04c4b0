"""Every exception toolcrib raises on purpose, as one tree.

::

    ToolcribError
    ├── InvalidDefinition    a tool, policy, limit or setting that can never be right
    │   └── InvalidSchema    … because of its JSON Schema
    ├── InvalidArguments     a call's arguments do not fit; its text is written for the model
    ├── Conflict             two owners want one name
    ├── NotFound             nothing of that name
    ├── NotAvailable         it exists, but cannot be used now: closed, down, withdrawn
    ├── NotReady             a source did not become ready in the time given
    ├── Denied               an authorisation said no; its text is written for the model
    ├── MissingExtra         an optional part is not installed; says what to install
    ├── ConfigurationError   a deployment file that cannot be built; carries every problem found
    └── ToolError            raised BY a tool, to speak to the model

This is not where failed calls live: a failed call is a value (`content.Failure`), never an
exception that leaves the executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "ConfigurationError",
    "Conflict",
    "Denied",
    "InvalidArguments",
    "InvalidDefinition",
    "InvalidSchema",
    "MissingExtra",
    "NotAvailable",
    "NotFound",
    "NotReady",
    "Problem",
    "ToolError",
    "ToolcribError",
]


class ToolcribError(Exception):
    """The root: `except ToolcribError` catches everything toolcrib raises on purpose."""


class InvalidDefinition(ToolcribError, ValueError):
    """A tool, policy, limit or setting that can never be right; raised when it is handed in."""


class InvalidSchema(InvalidDefinition):
    """A JSON Schema that cannot describe a tool's parameters (rule B2)."""


class InvalidArguments(ToolcribError, ValueError):
    """A call's arguments do not fit the tool. The text is shown to the model: paths, expected
    types and accepted names, never a value."""


class Conflict(ToolcribError):
    """Two owners want one name. Names both owners and how to resolve it (rule A1.2)."""


class NotFound(ToolcribError, LookupError):
    """Nothing of that name is known here."""


class NotAvailable(ToolcribError):
    """It exists but cannot be used now: closed, withdrawn or disconnected. A tool may raise it;
    its text is shown to the model."""


class NotReady(ToolcribError, TimeoutError):
    """`wait_ready` gave up waiting: the source may still become ready later."""


class Denied(ToolcribError, PermissionError):
    """An authorisation said no. A manifest entry's `authorize` raises it; its text is shown to the
    model, so it says what is missing and never who else may."""


class MissingExtra(ToolcribError, ImportError):
    """An optional part, or what it needs, is not installed; the text says what to do."""


class ToolError(ToolcribError):
    """Raised by a tool to tell the model what went wrong; the text reaches the model as it is.

    Any other exception of a tool is hidden from the model behind a short reference, because it
    was not written for it. `partial` is what the tool had found so far (any value a tool may
    return); the model sees it before the error text.
    """

    def __init__(self, message: str, *, partial: object = None) -> None:
        super().__init__(message)
        self.partial = partial


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a deployment file: where (`file:line`, the key's path) and what."""

    message: str
    path: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class ConfigurationError(ToolcribError):
    """A deployment that cannot be built. `problems` holds every fault found, in file order."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = (
            (Problem(problems),) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__("\n".join(map(str, self.problems)))
