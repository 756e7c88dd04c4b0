"""Calling a Python function as CPython would: every kind of parameter against
`inspect.Signature.bind`, where annotations come from, and functions that yield (reports PY)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import sys
import textwrap
import threading
import time
import types
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict, Unpack

from conftest import outcome
from toolcrib import (
    Assembly,
    CallContext,
    InvalidArguments,
    InvalidDefinition,
    TextPart,
    ToolCall,
    tool,
)
from toolcrib.arguments import Repaired
from toolcrib.streams import MAX_ITEMS
from toolcrib.tool import Progress


def schema(function: Any) -> dict[str, Any]:
    return dict(tool(function).definition.input_schema)


def made_of(code: str, **names: Any) -> Any:
    """The function `f` that `code` defines."""
    space: dict[str, Any] = {"CallContext": CallContext, "Any": Any, **names}
    exec(textwrap.dedent(code), space)
    return space["f"]


def parsed(function: Any, arguments: str) -> Any:
    found = tool(function).stages.parse(arguments)
    return found.prepared if isinstance(found, Repaired) else found


def ran(function: Any, arguments: str = "{}") -> Any:
    """What `function` itself returns, called through its stages."""
    made = tool(function)
    context = CallContext(made.definition.name)
    return made.stages.execute(context, parsed(function, arguments))


async def call(function: Any, arguments: str = "{}", **more: Any) -> str:
    async with Assembly([function]) as tools:
        (definition,) = tools.catalog.definitions
        return outcome(await tools.call(definition.name, arguments, **more))


# PY02: any signature


KINDS = ["/", "", "*args", "kw", "**kwargs"]


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The text of a parameter list of ints, and the names a model may send."""
    names = iter("abcdefgh")
    parts: list[str] = []
    sendable: list[str] = []
    has_default = False

    def take(most: int, *, keyword_only: bool = False) -> None:
        nonlocal has_default
        for _ in range(draw(st.integers(0, most))):
            name = next(names)
            has_default = (
                draw(st.booleans()) if keyword_only else has_default or draw(st.booleans())
            )
            parts.append(f"{name}: int = {ord(name)}" if has_default else f"{name}: int")
            sendable.append(name)

    take(2)
    if parts:
        parts.append("/")
    take(2)
    if draw(st.booleans()):
        parts.append("*args: int")
        sendable.append("args")
        take(2, keyword_only=True)
    elif draw(st.booleans()):
        at = len(parts)
        take(2, keyword_only=True)
        if len(parts) > at:
            parts.insert(at, "*")
    if draw(st.booleans()):
        where = "ctx: CallContext"
        stars = [i for i, p in enumerate(parts) if p == "*" or p.startswith("*args")]
        slash = parts.index("/") if "/" in parts else -1
        if stars:
            parts.insert(draw(st.integers(stars[0] + 1, len(parts))), where)
        elif not any("=" in p for p in parts):
            parts.insert(draw(st.integers(0, len(parts))), where)
        elif slash == -1:
            parts.insert(0, where)
    if draw(st.booleans()):
        parts.append("**kwargs: int")
        sendable.append("kwargs")
    return ", ".join(parts), sendable


