"""From a file to a `Deployment`: read, decoded and checked, nothing made or started."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from toolcrib.deploy.build import Deployment
from toolcrib.deploy.declared import deployment
from toolcrib.deploy.document import MAX_BYTES, TextNode
from toolcrib.deploy.places import At, Notes, Rejected
from toolcrib.deploy.reading import TOO_LARGE, read
from toolcrib.deploy.resources import Resource, ResourceTypes, kind_of
from toolcrib.deploy.standard import standard_types
from toolcrib.errors import ConfigurationError, Problem

__all__ = ["load", "loads"]

logger = logging.getLogger("toolcrib.deploy")


def load(
    path: str | os.PathLike[str],
    environ: Mapping[str, str] | None = None,
    *,
    types: ResourceTypes | None = None,
    given: Mapping[str, object] | None = None,
) -> Deployment:
    """The deployment a file declares. A str with a line break in it is the text itself (`loads`).

    `environ` answers `${env:…}` (default: the process environment, as it is now). `types` are the
    resource types the file may name, `given` resources the host made itself, by name: a `Source` or
    a `Registry`. Raises `ConfigurationError` with every problem of the file, in its order.
    """
    if isinstance(path, str) and "\n" in path:
        return loads(path, environ, types=types, given=given)
    file = os.fspath(path)
    base = Path(os.path.abspath(file)).parent
    return loads(_text_of(file), environ, types=types, given=given, file=file, base=base)


def loads(
    text: str,
    environ: Mapping[str, str] | None = None,
    *,
    types: ResourceTypes | None = None,
    given: Mapping[str, object] | None = None,
    file: str = "<text>",
    base: Path | None = None,
) -> Deployment:
    """Like `load`, of a text. `file` is how problems name it; `base` is what `${base}` and relative
    paths mean (without it the former is an error and the latter stay as they are)."""
    given = dict(given or {})
    kinds = {name: kind_of(thing) for name, thing in given.items()}
    notes = Notes(file, os.environ if environ is None else environ, base, [], [])
    resources = _decoded(text.removeprefix("\ufeff"), notes, types or standard_types(), kinds)
    if notes.problems:
        raise ConfigurationError(sorted(notes.problems, key=lambda problem: problem.line))
    for warning in notes.warnings:
        logger.warning("%s", warning)
    return Deployment(file, resources, tuple(notes.warnings), MappingProxyType(given))


def _text_of(file: str) -> str:
    try:
        with open(file, "rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise _unreadable(file, TOO_LARGE)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(file, "not UTF-8 text", line) from error


def _unreadable(file: str, why: str, line: int = 0) -> ConfigurationError:
    return ConfigurationError([Problem(why, file=file, line=line)])


def _decoded(
    text: str, notes: Notes, types: ResourceTypes, kinds: Mapping[str, str]
) -> tuple[Resource, ...]:
    root, problems = read(text, notes.file)
    notes.problems.extend(problems)
    if root is None or (isinstance(root, TextNode) and root.is_null):
        if not problems:
            notes.problems.append(Problem("the file is empty", file=notes.file))
        return ()
    try:
        return deployment(At(root, "", root.line, notes), types, kinds)
    except Rejected:
        return ()
