"""Functions that yield: each item is told as progress, all of them together are the result.

A generator and an async generator alike. The result is the list of what was yielded (a list of
content parts is content, as everywhere); at most 10,000 items, then the function is stopped and the
call fails with what there was. A call given up closes the generator at its next item.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from functools import partial
from typing import Any, Literal

import pydantic_core

from toolcrib.errors import ToolError
from toolcrib.tool import CallContext

__all__ = ["MAX_ITEMS", "collected", "stream_kind"]

MAX_ITEMS = 10_000
MAX_SHOWN = 200
"""Characters of an item that its progress message shows."""

_PLAIN = (dict, list, int, float, bool, type(None))

Call = Callable[[CallContext, dict[str, Any]], Any]


def stream_kind(function: object) -> Literal["sync", "async"] | None:
    """Whether calling `function` gives a generator, and of which kind. Judged on the outermost
    callable, as everything else about it (PY15)."""
    if isinstance(function, partial):
        return stream_kind(function.func)
    for each in (function, getattr(type(function), "__call__", None)):  # noqa: B004 what it is
        if inspect.isasyncgenfunction(each):
            return "async"
        if inspect.isgeneratorfunction(each):
            return "sync"
    return None


def collected(function: object, call: Call, *, is_async: bool) -> Call:
    """`call`, which calls `function`, but with everything that is yielded as one list. Other
    functions stay as they are: an iterator that is merely returned is not read (`jsonable`)."""
    if is_async:
        return partial(_from_async, call) if stream_kind(function) == "async" else call
    wrapped = inspect.unwrap(function) if callable(function) else function
    if stream_kind(function) is None and stream_kind(wrapped) is None:
        return call

    def from_any(ctx: CallContext, arguments: dict[str, Any]) -> Any:
        value: Any = call(ctx, arguments)  # a wrapper may have made something else of it
        if inspect.isgenerator(value):
            return _drained(ctx, value)
        return _drained_async(ctx, value) if inspect.isasyncgen(value) else value

    return from_any


async def _from_async(call: Call, ctx: CallContext, arguments: dict[str, Any]) -> list[Any]:
    return await _drained_async(ctx, call(ctx, arguments))


async def _drained_async(ctx: CallContext, stream: AsyncGenerator[Any, Any]) -> list[Any]:
    items: list[Any] = []
    async with aclosing(stream):
        async for item in stream:
            _take(ctx, items, item)
    return items


def _drained(ctx: CallContext, stream: Generator[Any, Any, Any]) -> list[Any]:
    items: list[Any] = []
    with closing(stream):
        for item in stream:
            ctx.cancellation.raise_if_requested()
            _take(ctx, items, item)
    return items


def _take(ctx: CallContext, items: list[Any], item: Any) -> None:
    if len(items) == MAX_ITEMS:
        raise ToolError(f"it gave more than {MAX_ITEMS} items and was stopped", partial=items)
    items.append(item)
    ctx.progress(len(items), None, _shown(item))


def _shown(item: object) -> str:
    """An item in a few words; what is neither text nor plain JSON only by its type."""
    if isinstance(item, str):
        return item[:MAX_SHOWN]
    if type(item) not in _PLAIN:
        return type(item).__name__
    try:
        text = pydantic_core.to_json(item, fallback=lambda each: type(each).__name__)
    except ValueError:
        return type(item).__name__
    return text.decode()[:MAX_SHOWN]
