"""The contract of a source (`sources.contract.Source`), played through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from toolcrib.errors import ConfigurationError, NotReady
from toolcrib.registry import Registry
from toolcrib.sources.contract import Source
from toolcrib.testing.findings import Findings
from toolcrib.tool import Tool

__all__ = ["check_source"]

PATIENCE = 30.0


async def check_source(make: Callable[[], Source]) -> None:
    """Checks the sources that `make()` gives, each call a new one, against a real registry.

    Raises `AssertionError` if the name is blank, `open` does not return within 30 seconds, the
    published list is refused by a registry, `wait_ready(0)` does anything but return or raise
    `NotReady` or `ConfigurationError`, `close` is not safe twice or before `open`, something is
    published after `close`, or a task is left behind.
    """
    before = asyncio.all_tasks()
    await _within(make().close(), "close before open did not return")
    source = make()
    found = Findings(source)
    found.expect(source.name.strip(), "its name is blank")
    registry, late = Registry(), list[str]()
    closed = False

    def publish(tools: Iterable[Tool]) -> object:
        if closed:
            late.append("published")
        return registry.publish(source.name, tools)

    await _within(source.open(publish), "open did not return")
    owners = {entry.owner for entry in registry.catalog}
    found.expect(owners <= {source.name}, "it published for somebody else")
    try:
        await _within(source.wait_ready(0), "wait_ready(0) did not return")
    except (NotReady, ConfigurationError):
        pass  # both are answers
    await _within(source.close(), "close did not return")
    closed = True
    await _within(source.close(), "the second close did not return")
    for _ in range(3):
        await asyncio.sleep(0)
    found.expect(not late, "it published after close returned")
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    found.expect(not left, f"it left tasks behind: {left}")
    registry.close()
    found.tell()


async def _within(work: Coroutine[Any, Any, None], complaint: str) -> None:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait((task,), timeout=PATIENCE)
    if not done:
        task.cancel()
        raise AssertionError(complaint)
    task.result()
