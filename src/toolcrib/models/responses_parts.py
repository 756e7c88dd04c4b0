"""Events of OpenAI's responses API as one response. Pure.

The last event repeats the whole response and is what counts; the items of the stream stand in where
a server leaves its output out.
"""

from __future__ import annotations

from typing import Any

from toolcrib.jsonvalue import is_object
from toolcrib.models.failures import Broken
from toolcrib.models.response import Usage, count
from toolcrib.providers.reading import objects

__all__ = ["ResponsesParts"]

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_ENDS = ("response.completed", "response.incomplete")


class ResponsesParts:
    """See `streaming.Parts`."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.stop = ""
        self._items: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._final: dict[str, Any] | None = None
        self._telling: int | None = None

    @property
    def last_arguments(self) -> str | None:
        calls = [item for item in self._output() if item.get("type") == "function_call"]
        return str(calls[-1].get("arguments") or "") if calls else None

    def feed(self, event: dict[str, Any]) -> str:
        kind, at = event.get("type"), event.get("output_index")
        if kind in _TEXT and isinstance(delta := event.get("delta"), str):
            return self._separator(at) + delta
        if kind in _ENDS and is_object(response := event.get("response")):
            self._ended(response)
        elif kind in ("response.failed", "error"):
            raise Broken(_fault(event))
        elif isinstance(at, int):
            self._part(kind, at, event)
        return ""

    def _separator(self, at: Any) -> str:
        """Messages are told as `providers.responses` joins them: a line each."""
        before, self._telling = self._telling, at if isinstance(at, int) else 0
        return "" if before in (None, self._telling) else "\n"

    def _part(self, kind: Any, at: int, event: dict[str, Any]) -> None:
        item, delta = event.get("item"), event.get("delta")
        if kind == "response.function_call_arguments.delta" and isinstance(delta, str):
            self._arguments.setdefault(at, []).append(delta)
        elif kind == "response.output_item.done" and is_object(item):
            self._items[at] = item
            self._arguments.pop(at, None)
        elif kind == "response.output_item.added" and is_object(item):
            self._items[at] = item

    def _ended(self, response: dict[str, Any]) -> None:
        self._final = response
        counts, details = response.get("usage"), response.get("incomplete_details")
        self.usage = Usage(
            count(counts, "input_tokens"),
            count(counts, "output_tokens"),
            count(counts, "input_tokens_details", "cached_tokens"),
        )
        reason = details.get("reason") if is_object(details) else None
        self.stop = str(reason or response.get("status") or "completed")

    def _output(self) -> list[dict[str, Any]]:
        if self._final is not None and (output := objects(self._final.get("output"))):
            return output
        return [self._item(at) for at in sorted(self._items)]

    def _item(self, at: int) -> dict[str, Any]:
        item = self._items[at]
        pieces = self._arguments.get(at)
        return {**item, "arguments": "".join(pieces)} if pieces else item

    def reply(self) -> dict[str, Any]:
        if self._final is None:
            raise Broken("the stream ended before the response did", "cut")
        return {"output": self._output()}


def _fault(event: dict[str, Any]) -> str:
    """What an `error` event or a failed response says of itself."""
    response = event.get("response")
    fault = response.get("error") if is_object(response) else event
    said = fault if is_object(fault) else {}
    words = [str(said[key]) for key in ("code", "message") if said.get(key)]
    return ": ".join(words) or "the response failed"
