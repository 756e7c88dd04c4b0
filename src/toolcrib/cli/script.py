"""A scripted conversation: what a model calls, round by round, in a small YAML file.

::

    rounds:
      - say: Which branch am I on?
        calls:
          - id: found
            tool: tool_search
            arguments: {query: git branch}
      - calls:
          - tool: git__git_status
            arguments: {repo_path: "${base}/.."}

Strings may hold `{{id}}` for the text of an earlier result and `{{id.0.name}}` for a part of its
JSON. Read as strictly as a deployment file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.deploy.decode import list_of, record, required
from toolcrib.deploy.document import ListNode, MapNode, TextNode
from toolcrib.deploy.places import At, Notes, Rejected
from toolcrib.deploy.reading import read
from toolcrib.deploy.scalars import name, text
from toolcrib.errors import ConfigurationError

__all__ = ["Scripted", "ScriptedRound", "load_script"]

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None}


@dataclass(frozen=True, slots=True)
class Scripted:
    """One call of the script. `id` names its result for later rounds."""

    tool: str
    arguments: Any = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class ScriptedRound:
    """What the model says and calls in one response; without calls it is a text-only answer."""

    calls: tuple[Scripted, ...] = ()
    say: str = ""


def load_script(path: Path) -> tuple[ScriptedRound, ...]:
    """The rounds of the script at `path`. Raises `ConfigurationError` with every problem."""
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: the script cannot be read: {error}") from error
    root, problems = read(source, str(path))
    notes = Notes(str(path), os.environ, path.absolute().parent, problems, [])
    rounds: tuple[ScriptedRound, ...] = ()
    if root is not None:
        try:
            rounds = _SCRIPT(At(root, "", root.line, notes))
        except Rejected:
            rounds = ()
    if notes.problems:
        raise ConfigurationError(sorted(notes.problems, key=lambda problem: problem.line))
    return rounds


def _anything(at: At) -> Any:
    """Any JSON value: an unquoted word is read as YAML 1.2 does, everything else is text."""
    node = at.node
    if isinstance(node, MapNode):
        return {entry.key: _anything(at.under(entry)) for entry in node.entries}
    if isinstance(node, ListNode):
        return [_anything(at.item(number, item)) for number, item in enumerate(node.items)]
    if isinstance(node, TextNode) and node.plain:
        return _plain(node.written)
    return at.expand()


def _plain(word: str) -> Any:
    if word in _WORDS or not word:
        return _WORDS.get(word)
    for number in (int, float):
        try:
            return (
                number(word) if not word.lower().lstrip("+-").startswith(("inf", "nan")) else word
            )
        except ValueError:
            continue
    return word


_CALL = record(Scripted, {"tool": required(name), "arguments": _anything, "id": name})
_ROUND = record(ScriptedRound, {"calls": list_of(_CALL), "say": text})


def _script(rounds: tuple[ScriptedRound, ...]) -> tuple[ScriptedRound, ...]:
    return rounds


_SCRIPT = record(_script, {"rounds": required(list_of(_ROUND, least=1))})
