"""A raw MCP server on stdio: standard library only, up in 20 ms, and it misbehaves on demand.

    python -S -I raw.py [key=value …]

era=legacy|modern|silent   the protocol it speaks; silent is legacy, and ignores unknown methods
version=V                  the version it answers `initialize` with
tools=JSON                 more tools for its list, or tools=@FILE, read at each start
per_page=N                 page size of tools/list
cursor=same|empty|pair     a tools/list that never ends
list=error|hang            a tools/list that fails, or never answers
ping=error|hang            likewise
start=hang                 reads, and never answers anything
banner=1                   writes to stdout what is no message
stderr=N                   writes N bytes to stderr first
stubborn=1                 ignores SIGTERM and the end of its input
polite=FILE                ignores the end of its input, and notes SIGTERM before it ends by it
child=same|setsid          starts a sleeping process that inherits its pipes
pids=FILE                  where the id of that process is noted
ledger=FILE                what `act` and `act_and_die` write a line to
starts=FILE                gets a line at each start
lists=FILE                 gets a line at each tools/list
nagging=1                  says that its list changed after each tools/list
die=list                   dies after its first tools/list was answered
templates=1                knows resource templates
both=JSON                  what the tool `both` answers
asks=1                     a prompt that asks first (modern)
early=METHOD               asks before any call (legacy)
token=X                    nothing: for finding the process
"""

import base64
import json
import os
import signal
import sys
import time

OPT = dict(arg.split("=", 1) for arg in sys.argv[1:])
ERA = OPT.get("era", "legacy")
NOTES = []  # notifications received
MORE = []  # tools that it got while it runs
SPOILED = [0]  # so many of the next tools/list fail
LISTENING = []  # ids of the subscriptions
WAITING = {}  # our questions by id: the call that waits for the answer
SEEN = {}  # the calls of `want` so far, by their arguments (modern)
HELLO = {}  # what the client said of itself
META = {"resultType": "complete"} if ERA == "modern" else {}
PNG = base64.b64encode(b"\x89PNG-bytes").decode()


def tool(name, **properties):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {"name": name, "description": f"{name} of the raw server", "inputSchema": schema}


TOOLS = [
    tool("echo", text={"type": "string"}),
    *map(tool, ["pid", "act", "act_and_die", "hang", "fail", "error", "image", "mixed", "env"]),
    *map(
        tool,
        ["notes", "progress", "sloppy", "unreadable", "ask", "fail_structured", "both", "deaf"],
    ),
    tool("number", n={"type": "integer"}),
    tool("block", seconds={"type": "number"}),
    tool("big", n={"type": "integer"}),
    *map(tool, ["grow", "reword", "shrink", "other_changes", "once", "idem", "log", "meta"]),
    {"name": "want", "inputSchema": {"type": "object"}},
    *map(tool, ["withdraw", "hello"]),
    tool("storm", n={"type": "integer"}),
    tool("spoil", n={"type": "integer"}),
    tool("chatter", n={"type": "integer"}),
    tool("drip", n={"type": "integer"}, every={"type": "number"}),
]


