"""Every schema through every format, past a checker written from the wire rules (Must show 4).

Own nasty schemas always; the shared corpus of 32,000 tools where TOOLCRIB_SHARED names its folder:
every fifth tool of it, all of them with `soak`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkers import anthropic as check_anthropic
from checkers import gemini as check_gemini
from checkers import openai as check_openai
from checkers.nasty import NASTY
from toolcrib import ToolDefinition
from toolcrib.names import exposed_name
from toolcrib.providers import anthropic, gemini, openai
from toolcrib.providers.report import Export

USER = [{"role": "user", "content": "hi"}]
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]


def both_of_openai(definitions: list[ToolDefinition], strict: bool) -> Export:
    """Both APIs at once: the conversion is one, remembered from the first to the second."""
    done = openai.export(definitions, strict=strict)
    check_openai.check_chat({"messages": USER, "tools": done.tools})
    flat = openai.tools(definitions, api="responses", strict=strict)
    check_openai.check_responses({"input": USER, "tools": flat})
    return done


Way = tuple[Callable[[list[ToolDefinition]], Export], Callable[[list[dict[str, Any]]], None]]
WAYS: dict[str, Way] = {
    "openai": (lambda d: both_of_openai(d, False), lambda t: None),
    "openai strict": (lambda d: both_of_openai(d, True), lambda t: None),
    "anthropic": (
        lambda d: anthropic.export(d),
        lambda t: check_anthropic.check({"max_tokens": 9, "messages": USER, "tools": t}),
    ),
    "gemini": (
        lambda d: gemini.export(d),
        lambda t: check_gemini.check({"contents": CONTENTS, "tools": t}),
    ),
    "gemini openapi": (
        lambda d: gemini.export(d, form="openapi"),
        lambda t: check_gemini.check({"contents": CONTENTS, "tools": t}),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", NASTY)
def test_a_nasty_schema_passes_every_checker(way: str, case: str) -> None:
    export, check = WAYS[way]
    check(export([ToolDefinition("t", "A tool.", NASTY[case])]).tools)


def shared_corpus() -> list[ToolDefinition]:
    root = os.environ.get("TOOLCRIB_SHARED", "")
    folder = Path(root) / "bench" / "toolret" / "data"
    files = sorted(folder.glob("*.tools.jsonl")) if root else []
    if not files:
        text = (
            "THE SHARED CORPUS WAS NOT CHECKED: set TOOLCRIB_SHARED to the folder that holds"
            f" bench/toolret/data/*.tools.jsonl (now: {root!r})"
        )
        print(f"\n{'!' * 100}\n{text}\n{'!' * 100}")
        pytest.skip(text)
    found: list[ToolDefinition] = []
    names: set[str] = set()
    for file in files:
        for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
            record = json.loads(line)
            name = exposed_name("", record["name"])
            if name in names:
                name = exposed_name(f"{record['id'].replace(':', '_')}__", name)
            names.add(name)
            found.append(ToolDefinition(name, record["description"], record["input_schema"]))
    return found


def batches(found: list[ToolDefinition], size: int = 100) -> Iterator[list[ToolDefinition]]:
    for at in range(0, len(found), size):
        yield found[at : at + size]


@pytest.fixture(scope="module")
def corpus() -> list[ToolDefinition]:
    return shared_corpus()


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("way", WAYS)
def test_every_shared_schema_passes_the_checker(
    way: str, every: int, corpus: list[ToolDefinition], capsys: pytest.CaptureFixture[str]
) -> None:
    export, check = WAYS[way]
    reasons: Counter[str] = Counter()
    touched: set[str] = set()
    lossy: set[str] = set()
    tried = corpus[::every]
    for batch in batches(tried):
        done = export(batch)
        check(done.tools)
        reasons.update(done.counts())
        touched |= {each.tool for each in done.degraded}
        lossy |= {each.tool for each in done.degraded if each.is_lossy}
    with capsys.disabled():
        print(f"\n{way}: {len(tried)} tools, {len(touched)} changed, {len(lossy)} lossy")
        for reason, count in reasons.most_common():
            print(f"  {count:7d}  {reason}")


def test_the_absence_of_the_shared_corpus_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_SHARED", "")
    with pytest.raises(pytest.skip.Exception, match="NOT CHECKED"):
        shared_corpus()
