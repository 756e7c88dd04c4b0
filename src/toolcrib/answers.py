"""Whether what a person said fits the form they were asked to fill in.

Pure, for hosts that want to ask again and for sources that send nothing unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.host import Elicitation
from toolcrib.jsonvalue import is_object
from toolcrib.schema import compile_asserting

__all__ = ["completed", "misfits"]


def completed(question: Elicitation, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values`, and for each field left out the default that the question gives it (SEP-1034)."""
    fields = question.schema.get("properties")
    filled = dict(values)
    for name, field in fields.items() if is_object(fields) else ():
        if is_object(field) and "default" in field:
            filled.setdefault(name, field["default"])
    return filled


def misfits(question: Elicitation, values: Mapping[str, Any]) -> list[str]:
    """What of `values` the form does not take, in words that repeat none of them; empty where they
    fit. Raises `InvalidSchema` where the form itself cannot be understood."""
    schema = {"type": "object", "additionalProperties": False, **question.schema}
    return compile_asserting(schema).misfits(dict(values))
