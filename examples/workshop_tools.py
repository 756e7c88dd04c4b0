"""A dozen plain functions as tools: what an office agent might have at hand."""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
import statistics
import unicodedata
from collections import Counter
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from toolcrib import CallContext, ToolError, tool


@tool(effects="read", tags=["text"])
def word_count(text: str, top: Annotated[int, Field(ge=0, le=50)] = 3) -> dict[str, object]:
    """Count the words of a text.

    Args:
        text: The text to look at.
        top: How many of the most frequent words to name.
    """
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {
        "words": len(words),
        "distinct": len(set(words)),
        "top": Counter(words).most_common(top),
    }


@tool(effects="read", tags=["text"])
def slugify(text: str, separator: Literal["-", "_"] = "-") -> str:
    """Turn a title into a short ASCII slug for a URL or a file name.

    Args:
        text: The title.
        separator: What stands between the words.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return separator.join(re.findall(r"[a-z0-9]+", plain.lower()))


@tool(effects="read", tags=["text"])
def compare_texts(before: str, after: str) -> str:
    """Show the difference of two texts as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm=""
    )
    return "\n".join(lines) or "no difference"


@tool(effects="read", tags=["text"])
def find_pattern(text: str, pattern: str) -> list[str]:
    """Find every match of a regular expression in a text."""
    try:
        return [found.group(0) for found in re.finditer(pattern, text)]
    except re.error as error:
        raise ToolError(f"the pattern is no regular expression: {error}") from error


@tool(effects="read", tags=["dates"])
def days_between(start: date, end: date) -> int:
    """Count the days from one date to another.

    Args:
        start: The first day, e.g. 2026-01-31.
        end: The last day.
    """
    return (end - start).days


@tool(effects="read", tags=["dates"])
def weekday(day: date) -> str:
    """Tell which day of the week a date is."""
    return day.strftime("%A")


@tool(effects="read", tags=["numbers"])
def summarise_numbers(values: Annotated[list[float], Field(min_length=1)]) -> dict[str, float]:
    """Mean, median, smallest and largest of a list of numbers."""
    return {
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


@tool(effects="read", tags=["numbers"])
def convert_length(
    value: float, source: Literal["m", "km", "mi", "ft"], target: Literal["m", "km", "mi", "ft"]
) -> float:
    """Convert a length between metres, kilometres, miles and feet."""
    metres = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
    return round(value * metres[source] / metres[target], 6)


@tool(effects="read", tags=["numbers"])
def to_roman(number: Annotated[int, Field(ge=1, le=3999)]) -> str:
    """Write a whole number as a Roman numeral."""
    steps = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ]
    out = ""
    for value, letters in steps:
        count, number = divmod(number, value)
        out += letters * count
    return out


@tool(effects="read", tags=["encoding"])
def checksum(text: str, algorithm: Literal["sha256", "sha1", "md5"] = "sha256") -> str:
    """The checksum (hash) of a text, in hexadecimal."""
    return hashlib.new(algorithm, text.encode()).hexdigest()


@tool(effects="read", tags=["encoding"])
def decode_base64(data: str) -> str:
    """Decode base64 into text."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError as error:
        raise ToolError("that is not base64 of UTF-8 text") from error


@tool(effects="read", tags=["text"])
async def headline(text: str, ctx: CallContext) -> str:
    """Take the first sentence of a text, as a headline."""
    ctx.progress(1, 1, "one sentence read")
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]
