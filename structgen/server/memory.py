"""Memory that is free goes back to the system: glibc's allocator keeps what large requests took."""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import Callable
from functools import cache

EVERY_SECONDS = 10.0


async def give_back_regularly(has_worked: Callable[[], bool], seconds: float = EVERY_SECONDS) -> None:
    """Give back what is free every so often, where something was done since; until it is cancelled."""
    if _trim() is None:
        return
    while True:
        await asyncio.sleep(seconds)
        if has_worked():
            await asyncio.to_thread(give_back)


def give_back() -> None:
    """Give back what is free now, by glibc's ``malloc_trim``; nothing with another allocator. Other threads go on."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # musl has none
        return None
    return function
