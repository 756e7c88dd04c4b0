# VENV: ours
# WORKLOADS: dispatch conc rich big fail unknown sync registry timeout loop import
"""toolcrib for the peerbench harness: an Assembly without middleware.

Copied into `adapters/` of a copy of the harness by `bench/peerbench/run.py`.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pb


class Ours(pb.Adapter):
    peer, dists = "ours", ("toolcrib", "pydantic")
    path = "Assembly.execute(ToolCall(id, name, arguments text)) -> ToolResult, no middleware"
    middlewares = ()

    def imp(self):
        import toolcrib  # noqa: F401

    async def open(self, **_):
        from toolcrib import Assembly, ToolCall

        functions = [pb.add, pb.sync_add, pb.nap, pb.big, pb.boom, pb.rich_types()["fn"]]
        self.ToolCall = ToolCall
        self.assembly = await Assembly(functions, middlewares=self.chain()).open()

    def chain(self):
        return ()

    async def close(self):
        if hasattr(self, "assembly"):
            await self.assembly.close()

    async def call(self, name, args_json):
        return await self.assembly.execute(self.ToolCall("c1", name, args_json))

    def text(self, res):
        return res.text

    def is_error(self, res):
        return res.is_error

    def _tool(self, s):
        from toolcrib import define_tool

        return define_tool(
            s["name"], description=s["description"], input_schema=s["parameters"], execute=_nothing
        )

    def reg_build(self, schemas):
        from toolcrib import Registry

        registry = Registry()
        registry.publish("bench", [self._tool(s) for s in schemas])
        return registry

    def reg_defs(self, reg):
        return reg.catalog.definitions

    def reg_subset(self, reg, names):
        return reg.catalog.select(names)

    def reg_add(self, reg, s):
        reg.add(self._tool(s), "bench")

    def reg_remove(self, reg, name):
        reg.remove(name)

    async def open_timeout(self, seconds):
        from toolcrib import Assembly, ToolCall
        from toolcrib.middleware import timeout

        self.ToolCall = ToolCall
        functions = [pb.sleep_async, pb.sleep_sync]
        self.assembly = await Assembly(functions, middlewares=[timeout(seconds)]).open()

    async def loop(self, rounds, per):
        from toolcrib.loop import run
        from toolcrib.providers.history import User

        async with self.conversation() as assembly:
            session = assembly.session()
            self.begin(session)
            await run(session, Scripted(rounds, per), [User.of("go")])

    def conversation(self):
        from toolcrib import Assembly

        return Assembly([pb.add], middlewares=self.chain(), limits=unlimited())

    def begin(self, session):
        """What a host does before the first round."""


def unlimited():
    from toolcrib.limits import UNLIMITED, ToolLimits

    return ToolLimits(UNLIMITED, UNLIMITED)


class Scripted:
    """A model that calls `add` `per` times in each of `rounds` rounds, and then says "done"."""

    def __init__(self, rounds, per):
        from toolcrib import ToolCall
        from toolcrib.providers.history import Assistant

        self.rounds, self.per, self.count = rounds, per, 0
        self.Assistant, self.ToolCall = Assistant, ToolCall

    async def respond(self, messages, tools, on_text):
        self.count += 1
        if self.count > self.rounds:
            return self.Assistant("done")
        ids = [f"c{self.count}_{n}" for n in range(self.per)]
        made = [self.ToolCall(c, "add", f'{{"a": {n}, "b": 1}}') for n, c in enumerate(ids)]
        return self.Assistant(calls=tuple(made))


async def _nothing(ctx, arguments):
    return "ok"


if __name__ == "__main__":
    pb.main(Ours)
