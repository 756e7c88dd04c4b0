"""Known secrets leave nowhere: results, failures, logs, tracebacks (RS15)."""

from __future__ import annotations

import base64
import json
import logging
import urllib.parse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import (
    Assembly,
    DataPart,
    FilePart,
    ImagePart,
    InvalidArguments,
    TextPart,
    ToolCall,
    ToolError,
    ToolResult,
    define_tool,
)
from toolcrib.chain import CallNext, Invocation
from toolcrib.definition import Format
from toolcrib.executor import Executor
from toolcrib.middleware import recover
from toolcrib.output import Delivery
from toolcrib.redact import MASK, LogFilter, Redactor, current, using

SECRET = "sk-test-abc123"
ODD = 'p/w "x"+é\n%'
REDACTOR = Redactor([SECRET, ODD, "", "  ", "abc"])


@pytest.mark.parametrize(
    "text",
    [
        "GET https://h/?api_key={} failed",
        "MCP_API_KEY={}",
        "{}",
        "x{}x",
        '{{"Authorization":"Bearer {}"}}',
    ],
)
@pytest.mark.parametrize("secret", [SECRET, ODD])
def test_RS15_a_secret_is_masked_whatever_stands_around_it(text: str, secret: str) -> None:
    assert REDACTOR.text(text.format(secret)) == text.format(MASK)


@pytest.mark.parametrize(
    "encode",
    [
        urllib.parse.quote,
        urllib.parse.quote_plus,
        lambda s: urllib.parse.quote(s, safe=""),
        lambda s: urllib.parse.quote(s, safe="").lower() if s == ODD else urllib.parse.quote(s),
        lambda s: repr(s)[1:-1],
        lambda s: json.dumps(s)[1:-1],
        lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
        lambda s: s.encode().hex(),
        lambda s: s.encode().hex().upper(),
    ],
)
@pytest.mark.parametrize("secret", [SECRET, ODD])
def test_RS15_its_encoded_forms_are_masked(encode: Any, secret: str) -> None:
    assert REDACTOR.text(f"a={encode(secret)}&b") == f"a={MASK}&b"


