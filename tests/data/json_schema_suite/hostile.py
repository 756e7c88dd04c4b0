"""The hostile cases of test_schema_hostile, run in a process of their own: a line of JSON for each,
`[name, seconds of CPU, what was told]`. Arguments: a port nobody may connect to, a FIFO nobody may
open."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any

from toolcrib import Assembly, InvalidSchema, ToolDefinition
from toolcrib.arguments import SchemaParser
from toolcrib.manifest import ManifestTool, Stages
from toolcrib.results import to_result
from toolcrib.schema import compile_schema

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

PORT, FIFO = sys.argv[1:]
A41 = "a" * 40 + "!"


def deep(levels: int) -> Any:
    leaf: Any = 1
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def keyed(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"k": leaf}
    return leaf


def fan(levels: int, keyword: str = "allOf") -> dict[str, Any]:
    defs = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": {"type": "integer"}}}


def doubled(keyword: str) -> dict[str, Any]:
    member = {"properties": {"k": {"$ref": "#/$defs/N"}}}
    node = {"type": "object", keyword: [member, {**member, "minProperties": 0}]}
    return {"$ref": "#/$defs/N", "$defs": {"N": node}}


def chain(levels: int) -> dict[str, Any]:
    def node(n: int) -> dict[str, Any]:
        part = {"properties": {"k": {"$ref": f"#/$defs/a{n + 1}"}}}
        return {"allOf": [part, {**part, "minProperties": 0}]}

    defs: dict[str, Any] = {f"a{n}": node(n) for n in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": {"type": "integer"}}}


def many_patterns(pattern: str, count: int) -> dict[str, Any]:
    return {"properties": {f"p{n}": {"pattern": f"{pattern}{n}"} for n in range(count)}}


loop: list[Any] = []
loop.append(loop)
alias: Any = [1]
for _ in range(60):
    alias = [alias, alias]

HUGE = {f"p{n}": {"description": "x" * 700} for n in range(3000)}
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "regex": ({"pattern": "^(a+)+$"}, [A41, "a" * 1_000_000 + "!"]),
    "look-around": ({"pattern": "^(?=a)(a|aa)+(?<!b)$"}, [A41, "a" * 100_000 + "!"]),
    "back-reference": ({"pattern": r"^(a+)+\1$"}, [A41]),
    "greedy regex": ({"pattern": ".*.*.*.*=.*"}, ["x" * 1_000_000]),
    "nested counts": ({"pattern": "(a{1000}){1000}"}, ["a" * 1000]),
    "many patterns": (many_patterns(r"(\w{100}){30}", 400), [{"p1": "x" * 100}]),
    "very many patterns": (many_patterns("[a-z]{3000}", 5000), [{"p1": "x"}]),
    "pattern properties": (
        {"patternProperties": {f"^a{n}(a+)+$": {} for n in range(2000)}},
        [{A41: 1}],
    ),
    "loop of references": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        [1],
    ),
    "self allOf": ({"allOf": [{"$ref": "#"}]}, [1, {}]),
    "fan-out 24": (fan(24), [1, "x"]),
    "fan-out 24 anyOf": (fan(24, "anyOf"), [1, "x"]),
    "fan-out 60": (fan(60), [1, "x"]),
    "fan-out 12": (fan(12), [1, "x"]),
    "fan-out 12 anyOf": (fan(12, "anyOf"), [1, "x"]),
    "fan-out 12 oneOf": (fan(12, "oneOf"), [1, "x"]),
    "chain of members": (chain(24), [keyed(24, 1), keyed(24, "x")]),
    "doubling allOf": (doubled("allOf"), [keyed(250, {}), keyed(250, 1), keyed(20, 1)]),
    "doubling anyOf": (doubled("anyOf"), [keyed(250, {}), keyed(250, 1), keyed(20, 1)]),
    "doubling oneOf": (doubled("oneOf"), [keyed(250, {}), keyed(20, 1)]),
    "long chain of references": (
        {
            "$ref": "#/$defs/a0",
            "$defs": {**{f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(4000)}, "a4000": {}},
        },
        [1],
    ),
    "unique items": (
        {"uniqueItems": True},
        [[{"a": n} for n in range(4000)], list(range(100_000))],
    ),
    "many errors": ({"items": {"type": "integer"}}, [["x"] * 1_000_000]),
    "many errors of a union": (
        {"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        [["x"] * 1_000_000],
    ),
    "value 900 deep": ({}, [deep(900)]),
    "value 12,000 deep": ({}, [deep(12_000)]),
    "value 20,000 deep": ({}, [deep(20_000), {"a": deep(20_000)}]),
    "value that holds itself": ({}, [loop]),
    "value of aliases": ({}, [alias]),
    "schema 200 deep": (json.loads('{"items":' * 200 + "{}" + "}" * 200), [deep(5)]),
    "http reference": ({"$ref": f"http://127.0.0.1:{PORT}/x.json"}, [1]),
    "http dialect": ({"$schema": f"http://127.0.0.1:{PORT}/x.json"}, [1]),
    "http identity": ({"$id": f"http://127.0.0.1:{PORT}/x.json", "$ref": "y.json"}, [1]),
    "file reference": ({"$ref": f"file://{FIFO}"}, [1]),
    "file dialect": ({"$schema": f"file://{FIFO}"}, [1]),
    "dynamic file reference": ({"$dynamicRef": f"file://{FIFO}#x"}, [1]),
    "surrogate": ({"title": "\ud800"}, [1]),
    "not JSON": ({"x": float("nan"), "y": {1, 2}}, [1]),
    "digits": ({"maximum": 10**4000, "default": 10**5000}, [1]),
    "3,000 properties, 2 MB": ({"properties": HUGE}, [{}]),
}


async def called(schema: dict[str, Any], value: Any) -> str:
    """The same by a call: as JSON text, through the whole walk."""
    properties = {"v": {"$ref": "#/$defs/v"}}
    whole = {"type": "object", "properties": properties, "$defs": {"v": schema}}
    definition = ToolDefinition("t", "", whole)

    async def run(ctx: object, arguments: object) -> str:
        return "ran"

    stages = Stages(SchemaParser(definition), run, lambda value: to_result("t", value))
    async with Assembly([ManifestTool(definition, stages)]) as tools:
        result = await tools.call("t", json.dumps({"v": value}))
    return result.failure.kind if result.failure else result.text


def walked(schema: dict[str, Any], values: list[Any]) -> list[str]:
    try:
        checker = compile_schema(schema)
    except InvalidSchema as error:
        told = f"refused: {error}"
        return [told[:160] if len(told) < 600 else f"too long: {told[:160]}"]
    lines: list[str] = []
    for value in values:
        misfits = checker.misfits(value)
        assert len(misfits) <= 9 and sum(map(len, misfits)) < 3000
        assert checker.fits(value) == (not misfits), misfits[:1]
        lines.append(misfits[0][:100] if misfits else "fits")
    return lines


def report(name: str, began: float, told: list[str]) -> None:
    print(json.dumps([name, time.process_time() - began, told]), flush=True)


def main() -> None:
    for name, (schema, values) in CASES.items():
        began = time.process_time()
        report(name, began, walked(schema, values))
    for name, (schema, values) in CASES.items():
        if any(word in name for word in NO_TEXT):
            continue
        copy, value = json.loads(json.dumps(schema)), values[-1]
        began = time.process_time()
        try:
            told = asyncio.run(called(copy, value))
        except InvalidSchema:
            told = "InvalidSchema"
        assert told in ("ran", "invalid_arguments", "not_available", "InvalidSchema"), (name, told)
        report(f"call: {name}", began, [told])


NO_TEXT = ("itself", "aliases", "surrogate", "not JSON", "digits", "000 deep")
"""Cases that no JSON text can hold."""

if __name__ == "__main__":
    main()
