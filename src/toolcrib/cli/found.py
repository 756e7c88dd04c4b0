"""What the commands about searching print: explained hits and evaluations. Decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape

from toolcrib.ranking.explain import Explanation, WordShare
from toolcrib.testing.retrieval import Retrieval

__all__ = ["explained_json", "explained_text", "retrieval_json", "retrieval_text"]

_ORIGINS = {
    "word": "",
    "synonym": "stands for {term}",
    "corrected": "for {term}: did you mean that?",
    "learned": "led here before",
}
_MOST_TERMS = 4


def _console() -> Console:
    return Console(file=sys.__stdout__, highlight=False, soft_wrap=True)


def _json(value: Any) -> None:
    text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    print(text, file=sys.__stdout__)


def explained_text(query: str, explained: Sequence[Explanation]) -> None:
    console = _console()
    if not explained:
        console.print(f"nothing fits {escape(query)!r}")
    for one in explained:
        console.print(f"[bold]{one.total:.2f}  {escape(one.name)}[/bold]")
        if one.partial:
            console.print("  by its words alone; what it gains by meaning is not told apart")
        for condition in one.conditions:
            console.print(f"  holds   {escape(condition.text)}")
        if one.listed:
            console.print("  listed  the query has filters only")
        for word in one.words:
            console.print(f"  {word.points:6.2f}  {escape(_word(word))}")
        gains = [("name", one.gains.name), ("source", one.gains.source)]
        told = ", ".join(f"+{gain:.0%} {what} covered" for what, gain in gains if gain >= 0.005)
        if told:
            console.print(f"  x {one.gains.factor:4.2f}  {told}")
        if one.named:
            console.print(f"  {one.named:6.2f}  the query names it")


def _word(word: WordShare) -> str:
    terms = word.terms if word.origin != "word" else [t for t in word.terms if t == word.term]
    name = " ".join(terms[:_MOST_TERMS]) or word.term
    if len(word.terms) > 1:
        name = f"{word.term}…"
    why = _ORIGINS[word.origin].format(term=word.term)
    fields = " ".join(f"{share.field} {share.points:.2f}" for share in word.fields)
    weighed = f"weight {word.weight:.2f} x rarity {word.rarity:.2f}"
    return f"{name}{f' ({why})' if why else ''}  {weighed}  {fields}".rstrip()


def explained_json(query: str, explained: Sequence[Explanation]) -> None:
    _json({"query": query, "hits": [asdict(one) | _gains(one) for one in explained]})


def _gains(one: Explanation) -> dict[str, Any]:
    return {"gains": {"name": one.gains.name, "source": one.gains.source}}


def retrieval_text(found: Retrieval) -> None:
    console = _console()
    recall = "  ".join(f"recall@{rank} {share:.3f}" for rank, share in found.recall.items())
    console.print(f"{found.cases} queries  {recall}  nDCG@10 {found.ndcg:.3f}  MRR {found.mrr:.3f}")
    for missed in found.missed:
        console.print(f"\n[red]missed[/red] {escape(missed.query)!r}")
        console.print(f"  not among the first {found.k}: {escape(', '.join(missed.missing))}")
        console.print(f"  came: {escape(', '.join(missed.came) or 'nothing')}")


def retrieval_json(found: Retrieval) -> None:
    _json(found.to_json())
