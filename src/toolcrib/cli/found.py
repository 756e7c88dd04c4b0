"""What the commands about searching print: explained hits and evaluations. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape

from toolcrib.cli.terminal import console, print_json
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


def explained_text(query: str, explained: Sequence[Explanation]) -> None:
    to = console()
    if not explained:
        to.print(f"nothing fits {escape(query)!r}")
    for one in explained:
        to.print(f"[bold]{one.total:.2f}  {escape(one.name)}[/bold]")
        if one.partial:
            to.print("  by its words alone; what it gains by meaning is not told apart")
        for condition in one.conditions:
            to.print(f"  holds   {escape(condition.text)}")
        if one.listed:
            to.print("  listed  the query has filters only")
        for word in one.words:
            to.print(f"  {word.points:6.2f}  {escape(_word(word))}")
        gains = [("name", one.gains.name), ("source", one.gains.source)]
        told = ", ".join(f"+{gain:.0%} {what} covered" for what, gain in gains if gain >= 0.005)
        if told:
            to.print(f"  x {one.gains.factor:4.2f}  {told}")
        if one.named:
            to.print(f"  {one.named:6.2f}  the query names it")


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
    print_json({"query": query, "hits": [asdict(one) | _gains(one) for one in explained]})


def _gains(one: Explanation) -> dict[str, Any]:
    return {"gains": {"name": one.gains.name, "source": one.gains.source}}


def retrieval_text(found: Retrieval) -> None:
    to = console()
    recall = "  ".join(f"recall@{rank} {share:.3f}" for rank, share in found.recall.items())
    to.print(f"{found.cases} queries  {recall}  nDCG@10 {found.ndcg:.3f}  MRR {found.mrr:.3f}")
    for missed in found.missed:
        to.print(f"\n[red]missed[/red] {escape(missed.query)!r}")
        to.print(f"  not among the first {found.k}: {escape(', '.join(missed.missing))}")
        to.print(f"  came: {escape(', '.join(missed.came) or 'nothing')}")


def retrieval_json(found: Retrieval) -> None:
    print_json(found.to_json())
