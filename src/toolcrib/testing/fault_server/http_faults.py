"""Faults that only HTTP has: refusals, forgotten sessions, broken event streams."""

from __future__ import annotations

from toolcrib.testing.fault_server.acts import Acts, Asked, Forget, HangUp, Raw, Refuse, Resume, Say
from toolcrib.testing.fault_server.answer_faults import answers
from toolcrib.testing.fault_server.faults import fault
from toolcrib.testing.fault_server.values import COUNT, STATUS, one_of

__all__: list[str] = []

SAID = {
    "404": (404, 0),
    "400": (400, 0),
    "503": (503, 0),
    "-32600": (404, -32600),
    "200": (200, -32600),
}


@fault(takes=STATUS, value="401", only="http")
def refuse(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing, and answers with HTTP STATUS and an empty body: no JSON-RPC, no id."""
    yield Refuse(int(value))


@fault(takes=one_of(*SAID), value="404", only="http")
def forget_session(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing, forgets every session, and says so: with an empty `404`, `400` or `503`, with
    the error `-32600` in the body of a 404, or with that error in a `200`. The modern era has no
    sessions: there it is one refusal."""
    yield Forget(*SAID[value])


@fault(only="http")
def empty_stream(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, and answers with an event stream that ends without an event."""
    for act in acts:
        if answers(act, asked):
            yield Raw(b"")
            yield HangUp()
        else:
            yield act


@fault(takes=COUNT, value="1", only="http")
def resume(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does what is asked, gives the answer's stream an event id and breaks it off; so do N
    resumptions, the next brings the answer. The modern era cannot resume."""
    for act in acts:
        if isinstance(act, Say) and answers(act, asked):
            yield Resume(act.message, int(value))
        else:
            yield act
