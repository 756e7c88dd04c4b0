"""How a Python function is called: its parameters, resolved, and CPython's own rules of binding.

Reads the outermost callable as `inspect.signature` does; annotations are resolved where the
function was written (PY12), each by itself, so that a failure names its parameter. What the values
may be is `parameters`.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from toolcrib.errors import InvalidDefinition

__all__ = ["Binding", "Parameter"]

Parameter = inspect.Parameter
_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Binding:
    """The parameters of `function`: those annotated `injected` apart, the others with their
    resolved annotations. `name` is the tool's, for messages. Raises `InvalidDefinition`."""

    def __init__(self, name: str, function: Callable[..., Any], injected: type[object]) -> None:
        self._all = _signature(name, function)
        scope = _scope(function)
        hints = {p.name: _resolved(name, p.name, p.annotation, scope) for p in self._all.values()}
        self._context = [p for p in self._all if _is(hints[p], injected)]
        for parameter in self._context:
            if self._all[parameter].kind in _VARIADIC:
                raise InvalidDefinition(f"tool {name!r}: *{parameter} cannot be the call's context")
        self.parameters = {n: p for n, p in self._all.items() if n not in self._context}
        """What a model may send, in order."""
        self.names = self._all.keys()
        """Every parameter, the context too."""
        self.hints = {n: hints[n] for n in self.parameters}
        self.returns = _returned(function, scope)
        """The return annotation; None where there is none, or none that can be resolved."""
        self.reserved = frozenset(
            n for n, p in self._all.items() if p.kind in _BY_KEYWORD
        ) | _hidden(function)
        """Names that a `**kwargs` of this function cannot carry."""

    def caller(
        self, function: Callable[..., Any], defaults: Mapping[str, Any]
    ) -> Callable[[Any, dict[str, Any]], Any]:
        """`call(context, arguments)`: binds as the signature says, the context by its name. What
        was not sent keeps the function's own default; `defaults` only fill a gap before `*args`."""
        if all(p.kind in _BY_KEYWORD for p in self._all.values()):
            if not self._context:
                return lambda ctx, arguments: function(**arguments)
            if len(self._context) == 1:
                name = self._context[0]
                return lambda ctx, arguments: function(**arguments, **{name: ctx})

        def call(ctx: Any, arguments: dict[str, Any]) -> Any:
            given = {**arguments, **dict.fromkeys(self._context, ctx)}
            positional, named = self._bound(given, defaults)
            return function(*positional, **named)

        return call

    def _bound(
        self, given: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        last = self._last_by_position(given)
        for at, (name, parameter) in enumerate(self._all.items()):
            if parameter.kind is Parameter.VAR_KEYWORD:
                named.update(given.get(name) or {})
            elif parameter.kind is Parameter.VAR_POSITIONAL:
                positional.extend(given.get(name) or ())
            elif at <= last:
                positional.append(given[name] if name in given else defaults[name])
            elif name in given:
                named[name] = given[name]
        return positional, named

    def _last_by_position(self, given: Mapping[str, Any]) -> int:
        """Up to which parameter values go by position: the last positional-only one that is there,
        and everything before `*args` that holds something."""
        last = -1
        for at, (name, parameter) in enumerate(self._all.items()):
            if parameter.kind is Parameter.VAR_POSITIONAL and given.get(name):
                return at - 1
            if parameter.kind is Parameter.POSITIONAL_ONLY and name in given:
                last = at
        return last


def _signature(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise InvalidDefinition(f"tool {name!r}: its signature cannot be read: {error}") from error


def _written(function: Any) -> Any:
    """The function whose text the signature is: under partials, wrappers, classes, instances."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.isclass(function):
            function = function.__init__  # where its parameters stand
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
            function = function.__wrapped__
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


def _scope(function: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The names an annotation may use: those of the module, and those the function closes over."""
    written = _written(function)
    module: dict[str, Any] = getattr(written, "__globals__", {})
    local: dict[str, Any] = {
        each.__name__: each for each in getattr(written, "__type_params__", ())
    }
    code = getattr(written, "__code__", None)
    cells = getattr(written, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue  # a name of the enclosing function that has no value yet
    return module, local


def _resolved(
    tool: str, parameter: str, annotation: Any, scope: tuple[dict[str, Any], dict[str, Any]]
) -> Any:
    if annotation is Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={parameter: annotation})
    try:
        return typing.get_type_hints(holder, *scope, include_extras=True)[parameter]
    except Exception as error:  # an annotation is any expression, so it may raise anything
        raise InvalidDefinition(
            f"tool {tool!r}: the annotation of parameter {parameter!r} cannot be resolved:"
            f" {error}; name it in the module of the function"
        ) from error


def _returned(function: Any, scope: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        return None
    try:
        return _resolved("", "return", annotation, scope)
    except InvalidDefinition:
        return None  # describes only: often imported for type checkers alone


def _is(hint: Any, injected: type[object]) -> bool:
    """Whether an annotation is `injected`, or a union or Annotated of it."""
    if hint is injected:
        return True
    if typing.get_origin(hint) in (typing.Union, types.UnionType, Annotated):
        return any(_is(inner, injected) for inner in typing.get_args(hint))
    return False


def _hidden(function: Any) -> frozenset[str]:
    """The first parameter of what is called on an instance: bound already, and out of sight."""
    if isinstance(function, functools.partial):
        return _hidden(function.func)
    if inspect.ismethod(function):
        inner: Any = function.__func__
    elif inspect.isroutine(function):
        return frozenset()
    else:
        inner = function.__init__ if inspect.isclass(function) else type(function).__call__
    first = next(iter(inspect.signature(inner).parameters.values()), None)
    if first is None or first.kind is not Parameter.POSITIONAL_OR_KEYWORD:
        return frozenset()
    return frozenset((first.name,))
