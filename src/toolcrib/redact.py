"""Known secrets, masked wherever they appear: results, failures, logs, tracebacks (report RS15).

One thing for all of them, so that no place has a rule of its own. It knows values, not patterns: a
secret nobody registered is not found, and no innocent text is masked for how it looks. Registering
(from environment references, headers, …) is the host's.
"""

from __future__ import annotations

import base64
import contextvars
import json
import logging
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from toolcrib.content import DataPart, FilePart, Part, TextPart, ToolResult
from toolcrib.jsonvalue import is_array, is_object

__all__ = ["MASK", "LogFilter", "Redactor", "current", "using"]

MASK: Final = "[redacted]"
SHORTEST: Final = 4
"""Shorter values are not masked: they are in every text."""
SPLIT_FROM: Final = 12
"""Characters of a secret that is also found in two pieces of at least 4."""


class Redactor:
    """Masks `secrets` in texts, results and log records. Blank and very short ones (under 4
    characters) are not masked.

    Found as they are, as base64 at any offset, URL-encoded, hexadecimal, and as JSON or Python
    writes them; a longer one (from 12 characters) also where it was cut in two, as by a chain of
    exceptions that each hold a part. Immutable; `with_secrets` makes one that knows more.
    """

    __slots__ = ("_forms", "_split", "secrets")

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = frozenset(s for each in secrets if len(s := each.strip()) >= SHORTEST)
        forms = {form for secret in self.secrets for form in _forms(secret)}
        # the longest first: a secret may hold another
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._split = sorted(s for s in self.secrets if len(s) >= SPLIT_FROM)

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """One that masks these too."""
        return Redactor((*self.secrets, *secrets))

    def text(self, text: str) -> str:
        """`text` with every secret masked; the same object where there is none."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        for secret in self._split:
            if secret[:4] in text and secret[-4:] in text:
                text = _without_pieces(text, secret)
        return text

    def error(self, error: BaseException) -> str:
        """The traceback of `error` and of what caused it, masked."""
        return self.text("".join(traceback.format_exception(error)))

    def json(self, value: Any) -> Any:
        """A JSON value with every string and key masked; what is no JSON stays as it is."""
        if isinstance(value, str):
            return self.text(value)
        if is_object(value):
            return {self.json(key): self.json(item) for key, item in value.items()}
        return [self.json(item) for item in value] if is_array(value) else value

    def result(self, result: ToolResult) -> ToolResult:
        """`result` as it may leave: content, failure, notes, and a value that is JSON."""
        failure = result.failure
        return replace(
            result,
            content=tuple(map(self._part, result.content)),
            failure=failure and replace(failure, message=self.text(failure.message)),
            value=self.json(result.value),
            meta={key: self.json(note) for key, note in result.meta.items()},
        )

    def _part(self, part: Part) -> Part:
        if isinstance(part, TextPart):
            return TextPart(self.text(part.text))
        if isinstance(part, DataPart):
            return DataPart(self.json(part.value))
        if isinstance(part, FilePart):
            words = (part.uri, part.name, part.media_type, part.description)
            uri, name, media_type, description = map(self.text, words)
            return FilePart(uri, name, media_type, description, part.size)
        return part

    def __repr__(self) -> str:
        return f"<Redactor of {len(self.secrets)} secrets>"


class LogFilter(logging.Filter):
    """For a handler or a logger of the host: masks each record, its traceback included."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redactor.text(record.getMessage()), None
        if record.exc_info and (error := record.exc_info[1]) is not None:
            record.exc_text, record.exc_info = self._redactor.error(error), None
        return True


current: Final[contextvars.ContextVar[Redactor | None]] = contextvars.ContextVar(
    "toolcrib_redactor", default=None
)
"""The redactor of the call that is running here, for whoever logs what went wrong with it."""


@contextmanager
def using(redactor: Redactor) -> Generator[None]:
    """Makes `redactor` the current one for what is done inside, nested calls included."""
    token = current.set(redactor)
    try:
        yield
    finally:
        current.reset(token)


def _forms(secret: str) -> Iterator[str]:
    from urllib.parse import quote, quote_plus  # only where there are secrets

    data = secret.encode("utf-8", "replace")
    yield secret
    for encoded in (quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace")):
        yield encoded
        yield _lower_escapes(encoded)
    yield quote(secret, errors="replace")
    for written in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        yield written[1:-1]
    yield data.hex()
    yield data.hex().upper()
    for offset in range(3):
        yield from _base64_forms(data, offset)


def _lower_escapes(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _base64_forms(data: bytes, offset: int) -> Iterator[str]:
    """What is the same in every base64 that holds `data` after so many bytes, modulo 3: without
    the digits that depend on its neighbours."""
    padded = b"\0" * offset + data
    digits = slice((offset * 8 + 5) // 6, len(padded) * 8 // 6)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        form = encode(padded).decode("ascii")[digits]
        if len(form) > SHORTEST:
            yield form


def _without_pieces(text: str, secret: str) -> str:
    for at in range(4, len(secret) - 3):
        head, tail = secret[:at], secret[at:]
        if head in text and tail in text:
            text = text.replace(head, MASK).replace(tail, MASK)
    return text
