"""Slots of requests that are being prepared: whoever has most makes room."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

pytest.importorskip("starlette")

from structgen.server.errors import RequestError, overloaded
from structgen.server.waiting_slots import Holdings, WaitingSlot, WaitingSlots


def test_who_has_most_makes_room() -> None:
    async def scenario() -> None:
        slots = WaitingSlots(lambda _: 4, lambda: overloaded("full", 1.0))
        with ExitStack() as held:
            greedy = [held.enter_context(slots.held("greedy")) for _ in range(4)]
            with pytest.raises(RequestError, match="full"):
                slots.check("greedy")
            slots.check("good")
            assert not any(slot.turned_away.done() for slot in greedy), "nobody goes before one comes"
            held.enter_context(slots.held("good"))
            with pytest.raises(RequestError, match="full"):
                greedy[3].turned_away.result()
            held.enter_context(slots.held("good"))
            assert [slot.turned_away.done() for slot in greedy] == [False, False, True, True] and len(slots) == 4
            for who in ("good", "greedy"):
                with pytest.raises(RequestError, match="full"):
                    slots.check(who)
            held.enter_context(slots.held("third"))
            assert len(slots) == 4
        assert len(slots) == 0

    asyncio.run(scenario())


def test_one_without_room() -> None:
    async def scenario() -> WaitingSlot:
        slots = WaitingSlots(lambda _: 0, lambda: overloaded("full", 1.0))
        with pytest.raises(RequestError, match="full"), slots.held("a"):
            raise AssertionError("there is no slot")
        with WaitingSlots(lambda _: 1, lambda: overloaded("full", 1.0)).held("a") as slot:
            return slot

    asyncio.run(scenario())


def test_unbegun_outputs_of_who_has_most_make_way() -> None:
    outputs = Holdings[str]()
    for number in range(5):
        outputs.add("greedy", f"greedy {number}", 2)
    outputs.add("other", "other 0", 3)
    assert outputs.excess("good") == 9 + 2 and outputs.excess("greedy") == 0
    assert outputs.make_room("greedy", 1) == []
    assert outputs.make_room("good", 9) == [], "more than there are"
    assert outputs.make_room("good", 3) == ["greedy 4", "greedy 3"]
    assert outputs.make_room("other", 1) == ["greedy 2"]
    assert outputs.make_room("other", 1) == [], "as many as it would have"
    outputs.discard("greedy 0")
    outputs.discard("greedy 0")
    assert outputs.make_room("good", 2) == ["other 0"]
    assert outputs.make_room("good", 2) == [] and outputs.excess("good") == 1