def bound_by_python(function: Any, sent: dict[str, Any], context: object) -> dict[str, Any]:
    """What `inspect.Signature.bind` makes of the same values, each passed as its kind allows."""
    signature = inspect.signature(function)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    rest = sent.get("args") or []
    gap = False
    for name, parameter in signature.parameters.items():
        value = context if name == "ctx" else sent.get(name, parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += rest
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(sent.get(name) or {})
        elif parameter.kind is parameter.KEYWORD_ONLY or (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not rest
        ):
            if value is not parameter.empty and (name in sent or name == "ctx"):
                named[name] = value
        elif value is not parameter.empty:
            positional.append(value)
        else:
            gap = True
    if gap:
        raise TypeError("missing")
    found = signature.bind(*positional, **named)
    found.apply_defaults()
    return dict(found.arguments)


@given(st.data())
def test_PY02_any_signature_binds_as_inspect_does(data: st.DataObject) -> None:
    text, names = data.draw(signatures())
    function = made_of(f"def f({text}):\n    return dict(locals())")
    assert set(schema(function)["properties"]) == set(names)
    sent: dict[str, Any] = {}
    for name in data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []:
        sent[name] = (
            data.draw(st.lists(st.integers(), max_size=3))
            if name == "args"
            else data.draw(st.dictionaries(st.sampled_from(["x", "y"]), st.integers()))
            if name == "kwargs"
            else data.draw(st.integers())
        )
    made = tool(function)
    context = CallContext("f")
    try:
        expected: Any = bound_by_python(function, sent, context)
    except TypeError:
        with pytest.raises(InvalidArguments):
            made.stages.parse(json.dumps(sent))
        return
    got = made.stages.execute(context, made.stages.parse(json.dumps(sent)))
    assert got == expected
    assert all(type(got[name]) is type(expected[name]) for name in expected)


def test_PY02_a_method_a_partial_and_a_wrapper_bind_as_inspect_does() -> None:
    class Shelf:
        def put(self, item: str, /, *more: str, **labels: str) -> Any:
            return (item, more, labels)

    sent = '{"item": "a", "more": ["b"], "labels": {"item": "c", "x": "y"}}'
    assert ran(Shelf().put, sent) == ("a", ("b",), {"item": "c", "x": "y"})

    def power(base: int, exponent: int = 2, *, times: int = 1) -> list[int]:
        return [base**exponent] * times

    assert ran(tool(name="cube")(functools.partial(power, exponent=3)), '{"base": 2}') == [8]
    twice = functools.partial(functools.partial(power, 2), times=2)
    assert ran(tool(name="twice")(twice), '{"exponent": 4}') == [16, 16]
    assert "base" not in tool(name="twice")(twice).definition.input_schema["properties"]


def test_PY06_what_a_keyword_variadic_carries_cannot_be_another_parameter() -> None:
    """CPython calls that two values for one parameter; and the context is nobody's to replace."""

    class Box:
        def put(self, item: str, *, ctx: CallContext, **labels: Any) -> Any:
            return (item, type(ctx), labels)

    for name in ("item", "ctx", "self"):
        with pytest.raises(InvalidArguments, match=f"labels: .*{name}.*parameter of its own"):
            parsed(Box().put, f'{{"item": "a", "labels": {{"{name}": 1}}}}')
    assert ran(Box().put, '{"item": "a", "labels": {"x": 1}}') == ("a", CallContext, {"x": 1})


class Options(TypedDict, total=False):
    deep: bool


class Needed(TypedDict):
    deep: bool


def test_PY03_unpacked_keyword_arguments_are_what_their_dict_says() -> None:
    def find(**options: Unpack[Options]) -> Any:
        return options

    def need(**options: Unpack[Needed]) -> Any:
        return options

    assert ran(find, '{"options": {"deep": true}}') == {"deep": True}
    assert ran(find) == {}
    assert schema(need)["required"] == ["options"]
    with pytest.raises(InvalidArguments, match=r"options\.deep"):
        parsed(find, '{"options": {"deep": 1}}')


def test_PY04_variadics_of_unpacked_types_are_refused_with_their_name() -> None:
    def path(*points: *tuple[int, str]) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"'path'.*\*points"):
        schema(path)


def test_PY01_a_context_cannot_be_variadic() -> None:
    def odd(*contexts: CallContext) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"'odd'.*\*contexts"):
        schema(odd)


@pytest.mark.parametrize("name", ["title", "properties", "self", "ctx", "type", "required", "$ref"])
def test_the_schema_is_the_functions_own_whatever_a_parameter_is_called(name: str) -> None:
    if name == "$ref":
        function: Any = made_of("def f(x: Any = Field(alias='$ref')): return x", Field=Field)
    else:
        function = made_of(f"def f({name}: int): return {name}")
    found = schema(function)
    assert list(found["properties"]) == [name]
    assert found["required"] == [name]
    assert found["type"] == "object"
    assert ran(function, f'{{"{name}": 3}}') == 3


def test_a_parameter_goes_by_its_alias() -> None:
    def send(from_: Annotated[str, Field(alias="from", description="Who.")] = "me") -> str:
        return from_

    assert schema(send)["properties"]["from"] == {
        "default": "me", "description": "Who.", "type": "string",
    }  # fmt: skip
    assert ran(send, '{"from": "you"}') == "you"
    assert ran(send) == "me"


# PY12: where annotations come from


def test_PY12_local_classes_are_found_where_the_function_closes_over_them() -> None:
    class Local(BaseModel):
        n: int

    def f(m: Local, more: list[Local] | None = None) -> Any:
        return Local(n=m.n + 1)

    assert ran(f, '{"m": {"n": 1}}') == Local(n=2)


