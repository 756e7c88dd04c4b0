"""The whole of it, open: sources publish into a registry, an executor runs calls, sessions see.

Wires the rooms below together and owns their lifetime; decides nothing itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from toolcrib import eager
from toolcrib.arguments import encode
from toolcrib.catalog import Catalog
from toolcrib.chain import Middleware
from toolcrib.content import ToolCall, ToolResult
from toolcrib.crossing import call_across
from toolcrib.discovery.lookup import Lookup
from toolcrib.discovery.policy import Dynamic
from toolcrib.discovery.saved import view_of
from toolcrib.discovery.search_tool import search_tool
from toolcrib.discovery.visible import View
from toolcrib.errors import NotAvailable
from toolcrib.executor import Executor
from toolcrib.host import Host, checked
from toolcrib.limits import ToolLimits
from toolcrib.opening import OWN, Item, Opening, sources_of
from toolcrib.output import Delivery
from toolcrib.policy import Policies, Policy
from toolcrib.principal import LOCAL, Principal
from toolcrib.ranking.ranker import Ranker
from toolcrib.redact import Redactor
from toolcrib.registry import Registry
from toolcrib.session import Session

if TYPE_CHECKING:
    from toolcrib.providers.history import Message
    from toolcrib.spill import SpillStore

__all__ = ["Assembly", "Item"]

logger = logging.getLogger("toolcrib.assembly")


class Assembly:
    """Sources, registry, executor and sessions of one program, on one asyncio loop.

    Without more it is static: every tool in every round, no middleware. `dynamic` turns discovery
    on; `middlewares` stand outermost first; `policies` holds records by tool name or pattern.
    `spill` keeps the whole text of results that were cut and adds `read_tool_result`; `redactor`
    masks known secrets in results, errors and logs. `host` is who tools may ask: of a session that
    has none of its own, and outside any.
    Open it with `async with`. The registry may be changed from any thread; other threads call
    through `call_sync`.
    """

    def __init__(
        self,
        items: Iterable[Item] = (),
        *,
        dynamic: Dynamic | None = None,
        middlewares: Sequence[Middleware] = (),
        policies: Mapping[str, Policy] | None = None,
        limits: ToolLimits = ToolLimits(),
        principal: Principal = LOCAL,
        registry: Registry | None = None,
        spill: SpillStore | None = None,
        redactor: Redactor | None = None,
        host: Host | None = None,
    ) -> None:
        self.sources = sources_of(items)
        self.dynamic = dynamic
        self.limits = limits
        self.principal = principal
        self.registry = registry or Registry()
        self.registry.govern(
            Policies(policies) if dynamic is None else dynamic.policies(policies or {})
        )
        self._sources = Opening(self.sources, self.registry)
        self.spill = spill
        self.executor = Executor(
            self.registry, middlewares, delivery=Delivery(spill, redactor), host=checked(host)
        )
        self._lookup = Lookup(self.registry, None if dynamic is None else dynamic.ranker)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._call_ids = itertools.count(1)
        self._closed = False

    async def open(self) -> Assembly:
        """Opens every source; returns when each has made its first attempt, or after 5 seconds.

        Raises what a source raised within that time (a rejected configuration, a `Conflict` of
        names), after closing what was opened. `NotAvailable` if it was open before.
        """
        if self._loop is not None:
            raise NotAvailable("an assembly is opened once: make a new one")
        self._loop = asyncio.get_running_loop()
        self.registry.closer.bind(self._loop)
        try:
            if self.dynamic is not None:
                self.registry.add(search_tool(), OWN)
            if self.spill is not None:
                from toolcrib.spill import read_tool  # files: only for those who use it

                self.registry.add(read_tool(self.spill), OWN)
            await self._sources.open(self.host)
            self._warn_of_crowding()
        except BaseException:
            await self.close()
            raise
        return self

    def _warn_of_crowding(self) -> None:
        """Always tools that alone exceed a round's budget leave no room for what is found."""
        if self.dynamic is None:
            return
        budget, catalog = self.dynamic.budget.caps, self.catalog
        used = sum(definition.wire_bytes for definition in catalog.select(catalog.always))
        if len(catalog.always) > budget.max_tools or used > budget.max_bytes:
            logger.warning(
                "the always tools alone exceed a round's budget: %d tools of %d, %d bytes of %d",
                len(catalog.always),
                budget.max_tools,
                used,
                budget.max_bytes,
            )

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Waits until every source has what the host cannot do without: its `required` servers.
        Raises `NotReady` after `timeout` seconds, `ConfigurationError` where one gave up."""
        await self._sources.wait_ready(timeout)

    async def close(self) -> None:
        """Ends the sources, the last first, then withdraws and closes every tool. Safe twice."""
        if self._closed:
            return
        self._closed = True
        await self._sources.close()
        self.registry.close()
        await self.registry.closer.drain()
        await self._lookup.close()
        self.executor.close()
        if self._loop is not None:
            eager.dismiss(self._loop)

    async def __aenter__(self) -> Assembly:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def host(self) -> Host | None:
        """Who tools may ask where a session names nobody else. Set it before opening: some servers
        are told what it can be asked when they are connected to."""
        return self.executor.host

    @host.setter
    def host(self, host: Host | None) -> None:
        self.executor.host = checked(host)

    @property
    def catalog(self) -> Catalog:
        """The current revision of the registry."""
        return self.registry.catalog

    @property
    def ranker(self) -> Ranker:
        """What finds tools, over all of them; made at its first use and kept up to date."""
        return self._lookup.ranker

    def session(
        self, *, principal: Principal | None = None, id: str = "", host: Host | None = None
    ) -> Session:
        """A new conversation of `principal`, whose tools may ask `host` (default: the assembly's
        own of each)."""
        return self._session(principal, View(), id, host)

    def resume(
        self,
        state: Mapping[str, Any],
        *,
        principal: Principal | None = None,
        id: str = "",
        host: Host | None = None,
    ) -> Session:
        """A conversation as `Session.state()` described it, of any assembly with these tools; what
        it sends next is what it would have sent there. Raises `InvalidDefinition` for anything that
        is not such a state."""
        return self._session(principal, view_of(state), id, host)

    def resume_from(
        self,
        messages: Iterable[Message],
        *,
        principal: Principal | None = None,
        id: str = "",
        host: Host | None = None,
    ) -> Session:
        """A conversation as its transcript shows it, where no state was kept (see `replay`). Raises
        `NotAvailable` where the assembly is not dynamic."""
        if self.dynamic is None:
            raise NotAvailable("a static assembly has no state to derive: use session()")
        from toolcrib.replay import replayed  # transcripts: only for those who keep nothing else

        owner = principal or self.principal
        view = replayed(messages, self.catalog, self.dynamic, owner)
        return self._session(owner, view, id, host)

    def _session(
        self, principal: Principal | None, view: View, id: str, host: Host | None
    ) -> Session:
        return Session(
            self.registry,
            self.executor,
            principal=principal or self.principal,
            dynamic=self.dynamic,
            lookup=self._lookup,
            limits=self.limits,
            view=view,
            id=id,
            host=self.host if host is None else checked(host),
        )

    async def call(
        self, name: str, /, arguments: Mapping[str, Any] | str | None = None, **kwargs: Any
    ) -> ToolResult:
        """Calls a tool by its exact name (or `source/tool`), as the assembly's own principal.

        `arguments`: a mapping, or JSON text as a model writes it; keywords are arguments too. A
        failed call is a result. Raises `NotAvailable` while the assembly is not open, and
        `InvalidArguments` for what the program itself cannot mean: a value JSON cannot hold, a
        name given twice, text together with keywords.
        """
        return await self.execute(
            ToolCall(f"call-{next(self._call_ids)}", name, encode(arguments, kwargs))
        )

    async def execute(self, call: ToolCall, *, principal: Principal | None = None) -> ToolResult:
        """Executes one call outside any session."""
        if self._loop is None or self._closed:
            raise NotAvailable("the assembly is not open: use `async with`")
        return await self.executor.execute(call, principal=principal or self.principal)

    def call_sync(
        self, name: str, /, arguments: Mapping[str, Any] | str | None = None, **kwargs: Any
    ) -> ToolResult:
        """`call` for other threads: runs on the assembly's loop and waits for the result.

        Raises `NotAvailable` where the assembly is not open, `InvalidDefinition` on its own loop,
        which would wait for itself.
        """
        loop = self._loop
        if loop is None or self._closed:
            raise NotAvailable("the assembly is not open: use `async with`")
        return call_across(loop, name, lambda: self.call(name, arguments, **kwargs))

    def __repr__(self) -> str:
        return f"<Assembly of {len(self.catalog)} tools from {len(self.sources)} sources>"
