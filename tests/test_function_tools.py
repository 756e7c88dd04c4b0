"""A Python function as a tool: signature and docstring are its schema, and binding is CPython's
(reports PY)."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union
from typing import TypedDict as StandardTypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from conftest import outcome
from toolcrib import Annotations, Assembly, CallContext, InvalidDefinition, tool


async def call(function: Any, arguments: str = "{}") -> str:
    async with Assembly([function]) as tools:
        (definition,) = tools.catalog.definitions
        return outcome(await tools.call(definition.name, arguments))


async def failure(function: Any, arguments: str) -> str:
    """The text of the refusal."""
    async with Assembly([function]) as tools:
        (definition,) = tools.catalog.definitions
        result = await tools.call(definition.name, arguments)
        assert outcome(result) == "invalid_arguments", result
        return result.text


def schema(function: Any) -> dict[str, Any]:
    return dict(tool(function).definition.input_schema)


class Item(BaseModel):
    name: str
    count: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool


class StandardOptions(StandardTypedDict):
    deep: bool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


# the context


async def test_PY01_the_context_is_injected_by_keyword_and_not_in_the_schema() -> None:
    def price(*, ctx: CallContext, sku: str) -> str:
        return f"{ctx.name} {sku}"

    assert list(schema(price)["properties"]) == ["sku"]
    assert await call(price, '{"sku": "a"}') == "price a"
    assert "'ctx'" in await failure(price, '{"sku": "a", "ctx": 1}')


async def test_the_context_may_stand_anywhere_and_have_any_name() -> None:
    def first(ctx: CallContext, /, a: int) -> str:
        return f"{ctx.name}{a}"

    def middle(a: int, context: Optional[CallContext] = None, b: int = 2) -> str:  # noqa: UP045
        return f"{context.name if context else None}{a}{b}"

    def quoted(a: int, c: "CallContext | None" = None) -> str:  # noqa: UP037
        return f"{c is not None}{a}"

    assert await call(first, '{"a": 1}') == "first1"
    assert await call(middle, '{"a": 1}') == "middle12"
    assert await call(quoted, '{"a": 1}') == "True1"


# binding


async def test_PY02_binding_is_that_of_inspect_bind() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4) -> list[int]:
        return [a, b, c, d]

    assert await call(f, '{"a": 1, "c": 5}') == "[1,2,5,4]"
    assert await call(f, '{"a": 1, "b": 9, "d": 0}') == "[1,9,3,0]"
    assert "a" in await failure(f, '{"b": 1}')


async def test_PY03_keyword_variadics_keep_their_nesting() -> None:
    def tag(**groups: dict[str, int]) -> Any:
        return groups

    assert await call(tag, '{"groups": {"a": {"x": 1}}}') == '{"a":{"x":1}}'
    assert "groups.a" in await failure(tag, '{"groups": {"a": 1}}')
    assert await call(tag) == "{}"


async def test_PY04_positional_variadics_keep_their_shape() -> None:
    def path(*pts: tuple[int, int]) -> Any:
        return list(pts)

    assert await call(path, '{"pts": [[1, 2], [3, 4]]}') == "[[1,2],[3,4]]"
    assert "pts.1" in await failure(path, '{"pts": [[1, 2], [3, 4, 5]]}')
    items = schema(path)["properties"]["pts"]["items"]
    assert items.get("prefixItems") == [{"type": "integer"}, {"type": "integer"}]


async def test_PY06_variadics_are_not_required_scalars() -> None:
    def log(msg: str, *args: Any, **kwargs: Any) -> str:
        return f"{msg}{args}{kwargs}"

    found = schema(log)
    assert found["required"] == ["msg"]
    assert found["properties"]["args"]["type"] == "array"
    assert found["properties"]["kwargs"]["type"] == "object"
    assert await call(log, '{"msg": "x"}') == "x(){}"
    assert await call(log, '{"msg": "x", "args": [1], "kwargs": {"k": 2}}') == "x(1,){'k': 2}"


async def test_positional_parameters_before_variadics_keep_their_defaults() -> None:
    def f(a: int, b: int = 2, *rest: int, c: int = 3) -> Any:
        return [a, b, list(rest), c]

    assert await call(f, '{"a": 1, "rest": [7, 8]}') == "[1,2,[7,8],3]"
    assert await call(f, '{"a": 1, "b": 5, "c": 6}') == "[1,5,[],6]"


@pytest.mark.parametrize("name", ["self", "cls", "name", "arguments", "json", "schema", "from_", "model_config", "copy"])  # fmt: skip  # noqa: E501
async def test_no_parameter_name_is_reserved(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def f({name}: str = 'none') -> str: return {name}", space)
    assert await call(space["f"], f'{{"{name}": "given"}}') == "given"
    assert await call(space["f"]) == "none"


# defaults


async def test_PY09_a_default_of_none_takes_null_and_absence() -> None:
    def find(name: str = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return repr(name)

    assert await call(find) == "None"
    assert await call(find, '{"name": null}') == "None"
    assert await call(find, '{"name": "x"}') == "'x'"
    types = [one["type"] for one in schema(find)["properties"]["name"]["anyOf"]]
    assert sorted(types) == ["null", "string"]


async def test_PY24_a_default_of_any_kind_is_compared_by_identity_and_left_out_of_the_schema() -> (
    None
):
    class Array:
        def __eq__(self, other: object) -> Any:
            return [True, False]

        __hash__ = None  # type: ignore[assignment]

    def f(a: int = 1, b: Any = Array()) -> str:
        return type(b).__name__

    assert "default" not in schema(f)["properties"]["b"]
    assert schema(f)["properties"]["a"]["default"] == 1
    assert await call(f) == "Array"


async def test_defaults_by_field_reach_the_function_as_values() -> None:
    def by_default(x: int = Field(3, ge=1)) -> str:
        return repr(x)

    def by_annotation(x: Annotated[int, Field(default=4)]) -> str:
        return repr(x)

    def by_factory(x: list[int] = Field(default_factory=lambda: [5])) -> str:
        return repr(x)

    assert await call(by_default) == "3"
    assert "x" in await failure(by_default, '{"x": 0}')
    assert await call(by_annotation) == "4"
    assert await call(by_factory) == "[5]"
    assert "required" not in schema(by_default)


async def test_a_default_factory_makes_a_new_value_for_each_call() -> None:
    def grow(x: list[int] = Field(default_factory=list)) -> str:
        x.append(1)
        return repr(x)

    async with Assembly([grow]) as tools:
        assert [str(await tools.call("grow")) for _ in range(3)] == ["[1]"] * 3


# types


async def test_PY23_models_dataclasses_and_typed_dicts_arrive_as_what_they_are() -> None:
    def save(who: Union[Item, Point], items: list[Item], options: Options) -> str:  # noqa: UP007
        assert type(options) is dict
        return f"{who!r} {items!r} {options['deep']}"

    sent = '{"who": {"x": 1}, "items": [{"name": "n"}], "options": {"deep": true}}'
    assert await call(save, sent) == "Point(x=1, y=0) [Item(name='n', count=1)] True"
    told = await failure(save, '{"who": {"z": 1}, "items": [{"count": 1}], "options": {"deep": 1}}')
    for path in ("who", "items.0.name", "options.deep"):
        assert path in told


async def test_PY23_the_standard_librarys_typed_dict_works_too() -> None:
    def save(options: StandardOptions) -> str:
        return repr(options)

    assert await call(save, '{"options": {"deep": true}}') == "{'deep': True}"


async def test_literals_enums_and_optionals() -> None:
    def paint(colour: Colour, mode: Literal["a", 1] = "a", tint: int | None = None) -> str:
        return f"{colour} {mode!r} {tint!r}"

    assert await call(paint, '{"colour": "red"}') == "Colour.RED 'a' None"
    assert await call(paint, '{"colour": "blue", "mode": 1, "tint": null}') == "Colour.BLUE 1 None"
    assert "colour" in await failure(paint, '{"colour": "green"}')
    assert "mode" in await failure(paint, '{"colour": "red", "mode": "b"}')


async def test_PY12_annotations_resolve_in_the_module_that_defines_them() -> None:
    code = """
    from __future__ import annotations
    from pathlib import Path as Where
    from typing import Literal as OneOf
    from pydantic import BaseModel
    class Local(BaseModel):
        n: int
    def f(p: Where, mode: OneOf["r", "w"], m: Local) -> str:
        return f"{p.name} {mode} {m.n}"
    """
    import types

    there = types.ModuleType("elsewhere")
    sys.modules["elsewhere"] = there
    try:
        exec(textwrap.dedent(code), there.__dict__)
        found = await call(there.f, '{"p": "/a/b", "mode": "r", "m": {"n": 3}}')
    finally:
        del sys.modules["elsewhere"]
    assert found == "b r 3"


async def test_PY12_what_cannot_be_resolved_is_told_at_registration_with_the_name() -> None:
    def broken(a: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
        return ""

    with pytest.raises(InvalidDefinition, match="'broken'.*Nowhere"):  # noqa: RUF043
        async with Assembly([broken]):
            pass

    def odd(a: object, b: Any, c: CallContext) -> str:
        return ""

    def lock(a: asyncio.Lock) -> str:
        return ""

    with pytest.raises(InvalidDefinition, match="lock"):
        async with Assembly([lock]):
            pass


async def test_integers_of_any_size_stay_exact_and_floats_are_no_integers() -> None:
    """AR14."""

    def f(id: int) -> str:
        return str(id)

    for number in (1917043659912705297, 10**59 + 7, -(2**70)):
        assert await call(f, f'{{"id": {number}}}') == str(number)
    for wrong in ("10.5", "true", '"x"', "[1]"):
        assert "id" in await failure(f, f'{{"id": {wrong}}}')


@pytest.mark.parametrize(
    "annotation",
    [
        "float",
        "list[float]",
        "Point2",
        "Any",
        "Model",
        "dict[str, dict[str, Any]]",
        "dict[str, list[Any]]",
        "tuple[Any, int]",
    ],
)
async def test_AR13_an_infinite_number_never_reaches_a_function(annotation: str) -> None:
    @dataclasses.dataclass
    class Point2:
        x: float

    class Model(BaseModel):
        x: float

    space: dict[str, Any] = {"Point2": Point2, "Model": Model, "Any": Any}
    exec(f"def f(v: {annotation}) -> str: return repr(v)", space)
    values = {
        "float": "1e999",
        "Any": "1e999",
        "list[float]": "[1e999]",
        "dict[str, dict[str, Any]]": '{"a": {"x": 1e999}}',
        "dict[str, list[Any]]": '{"a": [1e999]}',
        "tuple[Any, int]": "[1e999, 1]",
    }
    value = values.get(annotation, '{"x": 1e999}')
    for sent in (value, value.replace("1e999", "-1e999")):
        await failure(space["f"], f'{{"v": {sent}}}')
    for constant in ("NaN", "Infinity", "-Infinity"):
        await failure(space["f"], f'{{"v": {value.replace("1e999", constant)}}}')


# callables


async def test_PY14_an_object_with_an_async_call_is_awaited_and_named_after_its_class() -> None:
    class Increment:
        """Adds one."""

        async def __call__(self, n: int) -> int:
            """Add one."""
            return n + 1

    made = tool(Increment())
    assert (made.definition.name, made.definition.description) == ("Increment", "Add one.")
    assert await call(made, '{"n": 1}') == "2"


async def test_PY15_asyncness_is_judged_on_the_outermost_callable() -> None:
    def plain(n: int) -> int:
        return n + 1

    @functools.wraps(plain)
    async def wrapped(*args: Any, **kwargs: Any) -> int:
        await asyncio.sleep(0)
        return plain(*args, **kwargs)

    async def coroutine(n: int) -> int:
        return n + 1

    @functools.wraps(coroutine)
    def runs(*args: Any, **kwargs: Any) -> int:
        return asyncio.run(coroutine(*args, **kwargs))

    @functools.wraps(coroutine)
    def hands_on(*args: Any, **kwargs: Any) -> Any:
        return coroutine(*args, **kwargs)

    for function in (wrapped, runs, hands_on):
        assert await call(function, '{"n": 1}') == "2"


async def test_methods_partials_and_builtins() -> None:
    class Shelf:
        def __init__(self) -> None:
            self.items = ["a"]

        def put(self, item: str) -> int:
            """Put something on the shelf."""
            self.items.append(item)
            return len(self.items)

        @staticmethod
        def size(of: int = 3) -> int:
            return of

    def power(base: int, exponent: int) -> int:
        """Raise to a power."""
        return base**exponent

    square = tool(name="square")(functools.partial(power, exponent=2))
    assert await call(Shelf().put, '{"item": "b"}') == "2"
    assert await call(Shelf.size) == "3"
    assert await call(square, '{"base": 5}') == "25"
    assert square.definition.description == "Raise to a power."


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidDefinition, match="name"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).definition.name == "one"


async def test_a_decorated_function_is_still_the_function() -> None:
    @tool
    async def twice(n: int) -> int:
        """Doubles."""
        return n * 2

    assert await twice(4) == 8
    assert (twice.__name__, twice.__doc__) == ("twice", "Doubles.")
    assert list(inspect.signature(twice).parameters) == ["n"]


def test_effects_become_annotations_and_unknown_ones_are_refused() -> None:
    def hints(effects: Any) -> Annotations:
        return tool(effects=effects, title="T")(lambda_named).definition.annotations

    def lambda_named() -> None: ...

    assert hints("read") == Annotations("T", True, False, True)
    assert hints("destructive") == Annotations("T", False, True, False)
    with pytest.raises(InvalidDefinition, match="effects"):
        tool(effects="sometimes")  # type: ignore[call-overload]


# the thread of a sync tool


async def test_a_sync_tool_sees_the_callers_context_variables_in_another_thread() -> None:
    import contextvars
    import threading

    var = contextvars.ContextVar("var", default="unset")

    def look() -> str:
        seen = var.get()
        var.set("changed")
        return f"{seen} {threading.current_thread() is threading.main_thread()}"

    async with Assembly([look]) as tools:
        var.set("the caller's")
        assert str(await tools.call("look")) == "the caller's False"
        assert var.get() == "the caller's"


# docstrings


@pytest.mark.parametrize(
    ("text", "description", "said"),
    [
        ("Weather.\n    Args:\n        city: Where.\n    ", "Weather.", "Where."),
        ("Args:\n        city: Where.\n    ", "", "Where."),
        ("Weather.\n\n    Args:\n        city (str, optional): Where.\n    ", "Weather.", "Where."),
        ("Weather.\n\n    Args:\n        city: One of:\n            - a: fast\n            - b: deep\n", "Weather.", "One of:\n- a: fast\n- b: deep"),  # noqa: E501
        ("Weather.\n\n    Parameters\n    ----------\n    city : str\n        Where\n        it is.\n", "Weather.", "Where\nit is."),  # noqa: E501
        ("Weather.\n\n    :param city: Where.\n    :type city: str\n    :returns: it\n", "Weather.", "Where."),  # noqa: E501
        ("Weather.\n\n    Args:\n        city: Where.\n        nowhere: Not there.\n\n    Returns:\n        It.\n", "Weather.", "Where."),  # noqa: E501
        ("Weather.\n\n    More of it.\n", "Weather.\n\nMore of it.", None),
        ("", "", None),
    ],
    ids=["PY17", "PY21", "PY22", "PY20 google", "PY20 numpy", "PY20 sphinx", "unknown name", "plain", "none"],  # noqa: E501
)  # fmt: skip
def test_docstrings_of_all_styles(text: str, description: str, said: str | None) -> None:
    def weather(city: str) -> str:
        return city

    weather.__doc__ = text
    definition = tool(weather).definition
    assert definition.description == description
    assert definition.input_schema["properties"]["city"].get("description") == said


def test_a_description_by_field_beats_the_docstring_and_pydantic_constraints_are_kept() -> None:
    def f(a: Annotated[int, Field(description="By field.", ge=1, le=9)], b: str = "x") -> None:
        """Do it.

        Args:
            a: By docstring.
            b: The other.
        """

    properties = schema(f)["properties"]
    assert properties["a"] == {
        "description": "By field.",
        "maximum": 9,
        "minimum": 1,
        "type": "integer",
    }
    assert properties["b"] == {"description": "The other.", "type": "string", "default": "x"}
    assert schema(f)["required"] == ["a"]
    assert schema(f)["additionalProperties"] is False
    assert "title" not in str(schema(f))


# names


@pytest.mark.parametrize("name", ["fs/read", "a b", "ä", "x" * 70, "a.b"])
async def test_an_odd_name_is_made_callable_and_the_original_kept(name: str) -> None:
    made = tool(name=name)(schema)
    shown = made.definition.name
    assert shown.replace("_", "").replace("-", "").isalnum()
    assert len(shown) <= 64
    assert made.original == name
    assert tool(name=name)(schema).definition.name == shown


def test_NM03_names_that_look_alike_when_cleaned_stay_apart() -> None:
    shown = {
        tool(name=name)(schema).definition.name
        for name in ("build:dev", "build_dev", "build dev", "build.dev")
    }
    assert len(shown) == 4
    assert "build_dev" in shown


def test_TS09_a_schema_is_byte_identical_between_runs_and_keeps_the_authors_order() -> None:
    code = (
        "from toolcrib import tool\n"
        "from typing import Literal\n"
        "@tool\n"
        "def f(zeta: int, alpha: Literal['b', 'a'], mid: dict[str, set[int]] = {}) -> None: ...\n"
        "print(f.definition.schema_json, f.definition.fingerprint)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent / "src")},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        for seed in ("0", "3")
    }
    assert len(runs) == 1
    (text,) = runs
    assert text.index("zeta") < text.index("alpha") < text.index("mid")


def test_PY17_a_section_without_a_blank_line_before_it_is_a_section() -> None:
    @tool
    def weather(city: str) -> str:
        """Weather.
        Args:
            city: Where.
        """
        return city

    assert weather.definition.description == "Weather."
    assert weather.definition.input_schema["properties"]["city"]["description"] == "Where."
