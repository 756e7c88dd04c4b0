"""The pure parts of the MCP source: names and lists, content, faults, pages, backoff."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from toolcrib.content import AudioPart, DataPart, FilePart, ImagePart, TextPart
from toolcrib.sources.mcp.catalogue.mirror import mirror
from toolcrib.sources.mcp.content.pages import MAX_PAGES, all_pages
from toolcrib.sources.mcp.content.translate import part_of, result_of
from toolcrib.sources.mcp.failures import Rejected
from toolcrib.sources.mcp.health import delay
from toolcrib.sources.mcp.link.era import Era
from toolcrib.sources.mcp.link.faults import Seen, fate, is_rejection, words
from toolcrib.sources.mcp.wire.session import UnsupportedVersion

OBJECT = {"type": "object"}


def names(listing: list[Any], namespace: str = "s__") -> list[str]:
    return [one.definition.name for one in mirror("s", namespace, listing).tools]


# -- what is listed


def test_A11_2_first_duplicate_wins_and_the_nameless_are_skipped():
    listing = [
        {"name": "dup", "description": "first"},
        {"name": "other"},
        None,
        {"name": "dup", "description": "second"},
        {"name": ""},
        {},
        "text",
        {"name": 7},
    ]
    found = mirror("s", "s__", listing)
    assert [one.definition.name for one in found.tools] == ["s__dup", "s__other"]
    assert found.tools[0].definition.description == "first"


def test_A11_3_descriptions():
    def said(**raw: Any) -> str:
        return mirror("s", "", [{"name": "t", **raw}]).tools[0].definition.description

    assert said(annotations={"title": "T"}, description="d") == "T: d"
    assert said(description="d") == said(description="d", title="T") == "d"
    assert said(annotations={"title": "T"}) == said(title="T") == "T"
    assert said() == ""


@pytest.mark.parametrize("schema", [None, [], "object", 7, {}])
def test_A11_3_a_schema_that_is_none_becomes_any_object(schema: Any):
    tool = mirror("s", "", [{"name": "t", "inputSchema": schema}]).tools[0]
    assert tool.definition.input_schema == OBJECT


def test_A11_3_annotations_are_claims_and_nothing_else_is_taken_for_one():
    raw = {"name": "t", "annotations": {"readOnlyHint": True, "destructiveHint": "no"}}
    hints = mirror("s", "", [raw]).tools[0].definition.annotations
    assert (hints.read_only, hints.destructive, hints.idempotent) == (True, None, None)


def test_one_bad_schema_is_left_out_with_its_reason_and_takes_nothing_along():
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(150):
        deep = {"type": "object", "properties": {"x": deep}}
    listing = [
        {"name": "good"},
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "nope"}}}},
        {"name": "string", "inputSchema": {"type": "string"}},
        {"name": "deep", "inputSchema": deep},
        {"name": "remote", "inputSchema": {"$ref": "https://example.com/s.json"}},
        {"name": "also good", "outputSchema": {"type": "nope"}},
    ]
    found = mirror("s", "", listing)
    assert [one.remote for one in found.tools] == ["good", "also good"]
    assert found.tools[1].definition.output_schema is None
    assert [one.tool for one in found.rejected] == ["bad", "string", "deep", "remote"]
    assert all(one.reason and one.server == "s" for one in found.rejected)


def test_T_A20_exposed_names_are_legal_unique_and_keep_the_remote_name():
    originals = ["web.search", "web/search", "x" * 100, "über", "ok"]
    found = mirror("s", "s__", [{"name": name} for name in originals]).tools
    exposed = [one.definition.name for one in found]
    assert [one.remote for one in found] == originals
    assert len(set(exposed)) == 5
    assert all(len(name) <= 64 and name.isascii() for name in exposed)
    assert exposed[-1] == "s__ok"
    assert names([{"name": name} for name in reversed(originals)]) == exposed[::-1]


# -- what a call gives back

PNG = base64.b64encode(b"png").decode()
BLOCKS: list[tuple[Any, Any]] = [
    ({"type": "text", "text": "hi"}, TextPart("hi")),
    ({"type": "text", "text": ""}, None),
    ({"type": "image", "data": PNG, "mimeType": "image/png"}, ImagePart(b"png", "image/png")),
    ({"type": "audio", "data": PNG, "mimeType": "audio/wav"}, AudioPart(b"png", "audio/wav")),
    (
        {"type": "resource_link", "uri": "f:///a", "name": "a", "mimeType": "t/p", "size": 3},
        FilePart("f:///a", "a", "t/p", "", 3),
    ),
    ({"type": "resource", "resource": {"uri": "f:///a", "text": "body"}}, TextPart("body")),
    (
        {"type": "resource", "resource": {"uri": "f:///a", "blob": PNG, "mimeType": "image/png"}},
        ImagePart(b"png", "image/png"),
    ),
    (
        {"type": "resource", "resource": {"uri": "f:///a", "blob": PNG, "mimeType": "audio/mp3"}},
        AudioPart(b"png", "audio/mp3"),
    ),
]
UNMAPPABLE: list[Any] = [
    {"type": "image", "data": PNG},
    {"type": "image", "data": "!!", "mimeType": "image/png"},
    {"type": "resource_link", "name": "a"},
    {"type": "resource", "resource": {"uri": "f", "blob": PNG, "mimeType": "application/pdf"}},
    {"type": "resource"},
    {"type": "hologram", "x": [1]},
    {"type": "text", "text": 7},
    {},
    "bare",
    7,
]


@pytest.mark.parametrize(("block", "part"), BLOCKS)
def test_A11_6_each_kind_of_content(block: Any, part: Any):
    assert part_of(block) == part


@pytest.mark.parametrize("block", UNMAPPABLE)
def test_A11_6_what_cannot_be_mapped_is_kept_in_its_wire_form(block: Any):
    assert part_of(block) == DataPart(block)


def test_A11_6_structured_content_stands_in_for_missing_content_only():
    assert result_of("t", {"structuredContent": {"a": 1}}).content == (DataPart({"a": 1}),)
    assert result_of("t", {"structuredContent": [1, 2]}).content == (TextPart("[1,2]"),)
    both = result_of(
        "t", {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}
    )
    assert (both.content, both.value) == ((TextPart("x"),), {"a": 1})
    assert result_of("t", {}).content == (TextPart(""),)
    assert result_of("t", {"content": "not a list"}).content == (TextPart(""),)


def test_RS05_is_error_is_a_failure_that_says_the_servers_text():
    result = result_of("t", {"content": [{"type": "text", "text": "no such row"}], "isError": True})
    assert result.failure
    assert (result.failure.kind, result.failure.message) == ("tool_error", "no such row")
    assert result.content == (TextPart("no such row"),)


def test_RS06_the_error_text_wins_over_structured_content():
    wire = {
        "content": [{"type": "text", "text": "db down"}],
        "structuredContent": {"answer": 42},
        "isError": True,
    }
    result = result_of("t", wire)
    assert str(result) == "db down"
    assert result.failure
    assert result.failure.message == "db down"
    assert result.value == {"answer": 42}


def test_A11_5_an_error_without_text_says_so_and_keeps_its_parts():
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    result = result_of("t", {"content": [image], "isError": True})
    assert result.content[0] == ImagePart(b"png", "image/png")
    assert str(result) == "mcp tool 't' reported an error with no detail"


# -- what went wrong

STDIO = {"http": False, "modern": False}
HTTP = {"http": True, "modern": False}
MODERN = {"http": True, "modern": True}
FATES: list[tuple[int, dict[str, bool], Seen, str]] = [
    (-32000, STDIO, Seen(sent=True, gone=True), "lost"),
    (-32000, STDIO, Seen(sent=False, gone=True), "not_sent"),
    (-32000, STDIO, Seen(sent=False), "not_sent"),
    (-32000, STDIO, Seen(sent=True), "answered"),
    (-32600, STDIO, Seen(sent=True), "answered"),
    (-32602, STDIO, Seen(sent=True), "answered"),
    (-32700, STDIO, Seen(sent=True), "unreadable"),
    (-32000, HTTP, Seen(sent=True, status=200), "answered"),
    (-32000, HTTP, Seen(sent=True, status=200, abandoned=True), "lost"),
    (-32000, HTTP, Seen(sent=True, gone=True), "lost"),
    (-32000, HTTP, Seen(sent=False), "not_sent"),
    (-32600, HTTP, Seen(sent=True, status=404), "stale"),
    (-32600, HTTP, Seen(sent=True, status=200), "stale"),
    (-32600, HTTP, Seen(sent=True, status=200, gone=True), "stale"),
    (-32600, HTTP, Seen(sent=True, status=202, abandoned=True), "lost"),
    (-32600, MODERN, Seen(sent=True, status=202, abandoned=True), "lost"),
    (-32600, HTTP, Seen(sent=True, status=307, abandoned=True), "turned_away"),
    (-32000, HTTP, Seen(sent=True, status=400), "turned_away"),
    (-32603, HTTP, Seen(sent=True, status=401), "turned_away"),
    (-32603, HTTP, Seen(sent=True, status=503), "lost"),
    (-32603, HTTP, Seen(sent=True, status=200), "answered"),
    (-32601, MODERN, Seen(sent=True, status=404), "answered"),
    (-32020, MODERN, Seen(sent=True, status=400), "stale"),
]


@pytest.mark.parametrize(("code", "where", "seen", "meaning"), FATES)
def test_MC02_MC08_what_an_error_answer_means(
    code: int, where: dict[str, bool], seen: Seen, meaning: str
):
    assert fate(code, seen, **where) == meaning


def test_A10_3_T_A18_rejections_are_told_by_type_and_code_never_by_words():
    group = ExceptionGroup("g", [ExceptionGroup("g", [MCPError(-32603, "x")])])
    assert is_rejection(group, 401)
    assert is_rejection(group, 403)
    assert is_rejection(UnsupportedVersion("1999"), 0)
    assert is_rejection(MCPError(-32022, "x"), 400)
    assert is_rejection(Rejected("x"), 0)
    for innocent in (
        MCPError(-32603, "forbidden: invalid request, unauthorized, unsupported protocol version"),
        FileNotFoundError(2, "No such file", "npx"),
        PermissionError(13, "Permission denied", "npx"),
        TimeoutError(),
        ExceptionGroup("g", [httpx2.ConnectError("refused")]),
    ):
        assert not is_rejection(innocent, 0)


def test_reasons_are_words_that_follow_the_servers_name():
    assert words(FileNotFoundError(2, "No such file or directory", "npx")) == (
        "it cannot be started: No such file or directory: 'npx'"
    )
    assert "refuses" in words(ExceptionGroup("g", [httpx2.ConnectError("x")]))
    assert words(MCPError(-32603, "x"), 502) == "it answered HTTP 502"
    assert words(TimeoutError()) == "it did not answer in time"
    assert words(httpx2.RemoteProtocolError("Server disconnected")) == "it closed the connection"


def test_A10_2_backoff_doubles_up_to_its_longest():
    assert [delay(n, 1.0, 30.0) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert delay(10_000, 1.0, 30.0) == 30.0


def test_the_era_is_remembered_and_forgotten_when_it_is_wrong():
    era = Era(connect_timeout=5.0)
    era.connected(modern=False)
    assert era.mode == "legacy"
    assert not era.failed(MCPError(-32000, "Connection closed"))
    assert era.mode == "legacy"  # a dead server says nothing about its era
    assert era.failed(MCPError(-32022, "unsupported"))  # so it is no reason to give up
    assert era.mode == "auto"
    assert not era.failed(TimeoutError())
    assert era.mode == "legacy"  # the probe may have taken all the time
    assert era.failed(TimeoutError())
    assert era.mode == "auto"
    patient = Era(connect_timeout=30.0)
    patient.failed(TimeoutError())
    assert patient.mode == "auto"  # there was time for both


# -- pages


async def pages(answer: Any) -> tuple[list[Any], bool, list[Any]]:
    asked: list[Any] = []

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params.get("cursor"))
        return answer(params.get("cursor"))

    items, complete = await all_pages(ask, "tools")
    return items, complete, asked


async def test_MC12_every_page_is_read_and_the_cursor_is_passed_on_as_it_is():
    def answer(cursor: str | None) -> dict[str, Any]:
        at = int((cursor or "ÄÖ==0")[4:])
        page = list(range(at, min(at + 10, 45)))
        return {"tools": page, **({"nextCursor": f"ÄÖ=={at + 10}"} if at + 10 < 45 else {})}

    items, complete, asked = await pages(answer)
    assert (items, complete) == (list(range(45)), True)
    assert asked == [None, "ÄÖ==10", "ÄÖ==20", "ÄÖ==30", "ÄÖ==40"]


@pytest.mark.parametrize(
    ("following", "asked"),
    [
        (lambda c: "8", [None, "8"]),
        (lambda c: "", [None, ""]),
        (lambda c: "B" if c == "A" else "A", [None, "A", "B"]),
    ],
)
async def test_MC11_a_cursor_that_does_not_advance_ends_the_listing(following: Any, asked: Any):
    items, complete, seen = await pages(lambda c: {"tools": [1], "nextCursor": following(c)})
    assert (len(items), complete, seen) == (len(asked), False, asked)


async def test_MC11_ten_thousand_distinct_pages_end_at_the_cap():
    items, complete, asked = await pages(
        lambda c: {"tools": [1], "nextCursor": str(int(c or 0) + 1)}
    )
    assert (len(items), complete, len(asked)) == (MAX_PAGES, False, MAX_PAGES)


async def test_a_malformed_page_is_an_empty_one():
    assert await pages(lambda c: {"tools": "none", "nextCursor": 7}) == ([], True, [None])
