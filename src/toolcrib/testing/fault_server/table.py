"""The table of all faults, filled: whoever looks a fault up imports it from here."""

from __future__ import annotations

from typing import Final

from toolcrib.testing.fault_server import (
    answer_faults,
    http_faults,
    list_faults,
    process_faults,
)
from toolcrib.testing.fault_server.faults import TABLE, Spec, parsed, through

__all__ = ["FILLED_BY", "TABLE", "Spec", "parsed", "through"]

FILLED_BY: Final = (answer_faults, list_faults, process_faults, http_faults)
"""Importing each of them puts its faults into the table."""