def send(message):
    data = memoryview((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    while data:
        data = data[os.write(1, data) :]


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def note(path, line):
    if path:
        with open(path, "a") as file:
            file.write(line + "\n")


def changed(what="tools"):
    if ERA != "modern":
        send({"method": f"notifications/{what}/list_changed"})
    for id in LISTENING:
        values = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
        send({"method": f"notifications/{what}/list_changed", "params": values})


def listed():
    more = OPT.get("tools", "[]")
    if more.startswith("@"):
        with open(more[1:]) as file:
            more = file.read()
    return [*json.loads(more), *TOOLS, *MORE] if "only" not in OPT else json.loads(more)


def list_tools(params):
    tools, cursor = listed(), (params or {}).get("cursor")
    kind = OPT.get("cursor")
    if kind == "same":
        return {"tools": tools, "nextCursor": "8"}
    if kind == "empty":
        return {"tools": tools, "nextCursor": ""}
    if kind == "pair":
        return {"tools": tools, "nextCursor": "B" if cursor == "A" else "A"}
    size = int(OPT.get("per_page", len(tools) or 1))
    at = int(cursor.removeprefix("ÄÖ=")) if cursor else 0
    page = {"tools": tools[at : at + size]}
    if at + size < len(tools):
        page["nextCursor"] = f"ÄÖ={at + size}"
    return page


def change(name, arguments):
    if name == "grow":
        MORE[:] = [tool("beta", a={"type": "integer"})]
    if name == "reword":
        MORE[:] = [tool("beta", b={"type": "string"})]
    if name == "shrink":
        MORE.clear()
    if name == "spoil":
        SPOILED[0] = arguments["n"]
    if name == "storm":
        for i in range(arguments["n"]):
            MORE[:] = [tool(f"storm_{i}")]
            changed()
    elif name == "other_changes":
        changed("prompts")
        changed("resources")
    else:
        changed()
    return text(name)


def logs(level, data):
    send({"method": "notifications/message", "params": {"level": level, "data": data}})


def want(id, params):
    """Asks `method` with `params`: on its own, or in its answer, `rounds` times with `states`. Then
    tells what was answered. `first`: it answers the call first. `silent`: asks for nothing."""
    given = params.get("arguments", {})
    asked = {"method": given.get("method"), "params": given.get("params", {})}
    if ERA != "modern":
        question = f"q{id}"
        WAITING[question] = None if "first" in given else id
        if "first" in given:
            send({"id": id, "result": text("asked")})
        send({"id": question, **asked})
        return None
    key = json.dumps(given)
    got = {name: params[name] for name in ("inputResponses", "requestState") if name in params}
    if "toolcrib/idempotency_key" in params["_meta"]:
        got["key"] = params["_meta"]["toolcrib/idempotency_key"]
    seen = SEEN.setdefault(key, [])
    seen.append({"id": id, **got})
    if len(seen) > given.get("rounds", 1):
        return text(json.dumps(SEEN.pop(key)))
    more = {} if "silent" in given else {"inputRequests": given.get("requests", {"k": asked})}
    if "states" in given:
        more["requestState"] = given["states"][len(seen) - 1]
    return {"resultType": "input_required", **more}


def withdraw():
    """Takes back every question."""
    for question, id in list(WAITING.items()):
        send({"method": "notifications/cancelled", "params": {"requestId": question}})
        send({"id": WAITING.pop(question) or id, "result": text("never mind")})
    return text("withdrawn")


def answered(message):
    """The answer to a question goes to the call that waits for it, else to the notes."""
    said = {name: message[name] for name in ("result", "error") if name in message}
    id = WAITING.pop(message["id"], None)
    if id is None:
        NOTES.append({"answered": said})
    else:
        send({"id": id, "result": text(json.dumps(said))})


def call(id, name, arguments, meta):
    token = (meta or {}).get("progressToken")
    if name in ("grow", "reword", "shrink", "other_changes", "storm", "spoil"):
        return change(name, arguments)
    if name == "beta":
        return text(json.dumps(arguments))
    if name == "withdraw":
        return withdraw()
    if name == "hello":
        return text(json.dumps(HELLO))
    if name == "meta":
        return text(json.dumps(meta))
    if name in ("once", "idem"):
        key = (meta or {}).get("toolcrib/idempotency_key", "no key")
        again = os.path.exists(OPT["ledger"])
        note(OPT["ledger"], key)
        if name == "once" or not again:
            os._exit(1)
        return text("done at last")
    if name == "log":
        for level in ("debug", "notice", "warning", "emergency", "strange"):
            logs(level, f"{level}\nsaid")
        logs("info", {"rows": 3})
        return text("logged")
    if name == "chatter":
        for step in range(arguments["n"]):
            logs("info", "x" * 5000)
            values = {"progressToken": token, "progress": step, "message": "y" * 5000}
            send({"method": "notifications/progress", "params": values})
        return text("said")
    if name == "drip":
        for step in range(arguments["n"]):
            values = {"progressToken": token, "progress": step}
            send({"method": "notifications/progress", "params": values})
            time.sleep(arguments["every"])
        return text("dripped")
    if name == "echo":
        return text(arguments.get("text", ""))
    if name == "pid":
        return text(str(os.getpid()), structuredContent={"pid": os.getpid()})
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name in ("act", "act_and_die"):
        note(OPT.get("ledger"), name)
        if name == "act_and_die":
            os._exit(1)
        return text("done")
    if name in ("hang", "progress"):
        for step in (1, 2):
            values = {
                "progressToken": token,
                "progress": step,
                "total": 2,
                "message": f"step {step}",
            }
            send({"method": "notifications/progress", "params": values})
        return None if name == "hang" else text("finished")
    if name == "fail":
        return text("no such row", isError=True)
    if name == "fail_structured":
        return text("db down", isError=True, structuredContent={"answer": 42})
    if name == "both" and "both" in OPT:
        return json.loads(OPT["both"])
    if name == "both":
        return text("forty-two", structuredContent={"answer": 42})
    if name == "error":
        send({"id": id, "error": {"code": -32602, "message": "no such thing"}})
        return None
    if name == "image":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    if name == "mixed":
        return {"content": [{"type": "hologram", "x": 1}, {"type": "text", "text": "\u2028ok\x85"}]}
    if name == "notes":
        return text(json.dumps(NOTES))
    if name == "sloppy":
        return {"content": "not a list", "structuredContent": [1, 2]}
    if name == "unreadable":
        os.write(1, b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "\\ud800"}}\n' % id)
        return None
    if name == "ask":
        return {"resultType": "input_required", "inputRequests": {}}
    if name == "deaf":
        send({"id": id, "result": {**META, **text("goodbye")}})
        os.close(0)
        time.sleep(60)
    if name == "number":
        return text("", structuredContent=arguments)
    if name == "block":
        time.sleep(arguments["seconds"])
        return text("awake")
    if name == "big":
        return text("x" * arguments["n"])
    return {**text(f"unknown tool {name}"), "isError": True}


def answer(message):
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if id is None:
        NOTES.append({"method": method, "params": params})
        if method == "notifications/initialized" and "early" in OPT:
            send({"id": "early", "method": OPT["early"]})
        return None
    if method is None:
        answered(message)
        return None
    if method == "server/discover" and ERA == "modern":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return {**result, **META, "ttlMs": 0, "cacheScope": "private"}
    if method == "initialize" and ERA != "modern":
        HELLO.update(params)
        who = {"name": "raw", "version": "1"}
        version = OPT.get("version", "2025-11-25")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": who}
    if method == "tools/list":
        note(OPT.get("lists"), "tools/list")
        if "nagging" in OPT:
            changed()
        if SPOILED[0]:
            SPOILED[0] -= 1
            send({"id": id, "error": {"code": -32603, "message": "spoiled"}})
            return None
        if OPT.get("list") == "hang":
            return None
        if OPT.get("list") != "error":
            return list_tools(params) | META
    if method == "tools/call" and params["name"] == "want":
        result = want(id, params)
        return result and {**META, **result}
    if method == "prompts/get" and "asks" in OPT and "inputResponses" not in params:
        asked = {"method": "roots/list"}
        return {"resultType": "input_required", "inputRequests": {"where": asked}}
    if method == "tools/call":
        result = call(id, params["name"], params.get("arguments") or {}, params.get("_meta"))
        return result and {**META, **result}
    if method == "ping" and ERA != "modern" and OPT.get("ping") != "error":
        return None if OPT.get("ping") == "hang" else {}
    if method == "subscriptions/listen" and ERA == "modern":
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        LISTENING.append(id)
        values = {"_meta": meta, "notifications": params.get("notifications", {})}
        send({"method": "notifications/subscriptions/acknowledged", "params": values})
        return None
    if method == "resources/list":
        return {"resources": [{"uri": "memo://one", "name": "one"}]} | META
    if method == "resources/templates/list" and "templates" in OPT:
        return {"resourceTemplates": [{"uriTemplate": "memo://{n}", "name": "memo"}]} | META
    if method == "prompts/list":
        wanted = [{"name": "what", "required": True}]
        return {"prompts": [{"name": "greet", "description": "Greets", "arguments": wanted}]} | META
    if method == "prompts/get":
        said = {"type": "text", "text": f"Hello {params['arguments'].get('what')}"}
        picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
        messages = [{"role": "user", "content": said}, {"role": "user", "content": picture}]
        return {"description": "Greets", "messages": messages} | META
    if ERA == "silent" and method == "server/discover":
        return None
    send({"id": id, "error": {"code": -32601, "message": f"no method {method}"}})
    return None


def main():
    note(OPT.get("starts"), str(os.getpid()))
    if "stderr" in OPT:
        size = int(OPT["stderr"])
        os.write(2, b"first line of stderr\n")
        for _ in range(size // 1024):
            os.write(2, b"e" * 1023 + b"\n")
        os.write(2, b"last line of stderr\n")
    if "stubborn" in OPT:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "polite" in OPT:
        signal.signal(signal.SIGTERM, lambda *_: (note(OPT["polite"], "terminated"), os._exit(0)))
    if "child" in OPT:
        if (child := os.fork()) == 0:
            if OPT["child"] == "setsid":
                os.setsid()
            os.execv("/bin/sleep", ["sleep", "60"])
        note(OPT.get("pids"), str(child))
    if "banner" in OPT:
        os.write(1, b"Welcome to the raw server!\n\n{not json}\n[1, 2\n\xff\xfe\n")
    buffer = b""
    while chunk := os.read(0, 1 << 20):
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            if OPT.get("start") == "hang":
                continue
            message = json.loads(line)
            result = answer(message)
            if result is not None:
                send({"id": message["id"], "result": result})
            if OPT.get("die") == "list" and message.get("method") == "tools/list":
                os._exit(3)
    while "stubborn" in OPT or "polite" in OPT:
        time.sleep(60)


main()
