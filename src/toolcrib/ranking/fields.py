"""What of a definition is searched: its texts, gathered once into a frozen value.

Schemas come from strangers: what is read of one is bounded in depth, nodes and characters, so a
hostile schema costs what a large honest one does. Nothing is weighed or split here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.definition import ToolDefinition
from toolcrib.ranking.text import name_key

__all__ = ["FIELDS", "Document", "document_of"]

MAX_DEPTH = 3
"""Levels of nested parameters that are read; deeper ones tell of data, not of what a tool does."""
MAX_NODES = 200
MAX_BRANCHES = 8
MAX_ENUM = 30
MAX_VALUE = 80
MAX_NOTE = 600
MAX_LABELS = 100
MAX_TEXT = 6_000
"""Characters of any one field: more would only let one tool be found for everything."""


@dataclass(frozen=True, slots=True)
class Document:
    """One tool as the search sees it.

    `key` is what the index files it under and answers with, normally the exposed name. `name` is
    the name without its source's namespace; `exposed` is the full one, for a query that names it.
    `parameters` holds names, `notes` the parameters' descriptions, `values` their enum values.
    `labels` are the tags one by one, for `tag:` filters; what is searched is `tags`.
    """

    key: str
    exposed: str
    name: str
    title: str = ""
    description: str = ""
    tags: str = ""
    source: str = ""
    parameters: str = ""
    notes: str = ""
    values: str = ""
    labels: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The searched texts, in the order of `FIELDS`."""
        return tuple(getattr(self, field) for field in FIELDS)


FIELDS = ("description", "notes", "parameters", "name", "source", "values", "tags", "title")
"""The searched fields, those that most terms come from first."""


def document_of(
    definition: ToolDefinition, source: str = "", *, key: str | None = None
) -> Document:
    """The document of `definition`, published by `source` (its name; empty: none).

    A title that only repeats the name says nothing new and is left out, as is the namespace that
    repeats the source: counted twice, a source's name would outweigh what its tools do.
    """
    name = definition.name
    bare = _without_namespace(name, source)
    title = definition.annotations.title or ""
    parameters, notes, values = _schema_texts(definition.input_schema)
    return Document(
        key=name if key is None else key,
        exposed=name,
        name=bare[:MAX_TEXT],
        title="" if name_key(title) in (name_key(bare), name_key(name)) else title[:MAX_TEXT],
        description=definition.description[:MAX_TEXT],
        tags=" ".join(definition.tags)[:MAX_TEXT],
        source=source[:MAX_TEXT],
        parameters=parameters,
        notes=notes,
        values=values,
        labels=tuple(definition.tags[:MAX_LABELS]),
    )


def _without_namespace(name: str, source: str) -> str:
    space, separator, rest = name.partition("__")
    return rest if separator and rest and source and name_key(space) == name_key(source) else name


def _schema_texts(schema: Mapping[str, Any]) -> tuple[str, str, str]:
    """Parameter names, descriptions and enum values of `schema`, each as one text."""
    names: list[str] = []
    notes: list[str] = []
    values: list[str] = []
    for name, node in _parameters(schema):
        names.append(name[:MAX_VALUE])
        note = node.get("description")
        if isinstance(note, str):
            notes.append(note[:MAX_NOTE])
        listed = node.get("enum")
        if isinstance(listed, list):
            some = cast("list[object]", listed)[:MAX_ENUM]
            values += [value[:MAX_VALUE] for value in some if isinstance(value, str)]
    return " ".join(names)[:MAX_TEXT], " ".join(notes)[:MAX_TEXT], " ".join(values)[:MAX_TEXT]


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every parameter of `schema` with its own schema, the outer ones first, within the bounds."""
    level: list[Mapping[str, Any]] = [schema]
    left = MAX_NODES
    for _ in range(MAX_DEPTH):
        inner: list[Mapping[str, Any]] = []
        for node in level:
            properties = node.get("properties")
            if not isinstance(properties, Mapping):
                continue
            for name, parameter in cast("Mapping[object, object]", properties).items():
                if left == 0:
                    return
                left -= 1
                resolved = _resolved(schema, parameter)
                yield str(name), resolved
                inner.append(resolved)
                inner += [_resolved(schema, branch) for branch in _branches(resolved)]
        level = inner


def _branches(node: Mapping[str, Any]) -> list[object]:
    """The schemas a value of `node` may also have to fit: its items and its alternatives."""
    found: list[object] = [node.get("items")]
    for word in ("anyOf", "oneOf", "allOf"):
        several = node.get(word)
        if isinstance(several, list):
            found += cast("list[object]", several)[:MAX_BRANCHES]
    return found


def _resolved(root: Mapping[str, Any], node: object) -> Mapping[str, Any]:
    """`node`, or what its local `$ref` names; one step, so a circle of references ends here."""
    if not isinstance(node, Mapping):
        return {}
    found = cast("Mapping[str, Any]", node)
    reference = found.get("$ref")
    if not isinstance(reference, str):
        return found
    place, _, name = reference.removeprefix("#/").partition("/")
    if place not in ("$defs", "definitions"):
        return found
    shared = root.get(place)
    target = cast("Mapping[str, Any]", shared).get(name) if isinstance(shared, Mapping) else None
    if not isinstance(target, Mapping):
        return found
    return {**cast("Mapping[str, Any]", target), **found}
