"""OpenAI: chat completions (`api="chat"`) and responses (`api="responses"`).

::

    request = {"tools": openai.tools(round.definitions), "messages": messages}
    reply = await client.chat.completions.create(model=…, **request)
    messages.append(reply.choices[0].message)
    messages += openai.results(await round.execute(openai.calls(reply)))

Translation only (rules O1–O24); how messages are written is `chat` and `responses`. An empty list
of tools is refused by the API (O3): leave `tools` out then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from toolcrib.content import ToolCall, ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.providers import chat, responses
from toolcrib.providers.cache import Cache
from toolcrib.providers.history import Assistant, History
from toolcrib.providers.naming import restored, sent_name, unique
from toolcrib.providers.nulls import without_nulls
from toolcrib.providers.pairing import loose, paired
from toolcrib.providers.reading import Reply, as_json
from toolcrib.providers.report import Export, Notes
from toolcrib.providers.roots import flat_root, with_items
from toolcrib.providers.schemas import modern
from toolcrib.providers.strict import NotStrict, strict_form

__all__ = ["Api", "calls", "export", "messages", "reply", "results", "tools", "write"]

Api: TypeAlias = Literal["chat", "responses"]

MAX_CHAT_TOOLS = 128
_cache = Cache()


def export(
    definitions: Iterable[ToolDefinition],
    *,
    api: Api = "chat",
    strict: bool = False,
    deferred: Iterable[ToolDefinition] = (),
) -> Export:
    """`definitions` as tools, in their order, and what had to be changed.

    `strict`: each tool in strict mode that has a strict form; any other is sent as it is, with the
    reason recorded. Give `definitions` to `calls` too, then. `deferred` (responses only): tools
    that a search loads later; the search tool among `definitions` becomes OpenAI's own
    `tool_search`, executed by the client, and the deferred are not sent until a result names them
    (O20, O22). Raises `InvalidDefinition` for two tools of one name.
    """
    notes = Notes()
    late = {definition.name for definition in deferred} if api == "responses" else set[str]()
    found = [d for d in unique(definitions) if d.name not in late]
    items: list[dict[str, Any]] = []
    for definition in found:
        function = _function(definition, strict, notes)
        if late and definition.name == SEARCH_TOOL:
            items.append(responses.search_spec(function))
        elif api == "responses":
            items.append({"type": "function", **function})
        else:
            items.append({"type": "function", "function": function})
    if api == "chat" and len(items) > MAX_CHAT_TOOLS:
        notes.add(f"more than {MAX_CHAT_TOOLS} tools: the API refuses the request", effect="same")
    return Export(items, notes.all())


def tools(
    definitions: Iterable[ToolDefinition],
    *,
    api: Api = "chat",
    strict: bool = False,
    deferred: Iterable[ToolDefinition] = (),
) -> list[dict[str, Any]]:
    """The tools of `export`; the same bytes for the same definitions, every time."""
    return export(definitions, api=api, strict=strict, deferred=deferred).tools


def _function(definition: ToolDefinition, strict: bool, notes: Notes) -> dict[str, Any]:
    how = "strict" if strict else "plain"
    return _cache.get(definition, how, _strict if strict else _plain, notes)


def _plain(definition: ToolDefinition, notes: Notes) -> dict[str, Any]:
    flat = flat_root(modern(definition.input_schema, notes), notes)
    return _named(definition, with_items(flat, notes), False, notes)


def _strict(definition: ToolDefinition, notes: Notes) -> dict[str, Any]:
    own = Notes(definition.name)
    flat = flat_root(modern(definition.input_schema, own), own)
    try:
        parameters = strict_form(flat, own)
    except NotStrict as reason:
        notes.add(f"not strict: {reason}", reason.path, "wording")
        return _plain(definition, notes)
    notes.extend(own.all())
    return _named(definition, parameters, True, notes)


def _named(
    definition: ToolDefinition, parameters: dict[str, Any], strict: bool, notes: Notes
) -> dict[str, Any]:
    words = {"description": definition.description} if definition.description else {}
    name = sent_name(definition, notes)
    # strict is always said: left out, the responses API tries it by itself
    return {"name": name, **words, "parameters": parameters, "strict": strict}


def calls(reply: Reply, definitions: Iterable[ToolDefinition] = ()) -> list[ToolCall]:
    """The calls of a reply of either API, in order: the SDK's object or its dict.

    With the `definitions` that were sent, names that were mapped come back, and the nulls by which
    strict mode spells an absent argument are taken out.
    """
    found = _assistant(as_json(reply)).calls
    return restored(found, definitions, _undo)


def _undo(values: dict[str, Any], definition: ToolDefinition) -> dict[str, Any]:
    kept: dict[str, Any] = without_nulls(values, definition.input_schema, definition.input_schema)
    return kept


def reply(reply: Reply) -> Assistant:
    """A reply of either API as a message of a history."""
    return _assistant(as_json(reply))


def _assistant(said: dict[str, Any]) -> Assistant:
    return responses.assistant(said) if "output" in said else chat.assistant(said)


def results(
    results: Sequence[ToolResult],
    calls: Sequence[ToolCall] = (),
    *,
    api: Api = "chat",
    deferred: Iterable[ToolDefinition] = (),
) -> list[dict[str, Any]]:
    """The messages (chat) or items (responses) that answer the reply just received.

    Images follow in one user message (chat) or stand in the output (responses); errors are words.
    `deferred` as in `export`: the answer of the search tool loads the definitions it exposed, for
    which `calls` are needed.
    """
    notes = Notes()
    if api == "chat":
        return chat.write([loose(tuple(results), tuple(calls), chat.IDS)], notes)
    step = loose(tuple(results), tuple(calls), responses.IDS)
    return responses.write([step], notes, _loadable(deferred, notes))


def write(
    history: History, *, api: Api = "chat", deferred: Iterable[ToolDefinition] = ()
) -> Export:
    """A whole history as messages (chat) or input items (responses), and what was changed."""
    notes = Notes()
    if api == "chat":
        return Export(chat.write(paired(history, chat.IDS, notes), notes), notes.all())
    steps = paired(history, responses.IDS, notes)
    items = responses.write(steps, notes, _loadable(deferred, notes))
    return Export(items, notes.all())


def messages(
    history: History, *, api: Api = "chat", deferred: Iterable[ToolDefinition] = ()
) -> list[dict[str, Any]]:
    """The messages of `write`."""
    return write(history, api=api, deferred=deferred).messages


def _loadable(deferred: Iterable[ToolDefinition], notes: Notes) -> dict[str, dict[str, Any]]:
    return {d.name: {"type": "function", **_function(d, False, notes)} for d in deferred}