def test_PY12_what_is_not_to_be_found_is_told_with_tool_and_parameter() -> None:
    class Hidden(BaseModel):
        n: int

    def f(a: int, m: Hidden) -> Any: ...

    with pytest.raises(InvalidDefinition, match=r"tool 'f': .*parameter 'm'.*'Hidden'.*module"):
        schema(f)

    def g(m: 1 / 0) -> Any: ...  # type: ignore[valid-type]

    with pytest.raises(InvalidDefinition, match=r"parameter 'm'.*division"):
        schema(g)


def test_PY12_a_wrapper_from_another_module_changes_nothing(tmp_path: Path) -> None:
    there = types.ModuleType("there")
    code = """
    from __future__ import annotations
    from pathlib import Path as Where
    from typing import Optional, Literal
    def f(p: Where, mode: Optional[Literal["r"]] = None): return (p, mode)
    """
    sys.modules["there"] = there
    try:
        exec(textwrap.dedent(code), there.__dict__)

        @functools.wraps(there.f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return there.f(*args, **kwargs)

        assert ran(wrapper, '{"p": "/a", "mode": "r"}') == (Path("/a"), "r")
    finally:
        del sys.modules["there"]


def test_PY12_a_return_annotation_only_checkers_can_see_is_no_obstacle() -> None:
    function = made_of("def f(a: int) -> 'DataFrame': return a")
    assert ran(function, '{"a": 1}') == 1


def test_a_type_without_json_schema_is_told_with_its_parameter() -> None:
    def lock(a: int, b: asyncio.Lock | None, c: Callable[[], int]) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"tool 'lock': parameter 'b'"):
        schema(lock)

    def back(a: int, c: Callable[[], int]) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"tool 'back': parameter 'c'"):
        schema(back)


# PY14, PY15: what can be called


def test_PY14_an_object_is_described_by_its_call_or_its_class() -> None:
    class Adder:
        """Adds."""

        def __call__(self, n: int) -> int:
            return n + 1

    made = tool(Adder())
    assert (made.definition.name, made.definition.description) == ("Adder", "Adds.")
    assert ran(Adder(), '{"n": 1}') == 2


async def test_a_decorated_method_is_a_tool_of_its_instance() -> None:
    class Counter:
        def __init__(self, step: int) -> None:
            self.step = step

        @tool(effects="read", name="count")
        def up(self, by: int = 1) -> int:
            """Count on."""
            return by * self.step

        @tool
        @staticmethod
        def fixed(by: int = 1) -> int:
            return by

    assert await call(Counter(3).up, '{"by": 2}') == "6"
    assert list(Counter(3).up.definition.input_schema["properties"]) == ["by"]
    assert Counter(3).up.definition.annotations.read_only is True
    assert Counter(3).up(2) == 6
    assert list(Counter.up.definition.input_schema["properties"]) == ["self", "by"]
    assert await call(Counter.fixed, '{"by": 2}') == "2"


def test_a_tool_made_of_a_tool_is_made_of_its_function() -> None:
    @tool
    def f(a: int) -> int:
        return a

    assert tool(name="g")(f).function is f.function
    with pytest.raises(InvalidDefinition, match="cannot be called"):
        tool(3)  # type: ignore[call-overload]


# streams


async def test_what_a_generator_yields_is_told_as_it_comes_and_collected() -> None:
    def lines(n: int) -> Iterator[str]:
        for at in range(n):
            yield f"line {at}"

    async def events(n: int, ctx: CallContext) -> AsyncIterator[dict[str, int]]:
        for at in range(n):
            await asyncio.sleep(0)
            yield {"at": at}

    class Source:
        def __call__(self, n: int) -> Iterator[int]:
            yield from range(n)

    for function, expected, told in (
        (lines, '["line 0","line 1"]', ["line 0", "line 1"]),
        (events, '[{"at":0},{"at":1}]', ['{"at":0}', '{"at":1}']),
        (Source(), "[0,1]", ["0", "1"]),
        (functools.partial(lines, 2), '["line 0","line 1"]', ["line 0", "line 1"]),
    ):
        seen: list[Progress] = []
        made = tool(name="s")(function)
        async with Assembly([made]) as tools:
            sent = ToolCall("c", "s", "{}" if type(function) is functools.partial else '{"n": 2}')
            result = await tools.session().execute(sent, on_progress=seen.append)
        assert outcome(result) == expected
        assert [(p.current, p.total, p.message) for p in seen] == [
            (1, None, told[0]), (2, None, told[1]),
        ]  # fmt: skip


