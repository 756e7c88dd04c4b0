"""MCP servers as one source: what each lists is published, and stays while it is down.

Supervision is `keep`'s, naming `catalogue`'s; here is only what joins them to a registry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from toolcrib.errors import (
    ConfigurationError,
    Conflict,
    NotAvailable,
    NotReady,
    Problem,
)
from toolcrib.frozen import NOTHING
from toolcrib.host import Ability
from toolcrib.sources.contract import Publish
from toolcrib.sources.mcp.catalogue.mirror import Rejection
from toolcrib.sources.mcp.checks import number
from toolcrib.sources.mcp.health import Health, Pace
from toolcrib.sources.mcp.member import Member
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.servers import Reloaded, declared, difference, only_told

__all__ = ["McpSource"]

logger = logging.getLogger("toolcrib.mcp")


class McpSource:
    """MCP servers as a source of tools. Belongs to the loop that opens it.

    `liveness` is seconds between two probes of a server that names none (0.0: no probes);
    `first_backoff` doubles up to `max_backoff` between attempts; `connect_timeout` bounds each
    connecting, `list_timeout` each listing, `stop_timeout` each step of ending a process (its input
    closed, SIGTERM, SIGKILL). All in seconds. `unavailable` are servers that were declared and
    cannot be configured here, with the reason: only told, in `health`. `abilities` is what the
    hosts of sessions can be asked, beside what the assembly's own host can: servers before
    2026-07-28 have to know it when they are connected to. Raises `InvalidDefinition` (A9.1).
    """

    def __init__(
        self,
        servers: Iterable[McpServer],
        name: str = "mcp",
        *,
        liveness: float = 15.0,
        first_backoff: float = 1.0,
        max_backoff: float = 30.0,
        connect_timeout: float = 30.0,
        list_timeout: float = 30.0,
        stop_timeout: float = 2.0,
        unavailable: Mapping[str, str] = NOTHING,
        abilities: Iterable[Ability] = (),
    ) -> None:
        self._name = name
        self.servers = declared(name, servers, unavailable)
        self._unavailable = only_told(unavailable)
        number("liveness", liveness, "≥ 0")
        number("first_backoff", first_backoff, "> 0")
        number("max_backoff", max_backoff, "> 0")
        number("connect_timeout", connect_timeout, "> 0")
        number("list_timeout", list_timeout, "> 0")
        number("stop_timeout", stop_timeout, "> 0")
        self._publish: Publish | None = None
        self._listeners: tuple[Callable[[Health], object], ...] = ()
        self._closed = False
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task[Reloaded]] = set()
        self._abilities = frozenset(abilities)
        self._pace = Pace(
            liveness=liveness,
            first_backoff=first_backoff,
            max_backoff=max(first_backoff, max_backoff),
            use_timeout=list_timeout,
            # The three steps of ending a process, or a farewell over HTTP, and some time to run.
            close_timeout=3 * stop_timeout + 4.0,
        )
        self._bounds = {"connect_timeout": connect_timeout, "grace": stop_timeout}
        self._members = [self._member(server) for server in self.servers]

    @property
    def name(self) -> str:
        return self._name

    def may_ask(self, abilities: frozenset[Ability]) -> None:
        """Has connections made from now on say that hosts can be asked this too."""
        self._abilities |= abilities
        for member in self._members:
            member.abilities = self._abilities

    def _member(self, server: McpServer) -> Member:
        member = Member(server, self._pace, self._bounds, self._publish_all, self._told)
        member.abilities = self._abilities
        return member

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """The listed tools that are not offered, with the reason of each."""
        return tuple(rejection for member in self._members for rejection in member.rejected)

    def health(self) -> tuple[Health, ...]:
        """How each server is now, sorted by name."""
        live = [member.report() for member in self._members]
        return tuple(sorted((*live, *self._unavailable), key=lambda one: one.name))

    def subscribe(self, listener: Callable[[Health], object]) -> Callable[[], None]:
        """Has `listener` told how a server is, at each change of its state or reason, in the
        source's loop; it must return at once. Returns what ends that."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def _told(self, health: Health) -> None:
        for listener in self._listeners:
            try:
                listener(health)
            except Exception:  # whoever listens is not part of the supervision
                logger.exception("%r failed to take note of a server's health", listener)

    async def open(self, publish: Publish) -> None:
        """Connects to every server at once and returns when each first attempt has ended; one that
        failed goes on in the background. Raises `ConfigurationError` naming each server that was
        given up, and `NotAvailable` when it is open or closed already."""
        if self._closed or self._publish is not None:
            raise NotAvailable(f"source {self._name!r} can be opened once")
        self._publish = publish
        for member in self._members:
            member.keeper.start()
        await asyncio.gather(*(member.keeper.tried.wait() for member in self._members))
        _raise_given_up(self._members)

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Returns once every server marked `required` was ready (again down or not); at once where
        none is. Raises as the contract says, and `NotAvailable` when the source is closed."""
        try:
            async with asyncio.timeout(timeout):
                while unsettled := self._unsettled():  # a reload may put others in their place
                    await unsettled[0].keeper.settled.wait()
                    _raise_given_up(unsettled[:1])
        except TimeoutError:
            waiting = ", ".join(
                f"{m.server.name!r} ({m.keeper.health.reason or 'still connecting'})"
                for m in self._unsettled()
            )
            raise NotReady(f"not ready after {timeout:g} s: MCP server {waiting}") from None
        needed = [member for member in self._members if member.server.required]
        _raise_given_up(needed)
        if needed and self._closed:
            raise NotAvailable(f"source {self._name!r} was closed")

    def _unsettled(self) -> list[Member]:
        """Those that hosts wait for, and that were neither ready yet nor given up."""
        needed = (member for member in self._members if member.server.required)
        return [member for member in needed if not member.keeper.settled.is_set()]

    async def reload(
        self, servers: Iterable[McpServer], unavailable: Mapping[str, str] = NOTHING
    ) -> Reloaded:
        """Goes on with these servers, and says which are new, changed or gone; a server declared as
        before keeps its connection. A changed one is left before it is connected to anew (calls
        under way there end as if it had died), and until it has been listed its tools stay and are
        not available. Returns once what ends has ended; how the others fare, `health` says. It is
        carried through, even if whoever waits for it is cancelled: half of it would be neither the
        one nor the other. Raises `InvalidDefinition`, which changes nothing, and `NotAvailable`
        when the source is closed."""
        servers = declared(self._name, servers, unavailable)
        task = asyncio.create_task(self._reload(servers, unavailable))
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
        return await asyncio.shield(task)

    async def _reload(
        self, servers: tuple[McpServer, ...], unavailable: Mapping[str, str]
    ) -> Reloaded:
        async with self._reloading:
            if self._closed:
                raise NotAvailable(f"source {self._name!r} was closed")
            done = difference(self.servers, servers)
            members = {member.server.name: member for member in self._members}
            new = {s.name: self._member(s) for s in servers if s.name in done.added + done.changed}
            for name in done.changed:
                new[name].inherit(members[name])
            ending = [members[name] for name in done.changed + done.removed]
            self.servers, self._unavailable = servers, only_told(unavailable)
            self._members = [new.get(one.name) or members[one.name] for one in servers]
            await asyncio.gather(*(member.close() for member in ending))
            if self._publish is not None and not self._closed:
                for member in new.values():
                    member.keeper.start()
                self._publish_all()
        return done

    async def close(self) -> None:
        """Ends every connection, process and retry; safe twice, and after a failed `open`."""
        self._closed = True
        await asyncio.gather(*(member.close() for member in self._members))
        if self._reloads:  # they end what they replaced, and begin nothing any more
            await asyncio.wait(self._reloads)

    def _publish_all(self) -> None:
        """Publishes what every server offers, in the order of their names (T-A21); tools that only
        stay until their server is listed give way. Raises `Conflict`."""
        if self._publish is None or self._closed:
            return
        owners: dict[str, Member] = {}
        for member in sorted(self._members, key=lambda one: one.is_inheriting):
            for name in member.tools:
                other = owners.setdefault(name, member)
                if other is not member and not member.is_inheriting:
                    raise Conflict(
                        f"tool name {name!r} of MCP server {member.server.name!r} is already taken"
                        f" by MCP server {other.server.name!r}: give one of them a prefix"
                    )
        offered = ((m, name, tool) for m in self._members for name, tool in m.tools.items())
        self._publish([tool for member, name, tool in offered if owners[name] is member])


def _raise_given_up(members: Iterable[Member]) -> None:
    problems = [
        Problem(f"MCP server {m.server.name!r}: {m.keeper.health.reason}")
        for m in members
        if m.keeper.health.state == "given_up"
    ]
    if problems:
        raise ConfigurationError(problems)
