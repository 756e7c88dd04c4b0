"""Gemini's generateContent (rules G1–G16): tools, calls, results, histories.

Translation only. Schemas go out as `parametersJsonSchema` (G8) or, with `form="openapi"`, as the
OpenAPI subset of `parameters` (G6, G7). There is no native deferral: send fewer, add later.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from toolcrib.content import ImagePart, ToolCall, ToolResult
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.jsonvalue import is_object
from toolcrib.providers.cache import Cache
from toolcrib.providers.history import Assistant, History, User
from toolcrib.providers.media import GOOGLE, base64_of, in_order, sound, split
from toolcrib.providers.naming import legal_name, restored, sent_name, unique
from toolcrib.providers.pairing import UNNAMED, Answered, IdRule, Step, loose, paired
from toolcrib.providers.reading import Reply, arguments_object, as_json, objects, received, text_of
from toolcrib.providers.report import Export, Notes
from toolcrib.providers.roots import flat_root
from toolcrib.providers.schemas import modern
from toolcrib.providers.subset import Form, gemini_form

__all__ = ["Form", "calls", "export", "messages", "reply", "results", "tools", "write"]

IDS = IdRule(256)
PROVIDER = "gemini"
MAX_TOOLS = 512
UNSIGNED = base64.b64encode(b"skip_thought_signature_validator").decode()
"""Stands for the signature of a call that another provider's model made (G12)."""
_cache = Cache()


def export(definitions: Iterable[ToolDefinition], *, form: Form = "json") -> Export:
    """`definitions` as one tool of function declarations, in their order, and what had to be
    changed. No definitions give no tool. Raises `InvalidDefinition` for two of one name."""
    notes = Notes()
    convert = partial(_declaration, form)
    found = [_cache.get(d, form, convert, notes) for d in unique(definitions)]
    if len(found) > MAX_TOOLS:
        notes.add(f"more than {MAX_TOOLS} tools: the API refuses the request", effect="same")
    return Export([{"functionDeclarations": found}] if found else [], notes.all())


def tools(definitions: Iterable[ToolDefinition], *, form: Form = "json") -> list[dict[str, Any]]:
    """The tools of `export`; the same bytes for the same definitions, every time."""
    return export(definitions, form=form).tools


def _declaration(form: Form, definition: ToolDefinition, notes: Notes) -> dict[str, Any]:
    exposed = sent_name(definition, notes)
    name = _sent(exposed)
    if name != exposed:
        notes.add("name begins with a letter or _", effect="same")
    declared = {"name": name, "description": definition.description or definition.title}
    schema = gemini_form(flat_root(modern(definition.input_schema, notes), notes), form, notes)
    if not schema.get("properties"):  # G7: no arguments, no parameters
        return declared
    return {**declared, "parametersJsonSchema" if form == "json" else "parameters": schema}


def _sent(name: str) -> str:
    """`name` with a letter or `_` first (G2). Names that look like a mapped one are mapped too, so
    that the way back is never in doubt."""
    return f"_{name}" if re.match(r"_*[0-9-]", name) else name


def _given(name: str) -> str:
    return name[1:] if re.match(r"_+[0-9-]", name) else name


def calls(reply: Reply, definitions: Iterable[ToolDefinition] = ()) -> list[ToolCall]:
    """The calls of the first candidate, in order: the SDK's object or its dict.

    A call that came without an id is given one. With the `definitions` that were sent, mapped names
    come back.
    """
    return restored(_assistant(as_json(reply)).calls, definitions)


def reply(reply: Reply) -> Assistant:
    """The first candidate as a message of a history; its parts are kept whole (G12)."""
    return _assistant(as_json(reply))


