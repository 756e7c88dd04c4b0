"""From the text a model sent to one JSON object: strict, then the recoveries that leave no doubt.

A name given twice counts with its last value, as in every parser; that is noted, and where text is
handed on it is written anew, so that no reader down the line can take the first. Whether the object
fits a tool is `arguments`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import jiter

from toolcrib.errors import InvalidArguments
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.misfits import article, json_type, path_of

__all__ = ["MAX_BYTES", "decode", "may_overflow"]

MAX_BYTES = 8 * 1024 * 1024
MAX_UNWRAP = 3

# Two patterns that begin with a letter of their own: the engine skips to it, ten times as fast as
# to a class of letters.
_SMALL_E = re.compile(r"e\+?[0-9]{2}").search
_LARGE_E = re.compile(r"E\+?[0-9]{2}").search
_DIGITS = re.compile(r"[0-9]{200}").search
_PAIR = re.compile(r"[0-9]{2}").search


def may_overflow(text: str) -> bool:
    """Whether JSON text may hold a number too large for a float, which parsers read as infinite: it
    takes an exponent of two digits, or 200 digits."""
    if _SMALL_E(text) is not None or ("E" in text and _LARGE_E(text) is not None):
        return True
    # 200 digits in a row hold two of every hundredth character, side by side in that sample.
    sample = text[::100]
    return len(text) > 200 and _PAIR(sample) is not None and _DIGITS(text) is not None


def decode(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The JSON object in `text` and the repairs it took.

    Blank text and `null` mean no arguments. An object inside a JSON string is unwrapped (at most 3
    times), prose after a complete object is cut off; both are repairs. Integers of any size stay
    exact. Raises `InvalidArguments` for everything else, NaN and infinite numbers included.
    """
    if len(text) > MAX_BYTES:
        raise InvalidArguments(
            f"the arguments are longer than {MAX_BYTES} bytes: send less at once"
        )
    repairs: list[str] = []
    value = _value_of(text, repairs)
    for _ in range(MAX_UNWRAP):
        if not isinstance(value, str) or not value.lstrip().startswith(("{", '"')):
            break
        repairs.append("the arguments were a JSON string holding the object")
        value = _value_of(value, repairs)
    if value is None:
        return {}, tuple(repairs)
    if not is_object(value):
        raise InvalidArguments(
            f"the arguments must be a JSON object, got {article(json_type(value))}"
        )
    if may_overflow(text):
        for path in _infinite(value, ()):
            raise InvalidArguments(f"{path}: too large for a number")
    return value, tuple(repairs)


def _value_of(text: str, repairs: list[str]) -> Any:
    text = text.strip()
    if not text:
        return None
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(
            "the arguments hold an unpaired surrogate, which is no text"
        ) from None
    try:
        return jiter.from_json(raw, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        if not str(error).startswith("Detected duplicate"):
            return _despite(text, str(error), repairs)
    repairs.append("a name was given twice: the last value counts")
    try:
        return jiter.from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        return _despite(text, str(error), repairs)


def _despite(text: str, error: str, repairs: list[str]) -> Any:
    """The object before trailing prose; for every other error a refusal."""
    if not (text.startswith("{") and error.startswith("trailing characters")):
        raise InvalidArguments(_not_json(text, error))
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
    except InvalidArguments:
        raise
    except (ValueError, RecursionError) as also:
        raise InvalidArguments(_not_json(text, str(also))) from None
    rest = text[end:].lstrip()
    if rest.startswith(("{", "[", "}", "]", ",")):
        raise InvalidArguments(
            f"the arguments go on after the JSON object ended at character {end}: send exactly one"
            " object, and one call for each set of arguments"
        )
    repairs.append(f"ignored {len(text) - end} characters after the JSON object")
    return value


def _refuse_constant(name: str) -> Any:
    raise InvalidArguments(f"{name} is not a JSON value: send a finite number")


def _not_json(text: str, error: str) -> str:
    if "NaN" in text or "Infinity" in text:
        return (
            f"{_place_of_constant(text)}the arguments are not JSON ({error}); NaN and Infinity are"
            " not JSON values: send a finite number"
        )
    if error.startswith("EOF"):
        return f"the arguments are cut off ({error}): send the whole JSON object again"
    return f"the arguments are not JSON: {error}; send one JSON object and nothing else"


def _place_of_constant(text: str) -> str:
    """Where a NaN or Infinity stands, if that is all that is wrong."""
    try:
        lenient = jiter.from_json(text.encode())
    except ValueError:
        return ""
    path = next(_infinite(lenient, ()), "")
    return f"{path}: " if path else ""


def _infinite(value: Any, steps: tuple[object, ...]) -> Iterator[str]:
    """The paths of numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path_of(steps)
    inner = value.items() if is_object(value) else enumerate(value) if is_array(value) else ()
    for step, each in inner:
        if isinstance(each, float | dict | list):
            yield from _infinite(each, (*steps, step))
