"""An MCP server on stdio with one side effect: standard library only, up in 20 ms.

    python -S -I ledger_server.py LEDGER STARTS legacy|modern

`act` appends its key to LEDGER, then answers; `echo` only answers. Each start appends the process's
id to STARTS.
"""

import json
import os
import sys

LEDGER, STARTS, ERA = sys.argv[1:4]
MODERN = {"resultType": "complete"} if ERA == "modern" else {}
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
TOOLS = [
    {"name": "act", "description": "Writes its key down.", "inputSchema": SCHEMA},
    {"name": "echo", "description": "Gives its key back.", "inputSchema": SCHEMA},
]


def note(path, line):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def answer(method, id, params):
    if method == "server/discover" and MODERN:
        server = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return {**server, **MODERN, "ttlMs": 0, "cacheScope": "private"}
    if method == "initialize" and not MODERN:
        who = {"name": "ledger", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": who}
    if method == "tools/list":
        cache = {"ttlMs": 0, "cacheScope": "private"} if MODERN else {}
        return {"tools": TOOLS, **MODERN, **cache}
    if method == "tools/call":
        key = params["arguments"]["key"]
        if params["name"] == "act":
            note(LEDGER, key)
        return {"content": [{"type": "text", "text": key}], **MODERN}
    if method == "ping" and not MODERN:
        return {}
    return None


def reply(message):
    result = answer(message["method"], message["id"], message.get("params") or {})
    if result is None:
        return {"error": {"code": -32601, "message": "no such method"}}
    return {"result": result}


def main():
    note(STARTS, os.getpid())
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        out = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply(message)}) + "\n"
        os.write(1, out.encode())


if __name__ == "__main__":
    main()
