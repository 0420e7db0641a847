"""Memory that is free goes back to the system: glibc's allocator keeps what large requests took."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import cache

from structgen.core.constraints.cache import COMPILED
from structgen.core.regex.dfa_cache import forget_large_automata

EVERY_SECONDS = 10.0
UNUSED_SECONDS = 300.0
"""For which a compiled grammar is kept that nobody asks for: what strangers had compiled is not held for ever."""
ARENAS = 2
"""Of glibc's allocator. By its own choice threads that wait have more made, up to eight a processor, and what is free
in one of them is no use to the others: a hundred megabytes, once many threads have worked."""
_ARENA_MAX = -8  # of ``mallopt`` (malloc.h)


def share_arenas() -> None:
    """Have all threads of this process share a few arenas; nothing with another allocator.

    Call it before threads begin. Whoever starts the process may say it otherwise by ``MALLOC_ARENA_MAX``."""
    set_option = _of_libc("mallopt")
    if set_option is not None and "MALLOC_ARENA_MAX" not in os.environ:
        set_option(_ARENA_MAX, ARENAS)


async def give_back_regularly(has_worked: Callable[[], bool], seconds: float = EVERY_SECONDS) -> None:
    """Give back what is free every so often, where something was done since, and grammars that nobody has asked for in
    ``UNUSED_SECONDS``; until it is cancelled. Once nothing is done any more, large automata are forgotten, and garbage
    is looked for: Python does that while objects are made, and errors hold requests in circles."""
    is_collected = True
    while True:
        await asyncio.sleep(seconds)
        size = COMPILED.bytes
        COMPILED.forget_unused(UNUSED_SECONDS)
        has_changed = has_worked()
        if not has_changed and (COMPILED.bytes < size or not is_collected):
            forget_large_automata()
            await asyncio.to_thread(gc.collect)
            await asyncio.to_thread(give_back)
        elif has_changed:
            await asyncio.to_thread(give_back)
        is_collected = not has_changed


def give_back() -> None:
    """Give back what is free now, by glibc's ``malloc_trim``; nothing with another allocator. Other threads go on."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    return _of_libc("malloc_trim")


def _of_libc(name: str) -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):  # musl has none
        return None
    return function
