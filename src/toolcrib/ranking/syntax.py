"""The query language: what of a query's text is an operator, and what is plain words.

    source:NAME      only tools of that source; tag:NAME only tools with that tag. Case and
                     separators of NAME are ignored, "…" round it is allowed. Several of one kind:
                     any of them. Both kinds: both.
    "rename branch"  only tools with these words side by side, in this order, in some one text.
    +word            only tools with the word in their name.

Operators only narrow: the words in them rank like all others. An operator stands at the start of a
word, so a URL, a time, `C++`, `a + b` and `foo:bar` are plain text. People and models quote values
in whole sentences (`delete the scene called "Bedtime"`): quotes mean a phrase only where at most
`MAX_OUTSIDE` words stand outside of operators and at most `MAX_PHRASE` inside. A query with an
unbalanced quote or a bare `source:` is plain text as a whole. Never an error.

Pure text; what documents hold is `entries`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcrib.ranking.text import name_key

__all__ = ["Ask", "ask"]

MAX_OUTSIDE = 3
MAX_PHRASE = 6
MAX_OPERATORS = 16
"""Operators of one query; more of them are plain text."""

_OPERATOR = re.compile(
    r"""(?<!\S)(?:
        (?P<kind>source|tag):(?:"(?P<quoted>[^"]+)"|(?P<value>\w[\w.-]*))
      | "(?P<phrase>[^"]+)"
      | \+(?P<word>[^\W\d_][\w-]*)
    )(?=[\s,;.!?]|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(r"(?<!\S)(?:source|tag):(?!\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ask:
    """A query taken apart: the words that rank, and what a document must hold. `sources` and `tags`
    are name keys; `phrases` and `required` are as written."""

    text: str
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether there is any operator."""
        return bool(self.sources or self.tags or self.phrases or self.required)


def ask(query: str) -> Ask:
    """What `query` asks for."""
    if not ('"' in query or ":" in query or "+" in query):
        return Ask(query)
    if query.count('"') % 2 or _BARE.search(query):
        return Ask(query)
    found = [match for match in _OPERATOR.finditer(query) if _means(match)][:MAX_OPERATORS]
    if not _is_terse(query, found):
        found = [match for match in found if match["phrase"] is None]
    return Ask(
        _words(query, found),
        tuple(_key(match) for match in found if _kind(match) == "source"),
        tuple(_key(match) for match in found if _kind(match) == "tag"),
        tuple(match["phrase"] for match in found if match["phrase"] is not None),
        tuple(match["word"] for match in found if match["word"] is not None),
    )


def _kind(match: re.Match[str]) -> str:
    return (match["kind"] or "").lower()


def _key(match: re.Match[str]) -> str:
    return name_key(match["quoted"] or match["value"])


def _means(match: re.Match[str]) -> bool:
    """Whether an operator is left with anything once separators are ignored."""
    return bool(name_key(match["quoted"] or match["value"] or match["phrase"] or match["word"]))


def _is_terse(query: str, found: list[re.Match[str]]) -> bool:
    phrases = [match["phrase"] for match in found if match["phrase"] is not None]
    if any(len(phrase.split()) > MAX_PHRASE for phrase in phrases):
        return False
    outside = query
    for match in found:
        outside = outside.replace(match[0], " ", 1)
    return len(outside.split()) <= MAX_OUTSIDE


def _words(query: str, found: list[re.Match[str]]) -> str:
    """`query` without filters and marks; the words of phrases and required words stay."""
    parts: list[str] = []
    at = 0
    for match in found:
        parts += [query[at : match.start()], match["phrase"] or match["word"] or ""]
        at = match.end()
    return " ".join((*parts, query[at:])) if found else query
