"""The fields of one server in a client's file: their kinds, their references, where they are.

What the fields mean together is `declared`.
"""

from __future__ import annotations

from toolcrib.deploy.clients.dialect import Dialect, Text, parts
from toolcrib.deploy.clients.jsonc import NUMBER, TEXT, Entry, Value
from toolcrib.deploy.paths import joined
from toolcrib.deploy.places import Place

__all__ = ["Fields", "Unusable"]


class Unusable(Exception):
    """Why a server cannot be used. Its words hold the place in the file, and no values."""


class Fields:
    """Reads the fields of one server. Raises `Unusable` at the first fault."""

    def __init__(self, value: Value, place: Place, dialect: Dialect) -> None:
        self.place = place
        self._dialect: Dialect = dialect
        self.entries = self._unique(value, place)
        """By key, in the order of the file."""

    def flag(self, key: str) -> bool:
        entry = self.entries.get(key)
        if entry is not None and not isinstance(entry.value.data, bool):
            raise self._wrong(entry, "true or false", key)
        return entry is not None and entry.value.data is True

    def text(self, key: str) -> Text:
        entry = self.entries.get(key)
        if entry is None:
            return ()
        text = self._parts(entry.value, self.at(entry, key))
        if not text:
            raise self.unusable("it is empty: leave it out, or give it a value", key)
        return text

    def texts(self, key: str) -> tuple[Text, ...]:
        entry = self.entries.get(key)
        if entry is None:
            return ()
        if entry.value.items is None:
            raise self._wrong(entry, "a list", key)
        at = self.at(entry, key)
        return tuple(
            self._parts(item, Place(joined(at.path, number), at.file, item.line))
            for number, item in enumerate(entry.value.items)
        )

    def map(self, key: str) -> dict[str, Text]:
        entry = self.entries.get(key)
        if entry is None:
            return {}
        at = self.at(entry, key)
        values = self._unique(entry.value, at)
        for name, one in values.items():
            if not name.strip() or "\0" in name or (key == "env" and "=" in name):
                raise Unusable(str(_under(at, one).problem("this cannot be a name here")))
        return {
            name: self._parts(one.value, _under(at, one))
            for name, one in values.items()
            if not (self._dialect == "vscode" and one.value.kind == "null")
        }

    def _parts(self, value: Value, at: Place) -> Text:
        # VS Code takes numbers for the values of variables; the text is the one that was written.
        if value.kind == TEXT or (value.kind == NUMBER and self._dialect == "vscode"):
            found = parts(str(value.data), self._dialect)
        else:
            raise Unusable(str(at.problem(f"expected a text, got {value.kind}")))
        if "\0" in str(value.data):
            raise Unusable(str(at.problem("a NUL character cannot be handed on")))
        for piece in found:
            if not isinstance(piece, str) and piece.kind == "fault":
                raise Unusable(str(at.problem(piece.name)))
        return found

    def _unique(self, value: Value, at: Place) -> dict[str, Entry]:
        if value.entries is None:
            raise Unusable(str(at.problem(f"expected an object, got {value.kind}")))
        found: dict[str, Entry] = {}
        for entry in value.entries:
            if (first := found.setdefault(entry.key, entry)) is not entry:
                message = f"duplicate key: it is already on line {first.line}"
                raise Unusable(str(_under(at, entry).problem(message)))
        return found

    def at(self, entry: Entry, key: str) -> Place:
        return Place(joined(self.place.path, key), self.place.file, entry.line)

    def _wrong(self, entry: Entry, what: str, key: str) -> Unusable:
        problem = self.at(entry, key).problem(f"expected {what}, got {entry.value.kind}")
        return Unusable(str(problem))

    def unusable(self, message: str, key: str = "") -> Unusable:
        entry = self.entries.get(key)
        at = self.place if entry is None else self.at(entry, key)
        return Unusable(str(at.problem(message)))


def _under(at: Place, entry: Entry) -> Place:
    return Place(joined(at.path, entry.key), at.file, entry.line)
