"""A tool in stages: parse, authorise, execute, parse_output, each stopping the next (guide D)."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import outcome
from toolcrib import (
    Assembly,
    CallContext,
    Denied,
    InvalidArguments,
    InvalidDefinition,
    InvalidSchema,
    NotAvailable,
    Principal,
    ToolCall,
    ToolError,
    define_tool,
    tool,
)

SCHEMA = {
    "type": "object",
    "properties": {"cents": {"type": "integer"}},
    "required": ["cents"],
    "additionalProperties": False,
}


def staged(log: list[str], sync: bool = False, **stages: Any) -> Any:
    def parse(arguments: dict[str, Any]) -> Any:
        log.append("parse")
        if arguments["cents"] > 100:
            raise InvalidArguments("cents: at most 100")
        return arguments["cents"]

    def authorize(principal: Principal, cents: int) -> Any:
        log.append(f"authorize {principal.id} {cents}")

    async def execute(ctx: CallContext, cents: int) -> int:
        log.append(f"execute {cents}")
        return cents

    def execute_sync(ctx: CallContext, cents: int) -> int:
        log.append(f"execute {cents}")
        return cents

    def parse_output(value: int) -> str:
        log.append("parse_output")
        return f"paid {value}"

    made: dict[str, Any] = {
        "parse": parse,
        "authorize": authorize,
        "execute": execute_sync if sync else execute,
        "parse_output": parse_output,
    } | stages
    return define_tool("pay", description="Pay.", input_schema=SCHEMA, **made)


@pytest.mark.parametrize("sync", [False, True])
async def test_D4_the_stages_run_in_order(sync: bool) -> None:
    log: list[str] = []
    async with Assembly([staged(log, sync)]) as tools:
        result = await tools.execute(
            ToolCall("1", "pay", '{"cents": 5}'), principal=Principal.of("ana")
        )
    assert outcome(result) == "paid 5"
    assert log == ["parse", "authorize ana 5", "execute 5", "parse_output"]


@pytest.mark.parametrize(
    ("arguments", "kind", "says", "ran"),
    [
        ("[]", "invalid_arguments", "object", []),
        ('{"cents": "many"}', "invalid_arguments", "cents", []),
        ('{"cents": 5, "x": 1}', "invalid_arguments", "'x'", []),
        ('{"cents": 101}', "invalid_arguments", "at most 100", ["parse"]),
    ],
)
async def test_nothing_runs_after_a_refused_parse(
    arguments: str, kind: str, says: str, ran: list[str]
) -> None:
    log: list[str] = []
    async with Assembly([staged(log)]) as tools:
        result = await tools.call("pay", arguments)
    assert outcome(result) == kind
    assert says in result.text
    assert log == ran


def _deny(principal: Principal, value: Any) -> Any:
    raise Denied("ask the owner of the till")


async def _deny_async(principal: Principal, value: Any) -> Any:
    raise Denied("ask the owner of the till")


def _break(principal: Principal, value: Any) -> Any:
    raise RuntimeError("secret")


async def _false(principal: Principal, value: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("authorize", "kind"),
    [
        (_deny, "denied"),
        (_deny_async, "denied"),
        (lambda principal, value: False, "denied"),
        (_false, "denied"),
        (lambda principal, value: 1, "denied"),
        (lambda principal, value: "yes", "denied"),
        (lambda principal, value: 0, "denied"),
        (_break, "internal"),
    ],
)
async def test_nothing_runs_after_a_no(authorize: Any, kind: str) -> None:
    log: list[str] = []
    async with Assembly([staged(log, authorize=authorize)]) as tools:
        result = await tools.call("pay", cents=5)
    assert outcome(result) == kind
    assert log == ["parse"]
    assert "secret" not in result.text
    if authorize in (_deny, _deny_async):
        assert result.text == "ask the owner of the till"


async def _yes(principal: Principal, value: Any) -> bool:
    return True


@pytest.mark.parametrize("authorize", [lambda p, v: None, lambda p, v: True, _yes, None])
async def test_only_none_and_true_are_a_yes(authorize: Any) -> None:
    async with Assembly([staged([], authorize=authorize)]) as tools:
        assert outcome(await tools.call("pay", cents=5)) == "paid 5"


async def test_D4_authorisation_is_asked_again_at_every_execution() -> None:
    """T-D5: what was visible is not what is permitted."""
    allowed = True

    def authorize(principal: Principal, value: Any) -> bool:
        return allowed

    async with Assembly([staged([], authorize=authorize)]) as tools:
        current = tools.session().turn().round()
        call = ToolCall("1", "pay", '{"cents": 1}')
        assert outcome((await current.execute([call]))[0]) == "paid 1"
        allowed = False
        assert "pay" in tools.session().turn().round().names
        assert outcome((await current.execute([call]))[0]) == "denied"


async def test_a_failed_execute_or_parse_output_is_no_success() -> None:
    async def fail(ctx: CallContext, cents: int) -> int:
        raise ToolError("the till is shut", partial={"counted": 3})

    def broken(value: Any) -> Any:
        raise ValueError("secret")

    log: list[str] = []
    async with Assembly([staged(log, execute=fail)]) as tools:
        result = await tools.call("pay", cents=5)
    assert outcome(result) == "tool_error"
    assert [part.to_json()["text"] for part in result.content] == [
        '{"counted":3}',
        "the till is shut",
    ]
    assert log == ["parse", "authorize local 5"]
    async with Assembly([staged(log, parse_output=broken)]) as tools:
        result = await tools.call("pay", cents=5)
    assert outcome(result) == "internal"
    assert "secret" not in result.text


async def test_a_tool_may_say_that_it_is_not_available() -> None:
    async def down(ctx: CallContext, cents: int) -> int:
        raise NotAvailable("the bank is closed until 9")

    async with Assembly([staged([], execute=down)]) as tools:
        result = await tools.call("pay", cents=5)
    assert (outcome(result), result.text) == ("not_available", "the bank is closed until 9")


# the synchronous entry


def test_D5_invoke_runs_a_synchronous_tool_through_all_its_stages() -> None:
    log: list[str] = []
    result = staged(log, sync=True).invoke('{"cents": 5}', Principal.of("ana"))
    assert outcome(result) == "paid 5"
    assert log == ["parse", "authorize ana 5", "execute 5", "parse_output"]
    with pytest.raises(InvalidArguments):
        staged(log, sync=True).invoke('{"cents": 500}')
    with pytest.raises(Denied):
        staged(log, sync=True, authorize=lambda p, v: False).invoke('{"cents": 5}')


def test_D5_invoke_refuses_an_async_tool_instead_of_handing_out_a_coroutine() -> None:
    log: list[str] = []
    with pytest.raises(InvalidDefinition, match="async"):
        staged(log).invoke('{"cents": 5}')
    assert log == []


def test_D5_a_promise_from_a_synchronous_entry_is_an_error_in_every_stage() -> None:
    """T-D1."""

    async def later() -> int:
        return 1

    def promises(*_: Any) -> Any:
        return later()

    for stage in ("execute", "authorize"):
        log: list[str] = []
        with pytest.raises(InvalidDefinition, match="awaitable"):
            staged(log, sync=True, **{stage: promises}).invoke('{"cents": 5}')
        assert "parse_output" not in log


async def test_a_sync_entry_that_returns_an_awaitable_is_awaited_in_a_call() -> None:
    async def later(cents: int) -> int:
        return cents

    def promises(ctx: CallContext, cents: int) -> Any:
        return later(cents)

    async with Assembly([staged([], execute=promises)]) as tools:
        assert outcome(await tools.call("pay", cents=5)) == "paid 5"


async def test_execute_without_an_executor_runs_all_stages_too() -> None:
    log: list[str] = []
    result = await staged(log).execute(CallContext("pay"), '{"cents": "5"}')
    assert outcome(result) == "paid 5"
    assert log == ["parse", "authorize local 5", "execute 5", "parse_output"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_schema": {"type": "string"}},
        {"input_schema": {"properties": {}}},
        {"input_schema": {"type": "object", "cents": {}}},
        {"input_schema": {"type": "object", "properties": object()}},
        {"id": ""},
        {"id": " "},
    ],
)
def test_D1_what_can_never_be_right_is_refused_when_it_is_defined(wrong: dict[str, Any]) -> None:
    async def execute(ctx: CallContext, arguments: Any) -> None: ...

    given: dict[str, Any] = {"id": "t", "description": "", "execute": execute} | wrong
    with pytest.raises(InvalidDefinition):
        define_tool(given.pop("id"), **given)


def test_an_invalid_schema_is_its_own_kind() -> None:
    async def execute(ctx: CallContext, arguments: Any) -> None: ...

    with pytest.raises(InvalidSchema, match=r"'cent'.*'properties'"):
        define_tool(
            "t", description="", execute=execute, input_schema={"type": "object", "cent": {}}
        )


async def test_the_arguments_a_host_changes_in_its_schema_afterwards_change_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def execute(ctx: CallContext, arguments: Any) -> Any:
        return arguments["n"]

    made = define_tool("t", description="", execute=execute, input_schema=schema)
    schema["properties"]["n"]["type"] = "string"
    async with Assembly([made]) as tools:
        assert outcome(await tools.call("t", n=3)) == "3"
        assert outcome(await tools.call("t", n="x")) == "invalid_arguments"


async def test_a_function_tool_may_be_authorised_by_its_arguments() -> None:
    def only_own(principal: Principal, arguments: dict[str, Any]) -> bool:
        return bool(arguments["user"] == principal.id)

    @tool(authorize=only_own)
    async def inbox(user: str) -> str:
        return f"mail of {user}"

    async with Assembly([inbox]) as tools:
        ana = Principal.of("ana")
        for user, expected in (("ana", "mail of ana"), ("bob", "denied")):
            call = ToolCall("1", "inbox", f'{{"user": "{user}"}}')
            assert outcome(await tools.execute(call, principal=ana)) == expected
