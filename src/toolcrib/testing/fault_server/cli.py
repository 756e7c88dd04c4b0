"""The server's command line."""

from __future__ import annotations

import argparse
import textwrap

from toolcrib.testing.fault_server import over_stdio, tools
from toolcrib.testing.fault_server.faults import Fault
from toolcrib.testing.fault_server.home import Home
from toolcrib.testing.fault_server.protocol import ERAS, Server
from toolcrib.testing.fault_server.table import TABLE

__all__ = ["main"]

INDENT = 26
GROUPS = (
    ("About a call (@tools/call, unless METHOD says otherwise):", ("tools/call",), ("", "stdio")),
    ("The same, over HTTP only:", ("tools/call",), ("http",)),
    ("About a listing (@tools/list):", ("tools/list",), ("",)),
    ("About the start of the process (@start), or what METHOD says:", ("start",), ("",)),
    ("The same, over stdio only:", ("start",), ("stdio",)),
    ("About the handshake (@initialize):", ("initialize",), ("",)),
)
"""How `--list` is ordered: a title, and which faults stand under it."""

EXAMPLES = """\
examples:
  ... --list                                     every fault, and what it does
  ... --stdio --fault 'crash_during*1'           the first call is done, its answer is lost
  ... --http 8000 --era modern --fault refuse=503
  ... --stdio --fault hang@tools/list            a listing without an end
"""


def main(arguments: list[str]) -> int:
    """Serves until the input ends (or the process is ended); the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.list:
        print(_listed())
        return 0
    port: int | None = given.http
    home = Home(given.home, "stdio" if port is None else "http")
    try:
        for fault in given.fault:
            home.add(fault)
    except ValueError as error:
        parser.error(str(error))
    server = Server(given.era, home)
    if port is None:
        over_stdio.serve(server)
    else:
        from toolcrib.testing.fault_server import over_http  # slow to import: see command()

        over_http.serve(server, port, given.leashed)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m toolcrib.testing.fault_server",
        description="An MCP server that misbehaves on demand, for tests of clients and agents.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stdio", action="store_true", help="serve stdin and stdout")
    where.add_argument("--http", type=int, metavar="PORT", help="serve 127.0.0.1:PORT (0: any)")
    where.add_argument("--list", action="store_true", help="list the faults and the tools")
    parser.add_argument(
        "--era",
        choices=ERAS,
        default="legacy",
        help="legacy: protocol 2025-11-25; modern: 2026-07-28; silent: legacy, and does not answer"
        " methods it does not know (default: legacy)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[=VALUE][@METHOD][*TIMES]",
        help="a fault (--list), about the messages METHOD (any: all of them; start: the start), so"
        " many times (default: always); may be repeated",
    )
    parser.add_argument(
        "--home", default="", metavar="DIR", help="where to keep its faults, ledger and journal"
    )
    parser.add_argument("--leashed", action="store_true", help="with --http: end with the input")
    return parser


def _listed() -> str:
    parts = ["NAME[=VALUE][@METHOD][*TIMES]. A VALUE in brackets is the one where none is given."]
    for title, methods, only in GROUPS:
        found = [one for one in TABLE.values() if one.method in methods and one.only in only]
        parts += ["", title, *map(_row, found)]
    return "\n".join([*parts, "", *(tools.__doc__ or "").strip().splitlines()])


def _row(one: Fault) -> str:
    value = f"={one.takes.word}" if one.takes.word else ""
    default = f" [{one.value}]" if value else ""
    says = textwrap.wrap(f"{one.says}{default}", 96 - INDENT)
    lead = f"  {one.name}{value}"
    lines = [lead, *says] if len(lead) >= INDENT else [f"{lead:{INDENT}}{says[0]}", *says[1:]]
    return f"\n{'':{INDENT}}".join(lines)
