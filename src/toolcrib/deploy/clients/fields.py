"""The fields of one server in a client's file: their kinds, their references, where they are.

What the fields mean together is `server`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolcrib.deploy.clients.dialect import Dialect, Text, parts
from toolcrib.deploy.clients.jsonc import BOOLEAN, NUMBER, TEXT, Entry, Value
from toolcrib.deploy.paths import joined
from toolcrib.deploy.places import Place

__all__ = ["Fields", "Unusable"]


class Unusable(Exception):
    """Why a server cannot be used. Its words hold the place in the file, and no values."""


class Fields:
    """Reads the fields of one server. Raises `Unusable` at the first fault.

    `same` are other names of keys; what is null counts as absent, as programs that write such files
    write every key they know.
    """

    def __init__(
        self, value: Value, place: Place, dialect: Dialect, same: Mapping[str, str]
    ) -> None:
        self.place = place
        self._dialect: Dialect = dialect
        self.entries: dict[str, Entry] = {}
        """By the key that is read, in the order of the file."""
        for entry in self._unique(value, place).values():
            if entry.value.kind == "null":
                continue
            first = self.entries.setdefault(same.get(entry.key, entry.key), entry)
            if first.value.data != entry.value.data:
                problem = f"it is {first.key!r} by another name, with another value: remove one"
                raise Unusable(str(self.at(entry).problem(problem)))

    def has(self, key: str) -> bool:
        """Whether there is more under the key than nothing."""
        entry = self.entries.get(key)
        return entry is not None and entry.value.data not in ("", ())

    def is_list(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.value.items is not None

    def flag(self, key: str) -> bool | None:
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not isinstance(entry.value.data, bool):
            raise self._wrong(entry, "true or false")
        return entry.value.data

    def text(self, key: str) -> Text:
        entry = self.entries.get(key)
        if entry is None:
            return ()
        text = self._parts(entry.value, self.at(entry))
        if not text:
            raise self.unusable("it is empty: leave it out, or give it a value", key)
        return text

    def texts(self, key: str, childs_own: Collection[str] = ()) -> tuple[Text, ...]:
        """A list of texts; `${X}` of a variable in `childs_own` is left to the server's process."""
        entry = self.entries.get(key)
        if entry is None:
            return ()
        if entry.value.items is None:
            raise self._wrong(entry, "a list")
        at = self.at(entry)
        return tuple(
            self._parts(item, Place(joined(at.path, number), at.file, item.line), childs_own)
            for number, item in enumerate(entry.value.items)
        )

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of names as they are, blank ones left out; None where there is none."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if entry.value.items is None or any(one.kind != TEXT for one in entry.value.items):
            raise self._wrong(entry, "a list of names")
        return tuple(str(one.data) for one in entry.value.items if str(one.data).strip())

    def map(self, key: str) -> dict[str, Text]:
        entry = self.entries.get(key)
        if entry is None:
            return {}
        at = self.at(entry)
        values = self._unique(entry.value, at)
        for name, one in values.items():
            if not name.strip() or "\0" in name or (key == "env" and "=" in name):
                raise Unusable(str(_under(at, one).problem("this cannot be a name here")))
        return {
            name: self._parts(one.value, _under(at, one))
            for name, one in values.items()
            if not (self._dialect == "vscode" and one.value.kind == "null")
        }

    def _parts(self, value: Value, at: Place, childs_own: Collection[str] = ()) -> Text:
        # VS Code takes numbers for the values of variables; the text is the one that was written.
        if value.kind == TEXT or (value.kind == NUMBER and self._dialect == "vscode"):
            found = parts(str(value.data), self._dialect, childs_own)
        else:
            hint = ': put it in "quotes"' if value.kind in (NUMBER, BOOLEAN) else ""
            raise Unusable(str(at.problem(f"expected a text, got {value.kind}{hint}")))
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

    def at(self, entry: Entry) -> Place:
        return _under(self.place, entry)

    def _wrong(self, entry: Entry, what: str) -> Unusable:
        problem = self.at(entry).problem(f"expected {what}, got {entry.value.kind}")
        return Unusable(str(problem))

    def unusable(self, message: str, key: str = "") -> Unusable:
        entry = self.entries.get(key)
        at = self.place if entry is None else self.at(entry)
        return Unusable(str(at.problem(message)))


def _under(at: Place, entry: Entry) -> Place:
    return Place(joined(at.path, entry.key), at.file, entry.line)
