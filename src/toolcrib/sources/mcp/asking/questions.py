"""What servers ask, from its wire form to the values of `host`, and what is answered, back again.

Pure. Whom to ask, and for how long, is `relay`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_types import INVALID_PARAMS, INVALID_REQUEST

from toolcrib.answers import completed, misfits
from toolcrib.content import Part, TextPart
from toolcrib.errors import InvalidSchema
from toolcrib.frozen import NOTHING
from toolcrib.host import (
    CANCELLED,
    Ability,
    Elicitation,
    ElicitationAnswer,
    Host,
    Root,
    SamplingAnswer,
    SamplingMessage,
    SamplingRequest,
)
from toolcrib.sources.mcp.content.shapes import list_of, object_of, text_of
from toolcrib.sources.mcp.content.translate import part_of

__all__ = [
    "METHODS",
    "Asker",
    "Caller",
    "Refused",
    "capabilities",
    "elicitation",
    "elicited",
    "rooted",
    "sampled",
    "sampling",
]

METHODS: Final[Mapping[str, Ability]] = {
    "elicitation/create": "elicit",
    "sampling/createMessage": "sample",
    "roots/list": "roots",
}

MAX_CHARS: Final = 20_000
"""Of a message to a person; the rest is cut."""


class Refused(Exception):
    """A question that gets no answer, with the reason. `code` is JSON-RPC's."""

    def __init__(self, reason: str, code: int = INVALID_REQUEST) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a server asks: the host of a call, and which call that is (empty: one of
    several)."""

    host: Host | None
    tool: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. `masked` hides from people and models what was declared as secret."""

    server: str
    masked: Callable[[str], str] = str


def capabilities(abilities: Iterable[Ability]) -> dict[str, Any]:
    """What a server is told of them, in its wire form."""
    told: dict[Ability, tuple[str, dict[str, Any]]] = {
        "elicit": ("elicitation", {"form": {}, "url": {}}),
        "sample": ("sampling", {}),
        "roots": ("roots", {}),
    }
    return dict(told[ability] for ability in sorted(abilities))


def elicitation(asker: Asker, caller: Caller, params: Mapping[str, Any]) -> Elicitation:
    """The question to a person in `params`. Raises `Refused` for one that cannot be put."""
    message = asker.masked(text_of(params.get("message")))[:MAX_CHARS]
    tool, call_id = caller.tool, caller.call_id
    mode = params.get("mode", "form")
    if mode == "url":
        address = _address(params.get("url"))
        return Elicitation(asker.server, message, NOTHING, address, tool, call_id)
    if mode != "form":
        raise Refused(f"unknown mode {str(mode)[:50]!r} of a question", INVALID_PARAMS)
    schema = object_of(params.get("requestedSchema"))
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise Refused("requestedSchema is no object with properties", INVALID_PARAMS)
    question = Elicitation(asker.server, message, schema, "", tool, call_id)
    try:
        misfits(question, {})
    except InvalidSchema as error:
        raise Refused(f"requestedSchema cannot be used: {error}", INVALID_PARAMS) from error
    return question


def _address(url: object) -> str:
    try:
        parts = urlsplit(text_of(url))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise Refused("its url is not an http:// or https:// address", INVALID_PARAMS)
    return text_of(url)


def elicited(
    question: Elicitation, answer: ElicitationAnswer = CANCELLED
) -> tuple[dict[str, Any], str]:
    """The answer as it is sent, defaults filled in, and what is wrong with the one that was given:
    an answer that does not fit its question is never sent, and counts as none."""
    if answer.action != "accept" or question.url:
        return {"action": answer.action}, ""
    values = completed(question, answer.values)
    wrong = misfits(question, values)
    if wrong:
        return {"action": CANCELLED.action}, "; ".join(wrong)
    return {"action": "accept", "content": values}, ""


def sampling(asker: Asker, caller: Caller, params: Mapping[str, Any]) -> SamplingRequest:
    """What a model is asked in `params`. Raises `Refused` for what was not offered: tools."""
    if params.get("tools") or params.get("toolChoice"):
        raise Refused("sampling with tools is not supported", INVALID_PARAMS)
    most, warmth = params.get("maxTokens"), params.get("temperature")
    if type(most) is not int or most < 1:
        raise Refused("maxTokens is no number ≥ 1", INVALID_PARAMS)
    preferences = object_of(params.get("modelPreferences"))
    hints = (text_of(object_of(hint).get("name")) for hint in list_of(preferences.get("hints")))
    return SamplingRequest(
        asker.server,
        tuple(_message(asker, item) for item in list_of(params.get("messages"))),
        most,
        asker.masked(text_of(params.get("systemPrompt"))),
        warmth if type(warmth) in (int, float) else None,
        tuple(text_of(one) for one in list_of(params.get("stopSequences"))),
        tuple(hint for hint in hints if hint),
        caller.tool,
        caller.call_id,
    )


def _message(asker: Asker, item: object) -> SamplingMessage:
    message = object_of(item)
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise Refused("a message has a role that is neither user nor assistant", INVALID_PARAMS)
    blocks = list_of(content) or [content]
    parts = (_masked(asker, part) for block in blocks if (part := part_of(block)) is not None)
    return SamplingMessage(role, tuple(parts))


def _masked(asker: Asker, part: Part) -> Part:
    return TextPart(asker.masked(part.text)) if isinstance(part, TextPart) else part


def sampled(answer: SamplingAnswer) -> dict[str, Any]:
    """What a model said, as it is sent."""
    said = answer.content
    if isinstance(said, TextPart):
        content = {"type": "text", "text": said.text}
    else:
        data = base64.b64encode(said.data).decode()
        kind = said.to_json()["type"]
        content = {"type": kind, "data": data, "mimeType": said.media_type}
    more = {"stopReason": answer.stop_reason} if answer.stop_reason else {}
    return {"role": "assistant", "content": content, "model": answer.model, **more}


def rooted(roots: Iterable[Root]) -> dict[str, Any]:
    """The places of a host, as they are sent."""
    return {"roots": [{"uri": r.uri, "name": r.name} if r.name else {"uri": r.uri} for r in roots]}