async def test_yielded_content_is_content() -> None:
    def parts() -> Iterator[TextPart]:
        yield TextPart("a")
        yield TextPart("b")

    async with Assembly([parts]) as tools:
        assert (await tools.call("parts")).content == (TextPart("a"), TextPart("b"))


async def test_PY15_a_wrapper_of_a_generator_is_a_stream_if_it_hands_the_stream_on() -> None:
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @functools.wraps(count)
    def hands_on(*args: Any, **kwargs: Any) -> Iterator[int]:
        return count(*args, **kwargs)

    @functools.wraps(count)
    def adds_up(*args: Any, **kwargs: Any) -> int:
        return sum(count(*args, **kwargs))

    assert await call(hands_on, '{"n": 3}') == "[0,1,2]"
    assert await call(adds_up, '{"n": 3}') == "3"


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_an_endless_stream_is_stopped_and_closed_and_what_there_was_is_kept(
    kind: str,
) -> None:
    closed: list[str] = []

    def sync() -> Iterator[int]:
        try:
            while True:
                yield 7
        finally:
            closed.append(kind)

    async def asynchronous() -> AsyncIterator[int]:
        try:
            while True:
                yield 7
        finally:
            closed.append(kind)

    async with Assembly([tool(name="s")(sync if kind == "sync" else asynchronous)]) as tools:
        result = await tools.call("s")
        assert closed == [kind]  # by us, not by the garbage collector later
    assert outcome(result) == "tool_error"
    assert result.value == [7] * MAX_ITEMS
    assert f"more than {MAX_ITEMS} items" in result.text


async def test_a_failing_stream_fails_and_a_cancelled_one_is_closed() -> None:
    closed = threading.Event()

    def slow() -> Iterator[int]:
        try:
            for at in range(500):
                time.sleep(0.01)
                yield at
        finally:
            closed.set()

    def fails() -> Iterator[int]:
        yield 1
        raise RuntimeError("no more")

    async with Assembly([tool(timeout=0.05)(slow), fails]) as tools:
        assert outcome(await tools.call("fails")) == "internal"
        assert outcome(await tools.call("slow")) == "timeout"
        assert await asyncio.to_thread(closed.wait, 2)


# docstrings in full


STYLES = {
    "google": """
        Look it up.

        It takes a while.

        Args:
            mode (str, optional): One of:
                - a: fast
                - b: deep

                The default is fast.
            other: Another: with a colon.
            *rest: More.
        Keyword Args:
            flag (bool): On or off.

        Returns:
            dict: What was found.

        Raises:
            ValueError: If not.
        """,
    "numpy": """
        Look it up.

        It takes a while.

        Parameters
        ----------
        mode : {'a', 'b'}, optional
            One of:

            - a: fast
            - b: deep

            The default is fast.
        other, third : str
            Another: with a colon.
        *rest
            More.

        Other Parameters
        ----------------
        flag : bool
            On or off.

        Returns
        -------
        dict
            What was found.
        """,
    "sphinx": """
        Look it up.

        It takes a while.

        :param mode: One of:

            - a: fast
            - b: deep

            The default is fast.
        :type mode: str
        :param str other: Another: with a colon.
        :param rest: More.
        :keyword flag: On or off.
        :returns: What was found.
        :rtype: dict
        :raises ValueError: If not.
        """,
}


@pytest.mark.parametrize("style", STYLES)
def test_PY20_every_style_keeps_the_whole_text(style: str) -> None:
    def look(
        mode: str = "a", other: str = "", *rest: str, third: str = "", flag: bool = False
    ) -> dict[str, Any]:
        return {}

    look.__doc__ = STYLES[style]
    definition = tool(look).definition
    assert definition.description == "Look it up.\n\nIt takes a while."
    said = {n: p.get("description") for n, p in definition.input_schema["properties"].items()}
    assert [part.strip() for part in said["mode"].split("\n") if part.strip()] == [
        "One of:", "- a: fast", "- b: deep", "The default is fast.",
    ]  # fmt: skip
    assert said["other"] == "Another: with a colon."
    assert said["rest"] == "More."
    assert said["flag"] == "On or off."
    assert said["third"] == ("Another: with a colon." if style == "numpy" else None)


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n        to: Address.\n    ",
        "Args:\n        to: Address.\n\n    Returns:\n        It.\n    ",
        "Args:\n    to: Address.",
        "\n    Args:\n        to: Address.\n    ",
        "Parameters\n    ----------\n    to : str\n        Address.\n    ",
        ":param to: Address.\n    :returns: it",
    ],
)
def test_PY21_a_docstring_that_opens_with_its_parameters(text: str) -> None:
    def send(to: str) -> None: ...

    send.__doc__ = text
    definition = tool(send).definition
    assert definition.description == ""
    assert definition.input_schema["properties"]["to"]["description"] == "Address."


