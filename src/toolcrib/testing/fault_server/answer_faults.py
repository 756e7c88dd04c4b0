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
from toolcrib.testing.fault_server.values import CODE, COUNT, SECONDS, VERSION, one_of

__all__ = ["NOISE", "answers", "noise"]

NOISE = one_of("bytes", "text")


def noise(first: str, kind: str) -> bytes:
    """Lines that are no messages; `bytes` ends with one that is no UTF-8."""
    text = f"{first}\n\n{{not json}}\n[1, 2\n".encode()
    return text + b"\xff\xfe\n" if kind == "bytes" else text


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


@fault(takes=SECONDS, value="0")
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


@fault(takes=SECONDS, value="1")
def late(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers SECONDS later; other messages are answered meanwhile."""
    yield Wait(float(value))
    yield from acts


@fault(takes=SECONDS, value="1")
def busy(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers SECONDS later; over stdio nothing else is answered meanwhile."""
    yield Block(float(value))
    yield from acts


@fault()
def hang_up(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and closes the connection in place of the answer."""
    for act in acts:
        yield HangUp() if answers(act, asked) else act


@fault(takes=NOISE, value="bytes")
def garbage(asked: Asked, acts: Acts, value: str) -> Acts:
    """Writes what is no message first, lines to stdout or an event over HTTP: `text` that is no
    JSON, or that and `bytes` that are no UTF-8."""
    yield Raw(noise("Welcome!", value))
    yield from acts


@fault()
def unreadable(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing, and answers with a text that is no Unicode."""
    yield _told(asked, {"result": {"content": [{"type": "text", "text": "\ud800"}]}})


@fault(takes=one_of("other", "text", "null", "none"), value="other")
def wrong_id(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and answers under an `other` id, under its own as `text`, under `null`,
    or under `none` at all."""
    for act in acts:
        if not (isinstance(act, Say) and answers(act, asked)):
            yield act
            continue
        message = {key: said for key, said in act.message.items() if key != "id"}
        ids = {"other": 987654321, "text": str(asked.id), "null": None}
        yield Say(message if value == "none" else {**message, "id": ids[value]})


@fault()
def twice(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked once, and answers twice; over HTTP in one event stream."""
    yield Raw(b"")
    for act in acts:
        yield act
        if answers(act, asked):
            yield act


@fault(takes=CODE, value="-32603")
def error(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing, and answers with the JSON-RPC error CODE, in words that mean nothing."""
    words = "unauthorized forbidden invalid request: misbehaving on demand"
    yield _told(asked, {"error": {"code": int(value), "message": words}})


@fault(takes=COUNT, value="5000000")
def oversized(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and answers with a text of N characters."""
    for act in acts:
        if isinstance(act, Say) and answers(act, asked) and "result" in act.message:
            result = {**act.message["result"], "content": [_text("x" * int(value))]}
            act = Say({**act.message, "result": result})
        yield act


@fault()
def input_required(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing, and answers that it has to ask first, but asks nothing (protocol
    2026-07-28)."""
    yield _told(asked, {"result": {"resultType": "input_required", "inputRequests": {}}})


@fault(takes=COUNT, value="1000")
def storm(asked: Asked, acts: Acts, value: str) -> Acts:
    """Says N times that its list of tools changed, after the answer."""
    yield from acts
    for _ in range(int(value)):
        yield Tell("notifications/tools/list_changed")


@fault(method="initialize", takes=VERSION, value="1999-01-01")
def version(asked: Asked, acts: Acts, value: str) -> Acts:
    """Speaks only the protocol VERSION; in the modern era, write `@server/discover`."""
    said = {"server/discover": {"supportedVersions": [value]}}
    for act in acts:
        if isinstance(act, Say) and "result" in act.message:
            result = act.message["result"] | said.get(asked.method, {"protocolVersion": value})
            act = Say({**act.message, "result": result})
        yield act


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _told(asked: Asked, body: Message) -> Say:
    return Say({"jsonrpc": "2.0", "id": asked.id, **body})
