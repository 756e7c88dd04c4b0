"""The files through which a server and whoever tests with it know of each other.

    faults    the faults in force, one a line; read before each message, so that they change at once
    ledger    what the tool `act` did, one key a line, as a JSON text
    journal   every start and every message that came, one JSON object a line

They outlive the process: a fault that is used up stays so after a restart. Without a directory the
faults are kept in memory, and nothing is written.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from toolcrib.testing.fault_server.acts import Asked
from toolcrib.testing.fault_server.table import Spec, parsed

__all__ = ["Home"]


class Home:
    """The files in `directory`; "" means none."""

    def __init__(self, directory: str = "", transport: str = "") -> None:
        self._directory = directory
        self._transport = transport
        self._in_memory: list[str] = []
        self._lock = threading.Lock()

    def act(self, key: str) -> None:
        self._append("ledger", json.dumps(key))

    def note(self, **what: Any) -> None:
        self._append("journal", json.dumps({"pid": os.getpid(), **what}))

    def ledger(self) -> list[str]:
        return [json.loads(line) for line in self._lines("ledger")]

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines("journal")]

    def set(self, faults: list[str]) -> None:
        """Puts these faults in force, and no others. Raises `ValueError`."""
        self._change(lambda before: faults)

    def add(self, fault: str) -> None:
        """Puts one more in force. Raises `ValueError`."""
        self._change(lambda before: [*before, fault])

    def faults(self, asked: Asked) -> list[Spec]:
        """Those in force that are about `asked`, each of which this uses up once."""
        if not any(one.concerns(asked) for one in self._parsed(self._read())):
            return []
        found: list[Spec] = []

        def used(before: list[str]) -> list[str]:
            left: list[str] = []
            for one in self._parsed(before):
                if one.concerns(asked):
                    found.append(one)
                    if one.times == 1:
                        continue
                    one = one._replace(times=max(0, one.times - 1))
                left.append(str(one))
            return left

        self._change(used)
        return found

    def _parsed(self, lines: list[str]) -> list[Spec]:
        return [parsed(line, self._transport) for line in lines if line.strip()]

    def _read(self) -> list[str]:
        return self._lines("faults") if self._directory else self._in_memory

    def _change(self, change: Callable[[list[str]], list[str]]) -> None:
        with self._alone():
            lines = change(self._read())
            self._parsed(lines)
            if not self._directory:
                self._in_memory = lines
                return
            new = self._path("faults.new")
            with open(new, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            os.replace(new, self._path("faults"))

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else changes the faults meanwhile, in this process or another."""
        with self._lock:
            if not self._directory:
                yield
                return
            import fcntl  # not on Windows, where the rest of `toolcrib.testing` is of use

            with open(self._path("lock"), "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield

    def _lines(self, name: str) -> list[str]:
        """The whole lines; one that is being written is not there yet."""
        try:
            with open(self._path(name), encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def _append(self, name: str, line: str) -> None:
        """In one piece: several threads and processes append."""
        if not self._directory:
            return
        file = os.open(self._path(name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
