# VENV: ours
# WORKLOADS: loop
"""toolcrib for the peerbench harness: the agent loop, dynamic, its tool in the pool."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ours import Ours, pb, unlimited


class InThePool(Ours):
    peer = "ours_dynamic"
    path = "toolcrib.loop.run over a dynamic Assembly; `add` is deferred and was discovered"

    def conversation(self):
        from toolcrib import Assembly, Dynamic

        return Assembly([pb.add], dynamic=Dynamic(), limits=unlimited())

    def begin(self, session):
        session.discover("add")


if __name__ == "__main__":
    pb.main(InThePool)
