"""What a newer reading of a file changes of a deployment that runs.

Pure; the doing is `build`'s.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.deploy.resources import Resource
from toolcrib.errors import ConfigurationError, Problem

__all__ = ["reloadable"]


def reloadable(before: Iterable[Resource], after: Iterable[Resource]) -> list[Resource]:
    """Those of `after` whose settings changed, in its order. Raises `ConfigurationError` with
    everything that changed and that only a new start can take: a resource that is new or gone, of
    another impl, with other dependencies, or of a type that takes no other settings."""
    old = {one.name: one for one in before}
    new = {one.name: one for one in after}
    problems = [_problem(one, "is gone") for one in old.values() if one.name not in new]
    changed: list[Resource] = []
    for one in new.values():
        was = old.get(one.name)
        if was is None:
            problems.append(_problem(one, "is new"))
        elif (was.kind, was.impl, was.deps) != (one.kind, one.impl, one.deps):
            problems.append(_problem(one, "has another impl or other dependencies"))
        elif was.settings != one.settings:
            changed.append(one)
            if one.type.reload is None:
                problems.append(_problem(one, "has other settings"))
    if problems:
        raise ConfigurationError(problems)
    return changed


def _problem(one: Resource, what: str) -> Problem:
    return one.place.problem(f"resource {one.name!r} {what}: that takes a new start")
