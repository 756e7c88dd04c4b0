"""What a docstring says: the summary for the model, and a text for each parameter.

Google, NumPy and Sphinx style, in full (PY17, PY20–PY22). What is not about parameters (returns,
raises, examples, notes) is not told to models.
"""

from __future__ import annotations

import inspect
import logging
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["parse_docstring"]

_NAMED = r"Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters"
_OTHERS = (
    r"Returns?|Yields?|Raises|Warns|Examples?|Notes?|See Also|References|Attributes|Todo|Warnings?"
)
_GOOGLE = re.compile(rf"^(?:{_NAMED})\s*:[ \t]*$", re.M)
_GOOGLE_ANY = re.compile(rf"^(?:{_NAMED}|{_OTHERS})\s*:[ \t]*$", re.M)
_NUMPY = re.compile(rf"^(?:{_NAMED}|{_OTHERS})[ \t]*\n[ \t]*-{{3,}}[ \t]*$", re.M)
_SPHINX = re.compile(
    r"^:(param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)\b", re.M
)
_NAME = re.compile(r"\*{0,2}(\w+)")


def parse_docstring(function: Any) -> tuple[str, dict[str, str]]:
    """`(description, {parameter: text})` of `function`'s docstring; without sections the whole text
    is the description, else it ends where the first one begins."""
    text = _text(function)
    for style, pattern in (("numpy", _NUMPY), ("sphinx", _SPHINX), ("google", _GOOGLE_ANY)):
        if first := pattern.search(text):
            return text[: first.start()].strip(), _described(text[first.start() :], style)
    return text.strip(), {}


def _text(function: Any) -> str:
    """The docstring without its indentation. One that opens with a section keeps the indentation
    below it, which `inspect.cleandoc` would take for the margin (PY21)."""
    text = inspect.getdoc(function) or ""
    raw: object = getattr(function, "__doc__", None)
    head, _, rest = text.partition("\n")
    if not _GOOGLE_ANY.match(head) or not isinstance(raw, str):
        return text
    rest = textwrap.dedent(raw.expandtabs().strip("\n").partition("\n")[2])
    opening = rest.lstrip("\n")
    if opening and not opening.startswith(" "):
        rest = textwrap.indent(rest, "    ")
    return f"{head}\n{rest}".rstrip()


def _described(text: str, style: Any) -> dict[str, str]:
    import griffe  # 67 ms: paid by the first docstring with sections, not by every import

    if style == "google":  # a section needs a blank line before it to be seen as one
        text = _GOOGLE_ANY.sub(lambda found: "\n" + found.group(0), text).strip()
        text = _GOOGLE.sub("Args:", text)
    logging.getLogger("griffe").addFilter(_no_griffe_noise)
    described: dict[str, str] = {}
    whole = f"Summary.\n\n{text}"  # griffe takes the second line for the margin of all
    for section in griffe.Docstring(whole).parse(style):
        if section.kind.value in ("parameters", "other parameters"):
            described |= _texts(section.value)
    return described


def _texts(parameters: Iterable[Any]) -> Mapping[str, str]:
    """By name, also where one text describes several (`x, y : int`)."""
    found: dict[str, str] = {}
    for parameter in parameters:
        for each in parameter.name.split(","):
            if name := _NAME.match(each.strip()):
                found[name.group(1)] = inspect.cleandoc(parameter.description)
    return found


def _no_griffe_noise(record: logging.LogRecord) -> bool:
    """Griffe warns of parameters without annotation; the signature is ours to read, not its."""
    return record.levelno >= logging.ERROR
