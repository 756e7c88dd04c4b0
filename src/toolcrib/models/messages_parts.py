"""Events of Anthropic's messages API as one message. Pure.

Not the SDK's own accumulation: that reads the input of a cut or misspelt call as far as it goes,
and such a call must not run. Here the text of the input is kept until it is complete.
"""

from __future__ import annotations

from typing import Any

from toolcrib.decoding import decode
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidArguments
from toolcrib.jsonvalue import is_object
from toolcrib.models.failures import Broken
from toolcrib.models.response import Usage, count
from toolcrib.models.telling import whole

__all__ = ["MessagesParts"]

_STRINGS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_INPUT = "input"


class MessagesParts:
    """See `streaming.Parts`."""

    def __init__(self) -> None:
        self.stop = ""
        self._counts: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._citations: dict[int, list[Any]] = {}
        self._is_over = False

    @property
    def usage(self) -> Usage:
        counts = self._counts
        cached = count(counts, "cache_read_input_tokens")
        written = count(counts, "cache_creation_input_tokens")
        # Anthropic counts what goes through its cache apart
        whole_input = count(counts, "input_tokens") + cached + written
        return Usage(whole_input, count(counts, "output_tokens"), cached)

    @property
    def last_arguments(self) -> str | None:
        calls = [at for at, block in self._blocks.items() if block.get("type") == "tool_use"]
        if not calls:
            return None
        given = self._blocks[calls[-1]].get(_INPUT)  # other servers may send it at once
        return self._joined(calls[-1], _INPUT) or (compact_json(given) if given else "")

    def feed(self, event: dict[str, Any]) -> str:
        kind, at = event.get("type"), event.get("index")
        if kind == "content_block_delta" and isinstance(at, int):
            delta = event.get("delta")
            return self._delta(at, delta) if is_object(delta) else ""
        if kind == "content_block_start" and isinstance(at, int):
            block = event.get("content_block")
            self._blocks[at] = dict(block) if is_object(block) else {}
            return str(self._blocks[at].get("text") or "")
        if kind == "message_start" and is_object(message := event.get("message")):
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._count(event.get("usage"))
            delta = event.get("delta")
            self.stop = (delta.get("stop_reason") if is_object(delta) else None) or self.stop
        elif kind == "message_stop":
            self._is_over = True
        return ""

    def _count(self, counts: Any) -> None:
        """Counts are running totals; those a later event leaves out stay."""
        if is_object(counts):
            self._counts.update(counts)

    def _delta(self, at: int, delta: dict[str, Any]) -> str:
        kind = str(delta.get("type"))
        if kind == "citations_delta":
            self._citations.setdefault(at, []).append(delta.get("citation"))
        elif kind == "input_json_delta":
            self._add(at, _INPUT, delta.get("partial_json"))
        elif kind in _STRINGS:
            self._add(at, _STRINGS[kind], delta.get(_STRINGS[kind]))
        return str(delta.get("text") or "") if kind == "text_delta" else ""

    def _add(self, at: int, key: str, piece: Any) -> None:
        if isinstance(piece, str):
            self._pieces.setdefault((at, key), []).append(piece)

    def _joined(self, at: int, key: str) -> str:
        return whole("".join(self._pieces.get((at, key), ())))

    def reply(self) -> dict[str, Any]:
        if not self._is_over:
            raise Broken("the stream ended before the response did", "cut")
        return {"content": [self._block(at) for at in sorted(self._blocks)]}

    def _block(self, at: int) -> dict[str, Any]:
        block = dict(self._blocks[at])
        for key in _STRINGS.values():
            if (at, key) in self._pieces:
                block[key] = str(block.get(key) or "") + self._joined(at, key)
        if at in self._citations:
            block["citations"] = self._citations[at]
        if text := self._joined(at, _INPUT):
            block[_INPUT] = _object_or_text(text)
        return block


def _object_or_text(text: str) -> dict[str, Any] | str:
    """Arguments as an object; text that is none stays text, for the tool to refuse."""
    try:
        return decode(text)[0]
    except InvalidArguments:
        return text
