"""The walk of one call: resolve, parse, authorise, then the chain round the tool, then finish.

Whatever goes wrong with a call is a value of that call. What a model may see of the catalogue is
`session`; which middlewares there are is `middleware`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolcrib.arguments import Repaired
from toolcrib.bounded import inherited_deadline
from toolcrib.catalog import Catalog, Entry
from toolcrib.chain import Invocation, Middleware, compose
from toolcrib.content import FailureKind, ToolCall, ToolResult
from toolcrib.errors import NotAvailable
from toolcrib.failures import failure_of
from toolcrib.format import formatted
from toolcrib.host import Host
from toolcrib.loading import loaded_entry
from toolcrib.manifest import Stages, authorized, stages_of
from toolcrib.output import AS_IT_IS, Delivery
from toolcrib.policy import may_use
from toolcrib.principal import LOCAL, Principal
from toolcrib.redact import Redactor, using
from toolcrib.registry import Change, Registry
from toolcrib.runner import runner
from toolcrib.threads import ThreadPool
from toolcrib.tool import CallContext, Executed, ProgressHandler, SessionInfo

__all__ = ["Executor", "SeesRefusals"]

logger = logging.getLogger("toolcrib.executor")

_PASSED_ON = (asyncio.CancelledError, KeyboardInterrupt, MemoryError, GeneratorExit)


@runtime_checkable
class SeesRefusals(Protocol):
    """A middleware that is also told of the calls that never reach the chain."""

    def refused(self, call: ToolCall, result: ToolResult) -> None: ...


_Run: TypeAlias = Callable[[CallContext, Any], Awaitable[ToolResult]]


class _Plan:
    """What the walk needs of one entry, made once: its stages and its composed chain."""

    __slots__ = ("authorize", "entry", "parse", "run")

    def __init__(self, entry: Entry, stages: Stages, run: _Run) -> None:
        self.entry = entry
        self.parse = stages.parse
        self.authorize = stages.authorize
        self.run = run


class Executor:
    """Executes calls of the tools in `registry` through `middlewares`, the first outermost.

    Belongs to one event loop. `counts` says how often each failure kind was given, under
    "ok" how many calls succeeded. `host` is asked for calls outside any session.
    """

    def __init__(
        self,
        registry: Registry,
        middlewares: Iterable[Middleware] = (),
        *,
        delivery: Delivery = AS_IT_IS,
        host: Host | None = None,
    ) -> None:
        self._registry = registry
        self._middlewares = tuple(middlewares)
        self._delivery = delivery
        self.host = host
        parts: tuple[object, ...] = self._middlewares
        self._on_refused = [part for part in parts if isinstance(part, SeesRefusals)]
        self._plans: dict[str, _Plan] = {}
        self.threads = ThreadPool()
        self.counts: Counter[str] = Counter()
        self._unsubscribe = registry.subscribe(self._forget)

    def close(self) -> None:
        """Lets go of the registry and of idle threads; never waits."""
        self._unsubscribe()
        self.threads.close()

    async def execute(
        self,
        call: ToolCall,
        *,
        principal: Principal = LOCAL,
        session: SessionInfo | None = None,
        catalog: Catalog | None = None,
        deadline: float | None = None,
        on_progress: ProgressHandler | None = None,
        on_executed: Executed | None = None,
    ) -> ToolResult:
        """The result of one call, failed or not; its `call_id` echoes the call.

        `catalog` is the revision to resolve in (default: the current one). `deadline` is a
        `time.monotonic()` moment; a nested call inherits its parent's. Raises only what must not be
        contained: our own cancellation, KeyboardInterrupt, MemoryError, and the fault of a
        middleware where no `recover` stands outside it.
        """
        entry = (catalog or self._registry.catalog).find(call.name)
        if entry is None or not (entry.open_to_all or may_use(principal, entry.policy)):
            return self._refuse(call, self._not_found(call.name, principal))
        plan = self._plans.get(entry.name)
        if plan is None or plan.entry is not entry:
            try:
                plan = self._plan(await loaded_entry(entry, self._registry))
            except NotAvailable as error:
                return self._refuse(call, self._failure(entry, error))
            entry = plan.entry
            if not (entry.open_to_all or may_use(principal, entry.policy)):
                return self._refuse(call, self._not_found(call.name, principal))  # now it is known
        repairs: tuple[str, ...] = ()
        try:
            prepared = plan.parse(call.arguments)
            if type(prepared) is Repaired:
                prepared, repairs = prepared
            if plan.authorize is not None:
                await authorized(plan.authorize, principal, prepared)
        except _PASSED_ON:
            raise
        except BaseException as error:  # SystemExit too: no stage of a tool ends the program
            return self._refuse(call, self._failure(entry, error))
        if deadline is None:
            deadline = inherited_deadline.get()
        ctx = CallContext(
            entry.name, call.id, principal, session, deadline, on_progress, on_executed
        )
        ctx.host = self.host if session is None else getattr(session, "host", None)
        if entry.withdrawn:
            return self._refuse(call, _withdrawn(entry.name))
        entry.in_flight += 1
        try:
            result = await plan.run(ctx, prepared)
        finally:
            entry.ended()
        return self._finish(call, result, repairs)

    def _finish(self, call: ToolCall, result: ToolResult, repairs: tuple[str, ...]) -> ToolResult:
        failure = result.failure
        self.counts["ok" if failure is None else failure.kind] += 1
        if repairs:
            result = result.with_meta(repairs=repairs)
        if result.call_id == call.id:
            return result
        return ToolResult(result.content, failure, result.value, call.id, result.meta)

    def _failure(self, entry: Entry, error: BaseException) -> ToolResult:
        """The failure of a stage before the chain: masked and bounded as one of the tool is."""
        redactor, format = self._delivery.redactor, entry.definition.format
        if redactor is None:
            return formatted(failure_of(entry.name, error, logger), format)
        with using(redactor):
            return formatted(redactor.result(failure_of(entry.name, error, logger)), format)

    def _refuse(self, call: ToolCall, result: ToolResult) -> ToolResult:
        result = result.with_meta(executed=False)
        for middleware in self._on_refused:
            try:
                middleware.refused(call, result)
            except Exception:  # whoever watches is not part of the call
                logger.exception("%r failed to take note of a refused call", middleware)
        return self._finish(call, result, ())

    def refuse(self, call: ToolCall, kind: FailureKind, message: str) -> ToolResult:
        """The failure of a call that is not to be executed, through the same last step."""
        return self._refuse(call, ToolResult.failed(kind, message))

    def _not_found(self, name: str, principal: Principal) -> ToolResult:
        catalog = self._registry.catalog
        close = catalog.nearest(name, lambda entry: may_use(principal, entry.policy))
        hint = (
            f"; did you mean {', '.join(map(repr, close))}?"
            if close
            else ": use one you were given"
        )
        return ToolResult.failed("not_found", f"there is no tool {name[:100]!r}{hint}")

    def _forget(self, change: Change) -> None:
        for entry in (*change.removed, *change.replaced):
            self._plans.pop(entry.name, None)

    def _plan(self, entry: Entry) -> _Plan:
        known = self._plans.get(entry.name)
        if known is not None and known.entry is entry:
            return known
        stages = stages_of(entry.real)
        run = runner(entry, stages, self.threads, self._delivery)
        if self._middlewares:
            chain = compose(self._middlewares, lambda inv: run(inv.context, inv.prepared))
            made = partial(Invocation, entry.definition, entry.policy)
            plan = _Plan(entry, stages, lambda ctx, prepared: chain(made(ctx, prepared)))
        else:
            plan = _Plan(entry, stages, run)
        if (redactor := self._delivery.redactor) is not None:
            plan.run = partial(_redacting, redactor, plan.run)
        if not entry.withdrawn:
            self._plans[entry.name] = plan
        return plan


async def _redacting(redactor: Redactor, run: _Run, ctx: CallContext, prepared: Any) -> ToolResult:
    with using(redactor):  # for what the middlewares log
        return await run(ctx, prepared)


def _withdrawn(name: str) -> ToolResult:
    return ToolResult.failed(
        "not_available", f"tool {name!r} was withdrawn and can no longer be called"
    )