def test_PY22_a_documented_name_that_is_no_parameter_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def f(a: int, ctx: CallContext) -> None:
        """Do it.

        Args:
            a (int, optional): First.
            nowhere (str): Not there.
            ctx: The context.
        """

    with caplog.at_level(logging.WARNING, "toolcrib.function"):
        assert schema(f)["properties"]["a"]["description"] == "First."
    (record,) = caplog.records
    assert "'f'" in record.getMessage() and "'nowhere'" in record.getMessage()
    assert "ctx" not in record.getMessage()


# PY09, PY24: defaults


class Odd:
    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth value is ambiguous")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Odd()"


@pytest.mark.parametrize(
    ("default", "said"),
    [
        (Odd(), "none"),
        ([Odd()], "none"),
        (float("nan"), "none"),
        ("not what it takes", "none"),
        (10**20, 10**20),
        ({3, 1}, [1, 3]),
        (0.1, 0.1),
    ],
    ids=str,
)
def test_PY24_a_schema_says_no_default_that_it_would_not_take(default: Any, said: Any) -> None:
    def f(a: int | float | set[int] = 1) -> Any:
        return a

    f.__defaults__ = (default,)
    assert schema(f)["properties"]["a"].get("default", "none") == said
    assert ran(f) is default


def test_PY09_a_default_goes_out_as_json_and_comes_back_as_sent() -> None:
    def f(p: Path = Path("/a"), n: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013
        return (p, n)

    found = schema(f)["properties"]
    assert found["p"]["default"] == "/a"
    assert found["n"]["default"] is None
    sent = json.dumps({name: one["default"] for name, one in found.items()})
    assert ran(f, sent) == (Path("/a"), None)


# parameters that are models


class Cat(BaseModel):
    meows: int
    friend: Cat | None = None


class Dog(BaseModel):
    barks: int


def test_PY23_models_are_strict_inside_and_a_wrong_branch_is_told_with_its_path() -> None:
    def adopt(pet: Cat | Dog, more: dict[str, list[Cat]] = {}) -> Any:  # noqa: B006
        return pet, more

    assert ran(adopt, '{"pet": {"barks": 1}}')[0] == Dog(barks=1)
    sent = '{"pet": {"meows": 1, "friend": {"meows": 2}}, "more": {"x": [{"meows": 3}]}}'
    assert ran(adopt, sent) == (
        Cat(meows=1, friend=Cat(meows=2)), {"x": [Cat(meows=3)]},
    )  # fmt: skip
    for wrong, path in (
        ('{"pet": {"meows": true}}', "pet.Cat.meows"),
        ('{"pet": {"meows": 1, "friend": {"meows": []}}}', "pet.Cat.friend.meows"),
        ('{"pet": {"barks": 1}, "more": {"x": [{"meows": 1}, {"meows": null}]}}', "more.x.1.meows"),
    ):
        with pytest.raises(InvalidArguments, match=path.replace(".", r"\.")):
            parsed(adopt, wrong)


def test_PY23_slips_inside_a_model_are_put_right_and_noted_never_silently() -> None:
    def adopt(pet: Cat, more: list[Cat] = []) -> Any:  # noqa: B006
        return pet

    found = tool(adopt).stages.parse(
        '{"pet": {"meows": "3", "friend": {"meows": 4.0}}, "more": [{"meows": "5"}]}'
    )
    assert isinstance(found, Repaired)
    assert found.prepared["pet"] == Cat(meows=3, friend=Cat(meows=4))
    assert [repair.split(":")[0] for repair in found.repairs] == [
        "pet.meows", "pet.friend.meows", "more.0.meows",
    ]  # fmt: skip
