"""Faults that only HTTP has: refusals, forgotten sessions, broken event streams."""

from __future__ import annotations

from toolcrib.testing.fault_server.acts import Acts, Asked, Forget, HangUp, Raw, Refuse, Resume, Say
from toolcrib.testing.fault_server.answer_faults import answers
from toolcrib.testing.fault_server.faults import fault

__all__: list[str] = []

SAID = {
    "400": (400, 0),
    "404": (404, 0),
    "503": (503, 0),
    "-32600": (404, -32600),
    "200": (200, -32600),
}


@fault(value="401", only="http")
def refuse(asked: Asked, acts: Acts, value: str) -> Acts:
    """Answers with HTTP STATUS and an empty body: no JSON-RPC, no id. Nothing is done."""
    yield Refuse(int(value))


@fault(value="404", only="http")
def forget_session(asked: Asked, acts: Acts, value: str) -> Acts:
    """Forgets every session, and says so: `404`, `400`, `503` without a body, `-32600` (in a body,
    with 404), `200` (likewise, with 200)."""
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


@fault(value="1", only="http")
def resume(asked: Asked, acts: Acts, value: str) -> Acts:
    """Gives the answer's stream an event id and breaks it off; so do N resumptions. The next
    brings the answer (until protocol 2025-11-25)."""
    for act in acts:
        if isinstance(act, Say) and answers(act, asked):
            yield Resume(act.message, int(value))
        else:
            yield act
