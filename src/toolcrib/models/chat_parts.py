"""Chunks of OpenAI's chat completions as one completion (choice 0). Pure.

Lenient, because many servers speak this: fragments are told apart by index and by id, a name may
come once or with every fragment, calls may come whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolcrib.jsonvalue import is_object
from toolcrib.models.failures import Broken
from toolcrib.models.response import Usage, count
from toolcrib.models.telling import whole
from toolcrib.providers.reading import objects, received

__all__ = ["ChatParts"]


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": whole("".join(self.arguments))}
        return {"id": self.id, "type": "function", "function": function}


class ChatParts:
    """See `streaming.Parts`."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.stop = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    @property
    def last_arguments(self) -> str | None:
        return "".join(self._calls[-1].arguments) if self._calls else None

    def feed(self, event: dict[str, Any]) -> str:
        if is_object(counts := event.get("usage")):
            self.usage = Usage(
                count(counts, "prompt_tokens"),
                count(counts, "completion_tokens"),
                count(counts, "prompt_tokens_details", "cached_tokens"),
            )
        firsts = [each for each in objects(event.get("choices")) if not each.get("index")]
        choice = firsts[0] if firsts else dict[str, Any]()
        self.stop = choice.get("finish_reason") or self.stop
        delta = choice.get("delta")
        if not is_object(delta):
            return ""
        for fragment in objects(delta.get("tool_calls")):
            self._fragment(fragment)
        return _taken(delta, "content", self._text) or _taken(delta, "refusal", self._refusal)

    def _fragment(self, fragment: dict[str, Any]) -> None:
        call = self._call(fragment.get("index"), fragment.get("id") or "")
        function = fragment.get("function")
        if not is_object(function):
            return
        name, arguments = function.get("name") or "", function.get("arguments")
        if name != call.name:  # some servers say it with every fragment
            call.name += name
        if arguments is not None:
            call.arguments.append(received(arguments))

    def _call(self, index: Any, call_id: str) -> _Call:
        """The call a fragment belongs to: by its index, or the last one where it has none."""
        at = index if isinstance(index, int) else max(len(self._calls) - 1, 0)
        call = self._at.get(at)
        # an id of its own begins a call: some servers give all their calls the index 0
        if call is None or (call_id and call.id and call_id != call.id):
            call = self._at[at] = _Call()
            self._calls.append(call)
        call.id = call.id or call_id
        return call

    def reply(self) -> dict[str, Any]:
        if not self.stop:
            raise Broken("the stream ended before the response did", "cut")
        text = whole("".join(self._text or self._refusal))
        calls = [call.to_json() for call in self._calls]
        return {"choices": [{"message": {"content": text, "tool_calls": calls}}]}


def _taken(delta: dict[str, Any], key: str, pieces: list[str]) -> str:
    piece = delta.get(key)
    if not isinstance(piece, str) or not piece:
        return ""
    pieces.append(piece)
    return piece
