"""Examples for a prompt, and calls in words for people (guide B, rule B12)."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from toolcrib import (
    Assembly,
    InvalidDefinition,
    ToolCall,
    ToolDefinition,
    define_tool,
    tool,
)
from toolcrib.definition import Example
from toolcrib.display import display
from toolcrib.examples import render_examples
from toolcrib.providers import anthropic


@tool(
    examples=[
        Example({"a": 1, "b": 2}, 3, "Whole numbers only."),
        Example({"a": -1, "b": 1}, "two\nlines ```"),
    ]
)
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_examples_become_text_for_a_prompt() -> None:
    bare = ToolDefinition("bare")
    text = render_examples([bare, add.definition])
    assert text == (
        "## Examples of tool use\n\n### add\n\nWhole numbers only.\n"
        '- input: `{"a":1,"b":2}`\n- output: `3`\n\n'
        '- input: `{"a":-1,"b":1}`\n- output: \n````\ntwo\nlines ```\n````'
    )
    assert render_examples([bare]) == ""
    assert render_examples([add.definition]) in text
    wrong = ToolDefinition("wrong", examples=(Example({"x": object()}),))
    with pytest.raises(InvalidDefinition, match="'wrong'"):
        render_examples([wrong])


def test_examples_are_not_sent_by_default() -> None:
    assert "Whole numbers only" not in json.dumps(anthropic.tools([add.definition]))


def shown(hint: Any, arguments: str = '{"path":"a.txt"}') -> str | None:
    definition = ToolDefinition("t", display_hint=hint)
    return display(ToolCall("c", "t", arguments), [ToolDefinition("other"), definition])


class Rich:
    def markdown(self) -> str:
        return "**read**"


def test_B12_a_hint_words_the_parsed_arguments() -> None:
    assert shown(lambda a: f"read {a['path']}") == "read a.txt"
    assert shown(lambda a: Rich()) == "**read**"
    assert shown(lambda a: {"file": a["path"]}) == '{"file":"a.txt"}'
    assert shown(lambda a: len(a), "") == "0"


@pytest.mark.parametrize("arguments", ['{"path":', "[1]", "no", "null", '"x"', "[" * 99_999])
def test_B12_arguments_that_are_no_object_yet_have_no_display(arguments: str) -> None:
    assert shown(lambda a: "x", arguments) is None


def test_B12_nothing_is_shown_without_a_hint_or_a_tool() -> None:
    assert shown(None) is None
    assert shown(lambda a: None) is None
    assert display(ToolCall("c", "t"), []) is None


def test_B12_the_fault_of_a_hint_is_contained(caplog: pytest.LogCaptureFixture) -> None:
    assert shown(lambda a: a["missing"]) is None
    assert shown(lambda a: object()) is None
    assert [r.levelno for r in caplog.records] == [logging.ERROR, logging.WARNING]
    assert shown(lambda a: "x\ud83dy") == "x�y"


def test_B12_the_first_definition_of_a_name_counts() -> None:
    first = ToolDefinition("t", display_hint=lambda a: "first")
    second = ToolDefinition("t", display_hint=lambda a: "second")
    assert display(ToolCall("c", "t"), [first, second]) == "first"


async def test_B12_T_B2_a_hint_changes_neither_the_call_nor_the_wire() -> None:
    def greedy(arguments: dict[str, Any]) -> str:
        arguments.clear()
        return "cleared"

    async def execute(ctx: Any, arguments: Any) -> Any:
        return arguments

    made = define_tool(
        "t",
        description="",
        execute=execute,
        input_schema={"type": "object", "properties": {"a": {"type": "integer"}}},
        display_hint=greedy,
    )
    call = ToolCall("c", "t", '{"a":1}')
    assert display(call, [made.definition]) == display(call, [made.definition]) == "cleared"
    async with Assembly([made]) as tools:
        assert (await tools.execute(call)).text == '{"a":1}'
