"""A file's text as nodes: what YAML may say here, where things are, and hostile files."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.deploy import load, loads
from toolcrib.deploy.document import MAX_BYTES, MAX_NODES, ListNode, MapNode, Node, TextNode
from toolcrib.deploy.reading import read
from toolcrib.errors import ConfigurationError


def plain(node: Node | None) -> object:
    if isinstance(node, MapNode):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    if isinstance(node, TextNode):
        return "".join(
            part if isinstance(part, str) else part.resolve(ENV, "/base") for part in node.parts
        )
    return node


ENV = {"X": 'a"b\nadmin: true #', "TOKEN": "t"}


def parsed(text: str) -> object:
    root, problems = read(text)
    assert problems == []
    return plain(root)


def faults(text: str) -> list[str]:
    return [str(problem) for problem in read(text, "f.yaml")[1]]


def test_CF07_CF08_scalars_stay_the_text_that_was_written() -> None:
    text = "{a: NO, b: on, c: 1.10, d: 0755, e: 2026-01-02, f: 12:30, g: 1e3, h: 1_000, i: 08080}"
    assert parsed(text) == {
        "a": "NO",
        "b": "on",
        "c": "1.10",
        "d": "0755",
        "e": "2026-01-02",
        "f": "12:30",
        "g": "1e3",
        "h": "1_000",
        "i": "08080",
    }


def test_CF07_keys_stay_strings() -> None:
    assert parsed("{y: allow, n: deny, on: x, 1: z, null: w}") == {
        "y": "allow",
        "n": "deny",
        "on": "x",
        "1": "z",
        "null": "w",
    }


@pytest.mark.parametrize(
    "text",
    [
        "a: {TOKEN: ${env:X}}",
        "a: {TOKEN: '${env:X}'}",
        'a: {"TOKEN": "${env:X}"}',
        "a:\n  TOKEN: ${env:X}  # ${env:NOPE} ${ ${vault:x}",
        "a:\n  TOKEN: |-\n    ${env:X}",
        "a:\n  ? TOKEN\n  : >-\n    ${env:X}",
    ],
)
def test_CF04_a_reference_is_one_text_wherever_a_scalar_may_stand(text: str) -> None:
    assert parsed(text) == {"a": {"TOKEN": ENV["X"]}}


def test_CF04_a_default_is_not_parsed_as_yaml_either() -> None:
    assert parsed("a: [${env:NOPE:-x, y: 'z' # w}, b]") == {"a": ["x, y: 'z' # w", "b"]}


def test_CF05_literals_need_no_quotes_in_braces() -> None:
    assert parsed("a: [$${CHILD_VAR}, '$${env:X}', x$${y}z]") == {
        "a": ["${CHILD_VAR}", "${env:X}", "x${y}z"]
    }


def test_references_in_comments_do_not_exist() -> None:
    assert parsed("# ${env:NOPE} ${broken\na: b # ${x ${y}}\n") == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{A: ${env:X:-${env:Y}}, B: c}", "a reference within a reference"),
        ("{A: ${X}, B: c}", "unknown reference ${X}: did you mean ${env:X}?"),
        ("{A: ${env:X, B: c}", "'X…' is not the name of an environment variable"),
        ("{A: ${env:X:-{}}", "the default in ${env:X:-…} holds a brace"),
        ("{A: '${env:X:-{}}'}", "the default in ${env:X:-…} holds a brace"),
        ("\n            A: b${env:X", "a reference without its end"),
        ("{A: 'b${'}", "unknown reference ${…}"),
    ],
)
def test_a_broken_reference_is_reported_as_that_even_where_yaml_fails(
    text: str, fault: str
) -> None:
    whole = """resources:
  s:
    kind: tool.Source
    impl: mcp
    settings:
      servers:
        - name: a
          transport: stdio
          command: run
          env: """
    with pytest.raises(ConfigurationError) as caught:
        loads(whole + text, {"X": "x"})
    (problem,) = caught.value.problems
    assert fault in problem.message
    assert problem.line == 10 + text.count("\n")


def test_a_file_cannot_forge_what_stands_for_a_reference() -> None:
    text = 'a: ["$0000000000000000.0$", "\\x240.0$", "${env:TOKEN}"]'
    assert parsed(text) == {"a": ["$0000000000000000.0$", "$0.0$", "t"]}


def test_a_key_holds_no_reference_but_a_literal_one() -> None:
    assert faults("a:\n  ${env:X}: b") == ["f.yaml:2: a: a key holds no reference: '${env:X}'"]
    assert parsed("$${X}: b") == {"${X}": "b"}


def test_duplicate_keys_name_both_lines_and_hide_nothing() -> None:
    root, problems = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n", "f.yaml")
    assert [str(problem) for problem in problems] == [
        "f.yaml:5: b.c: duplicate key 'c': it is already on line 3",
        "f.yaml:6: a: duplicate key 'a': it is already on line 1",
    ]
    assert plain(root) == {"a": "1", "b": {"c": "1", "d": "2"}}


def test_nodes_know_their_lines() -> None:
    root, _ = read("# one\n\na: b\nc:\n  - d\n  - {e: f}\n")
    assert isinstance(root, MapNode)
    c = root.by_key["c"]
    assert (root.by_key["a"].line, c.line) == (3, 4)
    assert isinstance(c.value, ListNode)
    assert [item.line for item in c.value.items] == [5, 6]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &x b\nc: *x", "f.yaml:1: a: an anchor"),
        ("a: *x", "f.yaml:1: a: an alias"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml:1: a: a tag"),
        ("a: !!str b", "f.yaml:1: a: a tag"),
        ("a: ! b", "f.yaml:1: a: a tag"),
        ("a: b\n---\nc: d", "f.yaml:2: a second document"),
        ("%YAML 1.1\n---\na: b", "f.yaml:2: %YAML"),
        ("a:\n\tb: c", "f.yaml:2: not valid YAML: .*indent with spaces"),
        ("a: 'b", "f.yaml:1: not valid YAML: .*unexpected end"),
        ('a: "\\${env:X}"', r"f.yaml:1: not valid YAML: .*a literal \$\{ is written"),
        ("a: [b", "f.yaml:1: not valid YAML"),
        ("a: b: c", "f.yaml:1: not valid YAML: mapping values"),
        ("a: \0", "f.yaml: not valid YAML: .*character"),
        ("? [a]\n: b", "f.yaml:1: a key must be text"),
        ("a: [" + "[" * 100 + "]" * 100 + "]", "f.yaml:1: nested deeper than 32"),
        ("[" + "a," * MAX_NODES + "]", "f.yaml:1: more than 20,000"),
        ("#" * (MAX_BYTES + 1), "f.yaml: the file is larger than 256 KiB"),
    ],
)
def test_what_deployment_files_do_not_have_is_refused_with_its_line(text: str, fault: str) -> None:
    found = faults(text)
    assert any(re.match(fault.replace(".yaml", r"\.yaml"), one) for one in found), found


def test_an_alias_bomb_is_one_short_list_of_problems() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
    )
    assert len(faults(bomb)) == 2


MIB = 1024 * 1024
HOSTILE = {
    "alias bomb": "a: &a [x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]",
    "1 MB": "a: b\n" * (MIB // 5),
    "as large as may be, one key": "a: " + "b " * (MAX_BYTES // 2 - 2),
    "as many duplicates as may be": "a: b\n" * (MAX_BYTES // 5),
    "as many unknown keys as may be": "".join(f"resource{n}: b\n" for n in range(9_999)),
    "as many resources as may be": "resources:\n" + "".join(f"  r{n}: b\n" for n in range(9_990)),
    "deep blocks": "".join(" " * n + "a:\n" for n in range(500)),
    "deep lists": "[" * 100_000,
    "deep maps": "{a: " * 50_000,
    "dashes": "- " * 100_000,
    "unclosed quote": '"' + "a\n" * 100_000,
    "unclosed references": "a: " + "${" * 100_000,
    "nested references": "a: " + "${env:" * 30_000 + "}" * 30_000,
    "tabs": "\t" * 100_000 + "a: b",
    "NUL": "resources:\0",
    "lone surrogate": "a: \ud800",
    "escapes": 'a: "\\UFFFFFFFF"',
    "directive": "%" * 1000,
    "empty": "",
    "only comments": "# nothing\n",
    "a list": "- a",
    "a text": "resources",
    "null": "~",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_quickly_in_a_configuration_error(name: str) -> None:
    began = time.process_time()
    with pytest.raises(ConfigurationError) as caught:
        loads(HOSTILE[name], {}, file="f.yaml")
    assert time.process_time() - began < 5
    assert all(str(problem).startswith("f.yaml") for problem in caught.value.problems)
    assert len(str(caught.value.problems[0])) < 500


@given(st.text(alphabet="abr:{}[]-?&*!|>'\"%@`#,$\n\t \\\r0~\x85\u2028\ufeff", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_nodes_or_problems_never_a_traceback(text: str) -> None:
    root, problems = read(text, "f.yaml")
    assert root is None or root.line >= 1
    assert all(str(problem).startswith("f.yaml") for problem in problems)


EMPTY = "resources: {}\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfresources: {}\n",
        b"resources:\r\n  a: {kind: tool.Registry, impl: memory}\r\n",
        b"---\nresources: {}\n...\n",
        b"%YAML 1.2\n---\nresources: {}\n",
    ],
)
def test_files_of_other_systems_are_read(raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(raw)
    assert load(file, {}).file == str(file)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ("resources: {}".encode("utf-16"), "f.yaml:1: not UTF-8"),
        (b"resources: {}\n# \xff", "f.yaml:2: not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "f.yaml: the file is larger"),
    ],
)
def test_files_that_are_no_text_are_refused(raw: bytes, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(raw)
    with pytest.raises(ConfigurationError, match=fault):
        load(file, {})


def test_a_file_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nope\.yaml: cannot be read: No such file"):
        load(tmp_path / "nope.yaml", {})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path, {})
