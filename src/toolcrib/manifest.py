"""A tool whose execute is split into stages, so that the executor can stop between them.

One manifest entry holds both what a model is told and what is run, so the two cannot drift apart.
Which stage runs when, and what becomes of its errors, is the executor's business.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from toolcrib.arguments import Repaired, SchemaParser
from toolcrib.content import ToolResult
from toolcrib.definition import (
    NO_PARAMETERS,
    Annotations,
    DisplayHint,
    Example,
    Format,
    ToolDefinition,
)
from toolcrib.errors import Denied, InvalidDefinition
from toolcrib.names import exposed_name
from toolcrib.policy import NO_POLICY, Policy
from toolcrib.principal import LOCAL, Principal
from toolcrib.results import to_result
from toolcrib.schema import validate_schema
from toolcrib.tool import CallContext, Tool

__all__ = ["Authorize", "ManifestTool", "Stages", "authorized", "define_tool", "stages_of"]

P = TypeVar("P")

Authorize: TypeAlias = Callable[[Principal, P], object]
"""May this be done? Returns None or True, or raises `Denied`; may be async. All else denies."""


@dataclass(frozen=True, slots=True)
class Stages:
    """The four steps of one call. `parse` and `authorize` must change nothing.

    `parse(text)` gives the prepared arguments (or `Repaired`) or raises `InvalidArguments`.
    `execute(ctx, prepared)` is awaited when `is_async`, else run in a thread. `parse_output(value)`
    turns what it returned into the result.
    """

    parse: Callable[[str], Any]
    execute: Callable[[CallContext, Any], Any]
    parse_output: Callable[[Any], ToolResult]
    authorize: Authorize[Any] | None = None
    is_async: bool = True


class ManifestTool(Generic[P]):
    """A tool made of stages; what `define_tool` and `@tool` give. Satisfies `Tool`."""

    def __init__(
        self,
        definition: ToolDefinition,
        stages: Stages,
        *,
        policy: Policy = NO_POLICY,
        kind: str = "tool",
        source: str = "",
        original: str = "",
        close: Callable[[], object] | None = None,
        strict_output: bool = False,
    ) -> None:
        self._definition = definition
        self._stages = stages
        self.policy = policy
        self.kind = kind
        self.original = original or definition.name
        """What the tool's source calls it."""
        self.source = source
        """The source's own name, where one owner publishes the tools of several (MCP servers)."""
        self.on_close = close
        self.strict_output = strict_output
        """Whether a result that does not fit the output schema is a failure (RS08)."""

    @property
    def definition(self) -> ToolDefinition:
        return self._definition

    @property
    def stages(self) -> Stages:
        return self._stages

    async def execute(self, ctx: CallContext, arguments: str) -> ToolResult:
        """All stages in order, without an executor: no limits, and errors are raised."""
        stages, prepared = self.stages, _unwrapped(self.stages.parse(arguments))
        if stages.authorize is not None:
            await authorized(stages.authorize, ctx.principal, prepared)
        value = stages.execute(ctx, prepared)
        return stages.parse_output(await value if inspect.isawaitable(value) else value)

    def invoke(self, arguments: str, principal: Principal = LOCAL) -> ToolResult:
        """All stages of a synchronous tool, in this thread; errors are raised (rule D5).

        Raises `InvalidDefinition` for an asynchronous tool instead of handing out a coroutine.
        """
        stages = self.stages
        if stages.is_async:
            raise InvalidDefinition(
                f"tool {self.definition.name!r} is async: await its execute() instead"
            )
        prepared = _unwrapped(stages.parse(arguments))
        if stages.authorize is not None:
            _check_verdict(_now(self.definition.name, stages.authorize(principal, prepared)))
        value = stages.execute(CallContext(self.definition.name, principal=principal), prepared)
        return stages.parse_output(_now(self.definition.name, value))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.definition.name!r}>"


