"""Text told piece by piece: every piece is whole characters."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Telling", "whole"]


def whole(text: str) -> str:
    """`text` with the two halves of a surrogate pair put together, and lone ones replaced.

    A server that cuts a JSON string between them sends each half as a character of its own.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Telling:
    """Tells pieces to `listener`; a half character waits for its other half."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener
        self._half: str = ""
        self.told = False

    def __call__(self, piece: str) -> None:
        piece = self._half + piece
        self._half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if piece:
            self.told = True
            self._listener(whole(piece))

    def end(self, text: str) -> None:
        """The response is there, its text is `text`: told now if the stream held none of it."""
        if self._half:
            self._listener(whole(self._half))
        elif text and not self.told:
            self._listener(text)
        self.told = self.told or bool(text)
