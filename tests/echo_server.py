"""A server that does as its jobs say. Light: the processes of the tests import it."""

from __future__ import annotations

import os
import time
from typing import Any

from structgen.core.workers import Watch


class Echo:
    """A server that does as its jobs say."""

    def __init__(self, setting: Any, watch: Watch) -> None:
        if setting == "broken":
            raise RuntimeError("this server does not start")
        self._watch = watch
        self.greeting = f"hello {setting}"

    def __call__(self, job: tuple[str, Any]) -> Any:
        what, value = job
        if what == "mark":
            self._watch.mark(value)
            time.sleep(60)
        if what == "sleep":
            time.sleep(value)
            return "slept"
        if what == "spin":
            until = time.monotonic() + value
            while time.monotonic() < until:
                pass
        if what == "exit":
            self._watch.mark("b")
            os._exit(value)
        if what == "allocate":
            kept = bytearray(b"x") * value
            time.sleep(60)
            return len(kept)
        return value
