"""What a fault is, how one is written (`NAME[=VALUE][@METHOD][*TIMES]`), and the table of all.

A fault stands between the client's message and what the server would do about it, and may leave
out, change or add acts. The faults themselves are in the modules named `…_faults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from toolcrib.testing.fault_server.acts import Acts, Asked

__all__ = ["TABLE", "Fault", "Hook", "Spec", "fault", "parsed", "through"]

Hook: TypeAlias = Callable[[Asked, Acts, str], Acts]
"""From the message, what would be done, and the fault's value, to what is done."""


class Fault(NamedTuple):
    """`method` is what it is about where nobody says otherwise, `value` likewise; `only` is the one
    transport that has it, if it is one."""

    name: str
    says: str
    method: str
    value: str
    only: str
    hook: Hook


TABLE: dict[str, Fault] = {}


def fault(method: str = "tools/call", value: str = "", only: str = "") -> Callable[[Hook], Hook]:
    """Puts a function into the table; its docstring is what `--list` says."""

    def put(hook: Hook) -> Hook:
        name = hook.__name__
        says = " ".join((hook.__doc__ or "").split())
        TABLE[name] = Fault(name, says, method, value, only, hook)
        return hook

    return put


class Spec(NamedTuple):
    """One fault as it was asked for; `times` 0 means always."""

    fault: Fault
    value: str
    method: str
    times: int

    def __str__(self) -> str:
        times = f"*{self.times}" if self.times else ""
        return f"{self.fault.name}={self.value}@{self.method}{times}"

    def concerns(self, asked: Asked) -> bool:
        """Whether it is about this message; `@any` is about every one that a client sends."""
        return self.method == asked.method or (self.method == "any" and asked.method != "start")


_WRITTEN = re.compile(r"(\w+)(?:=([^@*]*))?(?:@([\w/]+))?(?:\*(\d+))?")


def parsed(text: str, transport: str = "") -> Spec:
    """The fault that `text` asks for. Raises `ValueError` that says what is wrong."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not NAME[=VALUE][@METHOD][*TIMES]")
    name, value, method, times = found.groups()
    if name not in TABLE:
        raise ValueError(f"no fault {name!r}: there are {', '.join(sorted(TABLE))}")
    one = TABLE[name]
    if one.only and transport and one.only != transport:
        raise ValueError(f"the fault {name!r} is one of {one.only} alone")
    return Spec(one, one.value if value is None else value, method or one.method, int(times or 0))


def through(specs: Iterable[Spec], asked: Asked, acts: Acts) -> Acts:
    """What is done about `asked` once each fault has had its way, the first of them innermost."""
    for spec in specs:
        acts = spec.fault.hook(asked, acts, spec.value)
    return acts
