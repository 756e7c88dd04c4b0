"""One thread for numpy's matrix products, while an encoder of ours is at work.

BLAS libraries share a product out among all cores and spin while they wait for each other. For
matrices as small as these that gains little on an idle machine, and on a busy one it costs a
hundredfold.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from toolcrib.dense.encoder import library

__all__ = ["OneThread"]


class OneThread:
    """`with` it, BLAS uses one thread; the whole process is meant, BLAS knows nothing smaller. What
    was set before is set again when the last `with` of all threads ends. One a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: Any = None
        self._limit: Any = None

    def prepare(self, install: str) -> None:
        """Looks for the process's BLAS, once. Raises `MissingExtra`, which says `install`."""
        threadpoolctl = library("threadpoolctl", install)
        with self._lock:
            if self._controller is None:
                self._controller = threadpoolctl.ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()