@given(st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_RS15_it_is_masked_in_any_base64_that_holds_it(
    before: bytes, after: bytes, is_url: bool
) -> None:
    encode = base64.urlsafe_b64encode if is_url else base64.b64encode
    text = encode(before + SECRET.encode() + after).decode()
    masked = REDACTOR.text(text)
    assert MASK in masked
    left = masked.replace(MASK, "")
    assert len(text) - len(left) >= len(SECRET) * 8 // 6 - 2, "all but its first and last digit"


def test_RS15_it_is_masked_in_chained_exceptions_even_cut_in_two() -> None:
    try:
        try:
            raise ValueError(f"tail {SECRET[8:]}")
        except ValueError as error:
            raise RuntimeError(f"head {SECRET[:8]}") from error
    except RuntimeError as error:
        told = REDACTOR.error(error)
    assert "sk-test-" not in told
    assert "abc123" not in told
    assert "ValueError: tail" in told
    assert "RuntimeError: head" in told


def test_innocent_text_is_the_same_object() -> None:
    text = "sk-test and abc, separately: " * 100
    assert REDACTOR.text(text) is text
    assert Redactor([]).text(SECRET) == SECRET
    assert REDACTOR.text("abc") == "abc", "too short to be masked"


def test_one_secret_may_hold_another_and_more_can_be_added() -> None:
    both = Redactor(["pass1234"]).with_secrets(["pass1234-and-more"])
    assert both.text("pass1234-and-more pass1234") == f"{MASK} {MASK}"
    assert "pass" not in repr(both)


def test_RS15_every_part_of_a_result_is_masked() -> None:
    picture = ImagePart(SECRET.encode(), "image/png")
    data = {SECRET: [SECRET, 1, {"k": f"x{SECRET}"}]}
    result = REDACTOR.result(
        ToolResult.failed(
            "tool_error",
            f"no {SECRET}",
            partial=[TextPart(SECRET), DataPart(data), FilePart(f"file://{SECRET}"), picture],
            value=data,
        ).with_meta(path=f"/{SECRET}")
    )
    assert SECRET not in repr((result, result.value, dict(result.meta), result.to_json()))
    assert result.content[3] is picture
    assert result.failure
    assert result.failure.message == f"no {MASK}"


async def walked(
    execute: Any, redactor: Redactor | None, *chain: Any, text: str = "{}", **stages: Any
) -> ToolResult:
    made = define_tool("t", description="", execute=execute, **stages)
    assembly = Assembly([made])
    assembly.executor.close()
    assembly.executor = Executor(assembly.registry, chain, delivery=Delivery(redactor=redactor))
    async with assembly:
        return await assembly.execute(ToolCall("c", "t", text))


def raises(error: BaseException) -> Any:
    async def execute(ctx: Any, arguments: Any) -> Any:
        raise error

    return execute


def chained() -> RuntimeError:
    error = RuntimeError(f"GET https://h/?api_key={SECRET} failed")
    error.__cause__ = ValueError(base64.b64encode(f"user:{SECRET}".encode()).decode())
    error.__cause__.__cause__ = OSError(urllib.parse.quote(ODD))
    return error


@pytest.mark.parametrize("where", ["execute", "middleware", "authorize"])
async def test_RS15_the_log_and_the_result_of_an_internal_error_hold_no_secret(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(invocation: Invocation, call_next: CallNext) -> ToolResult:
        raise chained()

    def refuses(*_: Any) -> Any:
        raise chained()

    if where == "middleware":
        result = await walked(raises(chained()), REDACTOR, recover, fails)
    elif where == "authorize":
        result = await walked(raises(chained()), REDACTOR, authorize=refuses)
    else:
        result = await walked(raises(chained()), REDACTOR)
    assert result.failure
    assert result.failure.kind == "internal"
    assert result.failure.reference in caplog.text
    assert "Traceback" in caplog.text
    assert "RuntimeError: GET https://h/?api_key=[redacted] failed" in caplog.text
    for form in (SECRET, "c2stdGVzd", urllib.parse.quote(ODD)):
        assert form not in caplog.text + result.text
    assert all(record.exc_info is None for record in caplog.records)
    assert current.get() is None


async def test_RS15_what_a_tool_says_gives_or_refuses_is_masked() -> None:
    async def gives(ctx: Any, arguments: Any) -> Any:
        return {"env": f"MCP_API_KEY={SECRET}", "n": 1}

    def refuses(values: Any) -> Any:
        raise InvalidArguments(f"not {SECRET}")

    said = await walked(raises(ToolError(f"bad key {SECRET}", partial=SECRET)), REDACTOR)
    assert said.text == f"{MASK}\nbad key {MASK}"
    given = await walked(gives, REDACTOR)
    assert given.text == f'{{"env":"MCP_API_KEY={MASK}","n":1}}'
    assert given.value == {"env": f"MCP_API_KEY={MASK}", "n": 1}
    refused = await walked(gives, REDACTOR, parse=refuses)
    assert refused.text == f"not {MASK}"
    assert (await walked(gives, None)).text.count(SECRET) == 1, "off: nothing is done"


async def test_RS15_a_cut_never_divides_a_secret_before_it_is_masked() -> None:
    async def gives(ctx: Any, arguments: Any) -> str:
        return "x" * 50 + SECRET + "y" * 200

    for size in range(200, 230):
        result = await walked(gives, REDACTOR, format=Format(size))
        assert "abc123" not in result.text


def test_RS15_a_log_filter_masks_records_of_others() -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Kept()
    handler.addFilter(LogFilter(REDACTOR))
    logger = logging.getLogger("toolcrib.test_redact")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        raise RuntimeError(f"key {SECRET}")
    except RuntimeError:
        logger.exception("with %s in %s", SECRET, "args")
    logger.removeHandler(handler)
    assert SECRET not in lines[0]
    assert f"with {MASK} in args" in lines[0]
    assert f"RuntimeError: key {MASK}" in lines[0]


def test_the_current_redactor_is_that_of_the_innermost_call() -> None:
    other = Redactor(["other-secret"])
    with using(REDACTOR):
        with using(other):
            assert current.get() is other
        assert current.get() is REDACTOR
    assert current.get() is None
