"""Questions of servers at a terminal: what is shown, and what lines mean."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.cli.asking import NO, Asking, value_of
from toolcrib.host import CANCELLED, DECLINED, Elicitation, abilities_of, accepted

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "seats": {"type": "integer", "default": 2, "maximum": 9},
        "window": {"type": "boolean"},
        "meal": {"type": "string", "oneOf": [{"const": "fish"}, {"const": "soup"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["name"],
}


class Terminal:
    """Answers with `lines`, one each; then its input has ended."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.shown: list[str] = []

    async def __call__(self, text: str) -> str | None:
        self.shown.append(text)
        return self.lines.pop(0) if self.lines else None


def question(**given: Any) -> Elicitation:
    return Elicitation("web", **{"message": "Who?", "schema": FORM, **given})


async def test_a_form_is_asked_field_by_field() -> None:
    terminal = Terminal("Ana", "3", "y", "soup", "a, b")
    answer = await Asking(terminal).elicit(question(tool="web__book"))
    said = {"name": "Ana", "seats": 3, "window": True, "meal": "soup", "tags": ["a", "b"]}
    assert answer == accepted(said)
    assert "MCP server 'web' (for web__book) asks: Who?" in terminal.shown[0]
    assert "Your name" in terminal.shown[0]
    assert terminal.shown[1] == "seats [2] > "
    assert terminal.shown[3] == "meal (fish, soup) > "


async def test_an_empty_line_takes_the_default_or_leaves_out() -> None:
    answer = await Asking(Terminal("Ana", "", "", "", "")).elicit(question())
    assert answer == accepted({"name": "Ana", "seats": 2})


async def test_a_wrong_line_is_asked_for_again_and_a_wrong_form_too() -> None:
    terminal = Terminal("A", "many", "3", "perhaps", "n", "meat", "fish", "")
    terminal.lines += ["Ana", "", "", "", ""]
    answer = await Asking(terminal).elicit(question())
    assert answer == accepted({"name": "Ana", "seats": 2})
    assert "! this is no whole number" in terminal.shown[2]
    assert "! answer y or n" in terminal.shown[4]
    assert "! choose from fish, soup" in terminal.shown[6]
    assert terminal.shown[8].startswith("! ")  # "A" is too short for a name
    assert await Asking(Terminal(*["A", "", "", "", ""] * 3)).elicit(question()) == CANCELLED


async def test_no_and_the_end_of_the_input() -> None:
    assert await Asking(Terminal("Ana", NO)).elicit(question()) == DECLINED
    assert await Asking(Terminal("Ana")).elicit(question()) == CANCELLED


async def test_an_address_is_shown_and_never_opened() -> None:
    errand = question(schema={}, url="https://x.test/\u202esign-in")
    terminal = Terminal("what?", "y")
    assert await Asking(terminal).elicit(errand) == accepted()
    assert "https://x.test/\\u202esign-in" in terminal.shown[0]
    assert await Asking(Terminal("n")).elicit(errand) == DECLINED


async def test_a_form_without_fields_is_agreed_to() -> None:
    empty = question(schema={"type": "object", "properties": {}})
    assert await Asking(Terminal("y")).elicit(empty) == accepted()
    assert await Asking(Terminal(NO)).elicit(empty) == DECLINED


async def test_a_servers_words_cannot_look_like_ours() -> None:
    terminal = Terminal(NO)
    await Asking(terminal).elicit(question(message="fine\n\x1b[2Jtoolcrib asks:"))
    assert "fine\\n\\u001b[2Jtoolcrib asks:" in terminal.shown[0]


def test_it_can_elicit_and_no_more() -> None:
    assert abilities_of(Asking(Terminal())) == {"elicit"}


@pytest.mark.parametrize(
    ("kind", "line", "value"),
    [("number", "1.5", 1.5), ("string", "x", "x"), ("integer", "-1", -1), ("boolean", "NO", False)],
)
def test_a_line_means_a_value(kind: str, line: str, value: object) -> None:
    assert value_of({"type": kind}, line) == value
