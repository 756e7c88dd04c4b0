# VENV: ours
# WORKLOADS: dispatch conc fail sync loop
"""toolcrib for the peerbench harness, with the five middlewares of the deployment guide."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ours import Ours, pb


class Chain(Ours):
    peer = "ours_chain"
    path = (
        "the same through recover, telemetry, result_limit, concurrency 8 (conc: 200), timeout 30 s"
    )

    limit = 8

    async def open(self, workload="", **_):
        self.limit = 200 if workload == "conc" else 8
        await super().open()

    def chain(self):
        from toolcrib.middleware import ResultLimitSettings, Settings, standard

        return standard(
            Settings(
                recover=True,
                telemetry=True,
                result_limit=ResultLimitSettings(20_000),
                timeout=30.0,
                concurrency=self.limit,
            )
        )


if __name__ == "__main__":
    pb.main(Chain)
