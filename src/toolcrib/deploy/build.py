"""A decoded deployment, and what is made of it: in dependency order, closed in the reverse.

Making starts nothing: sources are constructed, the assembly opens them. How each resource is made
stands with its type (`functions`, `mcp`, `assemblies`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any

from toolcrib.assembly import Assembly
from toolcrib.deploy.changes import reloadable
from toolcrib.deploy.resources import ASSEMBLY, Given, Resource
from toolcrib.errors import Conflict, InvalidDefinition, NotFound, Problem
from toolcrib.names import nearest

__all__ = ["Built", "Deployment"]

logger = logging.getLogger("toolcrib.deploy")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a file declares: checked, nothing made or started yet."""

    file: str
    resources: tuple[Resource, ...]
    warnings: tuple[Problem, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def assemblies(self) -> tuple[str, ...]:
        """The names of the file's assemblies, in its order."""
        return tuple(one.name for one in self.resources if one.kind == ASSEMBLY)

    def choose(self, name: str | None = None) -> str:
        """The resource `name`, by default the file's only assembly. Raises `NotFound` for an
        unknown name, and without one where the file has no assembly, or several."""
        file, known = self.file, [one.name for one in self.resources]
        if name in known:
            return name
        if name is not None:
            near = nearest(name, known, 1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise NotFound(f"no resource {name!r} in {file}{hint}")
        found = list(self.assemblies)
        if not found:
            raise NotFound(f"{file} has no {ASSEMBLY} resource to open")
        if len(found) > 1:
            raise NotFound(f"{file} has several assemblies, name one: {', '.join(found)}")
        return found[0]

    def build(self, name: str | None = None) -> Built:
        """Makes the resource that `choose(name)` gives, after everything it needs.

        Nothing is started; imports of the file are done here. Raises `ConfigurationError` with the
        place of the resource that could not be made, after closing those made before it.
        """
        target = self.choose(name)
        built = Built(self, target)
        for resource in self.order(target):
            try:
                with _placed(resource):
                    given = _given(resource, self.deps(resource, built.made))
                    built.made[resource.name] = resource.type.build(given)
            except BaseException:
                _run_to_end(built)
                raise
        return built

    def deps(
        self, resource: Resource, made: Mapping[str, object]
    ) -> Mapping[str, tuple[object, ...]]:
        """What `resource` depends on, from what was made and what the host gave."""
        return {
            key: tuple(made[name] if name in made else self.given[name] for name in names)
            for key, names in resource.deps.items()
        }

    def order(self, target: str) -> list[Resource]:
        """`target` and what it needs, each after its own needs, in the order they are named."""
        by_name = {one.name: one for one in self.resources}
        order: dict[str, Resource] = {}
        waiting = [target]
        while waiting:
            name = waiting[-1]
            needs = () if name in order or name in self.given else by_name[name].needs
            if missing := [n for n in needs if n not in order and n not in self.given]:
                waiting += reversed(missing)
                continue
            waiting.pop()
            if name in by_name:
                order.setdefault(name, by_name[name])
        return list(order.values())


class Built:
    """What was made of one deployment. `async with` opens its assembly and gives it; leaving closes
    everything in the reverse order it was made. `made` are the resources by name, sources among
    them: `built.made["servers"].subscribe(…)`; `built.assembly.host = …` before it is opened."""

    def __init__(self, deployment: Deployment, target: str) -> None:
        self.deployment = deployment
        self.target = target
        self.made: dict[str, object] = {}
        """The resources by name, in the order they were made."""
        self._reloading = asyncio.Lock()

    @property
    def resource(self) -> Any:
        """The resource that was asked for."""
        return self.made[self.target]

    @property
    def assembly(self) -> Assembly:
        """The assembly that was asked for. Raises `NotFound` if it was another kind of resource."""
        by_name = {one.name: one for one in self.deployment.resources}
        if (kind := by_name[self.target].kind) != ASSEMBLY:
            raise NotFound(f"resource {self.target!r} is a {kind}, not a {ASSEMBLY}")
        assembly: Assembly = self.resource
        return assembly

    async def open(self) -> Assembly:
        """Opens the assembly. If that fails, everything made is closed and the error raised."""
        try:
            await self.assembly.open()
        except BaseException:
            await self.close_all()
            raise
        return self.assembly

    async def reload(self, deployment: Deployment) -> tuple[str, ...]:
        """Goes on with `deployment`, a newer reading of the same file, and gives the names of the
        resources that took something from it: MCP sources, which reconnect the servers that are
        declared otherwise (`McpSource.reload`). Raises `ConfigurationError` with whatever else has
        changed, `NotFound` where the file has this assembly no more; nothing is changed then. Of
        several at once each begins where the one before it ended."""
        async with self._reloading:
            return await self._reload(deployment)

    async def _reload(self, deployment: Deployment) -> tuple[str, ...]:
        made = self.made.keys()
        changed = reloadable(
            [one for one in self.deployment.resources if one.name in made],
            deployment.order(deployment.choose(self.target)),
        )
        for one in changed:
            given = _given(one, deployment.deps(one, self.made))
            assert one.type.reload is not None
            with _placed(one):
                await one.type.reload(self.made[one.name], given)
        self.deployment = deployment
        return tuple(one.name for one in changed)

    async def close(self) -> None:
        """Closes everything, the last made first; all of it, whatever fails. The first failure is
        raised, each is logged."""
        failures = await self.close_all()
        if failures:
            raise failures[0]

    async def close_all(self) -> list[Exception]:
        """Like `close`, but gives the failures instead of raising the first."""
        failures: list[Exception] = []
        for name, thing in reversed(self.made.items()):
            try:
                await _close(thing)
            except Exception as error:
                logger.exception("closing resource %r failed", name)
                failures.append(error)
        return failures

    async def __aenter__(self) -> Assembly:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Built {self.target!r} of {self.deployment.file!r}: {', '.join(self.made)}>"


def _given(resource: Resource, deps: Mapping[str, tuple[object, ...]]) -> Given:
    return Given(resource.name, resource.settings, MappingProxyType(dict(deps)), resource.place)


@contextmanager
def _placed(resource: Resource) -> Generator[None]:
    """Says of a fault which resource it is of."""
    try:
        yield
    except (InvalidDefinition, Conflict) as error:
        raise resource.place.error(str(error)) from error


async def _close(thing: object) -> None:
    close = getattr(thing, "aclose", None) or getattr(thing, "close", None)
    if close is not None and inspect.isawaitable(done := close()):
        await done


def _run_to_end(built: Built) -> None:
    """Closes what a failed build had made, from synchronous code: on a loop of its own, or on the
    running one as soon as it gets to it."""
    if not built.made:
        return
    closing = built.close_all()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(closing)
        return
    task = asyncio.ensure_future(closing)
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[list[Exception]]] = set()
