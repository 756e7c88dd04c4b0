"""What a source is to the assembly that opens it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, runtime_checkable

from toolcrib.host import Ability
from toolcrib.tool import Tool

__all__ = ["Asks", "Publish", "Source"]

Publish: TypeAlias = Callable[[Iterable[Tool]], object]
"""Makes these tools the source's whole list, in one revision; callable again at any time, from any
thread, until `close` returned. Raises `Conflict` and changes nothing if a name is taken."""


@runtime_checkable
class Source(Protocol):
    """Publishes tools, from `open` to `close`.

    `open` returns when the first attempt to get the list has ended, whatever came of it: a source
    that is down keeps trying in the background and publishes later. It raises `ConfigurationError`
    only for what no retry can mend. The assembly goes on after a few seconds even if `open` has not
    returned, and does not cancel it. `close` ends everything the source started; it is safe after a
    failed `open`, and twice.

    `wait_ready(timeout)` returns once the source has published what the host cannot do without, and
    raises `NotReady` when `timeout` seconds (None: no limit) pass first, `ConfigurationError` when
    it gave up.
    """

    @property
    def name(self) -> str: ...

    async def open(self, publish: Publish) -> None: ...

    async def wait_ready(self, timeout: float | None = None) -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class Asks(Protocol):
    """A source whose tools ask the host of a conversation, and that promises so to others before
    any call: it is told what hosts can do, before it is opened."""

    def may_ask(self, abilities: frozenset[Ability]) -> None: ...
