"""One span, three metrics and a warning per call, by OpenTelemetry's GenAI conventions.

Where no SDK is configured there is nobody to tell: no span is made then, only failures are logged.
Names and kinds are recorded, never arguments, results or exception texts.
"""

from __future__ import annotations

import logging
import time
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
        if self._tracing:
            result = await self._traced(invocation, call_next)
        else:
            result = await call_next(invocation)
        if self._metering:
            self._measure(invocation.name, result, time.monotonic() - started)
        if result.failure is not None:
            _warn(invocation.name, invocation.call_id, result)
        return result

    def refused(self, call: ToolCall, result: ToolResult) -> None:
        """Counts and logs a call that never reached the chain."""
        if self._metering:
            self._measure(call.name[:64], result, None)
        _warn(call.name, call.id, result)

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
            result = await call_next(invocation)
            if result.failure is not None:
                span.set_attribute("error.type", result.failure.kind)
                span.set_status(Status(StatusCode.ERROR))
            return result

    def _measure(self, name: str, result: ToolResult, seconds: float | None) -> None:
        attributes: _Attributes = {"gen_ai.tool.name": name}
        if result.failure is not None:
            attributes["error.type"] = result.failure.kind
            self._errors.add(1, attributes)
        if seconds is not None:
            self._executions.add(1, attributes)
            self._duration.record(seconds, attributes)

    def _look_for_sdk(self, now: float) -> None:
        self._checked = now
        self._tracing = _is_real(trace.get_tracer_provider())
        self._metering = _is_real(metrics.get_meter_provider())


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
