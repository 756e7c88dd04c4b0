"""Where the server starts, as a module and as a script by path.

By path nothing of toolcrib is imported but this package: its parents are stood in for by empty
modules, whose own imports would take longer than the server's whole start.
"""

import os
import sys
from types import ModuleType


def _stand_in() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    testing = os.path.dirname(here)
    for name, place in (("toolcrib", os.path.dirname(testing)), ("toolcrib.testing", testing)):
        module = ModuleType(name)
        module.__path__ = [place]
        sys.modules[name] = module


if not __package__:
    _stand_in()

from toolcrib.testing.fault_server.cli import main  # noqa: E402 after its parents are stood in

sys.exit(main(sys.argv[1:]))
