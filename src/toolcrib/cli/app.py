"""The commands and their options. What they print is `render`, what they do `commands`."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli import chat as chatting
from toolcrib.cli import commands
from toolcrib.cli import login as accounts
from toolcrib.cli import sources as looking
from toolcrib.cli.approving import Approving
from toolcrib.cli.exits import Exit, guarded
from toolcrib.cli.importing import import_file

__all__ = ["main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Tools for LLM agents: what there is, finding the right one, calling it.",
    epilog="Exit codes: 0 fine · 1 a call failed, recall too low · 2 usage · 3 configuration.",
)

File = Annotated[Path, typer.Argument(help="The deployment file", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of tables")]
Name = Annotated[
    str | None, typer.Option("--assembly", help="Which assembly, where the file has several")
]
Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help="A scope granted to you; may be repeated")
]

Server = Annotated[str, typer.Argument(help="The MCP server's name", show_default=False)]
Source = Annotated[
    str | None, typer.Option("--source", help="Which source, where several have such a server")
]


class Format(enum.StrEnum):
    """The clients whose files are read."""

    AUTO = "auto"
    CLAUDE = "claude"
    VSCODE = "vscode"
    CURSOR = "cursor"


@app.command("list")
def list_tools(file: File, json: Json = False, assembly: Name = None) -> None:
    """What tools there are: name, source, exposure, bytes."""
    guarded(commands.list_tools(file, assembly, json))


@app.command()
def search(
    file: File,
    query: Annotated[str, typer.Argument(help="The task in a few words, or a tool's name")],
    limit: Annotated[int, typer.Option(min=1, help="How many tools at most")] = 8,
    explain: Annotated[bool, typer.Option("--explain", help="What each score is made of")] = False,
    json: Json = False,
    assembly: Name = None,
) -> None:
    """Which tools fit a task, best first. source:NAME, tag:NAME, "a phrase" and +inname narrow."""
    command = commands.explain if explain else commands.search
    guarded(command(file, assembly, query, limit, json))


@app.command("eval-search")
def eval_search(
    file: File,
    cases: Annotated[
        Path, typer.Argument(help='JSONL: {"query": "…", "relevant": ["tool_name", …]} a line')
    ],
    k: Annotated[int, typer.Option("--k", min=1, help="A query that lacks a tool here failed")] = 8,
    min_recall: Annotated[
        float, typer.Option(min=0, max=1, help="Exit with 1 if recall@k is lower")
    ] = 0,
    json: Json = False,
    assembly: Name = None,
) -> None:
    """How well the search finds what it should: recall, nDCG, MRR, and the queries that failed."""
    guarded(commands.eval_search(file, assembly, cases, k, min_recall, json))


@app.command()
def call(
    file: File,
    name: Annotated[str, typer.Argument(help="The tool's name, or source/tool")],
    arguments: Annotated[str, typer.Argument(help="A JSON object")] = "{}",
    json: Json = False,
    assembly: Name = None,
    scope: Scopes = None,
) -> None:
    """Calls one tool and prints its result."""
    guarded(commands.call(file, assembly, name, arguments, tuple(scope or ()), json))


@app.command()
def run(
    file: File,
    script: Annotated[
        Path | None, typer.Option(help="The conversation; default: FILE with .run.yaml")
    ] = None,
    json: Json = False,
    assembly: Name = None,
) -> None:
    """Plays a scripted conversation and shows what each round saw, called and got."""
    guarded(commands.run(file, assembly, script or file.with_suffix(".run.yaml"), json))


@app.command()
def check(file: File, json: Json = False) -> None:
    """Checks a deployment file without starting anything; prints every problem."""
    guarded(commands.check(file, json))


@app.command()
def sources(
    file: File,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for the first attempts")
    ] = commands.READY_PATIENCE,
    stderr: Annotated[
        bool, typer.Option("--stderr", help="What each server last said, not only those at fault")
    ] = False,
    json: Json = False,
) -> None:
    """Starts every source and shows how each server is; 1 unless all are ready."""
    guarded(looking.sources(file, wait, stderr, json))


@app.command()
def login(
    file: File,
    server: Server,
    source: Source = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the browser comes back to; 0: any")
    ] = 0,
) -> None:
    """Logs you in to an MCP server with OAuth, and keeps the tokens for this file's sources."""
    opens = accounts.no_browser if no_browser else accounts.the_browser
    guarded(accounts.login(file, server, source, opens, port))


@app.command()
def logout(file: File, server: Server, source: Source = None) -> None:
    """Forgets the tokens of an MCP server."""
    guarded(accounts.logout(file, server, source))


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help=".mcp.json, .vscode/mcp.json, .cursor/mcp.json, …", show_default=False),
    ],
    format: Annotated[Format, typer.Option(help="Whose file it is")] = Format.AUTO,
    json: Json = False,
) -> None:
    """Prints the file of another MCP client as a deployment file, without its secrets."""
    guarded(import_file(file, format, json))


@app.command()
def chat(
    file: File,
    model: Annotated[
        str,
        typer.Option(help="openai:NAME or anthropic:NAME; the key comes from the environment"),
    ],
    base_url: Annotated[
        str | None,
        typer.Option(help="Any compatible server, e.g. http://127.0.0.1:8000/v1 (openai)"),
    ] = None,
    system: Annotated[str, typer.Option(help="The system prompt")] = "",
    json: Annotated[bool, typer.Option("--json", help="Every event as a line of JSON")] = False,
    assembly: Name = None,
    scope: Scopes = None,
    approve: Annotated[
        Approving | None,
        typer.Option(
            help="Which calls you are asked about before they run. writes: of every tool that does"
            " not say it only reads; all: every one but tool_search. Default: writes where the"
            " input is a terminal, none otherwise",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Converses with a model that has the file's tools. Ctrl-C cancels what runs, twice ends."""
    guarded(
        chatting.chat(
            file,
            assembly,
            model,
            base_url=base_url,
            system=system,
            scopes=tuple(scope or ()),
            json=json,
            approve=approve,
        )
    )


def main() -> None:
    """The entry point of the `toolcrib` command."""
    try:
        sys.exit(app(standalone_mode=False))  # typer returns the code of an interruption
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        show = getattr(error, "show", None)  # a usage error of click's own
        if show is None:
            raise
        show()
        sys.exit(Exit.USAGE)
