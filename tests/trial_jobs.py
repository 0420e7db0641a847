"""Trials that do as their jobs say. Light: the processes of the tests import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any


def attempts(setting: Any) -> Callable[[tuple[str, Any]], Any]:
    """What tries a job: what it is, and a value."""
    if setting == "broken":
        raise RuntimeError("this host does not start")
    if setting == "stopped while it forks":
        fork = os.fork

        def fork_and_stop() -> int:
            if child := fork():
                os.kill(os.getpid(), signal.SIGTERM)
            return child

        os.fork = fork_and_stop

    def attempt(job: tuple[str, Any]) -> Any:
        what, value = job
        if what == "sleep":
            time.sleep(value)
        if what == "spin":
            until = time.process_time() + value
            while time.process_time() < until:
                pass
        if what == "spin without Python":  # in one call that does not look at signals
            pow(7, 1 << 27)
        if what == "exit":
            os._exit(value)
        if what == "fail":
            raise ValueError(f"the secret {value}")
        if what == "kill":
            os.kill(os.getppid(), signal.SIGKILL)
        if what == "allocate":
            kept = bytearray(b"x") * value
            time.sleep(60)
            return len(kept)
        if what == "large":
            return bytes([value]) * (5 << 20)
        return setting, value, os.getpid(), os.getppid()

    return attempt
