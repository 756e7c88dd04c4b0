"""References in text: `${env:NAME}`, `${env:NAME:-default}`, `${base}`, and `$${` for `${` itself.

Text to text, in one pass: what a reference gave is never looked at again, so a value may hold
anything. Which texts of a file are expanded is the caller's decision, not made here.

A reference ends on the line it began on. A variable that is set but empty gives the empty text; the
default counts only where it is not set, and holds no braces and no second reference. `$X`, `$$` and
a lone `$` are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolcrib.errors import ConfigurationError

__all__ = ["Reference", "expand", "references"]

_FOUND = re.compile(
    r"""
      \$(?P<literal>\$\{ (?:[^{}\s"'\\$]*\})? )
    | (?P<base>\$\{base\})
    | \$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*) (?: :-(?P<default>(?:(?!\$\{)[^{}\r\n])*) )? \}
    | (?P<fault>\$\{ (?: [^{}\r\n]*\$\{[^{}\r\n]*\}[^{}\r\n]*\} | [^{}\s,"']*\} )? )
    """,
    re.VERBOSE,
)
"""`literal` and `fault` take in their closing brace where that is safe: whoever cuts references out
of a YAML flow mapping must not leave it behind, it would end the mapping."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHOWN = re.compile(r"[A-Za-z0-9_]*")
_LOOK = 256
"""Characters looked at to say what a fault is: a hostile text may hold a hundred thousand."""
_KNOWN = "known are ${env:NAME}, ${env:NAME:-default} and ${base}; write $${ for a literal ${"


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference found in a text. Resolving it is what may fail, not finding it."""

    start: int
    end: int
    name: str = ""
    """The environment variable; empty for the others."""
    default: str | None = field(default=None, repr=False)
    literal: str | None = field(default=None, repr=False)
    """What it stands for, whatever the environment says."""
    fault: str = ""
    """Why it can never be resolved."""

    @property
    def shown(self) -> str:
        """How messages name it: never a value, nor the default."""
        if self.literal is not None:
            return "$" + self.literal
        if self.fault:
            return "${…"
        return f"${{env:{self.name}}}" if self.name else "${base}"

    def resolve(self, environ: Mapping[str, str], base: str | Path | None) -> str:
        """The text it stands for. Raises `ConfigurationError` naming what is missing or wrong."""
        if self.literal is not None:
            return self.literal
        if self.fault:
            raise ConfigurationError(self.fault)
        if not self.name:
            if base is None:
                raise ConfigurationError("${base} is the directory of the file, and there is none")
            return str(base)
        value = environ.get(self.name, self.default)
        if value is None:
            raise ConfigurationError(
                f"the environment variable {self.name!r} is not set: set it, or give a default"
                f" with ${{env:{self.name}:-…}}"
            )
        return value


def references(text: str) -> Iterator[Reference]:
    """Every reference and every `$${` of `text` in order, faulty ones included."""
    for found in _FOUND.finditer(text):
        start, end = found.span()
        if (literal := found["literal"]) is not None:
            yield Reference(start, end, literal=literal)
        elif found["fault"]:
            yield Reference(start, end, fault=_fault(text, start))
        else:
            yield Reference(start, end, found["name"] or "", found["default"])


def expand(text: str, environ: Mapping[str, str], base: str | Path | None = None) -> str:
    """`text` with every reference replaced; `${base}` stands for `base`.

    Raises `ConfigurationError` for an unset variable without default (naming it), an unterminated
    or nested reference and an unknown scheme; never shows a value.
    """
    parts: list[str] = []
    at = 0
    for reference in references(text):
        parts += (text[at : reference.start], reference.resolve(environ, base))
        at = reference.end
    return "".join(parts) + text[at:]


def _fault(text: str, start: int) -> str:
    """What is wrong with the reference that begins at `start`."""
    line = re.split(r"[\r\n]", text[start + 2 : start + _LOOK], maxsplit=1)[0]
    inner, closed, _ = line.partition("}")
    if "${" in inner:
        return "a reference within a reference: a default is plain text, it cannot hold another ${"
    if not closed:
        return "a reference without its end: ${ needs a } on the same line; $${ is a literal ${"
    scheme, colon, rest = inner.partition(":")
    if scheme == "env" and colon:
        name, has_default, _ = rest.partition(":-")
        if has_default and _NAME.match(name):
            return f"the default in ${{env:{name}:-…}} holds a brace, which is not supported"
        return f"{_shown(name)!r} is not the name of an environment variable; {_KNOWN}"
    hint = f"did you mean ${{env:{inner}}}? " if _NAME.match(inner) else ""
    return f"unknown reference ${{{_shown(inner)}}}: {hint}{_KNOWN}"


def _shown(inner: str) -> str:
    """What a message may show of a reference that is not understood: the word it begins with.
    Behind it there may be a default in some other syntax, and that may be a secret."""
    word = _SHOWN.match(inner)
    start = word[0] if word is not None else ""
    rest = inner[len(start) :]
    return start + (":…" if rest.startswith(":") else "…" if rest else "")
