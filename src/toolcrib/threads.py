"""Threads for synchronous tools: a bounded pool of our own, with the caller's context variables.

A thread cannot be stopped. One whose call was given up is left behind and replaced; when 256 are
left behind, no more calls are taken. Not a general executor: one job, one future, one loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Generator
from typing import Any, Final

__all__ = ["MAX_ABANDONED", "CancelledItself", "ThreadPool", "TooManyAbandoned", "waiting"]

MAX_WORKERS = 32
MAX_ABANDONED = 256


class TooManyAbandoned(Exception):
    """256 threads are busy with calls that were given up, or wait for calls nested in theirs: no
    more are started."""


class CancelledItself(Exception):
    """The function raised CancelledError in its thread, where nobody cancels anything."""


class _Job:
    __slots__ = ("abandoned", "context", "done", "function", "future", "loop", "started")

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.context = contextvars.copy_context()
        self.started = False
        self.abandoned = False
        self.done = False

    def run(self) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = self.context.run(self.function)
        except (KeyboardInterrupt, GeneratorExit, StopIteration) as exc:
            # A real Ctrl-C arrives in the main thread; and none of these may travel in a future.
            error = RuntimeError(f"{type(exc).__name__} raised in a tool's thread")
            error.__cause__ = exc
        except asyncio.CancelledError:
            error = CancelledItself()
        except BaseException as exc:
            error = exc
        try:
            self.loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            self.done = True  # the loop is closed: nobody waits for this any more

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class _Own(threading.local):
    pool: ThreadPool | None = None


_own = _Own()


def waiting() -> contextlib.AbstractContextManager[None]:
    """Around waiting for another call: if this is a pool's thread, the pool may use another one
    meanwhile, so calls nested in calls never run out of threads."""
    pool = _own.pool
    return contextlib.nullcontext() if pool is None else pool._lent()  # pyright: ignore[reportPrivateUsage]


class ThreadPool:
    """At most 32 daemon threads that serve, and 256 left behind; they start when first needed."""

    def __init__(self, workers: int = MAX_WORKERS) -> None:
        self._limit: Final = workers
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._serving = 0
        self._idle = 0
        self._queued = 0
        self._away = 0
        self._abandoned = 0
        self._closed = False

    @property
    def abandoned(self) -> int:
        """Threads still busy with a call that was given up."""
        return self._abandoned

    @contextlib.contextmanager
    def _lent(self) -> Generator[None]:
        with self._lock:
            if self._away >= MAX_ABANDONED:
                raise TooManyAbandoned
            self._away += 1
            self._serving -= 1
            self._start_if_needed()
        try:
            yield
        finally:
            with self._lock:
                self._away -= 1
                self._serving += 1

    async def run(self, function: Callable[[], Any]) -> Any:
        """`function()` in a thread. When cancelled, a job that did not start never will; one that
        runs is left behind. Raises `TooManyAbandoned` when too many are."""
        if self._abandoned >= MAX_ABANDONED:
            raise TooManyAbandoned
        job = _Job(function, asyncio.get_running_loop())
        self._submit(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def close(self) -> None:
        """Lets idle threads end; those that run end after their job. Never waits."""
        with self._lock:
            self._closed = True
            for _ in range(self._serving):
                self._jobs.put(None)

    def _submit(self, job: _Job) -> None:
        with self._lock:
            if self._closed:
                raise TooManyAbandoned
            self._jobs.put(job)
            self._queued += 1
            self._start_if_needed()

    def _start_if_needed(self) -> None:
        """Called with the lock held."""
        if self._idle < self._queued and self._serving < self._limit and not self._closed:
            self._serving += 1
            threading.Thread(target=self._serve, name="toolcrib-tool", daemon=True).start()

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            if job.done:
                return
            job.abandoned = True
            if job.started:  # its thread no longer serves: another may take its place
                self._abandoned += 1
                self._serving -= 1
                self._start_if_needed()

    def _serve(self) -> None:
        _own.pool = self
        while (job := self._next()) is not None:
            job.run()
            with self._lock:
                job.done = True
                if job.abandoned:
                    self._abandoned -= 1
                    return  # its place has been given away
                if self._serving > self._limit:
                    break  # while it waited for another call, its place was taken
        with self._lock:
            self._serving -= 1

    def _next(self) -> _Job | None:
        with self._lock:
            self._idle += 1
        while True:
            job = self._jobs.get()
            with self._lock:
                # Idle and queued change together, here: until then the job counts as waiting and
                # the thread as free, so a job that comes meanwhile gets a thread of its own.
                self._queued -= job is not None
                if job is not None and job.abandoned:
                    continue
                self._idle -= 1
                if job is not None:
                    job.started = True
                return job
