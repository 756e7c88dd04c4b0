"""Starting work at once, as a task of its own, and making a real task only if it has to wait.

Most calls of an agent's tools that are not remote end without ever waiting; a task costs them two
turns of the loop. Here the first step of the work runs immediately, in the name of a spare task
that stands ready; if the work then waits, the spare takes it over and is its task from there on, so
`asyncio.current_task()`, time-outs and task groups inside the work see one and the same task
throughout. (Python 3.12 has eager tasks; this does the same on 3.11.)

Built on `_enter_task` and `_leave_task`, which asyncio documents for task implementations.
"""

from __future__ import annotations

import asyncio
import sys
import types
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]
from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any, Final, TypeAlias, cast

__all__ = ["Started", "dismiss", "start"]


_Given: TypeAlias = tuple[Coroutine[Any, Any, Any], Context, Any]


class Started:
    """Work whose first step has run: `task` is None when it ended in that step, with `value`."""

    __slots__ = ("task", "value")

    def __init__(self, task: asyncio.Task[Any] | None, value: Any = None) -> None:
        self.task = task
        self.value = value


class _Spare:
    """A task that waits to be given work, once."""

    __slots__ = ("_given", "_go", "ready", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._given: _Given | None = None
        self._go: asyncio.Future[None] = loop.create_future()
        self.ready = False
        self.task: asyncio.Task[Any] = loop.create_task(self._serve())

    async def _serve(self) -> Any:
        self.ready = True
        error: BaseException | None = None
        try:
            await self._go
        except asyncio.CancelledError as cancelled:
            error = cancelled
        if self._given is None:
            if error is not None:
                raise error
            return None
        work, context, waits_for = self._given
        if error is not None and _cancelled(waits_for, error):
            error = None  # as any task: what it waits for is cancelled first, and tells the work
        return await _rest(work, context, waits_for, error)

    def take_over(self, given: _Given) -> asyncio.Task[Any]:
        self._given = given
        self.retire()
        return self.task

    def retire(self) -> None:
        """No more work: the task ends."""
        if not self._go.done():
            self._go.set_result(None)

    @property
    def is_spent(self) -> bool:
        return self.task.done() or self.task.cancelling() > 0

    def is_untouched(self, references: int) -> bool:
        """Whether the work left no trace on the task: nobody holds it or waits for its end."""
        return (
            sys.getrefcount(self.task) <= references
            and not self.is_spent
            and not getattr(self.task, "_callbacks", None)
        )


class _Place:
    """The spare of one loop. `busy`: it lends its name to a first step right now."""

    __slots__ = ("busy", "loop", "spare")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.spare = _Spare(loop)
        self.busy = False


_places: Final[dict[int, _Place]] = {}
"""By `id(loop)`, which every call looks up; entries of closed loops go when one is added."""


def start(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], context: Context
) -> Started:
    """Runs the first step of `work` in `context`. An exception of that step is raised here."""
    place = _places.get(id(loop))
    if place is None or place.loop is not loop:
        place = _settle(loop)
    spare = place.spare
    if place.busy or not spare.ready or spare.is_spent:
        if spare.is_spent and not place.busy:
            place.spare = _Spare(loop)
        return Started(loop.create_task(work, context=context))
    caller = cast("asyncio.Task[Any]", asyncio.current_task())
    place.busy = True
    _leave_task(loop, caller)
    _enter_task(loop, spare.task)
    references = sys.getrefcount(spare.task)
    try:
        waits_for = context.run(work.send, None)
    except BaseException as ended:
        if not spare.is_untouched(references):
            spare.retire()
            place.spare = _Spare(loop)
        if isinstance(ended, StopIteration):
            return Started(None, ended.value)
        raise
    finally:
        _leave_task(loop, spare.task)
        _enter_task(loop, caller)
        place.busy = False
    place.spare = _Spare(loop)
    return Started(spare.take_over((work, context, waits_for)))


def dismiss(loop: asyncio.AbstractEventLoop) -> None:
    """Ends the spare task of `loop`; the next `start` makes a new one."""
    place = _places.pop(id(loop), None)
    if place is not None and place.loop is loop:
        place.spare.task.cancel()


def _settle(loop: asyncio.AbstractEventLoop) -> _Place:
    for key in [key for key, place in _places.items() if place.loop.is_closed()]:
        _places.pop(key, None)
    place = _places[id(loop)] = _Place(loop)
    return place


def _cancelled(waits_for: Any, error: BaseException) -> bool:
    cancel = getattr(waits_for, "cancel", None)
    return cancel is not None and bool(cancel(*error.args))


@types.coroutine
def _rest(
    work: Coroutine[Any, Any, Any], context: Context, waits_for: Any, error: BaseException | None
) -> Generator[Any, Any, Any]:
    """What is left of `work` after its first step, each step in its own context; `error` is thrown
    into it at once."""
    while True:
        sent = None
        try:
            if error is None:
                sent = yield waits_for
        except GeneratorExit:
            work.close()
            raise
        except BaseException as raised:
            error = raised
        try:
            if error is None:
                waits_for = context.run(work.send, sent)
            else:
                thrown, error = error, None
                waits_for = context.run(work.throw, thrown)
        except StopIteration as ended:
            return ended.value
