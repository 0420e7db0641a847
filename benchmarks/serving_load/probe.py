"""``structgen serve``, unchanged, in a process that says on SIGUSR1 what is alive in it.

    python probe.py FILE [arguments of structgen serve]

Started by ``lab.Server``. At each signal, FILE is replaced by a JSON object: how many objects of some classes the
process holds after a full garbage collection.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the checkout, in place of this folder


def main() -> None:
    """See the module's docstring."""
    from structgen.cli.main import app
    from structgen.core.engines.matcher import BaseMatcher
    from structgen.generation.decoding.output import Output
    from structgen.generation.scheduler.request import Handle
    from structgen.server.engine import RequestStream

    told = Path(sys.argv[1])

    def tell(_: int, __: FrameType | None) -> None:
        gc.collect()
        found: Counter[str] = Counter()
        for thing in gc.get_objects():
            for kind in (Output, Handle, BaseMatcher, RequestStream):
                found[kind.__name__] += isinstance(thing, kind)
        told.with_suffix(".new").write_text(json.dumps(found))
        os.replace(told.with_suffix(".new"), told)

    signal.signal(signal.SIGUSR1, tell)
    sys.argv[:] = ["structgen", "serve", *sys.argv[2:]]
    app()


if __name__ == "__main__":
    main()
