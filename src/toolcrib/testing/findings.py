"""Collects violations, so that one run of a check tells all of them."""

from __future__ import annotations

__all__ = ["Findings"]


class Findings:
    """What a check found wrong with its subject."""

    def __init__(self, subject: object) -> None:
        self._subject = subject
        self._found: list[str] = []

    def expect(self, holds: object, violation: str) -> None:
        """Notes `violation` unless `holds`."""
        if not holds:
            self._found.append(violation)

    def tell(self) -> None:
        """Raises `AssertionError` with everything noted, if anything was."""
        if self._found:
            lines = "\n".join(f"- {violation}" for violation in self._found)
            raise AssertionError(f"{self._subject!r} breaks its contract:\n{lines}")
