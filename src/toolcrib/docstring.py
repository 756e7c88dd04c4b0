"""What a docstring says: the summary for the model, and a line for each parameter."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["parse_docstring"]

_NAMED = r"Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments"
_OTHERS = r"Returns?|Yields|Raises|Examples?|Notes?"
_GOOGLE = re.compile(rf"^(?:{_NAMED})\s*:\s*$", re.M)
_GOOGLE_ANY = re.compile(rf"^(?:{_NAMED}|{_OTHERS})\s*:\s*$", re.M)
_NUMPY = re.compile(r"^(Parameters|Other Parameters|Returns|Raises)\s*\n\s*-{3,}\s*$", re.M)
_SPHINX = re.compile(r"^:(param|parameter|arg|argument|key|keyword|type|returns?|raises?)\b", re.M)
_TYPED_NAME = re.compile(r"^\*{0,2}(\w+)")


def parse_docstring(function: Any) -> tuple[str, dict[str, str]]:
    """`(description, {parameter: text})` of `function`'s docstring: Google, NumPy or Sphinx style,
    else the whole text as description. The description ends where the first section begins."""
    text = inspect.getdoc(function) or ""
    for style, pattern in (("sphinx", _SPHINX), ("numpy", _NUMPY), ("google", _GOOGLE_ANY)):
        if pattern.search(text):
            return _sections(text, style)
    return text.strip(), {}


def _sections(text: str, style: str) -> tuple[str, dict[str, str]]:
    import griffe  # 67 ms: paid by the first docstring with sections, not by every import

    if style == "google":  # a section needs a blank line before it to be seen as one
        text = _GOOGLE_ANY.sub(lambda found: "\n" + found.group(0), text).strip()
        text = _GOOGLE.sub("Args:", text)
    logging.getLogger("griffe").addFilter(_no_griffe_noise)
    sections = griffe.Docstring(text).parse(style)  # type: ignore[arg-type]
    said = [s.value for s in sections if s.kind.value == "text"]
    described: dict[str, str] = {}
    for section in sections:
        if section.kind.value in ("parameters", "other parameters"):
            described.update(_described(section.value))
    return (said[0].strip() if said and text.startswith(said[0][:20]) else ""), described


def _described(parameters: Iterable[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for parameter in parameters:
        if name := _TYPED_NAME.match(parameter.name):
            found[name.group(1)] = inspect.cleandoc(parameter.description)
    return found


def _no_griffe_noise(record: logging.LogRecord) -> bool:
    """Griffe warns of parameters without annotation; the signature is ours to read, not its."""
    return record.levelno >= logging.ERROR
