"""References in text: what they give, what they refuse, and that a value stays one value."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ConfigurationError
from toolcrib.interpolate import expand, references

ENV = {"A": "1", "B": "two", "EMPTY": "", "WILD": 'a"b\nadmin: true #', "HOLDS": "${env:A}$${B}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("no reference", "no reference"),
        ("${env:A}", "1"),
        ("<${env:A}-${env:B}>${env:A}", "<1-two>1"),
        ("${env:NOPE:-fall back, #1: 'x'}", "fall back, #1: 'x'"),
        ("${env:NOPE:-}", ""),
        ("${env:NOPE:-a:-b}", "a:-b"),
        ("${env:A:-unused}", "1"),
        ("${base}/data", "/srv/data"),
    ],
)
def test_A9_4_any_number_of_references_in_a_text(text: str, expected: str) -> None:
    assert expand(text, ENV, "/srv") == expected


def test_A9_4_a_variable_that_is_set_but_empty_gives_the_empty_text() -> None:
    assert expand("<${env:EMPTY}>", ENV) == "<>"
    assert expand("<${env:EMPTY:-default}>", ENV) == "<>"


def test_A9_4_an_unset_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigurationError, match=r"'NOPE' is not set.*\$\{env:NOPE:-"):
        expand("${env:NOPE}", ENV)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$${env:A}", "${env:A}"),
        ("$${", "${"),
        ("$${CHILD_VAR}", "${CHILD_VAR}"),
        ("$$", "$$"),
        ("$", "$"),
        ("$A costs $5", "$A costs $5"),
        ("$$${env:A}", "$${env:A}"),
        ("$${a}${env:A}", "${a}1"),
        ("$${ ${env:A} }", "${ 1 }"),
    ],
)
def test_CF05_a_doubled_dollar_gives_a_literal_reference(text: str, expected: str) -> None:
    assert expand(text, ENV) == expected


def test_CF04_a_value_is_never_looked_at_again() -> None:
    assert expand("${env:HOLDS}", ENV) == "${env:A}$${B}"
    assert expand("x ${env:WILD} y", ENV) == 'x a"b\nadmin: true # y'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:A", "without its end"),
        ("${env:A\n}", "without its end"),
        ("${", "without its end"),
        ("${A}", r"unknown reference \$\{A\}: did you mean \$\{env:A\}\?"),
        ("${vault:secret/x}", r"unknown reference \$\{vault:…\}"),
        ("${}", "unknown reference"),
        ("${env:}", "'' is not the name"),
        ("${env:1A}", "'1A' is not the name"),
        ("${env:A:default}", "'A:…' is not the name"),
        ("${env:A-default}", "'A…' is not the name"),
        ("${env:A:-${env:B}}", "a reference within a reference"),
        ("${A:-${B}}", "a reference within a reference"),
        ('${env:A:-{"a": 1}}', "holds a brace"),
        ("${base}", "directory of the file, and there is none"),
        ("${base:-x}", "unknown reference"),
    ],
)
def test_CF04_what_is_no_reference_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        expand(text, ENV)


def test_secrets_stay_out_of_errors_and_repr() -> None:
    environ = {"SECRET": "hunter2"}
    with pytest.raises(ConfigurationError) as caught:
        expand("${env:SECRET} ${env:NOPE}", environ)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(list(references("${env:X:-hunter2}")))


DEFAULTS_OF_OTHERS = ("A:s3cret", "A-s3cret", "A:=s3cret", "A?s3cret", "A s3cret", "A|s3cret")


@pytest.mark.parametrize("inner", DEFAULTS_OF_OTHERS)
def test_a_default_in_the_words_of_another_program_is_in_no_error(inner: str) -> None:
    for text in (f"${{{inner}}}", f"${{env:{inner}}}"):
        with pytest.raises(ConfigurationError) as caught:
            expand(text, ENV)
        assert "A" in str(caught.value) and "s3cret" not in str(caught.value)


@given(st.text())
def test_CF04_any_value_comes_back_as_exactly_that_text(value: str) -> None:
    assert expand("${env:X}", {"X": value}) == value
    assert expand("${env:X}-${env:X}", {"X": value}) == f"{value}-{value}"


@given(st.text(alphabet="${}:-envA \n#'\""))
def test_expanding_hostile_text_ends_in_a_text_or_a_configuration_error(text: str) -> None:
    faults = [one.fault for one in references(text) if one.fault]
    if faults or "${env:" in text:
        with contextlib.suppress(ConfigurationError):
            expand(text, {"A": "1"}, "/base")
    else:
        assert isinstance(expand(text, {"A": "1"}, "/base"), str)