def _assistant(said: dict[str, Any]) -> Assistant:
    candidates = objects(said.get("candidates"))
    content = candidates[0].get("content") if candidates else said
    parts = objects(content.get("parts")) if is_object(content) else []
    response_id = str(said.get("responseId") or said.get("response_id") or "")
    found: list[ToolCall] = []
    for part in parts:
        call = part.get("functionCall") or part.get("function_call")
        if is_object(call):
            name, arguments = str(call.get("name") or ""), received(call.get("args"))
            own = f"{response_id} {len(found)} {name} {arguments}"
            made = UNNAMED + hashlib.sha256(own.encode("utf-8", "replace")).hexdigest()[:16]
            found.append(ToolCall(str(call.get("id") or made), _given(name), arguments))
    text = text_of(part for part in parts if not part.get("thought"))
    return Assistant(text, tuple(found), PROVIDER, compact_json(parts) if parts else "")


def results(
    results: Sequence[ToolResult], calls: Sequence[ToolCall], *, images_inside: bool = True
) -> list[dict[str, Any]]:
    """The content that answers the reply just received; `calls` give each answer its name (G10).

    `images_inside`: images stand in the answer (Gemini 3 and later, G13); otherwise they follow in
    a user's turn of their own.
    """
    step = loose(tuple(results), tuple(calls), IDS)
    return _write([step], images_inside, Notes())


def write(history: History, *, images_inside: bool = True) -> Export:
    """A whole history as contents, and what was changed."""
    notes = Notes()
    return Export(_write(paired(history, IDS, notes), images_inside, notes), notes.all())


def messages(history: History, *, images_inside: bool = True) -> list[dict[str, Any]]:
    """The contents of `write`."""
    return write(history, images_inside=images_inside).messages


def _write(steps: Iterable[Step], images_inside: bool, notes: Notes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, Answered):
            found += _answers(step, images_inside, notes)
            continue
        is_user = isinstance(step, User)
        if isinstance(step, User):
            parts = [_part(piece) for piece in in_order(step.content, GOOGLE, notes)]
        else:
            parts = _replayed(step) or _said(step, notes)
        if parts and not is_user and found and found[-1]["role"] == "model":
            found[-1]["parts"] += parts  # a call's turn follows a user's or an answer's (G11)
        elif parts:
            found.append({"role": "user" if is_user else "model", "parts": parts})
    return found


def _part(piece: str | ImagePart) -> dict[str, Any]:
    return {"text": piece} if isinstance(piece, str) else _inline(piece)


def _inline(image: ImagePart) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.media_type, "data": base64_of(image)}}


def _replayed(step: Assistant) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = (
        json.loads(step.raw) if step.provider == PROVIDER and step.raw else []
    )
    return parts


def _said(step: Assistant, notes: Notes) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": sound(step.text)}] if step.text else []
    for at, call in enumerate(step.calls):
        named = {**_named(call), "args": arguments_object(call, notes)[0]}
        signature = {} if at else {"thoughtSignature": UNSIGNED}
        parts.append({"functionCall": named, **signature})
    return parts


def _named(call: ToolCall) -> dict[str, Any]:
    """Name and id, alike in a call and its answer; an id that we made up is not sent (G11)."""
    name = _sent(legal_name(call.name)) if call.name else "unknown"
    return {"name": name, **({} if call.id.startswith(UNNAMED) else {"id": call.id})}


def _answers(step: Answered, images_inside: bool, notes: Notes) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    for call, result in step.pairs:
        found = split(result.content, GOOGLE, notes, call.id)
        # always text: as a value, numbers would become doubles, and a key $ref is refused (G14)
        response = {"error" if result.is_error else "output": found.text}
        answer = {**_named(call), "response": response}
        if found.images and images_inside:
            answer["parts"] = [_inline(image) for image in found.images]
        elif found.images:
            later.append({"text": f"Images of {call.name} ({call.id}):"})
            later += [_inline(image) for image in found.images]
            notes.add("image of a result in a later turn", call.id, "same")
        parts.append({"functionResponse": answer})
    turns = [{"role": "user", "parts": parts}] if parts else []
    return [*turns, {"role": "user", "parts": later}] if later else turns
