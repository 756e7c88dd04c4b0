"""What calls give: A11.4 to A11.8, over stdio and HTTP and in both eras, with the fault server."""

from __future__ import annotations

import base64
from typing import Any

from servers.faulty import Cell, cells, faulty, health, kind, serving
from servers.support import Host, hosting, source
from toolcrib.content import (
    AudioPart,
    DataPart,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolcrib.sources.mcp import McpServer
from toolcrib.testing import FaultServer

RAW = base64.b64encode(b"bytes").decode()
TEXT = {"type": "text", "text": "t"}

CONTENT: list[tuple[dict[str, Any], Any]] = [
    (TEXT, TextPart("t")),
    ({"type": "image", "data": RAW, "mimeType": "image/png"}, ImagePart(b"bytes", "image/png")),
    ({"type": "audio", "data": RAW, "mimeType": "audio/wav"}, AudioPart(b"bytes", "audio/wav")),
    ({"type": "resource_link", "uri": "f://x", "name": "x"}, FilePart("f://x", "x")),
    ({"type": "resource", "resource": {"uri": "f://x", "text": "in it"}}, TextPart("in it")),
]
UNMAPPABLE: list[dict[str, Any]] = [
    {"type": "image", "data": RAW},
    {"type": "resource_link", "name": "x"},
    {"type": "hologram", "x": [1]},
    {"type": "resource", "resource": {"uri": "f://x", "blob": RAW, "mimeType": "a/b"}},
]


async def given(host: Host, result: dict[str, Any]) -> ToolResult:
    return await host.call("faulty__give", result=result)


async def called(host: Host, name: str, arguments: str) -> ToolResult:
    return await host.executor.execute(ToolCall("1", name, arguments))


@cells()
async def test_A11_4_blank_and_null_are_no_arguments_and_anything_but_an_object_is_refused(
    cell: Cell,
):
    async with serving(cell) as (server, host):
        for nothing in ("", "  ", "null", "{}"):
            assert kind(await called(host, "faulty__pid", nothing)) == "ok"
            assert server.heard("tools/call")[-1]["params"]["arguments"] == {}
        sent = len(server.heard("tools/call"))
        for wrong in ("[1]", '"text"', "7", "{not json", '{"text": 1}'):
            assert kind(await called(host, "faulty__echo", wrong)) == "invalid_arguments"
        assert len(server.heard("tools/call")) == sent


@cells()
async def test_A11_5_RS05_an_error_is_a_failure_with_the_servers_words(cell: Cell):
    async with serving(cell) as (_, host):
        both = {"content": [TEXT], "isError": True, "structuredContent": {"a": 1}}
        failed = await given(host, both)
        assert (kind(failed), str(failed), failed.value) == ("tool_error", "t", {"a": 1})
        silent = await given(host, {"content": [], "isError": True})
        assert str(silent) == "mcp tool 'give' reported an error with no detail"


@cells()
async def test_A11_5_T_A18_an_error_answer_is_a_tool_error_whatever_its_code_and_words(cell: Cell):
    # -32600 is how a legacy server over HTTP says that it forgot a session (MC08).
    session = [] if cell == ("http", "legacy") else [-32600]
    async with serving(cell) as (server, host):
        for code in [-32602, -32603, -32601, -32001, 7, *session]:
            await error_is_told(server, host, code)


@cells()
async def test_A11_5_an_error_of_the_code_that_the_sdk_uses_itself_is_one_too(cell: Cell):
    async with serving(cell) as (server, host):
        await error_is_told(server, host, -32000)


async def error_is_told(server: FaultServer, host: Host, code: int) -> None:
    server.misbehave(f"error={code}*1")
    result = await host.call("faulty__echo", text="x")
    assert kind(result) == "tool_error"
    assert "misbehaving on demand" in str(result)
    assert str(await host.call("faulty__echo", text="on")) == "on"
    assert health(host).attempts == 1


@cells()
async def test_A11_6_each_kind_of_content_is_a_part_and_none_is_dropped(cell: Cell):
    async with serving(cell) as (_, host):
        blocks = [*(block for block, _ in CONTENT), *UNMAPPABLE]
        result = await given(host, {"content": [*blocks, {"type": "text", "text": ""}]})
        assert result.content == (*(part for _, part in CONTENT), *map(DataPart, UNMAPPABLE))


@cells()
async def test_A11_6_structured_content_stands_in_for_missing_content(cell: Cell):
    async with serving(cell) as (_, host):
        value = {"n": 2**53 + 1}
        assert (await given(host, {"content": [], "structuredContent": value})).content == (
            DataPart(value),
        )
        both = await given(host, {"content": [TEXT], "structuredContent": value})
        assert (both.content, both.value) == ((TextPart("t"),), value)
        assert str(await given(host, {"structuredContent": [1, 2]})) == "[1,2]"
        assert (await given(host, {})).content == (TextPart(""),)


@cells()
async def test_A11_7_what_is_not_there_is_not_found_and_what_is_down_not_available(cell: Cell):
    async with serving(cell) as (server, host):
        assert kind(await host.call("faulty__nothing")) == "not_found"
        assert kind(await host.call("nobody__echo", text="x")) == "not_found"
        await host.source.close()
        assert kind(await host.call("faulty__echo", text="x")) == "not_available"
        assert server.heard("tools/call") == []


@cells()
async def test_A11_7_before_the_first_connection_there_is_nothing_to_call(cell: Cell):
    async with faulty(cell) as server:
        down = McpServer("faulty", "stdio", command="/no/such/program")
        async with hosting(source(down)) as host:
            assert host.names == []
            assert kind(await host.call("faulty__echo", text="x")) == "not_found"
        assert server.journal == [] or server.transport == "http"


@cells()
async def test_A11_8_resources_are_listed_and_read(cell: Cell):
    async with serving(cell, resources=True) as (server, host):
        (memo,) = (await host.call("faulty__list_resources")).value
        assert memo == {"uri": "memo://one", "name": "one", "mime_type": "text/plain", "size": 8}
        read = await host.call("faulty__read_resource", uri="memo://one")
        assert read.value == [{"uri": "memo://one", "text": "remember"}]
        for blank in ("", "  "):
            refused = await host.call("faulty__read_resource", uri=blank)
            assert kind(refused) == "invalid_arguments"
        assert len(server.heard("resources/read")) == 1
        server.misbehave("crash_before@resources/read*1")
        assert kind(await host.call("faulty__read_resource", uri="a")) == "outcome_unknown"
