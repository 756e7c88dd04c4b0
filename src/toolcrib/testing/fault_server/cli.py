"""The server's command line."""

from __future__ import annotations

import argparse
import textwrap

from toolcrib.testing.fault_server import over_stdio, tools
from toolcrib.testing.fault_server.home import Home
from toolcrib.testing.fault_server.protocol import ERAS, Server
from toolcrib.testing.fault_server.table import TABLE

__all__ = ["main"]


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
    parser = argparse.ArgumentParser("fault_server", description="An MCP server that misbehaves.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stdio", action="store_true", help="serve stdin and stdout")
    where.add_argument("--http", type=int, metavar="PORT", help="serve 127.0.0.1:PORT (0: any)")
    where.add_argument("--list", action="store_true", help="list the faults and tools")
    parser.add_argument("--era", choices=ERAS, default="legacy")
    parser.add_argument("--home", default="", metavar="DIR", help="faults, ledger and journal")
    parser.add_argument("--leashed", action="store_true", help="http: end with the input")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[=VALUE][@METHOD][*TIMES]",
        help="a fault, about METHOD (any: every message), so many times (always)",
    )
    return parser


def _listed() -> str:
    rows = [
        f"{one.name + ('=' + one.value if one.value else ''):24}"
        + textwrap.fill(
            f"[{one.only or 'both'}, {one.method}] {one.says}",
            76,
            subsequent_indent=" " * 26,
        )
        for one in TABLE.values()
    ]
    return "\n".join(["faults:", *rows, "", *(tools.__doc__ or "").strip().splitlines()])
