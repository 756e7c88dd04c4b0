"""A Python function as a tool: its signature and docstring are the manifest entry.

Binding follows `inspect.Signature.bind`; the schema is the function's own, so no parameter name is
reserved. Built at registration, not at import: annotations may name what is defined further down.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

from toolcrib.definition import Annotations, DisplayHint, Example, Format, ToolDefinition
from toolcrib.docstring import parse_docstring
from toolcrib.errors import InvalidDefinition
from toolcrib.manifest import Authorize, ManifestTool, Stages
from toolcrib.names import exposed_name
from toolcrib.policy import Exposure, Policy
from toolcrib.results import to_result
from toolcrib.returns import output_schema
from toolcrib.streams import collected, stream_kind
from toolcrib.tool import CallContext

if TYPE_CHECKING:
    from toolcrib.parameters import Parameters

__all__ = ["Effects", "FunctionTool", "tool"]

Effects: TypeAlias = Literal["read", "write", "idempotent", "destructive"]
"""What a call changes: nothing · something · the same however often · something that is lost."""

Isolation: TypeAlias = Literal["thread", "process"]
"""Where a synchronous function runs: in a thread, which cannot be stopped, or in a process of its
own, which is killed at its time-out (about 0.2 s per call; module-level functions only)."""

_ANNOTATIONS: dict[str, Annotations] = {
    "read": Annotations(read_only=True, destructive=False, idempotent=True),
    "write": Annotations(read_only=False, destructive=False, idempotent=False),
    "idempotent": Annotations(read_only=False, destructive=False, idempotent=True),
    "destructive": Annotations(read_only=False, destructive=True, idempotent=False),
}


class FunctionTool(ManifestTool[dict[str, Any]]):
    """A function registered as a tool. Calling it calls the function, as if undecorated."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        description: str = "",
        annotations: Annotations = Annotations(),
        tags: Iterable[str] = (),
        policy: Policy = Policy(),
        authorize: Authorize[dict[str, Any]] | None = None,
        isolation: Isolation = "thread",
        format: Format = Format(),
        examples: Iterable[Example] = (),
        display_hint: DisplayHint | None = None,
        strict_output: bool = False,
    ) -> None:
        function = _bare(function)
        self.function = function
        self._shown = (tuple(examples), format, display_hint)
        self.strict_output = strict_output
        self._isolation = isolation
        self.policy = policy
        self.kind = "function"
        self.original = name or _name_of(function)
        self.source = ""
        self.on_close = None
        self._description = description
        self._annotations = annotations
        self._tags = tuple(tags)
        self._authorize = authorize
        functools.update_wrapper(self, function, updated=())
        if isolation == "process":
            _check_isolated(self.original, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type[object] | None = None) -> FunctionTool:
        """Of a method, looked up on an instance: the tool bound to that instance."""
        if instance is None:
            return self
        bound = copy.copy(self)
        for built in ("_defined", "_staged", "_documented", "_parameters"):
            vars(bound).pop(built, None)
        bound.function = types.MethodType(self.function, instance)
        return bound

    @property
    def definition(self) -> ToolDefinition:
        """Built at first use, which is registration. Raises `InvalidDefinition` for an annotation
        that cannot be resolved or has no JSON Schema."""
        return self._defined

    @cached_property
    def _defined(self) -> ToolDefinition:
        description, _ = self._documented
        examples, format, display_hint = self._shown
        return ToolDefinition(
            exposed_name("", self.original),
            self._description or description,
            self._parameters.schema,
            output_schema(self._parameters.returns),
            self._annotations,
            self._tags,
            examples=examples,
            format=format,
            display_hint=display_hint,
        )

    @property
    def stages(self) -> Stages:
        return self._staged

    @cached_property
    def _staged(self) -> Stages:
        name, parameters = self.definition.name, self._parameters
        return Stages(
            parse=parameters.parse,
            execute=self._execute(parameters),
            parse_output=functools.partial(to_result, name),
            authorize=self._authorize,
            is_async=_is_async(self.function) or self._isolation == "process",
        )

    def _execute(self, parameters: Parameters) -> Callable[[CallContext, dict[str, Any]], Any]:
        if self._isolation == "thread":
            call = parameters.caller(self.function)
            return collected(self.function, call, is_async=_is_async(self.function))
        from toolcrib.isolation import run_isolated  # only for those who use it

        bind = parameters.caller(lambda *args, **kwargs: (args, kwargs))
        function = self.function

        async def execute(ctx: CallContext, prepared: dict[str, Any]) -> Any:
            args, kwargs = bind(ctx, prepared)
            return await run_isolated(function, args, kwargs)

        return execute

    @cached_property
    def _documented(self) -> tuple[str, dict[str, str]]:
        return parse_docstring(_documented_part(self.function))

    @cached_property
    def _parameters(self) -> Parameters:
        from toolcrib.parameters import (
            Parameters,  # pydantic: paid by the first tool, not by imports
        )

        _, described = self._documented
        return Parameters(exposed_name("", self.original), self.function, described, CallContext)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    effects: Effects | None = ...,
    title: str | None = ...,
    tags: Iterable[str] = ...,
    exposure: Exposure | None = ...,
    timeout: float | None = ...,
    scopes: Iterable[str] = ...,
    authorize: Authorize[dict[str, Any]] | None = ...,
    isolation: Isolation = ...,
    format: Format = ...,
    examples: Iterable[Example] = ...,
    display_hint: DisplayHint | None = ...,
    strict_output: bool = ...,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    effects: Effects | None = None,
    title: str | None = None,
    tags: Iterable[str] = (),
    exposure: Exposure | None = None,
    timeout: float | None = None,
    scopes: Iterable[str] = (),
    authorize: Authorize[dict[str, Any]] | None = None,
    isolation: Isolation = "thread",
    format: Format = Format(),
    examples: Iterable[Example] = (),
    display_hint: DisplayHint | None = None,
    strict_output: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a tool of a function, sync or async: `@tool` or `@tool(effects="read", …)`.

    `name` and `description` default to the function's own name and docstring. `timeout` is in
    seconds (0: exempt); `scopes` must all be granted to the caller; a deployment's policy beats
    both. `authorize(principal, arguments)` is asked before each call. A parameter annotated
    `CallContext` is injected and not part of the schema. A return annotation that says something (a
    record, a typed container) becomes the output schema; with `strict_output` a result that does
    not fit it is a failure and not only a warning in its meta. `format` bounds results.

    Raises `InvalidDefinition` for an unknown `effects`; what is wrong with the signature is raised
    at registration, when the annotations are resolved.
    """
    if effects is not None and effects not in _ANNOTATIONS:
        raise InvalidDefinition(
            f"unknown effects {effects!r}: use one of {', '.join(_ANNOTATIONS)}"
        )
    hints = _ANNOTATIONS[effects] if effects is not None else Annotations()
    if title is not None:
        hints = Annotations(title, hints.read_only, hints.destructive, hints.idempotent)

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(
            function,
            name=name,
            description=description,
            annotations=hints,
            tags=tags,
            policy=Policy(exposure, timeout, frozenset(scopes)),
            authorize=authorize,
            isolation=isolation,
            format=format,
            examples=examples,
            display_hint=display_hint,
            strict_output=strict_output,
        )

    return decorate if function is None else decorate(function)


def _bare(function: Any) -> Callable[..., Any]:
    if isinstance(function, FunctionTool):
        return function.function
    if isinstance(function, staticmethod):
        function = function.__func__
    if not callable(function):
        raise InvalidDefinition(f"{function!r} cannot be called: a tool is made of a function")
    made: Callable[..., Any] = function
    return made


def _name_of(function: Any) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__name__", "") or type(inner).__name__
    if name == "<lambda>":
        raise InvalidDefinition("a lambda has no name: use tool(name=…)(function)")
    return cast(str, name)


def _check_isolated(name: str, function: Callable[..., Any]) -> None:
    if _is_async(function) or stream_kind(function):
        raise InvalidDefinition(
            f"tool {name!r}: isolation='process' is for sync functions that return, not yield"
        )
    where = getattr(function, "__qualname__", "<unnamed>")
    if "<" in where or getattr(function, "__module__", "") in ("", "__main__"):
        raise InvalidDefinition(
            f"tool {name!r}: isolation='process' needs a function at the top level of a module that"
            f" another process can import, not of the script that is run; {where!r} is not"
        )


def _documented_part(function: Any) -> Any:
    """The object whose docstring speaks of the call: of an instance its `__call__`, or else its
    class."""
    if isinstance(function, functools.partial):
        return _documented_part(function.func)
    if inspect.isroutine(function) or inspect.isclass(function) or "__wrapped__" in vars(function):
        return function
    kind: Any = function.__class__
    return kind.__call__ if inspect.getdoc(kind.__call__) else kind


def _is_async(function: object) -> bool:
    """Judged on the outermost callable: a wrapper may differ from what it wraps (PY15)."""
    if isinstance(function, functools.partial):
        return _is_async(function.func)
    call: object = getattr(type(function), "__call__", None)  # noqa: B004 what it is, not whether
    return stream_kind(function) == "async" or any(
        map(inspect.iscoroutinefunction, (function, call))
    )
