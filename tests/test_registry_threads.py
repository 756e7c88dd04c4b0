"""Issue 2, must show 3: eight writers, eight readers and calls from two sides, all at once."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from typing import Any

from conftest import outcome
from toolcrib import Assembly, Registry, ToolDefinition
from toolcrib.registry import Change

WRITERS, READERS, STEPS = 8, 8, 500
SHARED = [f"shared_{at}" for at in range(6)]


class Watch:
    """What happened to every tool that was ever made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: list[Used] = []
        self.in_use_when_closed = 0


class Used:
    """A tool that knows whether it is in use, and how often it was closed."""

    def __init__(self, name: str, watch: Watch) -> None:
        self.definition = ToolDefinition(name)
        self.watch = watch
        self.closed = 0
        self.running = 0
        self.used_after = 0
        with watch.lock:
            watch.made.append(self)

    async def execute(self, ctx: Any, arguments: str) -> str:
        self.running += 1
        try:
            if self.closed:
                self.used_after += 1
            await asyncio.sleep(0)
            if self.closed:
                self.used_after += 1
            return self.definition.name
        finally:
            self.running -= 1

    async def aclose(self) -> None:
        if self.running:
            self.watch.in_use_when_closed += 1
        self.closed += 1


def write(
    registry: Registry,
    number: int,
    watch: Watch,
    pace: threading.Semaphore,
    errors: list[BaseException],
) -> None:
    choose, owner = random.Random(number), f"owner_{number}"
    own = [f"own_{number}_{at}" for at in range(4)]
    alone = f"alone_{number}"
    try:
        mine: list[Used] = []
        for step in range(STEPS):
            assert pace.acquire(timeout=20), "the loop stands still"
            what = choose.randrange(4)
            if what == 0:
                kept = [tool for tool in mine if choose.random() < 0.5]
                have = {tool.definition.name for tool in kept}
                new = [Used(n, watch) for n in own if n not in have and choose.random() < 0.5]
                mine = kept + new
                registry.publish(owner, mine)
            elif what == 1:
                if alone in registry.catalog:
                    registry.replace(Used(alone, watch))
                else:
                    registry.add(Used(alone, watch))
            elif what == 2:
                registry.remove(alone)
            else:  # a fight over shared names: both outcomes are right
                name = SHARED[(number + step) % len(SHARED)]
                _fight(registry, name, watch, choose)
    except BaseException as error:
        errors.append(error)


def _fight(registry: Registry, name: str, watch: Watch, choose: random.Random) -> None:
    from toolcrib import Conflict

    if choose.random() < 0.5:
        registry.remove(name)
        return
    tool = Used(name, watch)
    try:
        registry.add(tool)
    except Conflict:
        watch.made.remove(tool)  # never registered, so nobody has to close it


def read(
    registry: Registry,
    stop: threading.Event,
    seen: dict[int, tuple[str, ...]],
    errors: list[BaseException],
) -> None:
    last = 0
    try:
        while not stop.is_set():
            catalog = registry.catalog
            listing = tuple(definition.name for definition in catalog.definitions)
            assert catalog.revision >= last, "revisions only go forward"
            last = catalog.revision
            assert seen.setdefault(catalog.revision, listing) == listing
            for name in listing[:3]:
                assert catalog.get(name) is not None
            stop.wait(0.001)  # lets the loop have its turn; nothing is waited for
    except BaseException as error:
        errors.append(error)


def call_from_thread(
    assembly: Assembly, stop: threading.Event, kinds: Counter[str], errors: list[BaseException]
) -> None:
    choose = random.Random()
    try:
        while not stop.is_set():
            listing = assembly.catalog.definitions
            name = choose.choice(listing).name
            kinds[_kind(outcome(assembly.call_sync(name)), name)] += 1
    except BaseException as error:
        errors.append(error)


def _kind(found: str, name: str) -> str:
    return "ok" if found == name else found


async def test_writers_readers_and_callers_do_not_disturb_each_other() -> None:
    watch, errors, stop = Watch(), list[BaseException](), threading.Event()
    published: dict[int, tuple[str, ...]] = {}
    seen: list[dict[int, tuple[str, ...]]] = [{} for _ in range(READERS)]
    kinds: Counter[str] = Counter()
    pace = threading.Semaphore(0)  # the loop's calls let the writers go on, so both really overlap

    def listen(change: Change) -> None:
        published[change.catalog.revision] = tuple(
            sorted(entry.name for entry in change.catalog.entries())
        )

    async with Assembly([]) as assembly:
        registry = assembly.registry
        registry.subscribe(listen)
        registry.add(Used("from_the_start", watch))
        writers = [
            threading.Thread(target=write, args=(registry, number, watch, pace, errors))
            for number in range(WRITERS)
        ]
        others = [
            threading.Thread(target=read, args=(registry, stop, views, errors)) for views in seen
        ] + [
            threading.Thread(target=call_from_thread, args=(assembly, stop, kinds, errors))
            for _ in range(2)
        ]
        for thread in (*writers, *others):
            thread.start()
        choose = random.Random(99)
        while any(thread.is_alive() for thread in writers):
            listing = assembly.catalog.definitions
            picked = [choose.choice(listing).name for _ in range(4)]
            results = await asyncio.gather(*(assembly.call(name) for name in picked))
            for name, result in zip(picked, results, strict=True):
                kinds[_kind(outcome(result), name)] += 1
            pace.release(40)
            await asyncio.sleep(0)
        stop.set()
        for thread in (*writers, *others):
            await asyncio.to_thread(thread.join, 20)
            assert not thread.is_alive()
    assert errors == []
    assert set(kinds) <= {"ok", "not_found", "not_available"}, kinds
    assert kinds["ok"] > 50, kinds
    assert sum(len(views) for views in seen) > 50
    for views in seen:
        for revision, listing in views.items():
            assert published[revision] == listing
    assert watch.in_use_when_closed == 0
    assert sum(tool.used_after for tool in watch.made) == 0
    assert Counter(tool.closed for tool in watch.made) == {1: len(watch.made)}
