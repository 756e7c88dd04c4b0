"""What a fault is, how one is written (`NAME[=VALUE][@METHOD][*TIMES]`), and the table of all.

A fault stands between the client's message and what the server would do about it, and may leave
out, change or add acts. The faults themselves are in the modules named `…_faults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from toolcrib.testing.fault_server.acts import Acts, Asked
from toolcrib.testing.fault_server.values import NO_VALUE, Takes

__all__ = ["METHODS", "TABLE", "Fault", "Hook", "Spec", "fault", "parsed", "through"]

Hook: TypeAlias = Callable[[Asked, Acts, str], Acts]
"""From the message, what would be done, and the fault's value, to what is done."""

METHODS: Final = (
    *("start", "any"),
    *("initialize", "server/discover", "ping", "logging/setLevel", "completion/complete"),
    *("tools/list", "tools/call", "prompts/list", "prompts/get"),
    *("resources/list", "resources/templates/list", "resources/read"),
    *("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"),
    *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
    "notifications/roots/list_changed",
)
"""What a fault can be about: the messages of a client, the start of the server, and any message."""


class Fault(NamedTuple):
    """`method` is what it is about where nobody says otherwise, `value` likewise; `only` is the one
    transport that has it, if it is one."""

    name: str
    says: str
    method: str
    takes: Takes
    value: str
    only: str
    hook: Hook


TABLE: dict[str, Fault] = {}


def fault(
    method: str = "tools/call", takes: Takes = NO_VALUE, value: str = "", only: str = ""
) -> Callable[[Hook], Hook]:
    """Puts a function into the table; its docstring is what `--list` says."""

    def put(hook: Hook) -> Hook:
        name = hook.__name__
        says = " ".join((hook.__doc__ or "").split())
        TABLE[name] = Fault(name, says, method, takes, value, only, hook)
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
        value = f"={self.value}" if self.value else ""
        return f"{self.fault.name}{value}@{self.method}{times}"

    def concerns(self, asked: Asked) -> bool:
        """Whether it is about this message; `@any` is about every one that a client sends."""
        return self.method == asked.method or (self.method == "any" and asked.method != "start")


_WRITTEN = re.compile(r"(\w+)(?:=([^@*\n]*))?(?:@([\w/]+))?(?:\*([1-9][0-9]*))?")


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
    if value is not None and not one.takes.fits(value):
        raise ValueError(f"the fault {name!r} takes {one.takes.says}, not {value!r}")
    if method is not None and method not in METHODS:
        raise ValueError(f"no method {method!r}: a fault is about one of {', '.join(METHODS)}")
    return Spec(one, one.value if value is None else value, method or one.method, int(times or 0))


def through(specs: Iterable[Spec], asked: Asked, acts: Acts) -> Acts:
    """What is done about `asked` once each fault has had its way, the first of them innermost."""
    for spec in specs:
        acts = spec.fault.hook(asked, acts, spec.value)
    return acts
