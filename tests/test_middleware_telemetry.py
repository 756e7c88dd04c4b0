"""What telemetry tells, by a real OpenTelemetry SDK that keeps it in memory."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from conftest import Plain, ended, outcome
from toolcrib import Assembly, ToolCall, ToolError, tool
from toolcrib.middleware import Settings, Telemetry, standard

SECRET = "sk-secret-4711"


class Sdk:
    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.meters = MeterProvider([self.reader])

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sdk]:
    """An SDK in force for one test; OpenTelemetry itself allows that once per process only."""
    made = Sdk()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made.tracers)
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", made.meters)
    yield made
    made.meters.shutdown()
    made.tracers.shutdown()


@tool
async def greet(name: str) -> str:
    return f"hello {name}"


@tool
async def fails(name: str) -> str:
    raise RuntimeError(SECRET)


@tool
async def speaks() -> str:
    raise ToolError(SECRET)


async def test_a_span_per_call_by_the_genai_conventions(sdk: Sdk) -> None:
    async with Assembly([greet, fails], middlewares=[Telemetry()]) as assembly:
        await assembly.execute(ToolCall("id-1", "greet", f'{{"name": "{SECRET}"}}'))
        await assembly.execute(ToolCall("id-2", "fails", f'{{"name": "{SECRET}"}}'))
    good, bad = sdk.spans.get_finished_spans()
    assert good.name == "execute_tool greet"
    assert good.kind is SpanKind.INTERNAL
    assert dict(good.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "greet",
        "gen_ai.tool.call.id": "id-1",
        "gen_ai.tool.type": "function",
    }
    assert good.status.status_code is StatusCode.UNSET
    assert bad.name == "execute_tool fails"
    assert (bad.attributes or {})["error.type"] == "internal"
    assert bad.status.status_code is StatusCode.ERROR
    for span in (good, bad):
        assert SECRET not in span.to_json()


async def test_executions_errors_and_durations_are_counted(sdk: Sdk) -> None:
    async with Assembly([greet, fails], middlewares=[Telemetry()]) as assembly:
        for _ in range(3):
            await assembly.call("greet", name="a")
        for _ in range(2):
            await assembly.call("fails", name="a")
    executions = {
        (p.attributes["gen_ai.tool.name"], p.attributes.get("error.type")): p.value
        for p in sdk.points("toolcrib.tool.executions")
    }
    assert executions == {("greet", None): 3, ("fails", "internal"): 2}
    (errors,) = sdk.points("toolcrib.tool.errors")
    assert (errors.value, errors.attributes["error.type"]) == (2, "internal")
    durations = {p.attributes["gen_ai.tool.name"]: p for p in sdk.points("toolcrib.tool.duration")}
    assert durations["greet"].count == 3
    assert 0 <= durations["greet"].sum < 1


async def test_refused_calls_are_counted_by_kind(sdk: Sdk) -> None:
    async with Assembly([greet], middlewares=[Telemetry()]) as assembly:
        await assembly.call("greet", name="a")
        await assembly.call("greet", "not json")
        await assembly.call("nowhere")
        async with assembly.session().turn() as turn:
            await turn.round().execute([ToolCall("1", "nowhere"), ToolCall("2", "greet")])
    kinds = {p.attributes["error.type"]: p.value for p in sdk.points("toolcrib.tool.errors")}
    assert kinds == {"invalid_arguments": 1, "not_found": 1, "undefined_tool": 1, "cancelled": 1}


async def test_refused_calls_are_counted_from_the_first_on(sdk: Sdk) -> None:
    async with Assembly([greet], middlewares=[Telemetry()]) as assembly:
        await assembly.call("nowhere")
    assert [p.value for p in sdk.points("toolcrib.tool.errors")] == [1]


async def test_spans_nest_and_hang_under_the_callers_span(sdk: Sdk) -> None:
    assembly: Assembly

    @tool
    async def outer() -> str:
        await asyncio.sleep(0)
        return (await assembly.call("greet", name="a")).text

    @tool
    def sync_outer() -> str:
        return assembly.call_sync("greet", name="a").text

    chain = standard(Settings(telemetry=True, timeout=5.0))
    async with Assembly([greet, outer, sync_outer], middlewares=chain) as assembly:
        for name in ("outer", "sync_outer"):
            with sdk.tracers.get_tracer("test").start_as_current_span("request"):
                assert outcome(await ended(assembly.call(name))) == "hello a"
            spans = {span.name: span for span in sdk.spans.get_finished_spans()}
            sdk.spans.clear()
            request, parent, child = (
                spans["request"], spans[f"execute_tool {name}"], spans["execute_tool greet"]
            )  # fmt: skip
            assert parent.parent is not None
            assert parent.parent.span_id == request.context.span_id
            assert child.parent is not None
            assert child.parent.span_id == parent.context.span_id


async def test_A12_2_each_failed_call_is_a_warning_without_secrets(
    sdk: Sdk, caplog: pytest.LogCaptureFixture
) -> None:
    async with Assembly([greet, speaks], middlewares=[Telemetry()]) as assembly:
        with caplog.at_level(logging.INFO, "toolcrib.telemetry"):
            await assembly.call("greet", name=SECRET)
            await assembly.call("speaks")
            await assembly.call("greet", f'{{"nam": "{SECRET}"}}')
    told = [r for r in caplog.records if r.name == "toolcrib.telemetry"]
    assert [r.levelname for r in told] == ["WARNING", "WARNING"]
    assert "'speaks'" in told[0].getMessage()
    assert "tool_error" in told[0].getMessage()
    assert "invalid_arguments" in told[1].getMessage()
    assert SECRET not in caplog.text


async def test_without_an_sdk_calls_work_and_failures_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Assembly([greet, speaks], middlewares=[Telemetry()]) as assembly:
        assert outcome(await assembly.call("greet", name="a")) == "hello a"
        await assembly.call("speaks")
    assert "tool_error" in caplog.text


async def test_a_fault_further_in_ends_the_span(sdk: Sdk) -> None:
    async def broken(invocation: Any, call_next: Any) -> Any:
        raise RuntimeError(SECRET)

    async with Assembly([Plain("t")], middlewares=[Telemetry(), broken]) as assembly:
        with pytest.raises(RuntimeError):
            await assembly.call("t")
    (span,) = sdk.spans.get_finished_spans()
    assert span.name == "execute_tool t"
    assert SECRET not in span.to_json()


def test_importing_toolcrib_brings_no_sdk_in() -> None:
    code = (
        "import sys, toolcrib; print([m for m in sys.modules"
        " if m.startswith(('opentelemetry.sdk', 'mcp', 'jsonschema_rs', 'griffe', 'ruamel'))])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert run.stdout.strip() == "[]"
