"""A tool that is known by name and description, and made when somebody first needs it.

What a load costs and when one is due is not decided here; see `loading`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from toolcrib.content import ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.errors import InvalidDefinition, NotAvailable
from toolcrib.policy import NO_POLICY, Policy
from toolcrib.threads import ThreadPool
from toolcrib.tool import CallContext, Tool, closer_of

__all__ = ["LazyTool", "Load"]

logger = logging.getLogger("toolcrib.lazy")

Load: TypeAlias = Callable[[], Tool | Awaitable[Tool]]
"""Makes the real tool; a synchronous one runs in a thread."""

LOAD_TIMEOUT = 30.0


class LazyTool:
    """A placeholder until `load` has given the real tool, which must have the same name.

    Its definition is the placeholder's (no parameters: any object) until then, the real one
    afterwards; search ranks what there is (rule A5.4). It is loaded when a search finds it or
    somebody calls it. At most one load runs, for all who wait; it may take `timeout` seconds. A
    load that failed is forgotten: whoever needs the tool next tries again (trap T-A9).

    Belongs to one event loop. Raises `InvalidDefinition` for a time-out that is not positive.
    """

    def __init__(
        self,
        name: str,
        description: str = "",
        *,
        load: Load,
        tags: Iterable[str] = (),
        policy: Policy = NO_POLICY,
        timeout: float = LOAD_TIMEOUT,
    ) -> None:
        if timeout <= 0:
            raise InvalidDefinition(f"lazy tool {name!r}: timeout is {timeout!r}: use more than 0")
        self._placeholder = ToolDefinition(name, description, {"type": "object"}, tags=tuple(tags))
        self._load = load
        self._policy = policy
        self._timeout = timeout
        self._loaded: Tool | None = None
        self._loading: asyncio.Task[Tool] | None = None
        self._closed = False

    @property
    def loaded(self) -> Tool | None:
        """The real tool, once there is one."""
        return self._loaded

    @property
    def definition(self) -> ToolDefinition:
        return self._placeholder if self._loaded is None else self._loaded.definition

    @property
    def policy(self) -> Policy:
        """What was said here, else what the real tool says of itself."""
        own = getattr(self._loaded, "policy", NO_POLICY)
        return self._policy.over(own) if isinstance(own, Policy) else self._policy

    async def load(self) -> Tool:
        """The real tool. Raises `NotAvailable` where it could not be had; its text may be shown to
        a model, the cause is in the log. Giving up waiting does not end the load."""
        if self._loaded is not None:
            return self._loaded
        if self._closed:
            raise NotAvailable(f"tool {self.definition.name!r} was withdrawn")
        loading = self._loading
        if loading is None or loading.done():
            loading = self._loading = asyncio.create_task(self._make())
            loading.add_done_callback(_taken_note)
        try:
            return await asyncio.shield(loading)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not loading.cancelled() or (task is not None and task.cancelling()):
                raise
            raise NotAvailable(f"tool {self.definition.name!r}: its load was cancelled") from None

    async def _make(self) -> Tool:
        name = self._placeholder.name
        threads = ThreadPool(1)
        try:
            async with asyncio.timeout(self._timeout):
                made: object = (
                    self._load()
                    if inspect.iscoroutinefunction(self._load)
                    else await threads.run(self._load)
                )
                if inspect.isawaitable(made):
                    made = await made
        except (asyncio.CancelledError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # SystemExit too: no load ends the program
            logger.warning("lazy tool %r could not be loaded", name, exc_info=error)
            raise NotAvailable(f"tool {name!r} could not be loaded; try again later") from error
        finally:
            threads.close()
        if not isinstance(made, Tool) or made.definition.name != name:
            logger.warning("lazy tool %r: its load gave %r, no tool of that name", name, made)
            raise NotAvailable(f"tool {name!r} could not be loaded: what came is another thing")
        self._loaded = made
        return made

    async def execute(self, ctx: CallContext, arguments: str) -> ToolResult | str:
        """Loads the tool if need be, then calls it."""
        return await (await self.load()).execute(ctx, arguments)

    async def aclose(self) -> None:
        """Ends a load under way and closes the real tool."""
        self._closed = True
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
            await asyncio.wait((self._loading,))
        close = closer_of(self._loaded) if self._loaded is not None else None
        done = close() if close is not None else None
        if inspect.isawaitable(done):
            await done

    def __repr__(self) -> str:
        state = "not loaded" if self._loaded is None else "loaded"
        return f"<LazyTool {self._placeholder.name!r}, {state}>"


def _taken_note(task: asyncio.Task[Tool]) -> None:
    """Nobody may be waiting any more: an exception unasked for would be reported as lost."""
    if not task.cancelled():
        task.exception()
