"""Compiling beside the event loop: shared, bounded, given up with the last who waits; what is known never waits."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import structgen
from structgen.errors import ConstraintError
from structgen.server.async_compiler import AsyncCompiler, PlainCompiling
from structgen.server.errors import RequestError
from tests.server.tiny import VOCABULARY


class Held(PlainCompiling):
    """Compiles once the gate is open; patterns with "bad" are refused."""

    at_once, each = 2, 1

    def __init__(self) -> None:
        super().__init__(VOCABULARY)
        self.gate = threading.Event()
        self.begun: list[Any] = []
        self.unwanted = 0

    def compile(self, constraint: Any, is_wanted: Callable[[], bool], seconds: float | None) -> Any:
        self.begun.append(constraint)
        until = time.monotonic() + 10
        while not self.gate.is_set() and time.monotonic() < until:
            if not is_wanted():
                self.unwanted += 1
                raise ConstraintError("given up")
            time.sleep(0.002)
        if "bad" in constraint.pattern:
            raise ConstraintError(f"{constraint.pattern} is refused")
        return super().compile(constraint, is_wanted, seconds)


def run(
    scenario: Callable[[AsyncCompiler, Held], Coroutine[Any, Any, Any]], waiting: int = 100, held: Held | None = None
) -> Any:
    held = held or Held()
    compiler = AsyncCompiler(held, lambda _, grammar: grammar, waiting)
    try:
        return asyncio.run(asyncio.wait_for(scenario(compiler, held), 30))
    finally:
        held.gate.set()
        compiler.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it did not come about")


def asked(compiler: AsyncCompiler, pattern: str, who: str = "", deadline: float | None = None) -> asyncio.Task[Any]:
    return asyncio.create_task(compiler.compile(structgen.regex(pattern), who, deadline))


def test_what_is_kept_waits_for_nothing() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        kept = structgen.regex("kept[0-9]")
        grammar = kept.compile(VOCABULARY)
        tasks = [asked(compiler, f"new{number}") for number in range(20)]
        await until(lambda: len(held.begun) == 1)
        assert await asyncio.wait_for(compiler.compile(kept), 1) is grammar
        held.gate.set()
        await asyncio.gather(*tasks)

    run(scenario)


def test_what_several_ask_for_is_compiled_once() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, "shared", str(number)) for number in range(5)]
        await until(lambda: len(held.begun) == 1)
        tasks[0].cancel()  # the others wait on
        await asyncio.sleep(0.02)
        held.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert len(held.begun) == 1 and len({id(grammar) for grammar in found[1:]}) == 1

    run(scenario)


async def begun_after_leaving(
    tasks: list[asyncio.Task[Any]], compiler: AsyncCompiler, held: Held, following: str
) -> list[str]:
    """What was begun, in order, when all tasks were left once one had begun, and another pattern was asked for then."""
    await until(lambda: len(held.begun) == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: held.unwanted == len(held.begun))
    held.gate.set()
    await asked(compiler, following)
    return [constraint.pattern for constraint in held.begun]


def test_what_nobody_waits_for_is_given_up() -> None:
    """Of twenty that are left, what is under way ends, most others never begin, and the next is compiled at once."""

    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, f"left{number}") for number in range(20)]
        patterns = await begun_after_leaving(tasks, compiler, held, "next")
        assert patterns[-1] == "next" and len(patterns) < 10  # one may begin while others are being given up

    run(scenario)


def test_one_caller_does_not_hold_up_another() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        greedy = [asked(compiler, f"greedy{number}", "greedy") for number in range(20)]
        await until(lambda: len(held.begun) == 1)
        other = asked(compiler, "other", "other")
        await until(lambda: len(held.begun) == 2)
        assert held.begun[1].pattern == "other"
        held.gate.set()
        await asyncio.gather(*greedy, other)

    run(scenario)


def test_the_wait_counts() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        started = time.monotonic()
        with pytest.raises(RequestError) as refused:
            await asked(compiler, "late", deadline=started + 0.2)
        assert (refused.value.status, refused.value.code) == (429, "queue_timeout")
        assert time.monotonic() - started < 5
        await until(lambda: held.unwanted == 1)

    run(scenario)


def test_the_queue_is_bounded() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, f"many{number}") for number in range(10)]
        await until(lambda: len(held.begun) == 1)
        held.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [error for error in found if isinstance(error, RequestError)]
        assert len(refused) >= 5 and {error.code for error in refused} == {"queue_full"}

    run(scenario, waiting=3)


@pytest.mark.full
def test_errors_of_what_was_left_are_told_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """A client hangs up while its constraint is compiled, which then fails: its text is not in the log."""
    caplog.set_level(logging.DEBUG)

    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, f"bad secret {number}", str(number)) for number in range(20)]
        await until(lambda: len(held.begun) == 2)
        for task in tasks:
            task.cancel()
        held.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.1)
        gc.collect()
        with pytest.raises(ConstraintError, match="bad own"):
            await asked(compiler, "bad own")

    run(scenario)
    gc.collect()
    assert "secret" not in caplog.text and "never retrieved" not in caplog.text


def test_several_loops() -> None:
    held = Held()
    held.gate.set()
    compiler = AsyncCompiler(held, lambda _, grammar: grammar)
    found: list[Any] = []

    def loop() -> None:
        found.append(asyncio.run(compiler.compile(structgen.regex("of several loops"))))

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 4 and len({id(grammar) for grammar in found}) == 1
    compiler.close()


class Staged(Held):
    """What has "slow" in its pattern takes more than the first stage has; there it waits for the gate."""

    at_once, each, stages = 1, 1, (0.1, None)

    def compile(self, constraint: Any, is_wanted: Callable[[], bool], seconds: float | None) -> Any:
        if "slow" not in constraint.pattern:
            return PlainCompiling.compile(self, constraint, is_wanted, seconds)
        return None if seconds is not None else super().compile(constraint, is_wanted, seconds)


def test_what_takes_little_overtakes_what_takes_long() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        slow = [asked(compiler, f"slow[{number}]", str(number)) for number in range(5)]
        await until(lambda: len(held.begun) == 1)
        for number in range(5):
            assert await asyncio.wait_for(asked(compiler, f"small[{number}]", "other"), 5)
        assert not any(task.done() for task in slow)
        held.gate.set()
        assert len({id(grammar) for grammar in await asyncio.gather(*slow)}) == 5

    run(scenario, held=Staged())


def test_who_waits_at_any_stage_has_what_comes_of_it() -> None:
    """Of two who ask for the same, one at the second stage; one leaves; an error comes to all who are left."""

    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, "slow bad", str(number)) for number in range(3)]
        behind = asked(compiler, "slow behind", "0")
        await until(lambda: len(held.begun) == 1)
        tasks += [asked(compiler, "slow bad", str(number)) for number in range(3, 6)]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        await asyncio.sleep(0.02)
        held.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert {str(error) for error in found[1:]} == {"slow bad is refused"}
        assert await behind and [constraint.pattern for constraint in held.begun] == ["slow bad", "slow behind"]

    run(scenario, held=Staged())


def test_what_nobody_waits_for_is_given_up_at_any_stage() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, f"slow left {number}", str(number)) for number in range(10)]
        patterns = await begun_after_leaving(tasks, compiler, held, "slow next")
        assert patterns[-1] == "slow next" and len(patterns) < 6  # one may begin while others are being given up
        assert not compiler._running

    run(scenario, held=Staged())


def test_a_later_stage_is_bounded() -> None:
    """What finds its queue full is refused with 429, and all others come through."""

    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = []
        for number in range(8):
            tasks.append(asked(compiler, f"slow many {number}", str(number)))
            await asyncio.sleep(0.02)
        held.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [error for error in found if isinstance(error, RequestError)]
        assert {error.code for error in refused} == {"queue_full"} and 3 <= len(refused) <= 5
        assert not any(isinstance(one, BaseException) for one in found if one not in refused)

    run(scenario, waiting=3, held=Staged())


def test_a_compiler_that_is_closed_leaves_nobody_waiting() -> None:
    async def scenario(compiler: AsyncCompiler, held: Held) -> None:
        tasks = [asked(compiler, f"slow closed {number}", str(number)) for number in range(4)]
        await until(lambda: len(held.begun) == 1)
        compiler.close()
        held.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert {getattr(error, "code", None) for error in found} <= {None, "stopping"}
        with pytest.raises(RequestError, match="stops"):
            await asked(compiler, "another")

    run(scenario, held=Staged())
