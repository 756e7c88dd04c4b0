"""Import paths in the file: `package.module`, `package.module:name`, `package.module.name`.

Looking whether a path exists runs no code of the module: the import system is asked where it is,
and its source which names it binds. Only `imported` runs it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from toolcrib.errors import ConfigurationError
from toolcrib.names import nearest

__all__ = ["ImportPath", "fault_of", "imported", "parse_import_path"]

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")


@dataclass(frozen=True, slots=True)
class ImportPath:
    """A module, or with `attribute` something in it. `directory` is looked at before `sys.path`;
    `secret` keeps the names out of messages."""

    module: str = field(repr=False)
    attribute: str = field(default="", repr=False)
    directory: str | None = field(default=None, repr=False)
    secret: bool = False

    def __str__(self) -> str:
        return self.shown(f"{self.module}:{self.attribute}" if self.attribute else self.module)

    def shown(self, name: str) -> str:
        return "(not shown)" if self.secret else repr(name)


def parse_import_path(text: str, directory: str | None = None) -> ImportPath | None:
    """`module:name` or `module.name`; None for a text that names nothing within a module."""
    module, colon, attribute = text.partition(":")
    if not colon:
        module, _, attribute = text.rpartition(".")
    if not _DOTTED.match(module) or not _DOTTED.match(attribute):
        return None
    return ImportPath(module, attribute, directory)


def fault_of(path: ImportPath) -> str:
    """Why `path` cannot be imported, as far as can be seen without running it; else empty."""
    known = sys.modules.get(path.module)
    spec = _find(path)
    if known is not None:
        if path.directory is not None and _elsewhere(known, spec):
            which = path.shown(path.module)
            return f"a module {which} is already imported from somewhere else: rename one"
        there = ("", *vars(known))
        dynamic = "__getattr__" in there
        return "" if dynamic or _first(path) in there else _no_name(path, there)
    if spec is None:
        where = "path or " if path.directory is not None else ""
        hint = "" if path.directory is not None else "; `path: .` looks beside this file first"
        return f"no module {path.shown(path.module)} on {where}the import path of this Python{hint}"
    names = _names_of(spec) if path.attribute else None
    return "" if names is None or _first(path) in names else _no_name(path, names)


def imported(path: ImportPath) -> object:
    """The module, or what `attribute` names in it. Raises `ConfigurationError`."""
    with _on_import_path(path.directory):
        try:
            found: object = importlib.import_module(path.module)
        except (Exception, SystemExit) as error:
            reason = type(error).__name__
            if not path.secret:
                reason = f"{reason}: {error}".partition("\n")[0]
            which = path.shown(path.module)
            raise ConfigurationError(f"importing {which} failed: {reason}") from error
    for name in path.attribute.split(".") if path.attribute else ():
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise ConfigurationError(_no_name(path, dir(found))) from error
    return found


def _first(path: ImportPath) -> str:
    return path.attribute.partition(".")[0]


def _no_name(path: ImportPath, names: Iterable[str]) -> str:
    near = nearest(_first(path), names, 1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    return f"no {path.shown(path.attribute)} in module {path.shown(path.module)}{hint}"


def _find(path: ImportPath) -> ModuleSpec | None:
    """Where the module is. Parents are walked, not imported."""
    top, *rest = path.module.split(".")
    spec = PathFinder.find_spec(top, [path.directory]) if path.directory is not None else None
    if spec is None:
        try:
            spec = importlib.util.find_spec(top)
        except ValueError:  # a module made by hand, such as __main__, has no spec
            return None
    for step in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{step}", list(spec.submodule_search_locations))
    return spec


def _elsewhere(module: ModuleType, spec: ModuleSpec | None) -> bool:
    file = getattr(module, "__file__", None)
    return spec is not None and spec.has_location and file is not None and spec.origin != file


@contextmanager
def _on_import_path(directory: str | None) -> Generator[None]:
    """`directory` first on `sys.path` meanwhile: a module beside the file is found, and finds its
    neighbours while it is imported; nothing else of the process does."""
    if directory is None:
        yield
        return
    sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(directory)


def _names_of(spec: ModuleSpec) -> set[str] | None:
    """The names a module's source binds at its top level; None where that cannot be told."""
    if not spec.has_location or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None  # importing it will say what is wrong with it
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return None
            case ast.Name(id="globals" | "vars" | "setattr" | "exec"):
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names.update((one.asname or one.name).partition(".")[0] for one in node.names)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case _:
                """Nothing that binds a name."""
    # Names bound within functions are counted too: rather too many than a false alarm.
    return None if "__getattr__" in names else names
