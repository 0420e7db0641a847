"""Threads of a test."""

from __future__ import annotations

import threading
from collections.abc import Callable


def together(work: Callable[[int], None], count: int = 4) -> None:
    """Run ``work(number)`` in so many threads at once, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
