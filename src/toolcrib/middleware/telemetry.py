"""One span, three metrics and a warning per call, by OpenTelemetry's GenAI conventions.

Where no SDK is configured there is nobody to tell: no span is made then, only failures are logged.
Names and kinds are recorded, never arguments, results or exception texts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from toolcrib.chain import CallNext, Invocation
from toolcrib.content import ToolCall, ToolResult

__all__ = ["Telemetry"]

logger = logging.getLogger("toolcrib.telemetry")

_RECHECK = 1.0
"""Seconds after which an SDK that was configured later is noticed."""

_Attributes: TypeAlias = dict[str, str]


class Telemetry:
    """The telemetry middleware; it also counts the calls that were refused before the chain.

    Span `execute_tool <name>` with gen_ai.operation.name, gen_ai.tool.name, gen_ai.tool.call.id
    and, for a failed call, error.type (the failure's kind). Metrics: toolcrib.tool.executions,
    toolcrib.tool.errors, toolcrib.tool.duration (seconds).
    """

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("toolcrib")
        meter = metrics.get_meter("toolcrib")
        self._executions = meter.create_counter("toolcrib.tool.executions", "{call}")
        self._errors = meter.create_counter("toolcrib.tool.errors", "{call}")
        self._duration = meter.create_histogram("toolcrib.tool.duration", "s")
        self._checked = -_RECHECK
        self._tracing = self._metering = False

    async def __call__(self, invocation: Invocation, call_next: CallNext) -> ToolResult:
        started = time.monotonic()
        if started - self._checked >= _RECHECK:
            self._look_for_sdk(started)
        if not self._tracing and not self._metering:
            result = await call_next(invocation)
        else:
            result = await self._observed(invocation, call_next, started)
        if result.failure is not None:
            _warn(invocation.name, invocation.call_id, result)
        return result

    def refused(self, call: ToolCall, result: ToolResult) -> None:
        """Counts and logs a call that never reached the chain."""
        now = time.monotonic()
        if now - self._checked >= _RECHECK:
            self._look_for_sdk(now)
        if self._metering and result.failure is not None:
            known = result.failure.kind not in ("not_found", "undefined_tool")
            # a name the model made up is no label: there is no end to them
            self._measure(call.name if known else "_OTHER", result.failure.kind, None)
        _warn(call.name, call.id, result)

    async def _observed(
        self, invocation: Invocation, call_next: CallNext, started: float
    ) -> ToolResult:
        error = ""
        try:
            result = await (self._traced if self._tracing else _untraced)(invocation, call_next)
            error = result.failure.kind if result.failure is not None else ""
            return result
        except BaseException as raised:
            error = _error_type(raised)
            raise
        finally:
            if self._metering:
                self._measure(invocation.name, error, time.monotonic() - started)

    async def _traced(self, invocation: Invocation, call_next: CallNext) -> ToolResult:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": invocation.name,
            "gen_ai.tool.call.id": invocation.call_id,
            "gen_ai.tool.type": "function",
        }
        with self._tracer.start_as_current_span(
            f"execute_tool {invocation.name}",
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            record_exception=False,  # an exception's text may hold what nobody should read
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call_next(invocation)
            except BaseException as raised:
                span.set_attribute("error.type", _error_type(raised))
                span.set_status(Status(StatusCode.ERROR))
                raise
            if result.failure is not None:
                span.set_attribute("error.type", result.failure.kind)
                span.set_status(Status(StatusCode.ERROR))
            return result

    def _measure(self, name: str, error: str, seconds: float | None) -> None:
        attributes: _Attributes = {"gen_ai.tool.name": name}
        if error:
            attributes["error.type"] = error
            self._errors.add(1, attributes)
        if seconds is not None:
            self._executions.add(1, attributes)
            self._duration.record(seconds, attributes)

    def _look_for_sdk(self, now: float) -> None:
        self._checked = now
        self._tracing = _is_real(trace.get_tracer_provider())
        self._metering = _is_real(metrics.get_meter_provider())


def _untraced(invocation: Invocation, call_next: CallNext) -> Awaitable[ToolResult]:
    return call_next(invocation)


def _error_type(raised: BaseException) -> str:
    return "cancelled" if isinstance(raised, asyncio.CancelledError) else type(raised).__name__


def _is_real(provider: object) -> bool:
    """The API's own providers do nothing; anything else was put there by somebody who listens."""
    return not type(provider).__module__.startswith(
        ("opentelemetry.trace", "opentelemetry.metrics")
    )


def _warn(name: str, call_id: str, result: ToolResult) -> None:
    failure = result.failure
    if failure is not None and logger.isEnabledFor(logging.WARNING):
        logger.warning(
            "call %s of %r failed: %s %s", call_id, name[:64], failure.kind, failure.reference
        )
