"""What large requests took goes back to the system."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from structgen.server.memory import _trim, give_back, give_back_regularly


def resident_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def holes() -> list[bytes]:
    """Small things that lie between much that was freed: the allocator keeps all of it."""
    taken = [bytes(100_000) for _ in range(2_000)]
    return [bytes(taken[place]) + b"x" for place in range(0, len(taken), 200)]


@pytest.mark.skipif(not sys.platform.startswith("linux") or _trim() is None, reason="glibc alone keeps so much")
def test_what_is_free_is_given_back() -> None:
    before = resident_mib()
    kept = holes()
    give_back()
    assert resident_mib() <= before + 40 and len(kept) == 10


@pytest.mark.full
def test_nothing_is_done_where_nothing_was() -> None:
    asked = 0

    def has_worked() -> bool:
        nonlocal asked
        asked += 1
        return asked < 3

    async def scenario() -> None:
        task = asyncio.ensure_future(give_back_regularly(has_worked, 0.001))
        while asked < 5 and not task.done():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert asked >= 5 or _trim() is None
