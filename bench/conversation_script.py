"""The conversation that `conversation.py` measures: a script, and a model that follows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from toolcrib import Assembly, Dynamic, ToolCall, define_tool
from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.discovery.search_tool import Found
from toolcrib.loop import ScriptedModel, run
from toolcrib.names import exposed_name
from toolcrib.providers import openai
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.sources import FunctionSource

ANSWER = "A line of what a tool has to say, as long as such lines are. " * 16
"""Every tool answers this: about 1,000 characters."""

GAVE_UP = "gave up"

Response: TypeAlias = Callable[[Sequence[Message], Sequence[ToolDefinition]], Assistant]


@dataclass(frozen=True)
class Search:
    """A round that searches with a query of the data set."""

    query: str


@dataclass(frozen=True)
class Use:
    """A round that calls the best `count` tools which the last search exposed."""

    count: int = 1


@dataclass(frozen=True)
class Again:
    """A round that calls the tool first used in an earlier user turn; searches for it by its name
    where it has left the view."""

    turn: int


Step: TypeAlias = Search | Use | Again

SCRIPT: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("Where can I park near the sight?", (Search("livemcp_agent-58e07969a6"), Use(2))),
    ("Which trains go there?", (Search("12306"), Use(1), Search("train booking"), Use(1))),
    ("And the weather?", (Search("weather service"), Use(1))),
    ("Write it all down.", (Search("file system operations create file"), Use(1))),
    ("How are my shares doing?", (Search("financial data or stock market"), Use(2), Use(1))),
    ("Once more: parking, a street further.", (Again(0),)),
    ("Any papers about that?", (Search("arXiv or academic"), Use(1))),
    ("Make slides of it.", (Search("presentation or office tools"), Use(2), Use(1))),
    ("And a chart.", (Search("data visualization"), Use(1))),
)
"""User turns; each ends with a round that only answers. 30 rounds. A search names its query by
its id or by how it begins."""


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def sources(data: Path) -> list[FunctionSource]:
    """The 527 tools, a source for every server."""

    async def execute(ctx: Any, arguments: Any) -> str:
        return ANSWER

    servers: dict[str, list[Any]] = {}
    for tool in _lines(data / "livemcp.tools.jsonl"):
        made = define_tool(
            exposed_name(tool["server"], tool["name"]),
            description=tool["description"],
            input_schema=tool["input_schema"],
            execute=execute,
        )
        servers.setdefault(tool["server"], []).append(made)
    return [FunctionSource(tools, name=server) for server, tools in servers.items()]


def example(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """A value that fits `schema`: the required members only."""
    if "$ref" in schema:
        at: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        return example(at, root)
    for key in ("default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0], root)
    return _of_type(schema, root)


def _of_type(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            members = schema.get("properties", {})
            return {k: example(members.get(k, {}), root) for k in schema.get("required", ())}
        case "array":
            return [example(schema.get("items", {}), root)] * max(1, schema.get("minItems", 1))
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "2026-11-30".ljust(schema.get("minLength", 0), "0")


class Script:
    """The conversation's responses, and what it must remember to give them."""

    def __init__(self, queries: Iterable[dict[str, Any]]) -> None:
        self._queries = list(queries)
        self._calls = 0
        self._used: list[str] = []
        """The tool first used in each turn; blank for none."""
        self.did: list[str] = []
        """What each round did, in a word."""

    def responses(self, turn: Sequence[Step]) -> list[Response]:
        """Those of one user turn: its steps, and an answer."""
        self._used.append("")
        return [*(self._response(step) for step in turn), self._answer]

    def _response(self, step: Step) -> Response:
        match step:
            case Search(query):
                return lambda messages, tools: self._search(self._text(query))
            case Use(count):
                return lambda messages, tools: self._use(_exposed(messages, tools)[:count])
            case Again(turn):
                return lambda messages, tools: self._again(self._used[turn], tools)

    def _text(self, query: str) -> str:
        fits = (q["query"] for q in self._queries if query in (q["qid"], q["query"][: len(query)]))
        return next(fits)

    def _call(self, name: str, arguments: Any) -> ToolCall:
        self._calls += 1
        return ToolCall(f"call_{self._calls}", name, json.dumps(arguments))

    def _search(self, query: str) -> Assistant:
        self.did.append("search")
        return Assistant(calls=(self._call(SEARCH_TOOL, {"query": query}),))

    def _use(self, tools: Sequence[ToolDefinition]) -> Assistant:
        if not tools:  # what was found has no room in view
            self.did.append(GAVE_UP)
            return Assistant("I have no tool for that.")
        self.did.append(f"call {len(tools)}")
        self._used[-1] = self._used[-1] or tools[0].name
        schemas = [(tool.name, dict(tool.input_schema)) for tool in tools]
        return Assistant(calls=tuple(self._call(n, example(s, s)) for n, s in schemas))

    def _again(self, name: str, tools: Sequence[ToolDefinition]) -> Assistant:
        in_view = [tool for tool in tools if tool.name == name]
        return self._use(in_view) if in_view or not name else self._search(name)

    def _answer(self, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> Assistant:
        self.did.append("answer")
        return Assistant("Here is what I found. " * 10)


def _exposed(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """What the last search exposed, best first."""
    results = [r for m in messages if isinstance(m, Answers) for r in m.results]
    found = next(r.value for r in reversed(results) if isinstance(r.value, Found))
    by_name = {tool.name: tool for tool in tools}
    return [by_name[name] for name in found.exposed if name in by_name]


@dataclass(frozen=True)
class Request:
    """What one round sent."""

    did: str
    definitions: tuple[ToolDefinition, ...]
    messages: bytes


async def converse(
    data: Path, dynamic: Dynamic = Dynamic()
) -> tuple[list[Request], tuple[ToolDefinition, ...]]:
    """Leads the conversation; also gives the definitions of all tools."""
    script = Script(_lines(data / "livemcp_agent.queries.jsonl"))
    requests: list[Request] = []
    messages: list[Message] = []
    async with Assembly(sources(data), dynamic=dynamic) as assembly:
        session = assembly.session()
        for said, steps in SCRIPT:
            model = ScriptedModel(*script.responses(steps))
            messages.append(User.of(said))
            await run(session, model, messages)
            for history, tools in model.requests:
                written = as_json(openai.messages(history))
                requests.append(Request(script.did[len(requests)], tools, written))
        failed = [r for m in messages if isinstance(m, Answers) for r in m.results if r.is_error]
        if failed:
            raise RuntimeError(f"a call of the script failed: {failed[0]}")
        own = assembly.catalog.get(SEARCH_TOOL)
        everything = tuple(d for d in assembly.catalog.definitions if not own or d.name != own.name)
    return requests, everything


def as_json(value: object) -> bytes:
    """Compact JSON, as the providers' clients send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
