"""The tools that the server has when it behaves.

echo(text)          says it             act(key)           writes a line to the ledger
pid()               its process         env(name)          of its environment
big(n)              n characters        slow(seconds)      answers so much later
log(level, text)    logs                progress(n, every) reports n times, answers then
give(result)        whatever result     tell()             says that its list changed
misbehave(fault)    adds a fault; "" ends all
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from toolcrib.testing.fault_server.acts import Acts, Message, Say, Tell, Wait
from toolcrib.testing.fault_server.home import Home

__all__ = ["TOOLS", "Call", "call"]


class Call(NamedTuple):
    """One call; `arguments` are as they came."""

    id: Any
    arguments: Message
    meta: Message
    home: Home

    def says(self, text: str, **more: Any) -> Say:
        return self.gives({"content": [{"type": "text", "text": text}], **more})

    def gives(self, result: Message) -> Say:
        return Say({"jsonrpc": "2.0", "id": self.id, "result": result})


Tool: TypeAlias = Callable[[Call], Acts]


def _echo(call: Call) -> Acts:
    yield call.says(str(call.arguments.get("text", "")))


def _act(call: Call) -> Acts:
    call.home.act(str(call.arguments.get("key", "act")))
    yield call.says("done")


def _pid(call: Call) -> Acts:
    yield call.says(str(os.getpid()), structuredContent={"pid": os.getpid()})


def _env(call: Call) -> Acts:
    yield call.says(os.environ.get(str(call.arguments.get("name")), ""))


def _slow(call: Call) -> Acts:
    yield Wait(float(call.arguments.get("seconds", 1)))
    yield call.says("awake")


def _big(call: Call) -> Acts:
    yield call.says("x" * int(call.arguments.get("n", 1000)))


def _progress(call: Call) -> Acts:
    n = int(call.arguments.get("n", 2))
    for step in range(1, n + 1):
        yield Wait(float(call.arguments.get("every", 0)))
        params = {"progressToken": call.meta.get("progressToken"), "progress": step, "total": n}
        yield _notification("notifications/progress", {**params, "message": f"step {step}"})
    yield call.says("finished")


def _log(call: Call) -> Acts:
    params = {"level": call.arguments.get("level", "info"), "data": call.arguments.get("text", "")}
    yield _notification("notifications/message", params)
    yield call.says("logged")


def _give(call: Call) -> Acts:
    yield call.gives(call.arguments.get("result", {}))


def _tell(call: Call) -> Acts:
    yield call.says("told")
    yield Tell("notifications/tools/list_changed")


def _misbehave(call: Call) -> Acts:
    fault = str(call.arguments.get("fault", ""))
    try:
        call.home.add(fault) if fault else call.home.set([])
    except ValueError as error:
        yield call.says(str(error), isError=True)
    else:
        yield call.says("as you wish")


def _notification(method: str, params: Message) -> Say:
    return Say({"jsonrpc": "2.0", "method": method, "params": params})


_TEXT, _NUMBER, _INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}

_ALL: dict[str, tuple[Tool, Message]] = {
    "echo": (_echo, {"text": _TEXT}),
    "act": (_act, {"key": _TEXT}),
    "pid": (_pid, {}),
    "env": (_env, {"name": _TEXT}),
    "slow": (_slow, {"seconds": _NUMBER}),
    "big": (_big, {"n": _INTEGER}),
    "progress": (_progress, {"n": _INTEGER, "every": _NUMBER}),
    "log": (_log, {"level": _TEXT, "text": _TEXT}),
    "give": (_give, {"result": {"type": "object"}}),
    "tell": (_tell, {}),
    "misbehave": (_misbehave, {"fault": _TEXT}),
}

TOOLS: list[Message] = [
    {
        "name": name,
        "description": f"The tool {name} of the fault server.",
        "inputSchema": {"type": "object", "properties": given, "additionalProperties": False},
    }
    for name, (_, given) in _ALL.items()
]


def call(name: str, made: Call) -> Acts:
    """What a call of the tool `name` does; arguments that do not fit are told. One that it does not
    know, as some faults list them, says its arguments."""
    if name not in _ALL:
        yield made.says(f"{name} {sorted(made.arguments)}")
        return
    try:
        yield from _ALL[name][0](made)
    except (TypeError, ValueError) as error:
        yield made.says(str(error), isError=True)
