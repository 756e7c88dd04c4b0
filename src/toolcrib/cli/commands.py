"""What each command does with an open assembly; gives an exit code."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from toolcrib.assembly import Assembly
from toolcrib.catalog import Catalog
from toolcrib.cli import found, render
from toolcrib.cli.cases import load_cases
from toolcrib.cli.exits import Exit
from toolcrib.cli.script import load_script
from toolcrib.cli.talk import play
from toolcrib.content import ToolCall
from toolcrib.deploy import load
from toolcrib.errors import ConfigurationError, NotAvailable
from toolcrib.principal import Principal
from toolcrib.ranking.ranker import ExplainingRanker
from toolcrib.testing.retrieval import evaluate

__all__ = ["call", "check", "eval_search", "explain", "list_tools", "run", "search"]

READY_PATIENCE = 20.0
"""Seconds a command waits for the servers marked `required`."""


@asynccontextmanager
async def _opened(file: Path, name: str | None) -> AsyncGenerator[Assembly]:
    async with load(file).build(name) as assembly:
        await assembly.wait_ready(READY_PATIENCE)
        yield assembly


async def list_tools(file: Path, name: str | None, json: bool) -> Exit:
    async with _opened(file, name) as assembly:
        show = render.catalog_json if json else render.catalog_table
        show(assembly.catalog)
        for record in assembly.registry.policies.idle(entry.name for entry in assembly.catalog):
            print(f"the policy of {record!r} is about none of these tools", file=sys.stderr)
    return Exit.OK


async def search(file: Path, name: str | None, query: str, limit: int, json: bool) -> Exit:
    async with _opened(file, name) as assembly:
        hits = assembly.ranker.search(query, limit, _searched(assembly.catalog).__contains__)
        show = render.hits_json if json else render.hits_table
        show(query, hits, assembly.catalog)
    return Exit.OK


async def explain(file: Path, name: str | None, query: str, limit: int, json: bool) -> Exit:
    async with _opened(file, name) as assembly:
        ranker = assembly.ranker
        if not isinstance(ranker, ExplainingRanker):
            raise NotAvailable(f"{type(ranker).__name__} does not explain its scores")
        hits = ranker.search(query, limit, _searched(assembly.catalog).__contains__)
        explained = [one for hit in hits if (one := ranker.explain(query, hit.name)) is not None]
        show = found.explained_json if json else found.explained_text
        show(query, explained)
    return Exit.OK


async def eval_search(
    file: Path, name: str | None, cases: Path, k: int, least: float, json: bool
) -> Exit:
    async with _opened(file, name) as assembly:
        known = _searched(assembly.catalog)
        retrieval = evaluate(assembly.ranker, load_cases(cases, known), k, known.__contains__)
        show = found.retrieval_json if json else found.retrieval_text
        show(retrieval)
    return Exit.FAILED if retrieval.recall[k] < least else Exit.OK


def _searched(catalog: Catalog) -> set[str]:
    return {entry.name for entry in catalog if entry.policy.exposure != "hidden"}


async def call(
    file: Path, name: str | None, tool: str, arguments: str, scopes: tuple[str, ...], json: bool
) -> Exit:
    async with _opened(file, name) as assembly:
        principal = Principal("cli", scopes=frozenset(scopes))
        result = await assembly.execute(ToolCall("cli", tool, arguments), principal=principal)
        show = render.result_json if json else render.result_text
        show(result)
    return Exit.FAILED if result.is_error else Exit.OK


async def run(file: Path, name: str | None, script: Path, json: bool) -> Exit:
    rounds = load_script(script)
    async with _opened(file, name) as assembly:
        played = await play(assembly, rounds, render.no_round if json else render.round_text)
        show = render.played_json if json else render.played_text
        show(played)
    return Exit.FAILED if played.failed else Exit.OK


async def check(file: Path, json: bool) -> Exit:
    logging.getLogger("toolcrib.deploy").setLevel(logging.ERROR)  # warnings are in what is printed
    try:
        deployment = load(file)
    except ConfigurationError as error:
        if not json:
            raise
        render.problems_json(error.problems)
        return Exit.CONFIGURATION
    show = render.checked_json if json else render.checked_text
    show(deployment)
    return Exit.OK