def _now(name: str, value: object) -> object:
    """`value`, unless it is a promise: that is never a result."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise InvalidDefinition(f"tool {name!r} returned an awaitable from a synchronous entry")
    return value


def _unwrapped(prepared: Any) -> Any:
    return prepared.prepared if type(prepared) is Repaired else prepared


async def authorized(authorize: Authorize[P], principal: Principal, prepared: P) -> None:
    """Raises `Denied` unless `authorize` says yes; a forgotten or false answer is a no."""
    verdict = authorize(principal, prepared)
    _check_verdict(
        await cast("Awaitable[object]", verdict) if inspect.isawaitable(verdict) else verdict
    )


def _check_verdict(verdict: object) -> None:
    if verdict is not None and verdict is not True:
        raise Denied("not permitted")


def stages_of(tool: Tool) -> Stages:
    """The stages of any tool: its own, or its `execute` behind its input schema."""
    stages = getattr(tool, "stages", None)
    if isinstance(stages, Stages):
        return stages
    name = tool.definition.name

    async def execute(ctx: CallContext, prepared: Any) -> object:
        return await tool.execute(ctx, prepared.text)

    return Stages(SchemaParser(tool.definition), execute, lambda value: to_result(name, value))


def define_tool(
    id: str,
    *,
    description: str,
    execute: Callable[[CallContext, Any], Any],
    input_schema: Mapping[str, Any] = NO_PARAMETERS,
    parse: Callable[[dict[str, Any]], Any] | None = None,
    authorize: Authorize[Any] | None = None,
    parse_output: Callable[[Any], Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    kind: str = "tool",
    annotations: Annotations = Annotations(),
    tags: tuple[str, ...] = (),
    policy: Policy = NO_POLICY,
    format: Format = Format(),
    examples: Iterable[Example] = (),
    display_hint: DisplayHint | None = None,
    strict_output: bool = False,
) -> ManifestTool[Any]:
    """One manifest entry as a tool (guide D).

    The arguments are checked against `input_schema` first; `parse` then turns the mapping into what
    `authorize(principal, parsed)` and `execute(ctx, parsed)` get, and raises `InvalidArguments` for
    what the schema cannot say. `parse_output` turns what `execute` returned into what the model
    gets (anything a function tool may return). `execute` may be sync (run in a thread) or async.
    `format` bounds results; with `strict_output` one that does not fit `output_schema` is a failure
    and not only a warning in its meta.

    `id` is shown to models as an exposed name. Raises `InvalidDefinition` or `InvalidSchema`.
    """
    if not id.strip():
        raise InvalidDefinition("a tool needs an id: it is blank")
    validate_schema(input_schema)
    definition = ToolDefinition(
        exposed_name("", id),
        description,
        input_schema,
        output_schema,
        annotations,
        tags,
        examples=tuple(examples),
        format=format,
        display_hint=display_hint,
    )
    by_schema = SchemaParser(definition)
    stages = Stages(
        parse=by_schema if parse is None else _then(by_schema, parse),
        execute=execute,
        parse_output=_output(definition.name, parse_output),
        authorize=authorize,
        is_async=inspect.iscoroutinefunction(execute)
        or inspect.iscoroutinefunction(getattr(execute, "__call__", None)),  # noqa: B004 what it is
    )
    return ManifestTool(
        definition, stages, policy=policy, kind=kind, original=id, strict_output=strict_output
    )


def _then(by_schema: SchemaParser, parse: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    def parse_both(text: str) -> Any:
        values = by_schema(text)
        if isinstance(values, Repaired):
            return Repaired(parse(values.prepared), values.repairs)
        return parse(values)

    return parse_both


def _output(name: str, parse_output: Callable[[Any], Any] | None) -> Callable[[Any], ToolResult]:
    if parse_output is None:
        return lambda value: to_result(name, value)
    return lambda value: to_result(name, parse_output(value))
