"""Resources: what a deployment file declares, and the table of what it may be.

The table goes from (kind, impl) to how settings are read, what it depends on and how it is made. It
is a value a host can extend, not a global. This is not where anything is made: that is `build`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from toolcrib.deploy.decode import Decoder, nothing
from toolcrib.deploy.places import Place
from toolcrib.errors import Conflict, InvalidDefinition
from toolcrib.registry import Registry
from toolcrib.sources.contract import Source

__all__ = [
    "ASSEMBLY",
    "REGISTRY",
    "SOURCE",
    "Build",
    "Dependency",
    "Given",
    "Reload",
    "Resource",
    "ResourceType",
    "ResourceTypes",
    "kind_of",
]

SOURCE, REGISTRY, ASSEMBLY = "tool.Source", "tool.Registry", "tool.Assembly"


@dataclass(frozen=True, slots=True)
class Dependency:
    """What a resource needs of others: under its name as key, or with `many` also `name.anything`,
    ordered by key; each key holds one resource name or, with `many`, a list."""

    name: str
    kind: str
    required: bool = False
    many: bool = False

    def takes(self, key: str) -> bool:
        return key == self.name or (self.many and key.startswith(self.name + "."))


@dataclass(frozen=True, slots=True)
class Given:
    """What a resource is made from: name, decoded settings, and its dependencies, made already."""

    name: str
    settings: Any = field(repr=False)
    deps: Mapping[str, tuple[Any, ...]]
    place: Place


Build: TypeAlias = Callable[[Given], object]
"""Makes a resource and starts nothing. Raises `ConfigurationError` (see `Place.error`) or
`InvalidDefinition`, whose text gets the resource's place. If it has `close` or `aclose`, that is
called when the deployment is closed, after whatever depends on it."""


Reload: TypeAlias = Callable[[Any, Given], Awaitable[None]]
"""Has a resource that runs go on with other settings. May raise `InvalidDefinition`, whose text
gets the resource's place, and must have changed nothing then."""


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One (kind, impl): how it is read and made, and how it takes other settings while it runs;
    without `reload` it does not."""

    kind: str
    impl: str
    build: Build
    settings: Decoder[Any] = nothing
    deps: tuple[Dependency, ...] = ()
    reload: Reload | None = None


class ResourceTypes:
    """The resource types a file may name; `standard.standard_types()` gives those of toolcrib."""

    def __init__(self, types: Iterable[ResourceType] = ()) -> None:
        self._types: dict[tuple[str, str], ResourceType] = {}
        for one in types:
            self.add(one)

    def register(
        self,
        kind: str,
        impl: str,
        build: Build,
        *,
        settings: Decoder[Any] = nothing,
        deps: Iterable[Dependency] = (),
        reload: Reload | None = None,
    ) -> None:
        """Adds a type of the host's own. Without `settings` it has none: any key is unknown.
        Raises `Conflict` if there is that impl of that kind already."""
        self.add(ResourceType(kind, impl, build, settings, tuple(deps), reload))

    def add(self, one: ResourceType) -> None:
        if (one.kind, one.impl) in self._types:
            raise Conflict(f"there already is an impl {one.impl!r} of kind {one.kind!r}")
        self._types[one.kind, one.impl] = one

    def get(self, kind: str, impl: str) -> ResourceType | None:
        return self._types.get((kind, impl))

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self._types))

    def impls(self, kind: str) -> tuple[str, ...]:
        return tuple(impl for known, impl in self._types if known == kind)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a file, decoded and not yet made. `deps` are resource names by dependency."""

    name: str
    type: ResourceType = field(repr=False)
    settings: Any = field(repr=False)
    deps: Mapping[str, tuple[str, ...]]
    place: Place = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deps", MappingProxyType(dict(self.deps)))

    @property
    def kind(self) -> str:
        return self.type.kind

    @property
    def impl(self) -> str:
        return self.type.impl

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of all it depends on, in the order they are made."""
        return tuple(name for names in self.deps.values() for name in names)


def kind_of(thing: object) -> str:
    """The kind of an object the host itself hands in. Raises `InvalidDefinition`."""
    if isinstance(thing, Registry):
        return REGISTRY
    if isinstance(thing, Source):
        return SOURCE
    raise InvalidDefinition(
        f"an object of type {type(thing).__name__} is no resource: hand in a Source or a Registry"
    )
