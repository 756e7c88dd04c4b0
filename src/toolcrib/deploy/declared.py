"""The `resources:` of a file, decoded: kinds, impls, dependencies and, by each type's own decoder,
settings. Checks what lies between resources: names, kinds and cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from toolcrib.deploy.decode import LATER, gathered, plain_record, record, required
from toolcrib.deploy.document import Entry, ListNode, MapNode
from toolcrib.deploy.places import At, Rejected, did_you_mean, suggestion
from toolcrib.deploy.resources import Dependency, Resource, ResourceType, ResourceTypes
from toolcrib.deploy.scalars import name

__all__ = ["deployment"]

_OF_CLIENTS = ("mcpServers", "servers")
_LATER_SECTIONS = ("gateway", "knowledge", "models", "receipts", "sandbox", "workflow")
_LATER_KINDS = ("engine", "gateway", "knowledge", "model", "receipt", "sandbox", "workflow")
_LATER_IMPLS = {"tool.Source": ("commands", "entry_points", "openapi", "workers")}


def deployment(at: At, types: ResourceTypes, given: Mapping[str, str]) -> tuple[Resource, ...]:
    """The resources of the file whose root is `at`, in the order of the file. `given` are the kinds
    of those the host hands in, by name."""
    if any(at.has(key) for key in _OF_CLIENTS) and not at.has("resources"):
        at.reject(
            "this is a file of another MCP client: `toolcrib import` makes a deployment file of it,"
            " and `settings: {config: FILE}` of a tool.Source, impl mcp, uses it as it is"
        )
    decode = plain_record(
        {"resources": required(lambda at: _resources(at, types, given))}, later=_LATER_SECTIONS
    )
    resources: tuple[Resource, ...] = decode(at)["resources"]
    return resources


@dataclass(frozen=True, slots=True)
class _Known:
    """What the resources may say of each other, before any of them is decoded."""

    types: ResourceTypes
    kinds: Mapping[str, str | None]
    """Kind by name; None where it is not readable, which is a fault of its own."""
    edges: dict[str, list[tuple[str, At]]] = field(default_factory=dict[str, list[tuple[str, At]]])


def _resources(at: At, types: ResourceTypes, given: Mapping[str, str]) -> tuple[Resource, ...]:
    kinds: dict[str, str | None] = dict(given)
    for entry in at.map_node().entries:
        if entry.key in given:
            at.under(entry).note("the host hands in a resource of this name: rename this one")
        if not entry.key.strip():
            at.under(entry).note("a blank name")
        kinds[entry.key] = _look(at.under(entry), "kind")
    known = _Known(types, kinds)
    try:
        return tuple(
            gathered(
                partial(_resource, entry.key, at.under(entry), known)
                for entry in at.map_node().entries
            )
        )
    finally:
        _check_cycles(known)


def _look(at: At, key: str) -> str | None:
    """The text under `key`, without noting what is wrong with it."""
    if not isinstance(at.node, MapNode) or key not in at.node.by_key:
        return None
    try:
        return name(at.silent.under(at.node.by_key[key]))
    except Rejected:
        return None


def _resource(own_name: str, at: At, known: _Known) -> Resource:
    node = at.map_node()
    kind, impl = _look(at, "kind"), _look(at, "impl")
    type_ = known.types.get(kind, impl) if kind is not None and impl is not None else None
    # What is absent is decoded as empty, so that what it must hold is missed in the same words.
    absent = [key for key in ("deps", "settings") if key not in node.by_key]
    entries = tuple(Entry(key, at.line, MapNode(at.line)) for key in absent)
    whole = At(MapNode(node.line, node.entries + entries), at.path, at.line, at.notes)
    decode = record(
        partial(_made, own_name, type_, at),
        {
            "kind": required(partial(_kind, types=known.types)),
            "impl": required(partial(_impl, kind=kind, types=known.types)),
            "deps": _any if type_ is None else partial(_deps, own_name, type_, known),
            "settings": _any if type_ is None else type_.settings,
        },
    )
    return decode(whole)


def _any(at: At) -> None:
    """What cannot be judged because nobody knows what it belongs to."""


def _made(
    own_name: str, type_: ResourceType | None, at: At, *, deps: Any, settings: Any, **_: str
) -> Resource:
    assert type_ is not None  # otherwise kind or impl was rejected
    return Resource(own_name, type_, settings, deps, at.place)


def _kind(at: At, types: ResourceTypes) -> str:
    kind = name(at)
    if kind not in types.kinds:
        if kind.partition(".")[0].lower().rstrip("s") in _LATER_KINDS:
            at.reject(f"kind {at.shown} is {LATER}")
        at.reject(f"unknown kind {at.shown}{suggestion(at.notes, kind, types.kinds)}")
    return kind


def _impl(at: At, kind: str | None, types: ResourceTypes) -> str:
    impl = name(at)
    impls = types.impls(kind) if kind is not None else ()
    if impls and impl not in impls:
        if impl in _LATER_IMPLS.get(str(kind), ()):
            at.reject(f"impl {at.shown} is {LATER}")
        at.reject(f"unknown impl {at.shown} of this kind{suggestion(at.notes, impl, impls)}")
    return impl


def _deps(own_name: str, type_: ResourceType, known: _Known, at: At) -> dict[str, tuple[str, ...]]:
    """Resource names by dependency, in the order of their sorted keys (rule A3.3)."""
    found: dict[str, list[tuple[str, At]]] = {}
    before = len(at.notes.problems)
    for entry in sorted(at.map_node().entries, key=lambda entry: entry.key):
        place = at.under(entry)
        dependency = next((one for one in type_.deps if one.takes(entry.key)), None)
        if dependency is None:
            _unknown_dependency(place, entry.key, type_)
            continue
        names = found.setdefault(dependency.name, [])
        names += _names(place, dependency, known, {name for name, _ in names})
    for dependency in type_.deps:
        if dependency.required and dependency.name not in found:
            at.note(f"missing dependency {dependency.name!r}: the name of a {dependency.kind}")
    known.edges[own_name] = [edge for edges in found.values() for edge in edges]
    if len(at.notes.problems) > before:
        raise Rejected
    return {key: tuple(name for name, _ in names) for key, names in found.items()}


def _unknown_dependency(at: At, key: str, type_: ResourceType) -> None:
    names = tuple(one.name for one in type_.deps)
    at.note(f"unknown dependency {key!r}{suggestion(at.notes, key, names)}")


def _names(
    at: At, dependency: Dependency, known: _Known, already: set[str]
) -> list[tuple[str, At]]:
    """The resources named at `at`; what is wrong with one of them was noted."""
    places = [at]
    if dependency.many and isinstance(at.node, ListNode):
        places = [at.item(number, item) for number, item in enumerate(at.node.items)]
        if not places:
            at.note(f"an empty list: name at least one {dependency.kind}")
    found: list[tuple[str, At]] = []
    for place in places:
        try:
            found.append((_name(place, dependency, known, already), place))
        except Rejected:
            continue  # noted
        already.add(found[-1][0])
    return found


def _name(at: At, dependency: Dependency, known: _Known, already: set[str]) -> str:
    wanted = name(at)
    if wanted not in known.kinds:
        near = did_you_mean(at.notes, wanted, known.kinds)
        at.reject(f"no resource {at.shown} in this file{near}")
    kind = known.kinds[wanted]
    if kind in known.types.kinds and kind != dependency.kind:
        at.reject(f"resource {at.shown} is a {kind}, expected a {dependency.kind}")
    if wanted in already:
        at.reject(f"resource {at.shown} is named twice")
    return wanted


def _check_cycles(known: _Known) -> None:
    """Notes a cycle at one of the dependencies it consists of."""
    graph = {name: [needed for needed, _ in edges] for name, edges in known.edges.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = list(reversed(error.args[1]))  # now each needs the one after it
        place = dict(known.edges[cycle[0]])[cycle[1]]
        place.note(f"resources depend on each other in a circle: {' → '.join(cycle)}")
