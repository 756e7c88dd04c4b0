"""`tool.Source/functions`: Python objects named in the file.

::

    settings:
      path: .                      # optional: a directory to import from, relative to the file
      modules: [workshop.files]    # every tool made at the top level of these modules
      tools:                       # single ones; a plain function becomes a tool
        - workshop.text:shorten
        - textwrap.dedent

Reading the file imports nothing: it only looks whether each path exists. A module is imported when
its resource is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TypeAlias, cast

from toolcrib.deploy.decode import Decoder, list_of, record
from toolcrib.deploy.imports import ImportPath, fault_of, imported, parse_import_path
from toolcrib.deploy.places import At, Place, Rejected
from toolcrib.deploy.resources import Given
from toolcrib.deploy.scalars import directory, name
from toolcrib.errors import ConfigurationError, InvalidDefinition
from toolcrib.function import FunctionTool, tool
from toolcrib.manifest import ManifestTool
from toolcrib.sources.functions import FunctionSource
from toolcrib.tool import Tool

__all__ = ["FunctionSettings", "build_functions", "function_settings"]

_ToolsIn: TypeAlias = Callable[[ImportPath, object], Iterator[Tool]]


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """What to import, in the order of the file, each with where it was said."""

    path: str | None = None
    modules: tuple[tuple[Place, ImportPath], ...] = ()
    tools: tuple[tuple[Place, ImportPath], ...] = ()


def function_settings(at: At) -> FunctionSettings:
    """Decodes the settings; a path that does not exist is a fault of its place."""
    where = _directory(at)
    fields: dict[str, Decoder[object]] = {
        "path": directory,
        "modules": list_of(lambda at: (at.place, _checked(at, _module(at, where)))),
        "tools": list_of(lambda at: (at.place, _checked(at, _single(at, where)))),
    }
    settings = record(FunctionSettings, fields)(at)
    if not settings.modules and not settings.tools:
        at.reject("names no tools: list modules or tools, such as modules: [package.module]")
    return settings


def build_functions(given: Given) -> FunctionSource:
    """The source of what `given.settings` names; one object named twice is one tool."""
    settings: FunctionSettings = given.settings
    found: dict[int, Tool] = {}
    for place, path in settings.modules:
        found.update((id(one), one) for one in _built(place, path, _tools_of))
    for place, path in settings.tools:
        found.update((id(one), one) for one in _built(place, path, _tool_of))
    return FunctionSource(found.values(), name=given.name)


def _directory(at: At) -> str | None:
    """The directory to import from, needed before its own key is decoded, which notes faults."""
    if not at.has("path"):
        return None
    try:
        return directory(at.silent.under(at.map_node().by_key["path"]))
    except Rejected:
        return None


def _module(at: At, where: str | None) -> ImportPath:
    written = name(at)
    path = parse_import_path(written + ":x")
    if path is None:
        at.expected("the name of a module, such as package.module")
    return ImportPath(path.module, "", where)


def _single(at: At, where: str | None) -> ImportPath:
    path = parse_import_path(name(at), where)
    if path is None:
        at.expected("an import path, such as package.module:name")
    return path


def _checked(at: At, path: ImportPath) -> ImportPath:
    path = replace(path, secret=at.text_node().from_outside)
    if fault := fault_of(path):
        at.reject(fault)
    return path


def _built(place: Place, path: ImportPath, tools_in: _ToolsIn) -> list[Tool]:
    try:
        tools = list(tools_in(path, imported(path)))
        for one in tools:
            _ = one.definition  # its signature is looked at now, so that a fault has a line
    except (ConfigurationError, InvalidDefinition) as error:
        raise place.error(str(error)) from error
    return tools


def _tools_of(path: ImportPath, module: object) -> Iterator[Tool]:
    """The tools made in a module; those it only imported from another belong to that one."""
    assert isinstance(module, ModuleType)
    found = False
    for value in list(vars(module).values()):
        if isinstance(value, FunctionTool) and value.__module__ != module.__name__:
            continue
        if isinstance(value, ManifestTool):
            found = True
            yield value
    if not found:
        raise ConfigurationError(
            f"module {path} makes no tools: decorate functions with @tool, or name them under tools"
        )


def _tool_of(path: ImportPath, value: object) -> Iterator[Tool]:
    if isinstance(value, Tool) and not inspect.isclass(value):
        yield value
    elif inspect.isroutine(value):
        yield cast("Tool", tool(value))
    else:
        raise ConfigurationError(
            f"{path} is neither a tool nor a function, but of type {type(value).__name__}"
        )
