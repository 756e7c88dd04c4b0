"""Faults of answers: deaths round them, silence, noise, wrong ones."""

from __future__ import annotations

from toolcrib.testing.fault_server.acts import (
    Acts,
    Asked,
    Block,
    Die,
    Half,
    HangUp,
    Message,
    Raw,
    Say,
    Tell,
    Wait,
)
from toolcrib.testing.fault_server.faults import fault

__all__ = ["answers"]


def answers(act: object, asked: Asked) -> bool:
    """Whether `act` is the answer to what was asked."""
    return (
        isinstance(act, Say) and act.message.get("id") == asked.id and "method" not in act.message
    )


@fault()
def crash_before(asked: Asked, acts: Acts, value: str) -> Acts:
    """Dies before anything is done."""
    yield Die()


@fault()
def crash_during(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and dies before the answer."""
    for act in acts:
        yield Die() if answers(act, asked) else act


@fault()
def crash_midway(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, sends half of the answer, and dies."""
    for act in acts:
        if isinstance(act, Say) and answers(act, asked):
            yield Half(act.message)
            yield Die()
        yield act


@fault(value="0")
def crash_after(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers, and dies SECONDS later."""
    yield from acts
    yield Wait(float(value))
    yield Die()


@fault()
def hang(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and never answers."""
    for act in acts:
        if not answers(act, asked):
            yield act


@fault(value="1")
def late(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers SECONDS later; other messages are answered meanwhile."""
    yield Wait(float(value))
    yield from acts


@fault(value="1")
def busy(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers SECONDS later; over stdio nothing else is answered meanwhile."""
    yield Block(float(value))
    yield from acts


@fault()
def hang_up(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and closes the connection in place of the answer."""
    for act in acts:
        yield HangUp() if answers(act, asked) else act


@fault()
def garbage(asked: Asked, acts: Acts, value: str) -> Acts:
    """Writes what is no message first: lines to stdout, an event over HTTP."""
    yield Raw(b"Welcome!\n\n{not json}\n[1, 2\n\xff\xfe\n")
    yield from acts


@fault()
def unreadable(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers with a text that is no Unicode."""
    yield _told(asked, {"result": {"content": [{"type": "text", "text": "\ud800"}]}})


@fault(value="other")
def wrong_id(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers under another id: `other`, `text` (the number as text), `null` or `none`."""
    for act in acts:
        if not (isinstance(act, Say) and answers(act, asked)):
            yield act
            continue
        message = {key: said for key, said in act.message.items() if key != "id"}
        ids = {"other": 987654321, "text": str(asked.id), "null": None}
        yield Say(message if value == "none" else {**message, "id": ids[value]})


@fault()
def twice(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers twice; over HTTP in one event stream."""
    yield Raw(b"")
    for act in acts:
        yield act
        if answers(act, asked):
            yield act


@fault(value="-32603")
def error(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers with the JSON-RPC error CODE, in words that mean nothing."""
    words = "unauthorized forbidden invalid request: misbehaving on demand"
    yield _told(asked, {"error": {"code": int(value), "message": words}})


@fault(value="5000000")
def oversized(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers with a text of N characters."""
    for act in acts:
        if isinstance(act, Say) and answers(act, asked) and "result" in act.message:
            result = {**act.message["result"], "content": [_text("x" * int(value))]}
            act = Say({**act.message, "result": result})
        yield act


@fault()
def input_required(asked: Asked, acts: Acts, value: str) -> Acts:
    """Wants to ask a person first (protocol 2026-07-28)."""
    yield _told(asked, {"result": {"resultType": "input_required", "inputRequests": {}}})


@fault(value="1000")
def storm(asked: Asked, acts: Acts, value: str) -> Acts:
    """Says N times that its list of tools changed, after the answer."""
    yield from acts
    for _ in range(int(value)):
        yield Tell("notifications/tools/list_changed")


@fault(method="initialize", value="1999-01-01")
def version(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers `initialize` with the protocol VERSION."""
    for act in acts:
        if isinstance(act, Say) and "result" in act.message:
            act = Say(
                {**act.message, "result": {**act.message["result"], "protocolVersion": value}}
            )
        yield act


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _told(asked: Asked, body: Message) -> Say:
    return Say({"jsonrpc": "2.0", "id": asked.id, **body})
