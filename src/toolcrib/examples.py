"""Examples of tool use as text for a system prompt, for hosts that want it there (guide B).

Nobody sends them by default: an example costs its tokens in every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcrib.definition import Example, ToolDefinition
from toolcrib.errors import InvalidDefinition
from toolcrib.jsonable import NotJson, clean, json_text

__all__ = ["render_examples"]


def render_examples(definitions: Iterable[ToolDefinition]) -> str:
    """The examples of `definitions`, in their order, as Markdown; "" where there are none.

    The same text for the same definitions, so a prompt that holds it can be cached. Raises
    `InvalidDefinition` naming the tool whose example JSON cannot hold.
    """
    sections = [
        "\n".join([f"### {definition.name}", *_lines(definition)])
        for definition in definitions
        if definition.examples
    ]
    return "\n\n".join(["## Examples of tool use", *sections]) if sections else ""


def _lines(definition: ToolDefinition) -> Iterator[str]:
    for example in definition.examples:
        yield ""
        if example.explanation:
            yield clean(example.explanation)
        try:
            yield f"- input: `{json_text(dict(example.input))[0]}`"
            yield f"- output: {_output(example)}"
        except NotJson as error:
            raise InvalidDefinition(
                f"tool {definition.name!r}: an example is not JSON: {error}"
            ) from error


def _output(example: Example) -> str:
    said = example.output
    text = clean(said) if isinstance(said, str) else json_text(said)[0]
    if "\n" in text or "`" in text:
        fence = "```"
        while fence in text:
            fence += "`"
        return f"\n{fence}\n{text}\n{fence}"
    return f"`{text}`"
