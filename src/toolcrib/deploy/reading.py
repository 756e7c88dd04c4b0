"""From text to `document` nodes: the events of the YAML parser, checked and put together.

Collects what is wrong and goes on wherever the rest still has a meaning, so that a duplicate key
does not hide the other faults of a file. The parser is only asked for events: it builds no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from toolcrib.deploy.document import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    BadNode,
    Cuts,
    Entry,
    ListNode,
    MapNode,
    Node,
    TextNode,
)
from toolcrib.deploy.paths import joined
from toolcrib.errors import Problem

__all__ = ["TOO_LARGE", "read"]

TOO_LARGE = f"the file is larger than {MAX_BYTES // 1024} KiB"

_HINTS = {
    "'\\t'": "indent with spaces: YAML takes no tabs there",
    "escape character '$'": "a literal ${ is written $${",
    "<block end>": "is this line indented like its neighbours?",
    "<stream end>": "a bracket is not closed",
    "mapping values are not": "indented wrongly? A value with ': ' in it needs quotes",
}
"""What the parser's words usually mean."""


def read(text: str, file: str = "") -> tuple[Node | None, list[Problem]]:
    """The root of the document and what is wrong with it; None where nothing could be read."""
    reader = _Reader(text, file)
    try:
        reader.check_size(text)
        reader.read()
    except _StopReading:
        return None, reader.problems
    return reader.root, reader.problems


class _StopReading(Exception):
    """What follows has no meaning; the reason was noted."""


class _Open:
    """A mapping or list that has not ended yet."""

    def __init__(self, path: str, line: int, is_map: bool) -> None:
        self.path, self.line, self.is_map = path, line, is_map
        self.items: list[Node] = []
        self.entries: dict[str, Entry] = {}
        self.key: tuple[str, int] | None = None
        self.waits_for_value = False

    @property
    def place(self) -> str:
        """The path of the node that comes next."""
        if not self.is_map:
            return joined(self.path, len(self.items))
        return self.path if self.key is None else joined(self.path, self.key[0])

    @property
    def node(self) -> Node:
        if self.is_map:
            return MapNode(self.line, tuple(self.entries.values()))
        return ListNode(self.line, tuple(self.items))


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.root: Node | None = None
        self._cuts = Cuts(text)
        self._open: list[_Open] = []
        self._nodes = 0
        self._noted: set[str] = set()

    def check_size(self, text: str) -> None:
        if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            self._stop(TOO_LARGE, 0)

    def read(self) -> None:
        for event in self._events():
            line = event.start_mark.line + 1
            match type(event).__name__:
                case "DocumentStartEvent":
                    self._begin_document(event, line)
                case "AliasEvent":
                    self._once("an alias (*name): write the value out, aliases are refused", line)
                    self._put(BadNode(line))
                case "ScalarEvent":
                    self._put(self._scalar(event, line))
                case "MappingStartEvent" | "SequenceStartEvent":
                    self._begin(event, line)
                case "MappingEndEvent" | "SequenceEndEvent":
                    self._put(self._open.pop().node)
                case _:
                    """The start and end of the stream, the end of a document: nothing to put."""

    def _events(self) -> Iterator[Any]:
        try:
            yaml: Any = YAML(typ="safe", pure=True)
            yield from yaml.parse(self._cuts.text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            line = mark.line + 1 if mark is not None else 0
            self._stop(self._complaint(error, line), line)
        except Exception as error:
            # A fault of the parser itself, such as OverflowError at "\UFFFFFFFF".
            self._stop(f"not valid YAML ({type(error).__name__} in the parser)", 0)

    def _complaint(self, error: YAMLError, line: int) -> str:
        parts = [getattr(error, name, None) for name in ("context", "problem")]
        text = self._cuts.restored(", ".join(str(part) for part in parts if part))
        if not text:
            text = str(getattr(error, "reason", "")) or str(error).partition("\n")[0]
        hints = [self._cuts.fault_on(line), *(_HINTS[sign] for sign in _HINTS if sign in text)]
        hints = [hint for hint in hints if hint]
        return f"not valid YAML: {text}" + (f" ({hints[0]})" if hints else "")

    def _begin_document(self, event: Any, line: int) -> None:
        if self.root is not None:
            self._stop("a second document: a deployment file holds one (remove the ---)", line)
        if event.version not in (None, (1, 2)):
            self._stop("%YAML: deployment files are YAML 1.2", line)

    def _begin(self, event: Any, line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._stop(f"nested deeper than {MAX_DEPTH} levels", line)
        self._check_bare(event, line)
        path = self._open[-1].place if self._open else ""
        self._open.append(_Open(path, line, type(event).__name__ == "MappingStartEvent"))

    def _scalar(self, event: Any, line: int) -> Node:
        if not self._check_bare(event, line):
            return BadNode(line)
        parts = self._cuts.parts(event.value)
        has_reference = any(not isinstance(part, str) for part in parts)
        return TextNode(line, parts, plain=event.style is None and not has_reference)

    def _check_bare(self, event: Any, line: int) -> bool:
        if event.anchor is not None:
            self._once("an anchor (&name): anchors and aliases are refused", line)
        if event.tag is not None:
            self._once("a tag (!name): tags are refused, write the plain value", line)
        return event.anchor is None and event.tag is None

    def _put(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(f"more than {MAX_NODES:,} keys and values", node.line)
        if not self._open:
            self.root = node
            return
        inside = self._open[-1]
        if not inside.is_map:
            inside.items.append(node)
        elif not inside.waits_for_value:
            inside.key = self._key(node, inside)
            inside.waits_for_value = True
        else:
            inside.waits_for_value = False
            if inside.key is not None:
                key, line = inside.key
                inside.entries[key] = Entry(key, line, node)
                inside.key = None

    def _key(self, node: Node, inside: _Open) -> tuple[str, int] | None:
        """The key `node` is, or None, noted, where its value has no place."""
        if isinstance(node, BadNode):
            return None
        if not isinstance(node, TextNode):
            self._note("a key must be text, not a list or mapping", node.line, inside.path)
            return None
        if node.from_outside:
            self._note(f"a key holds no reference: {node.written!r}", node.line, inside.path)
            return None
        key = "".join(
            part if isinstance(part, str) else part.resolve({}, None) for part in node.parts
        )
        if (first := inside.entries.get(key)) is not None:
            message = f"duplicate key {key!r}: it is already on line {first.line}"
            self._note(message, node.line, joined(inside.path, key))
            return None
        return key, node.line

    def _once(self, message: str, line: int) -> None:
        """For what comes in hundreds once it comes at all."""
        if message not in self._noted:
            self._noted.add(message)
            self._note(message, line, self._open[-1].place if self._open else "")

    def _note(self, message: str, line: int, path: str = "") -> None:
        self.problems.append(Problem(message, path, self.file, line))

    def _stop(self, message: str, line: int) -> None:
        self._note(message, line)
        raise _StopReading
