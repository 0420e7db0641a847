"""Outputs for coroutines: those of single calls, many at once in few calls of the model, and nothing left when left."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Annotated, Any

import pydantic
import pytest

import structgen
from structgen import GenerationResult, Generator
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError, RefusedValueError, SchemaError
from structgen.generation.async_generation import AsyncWriter
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.tiny import TinyModel
from structgen.progress import ProgressEvent
from tests.server.tiny import EOS, VOCABULARY, ByteTokenizer, SlowModel, generator

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 999}}, "required": ["a"]}
ENDLESS: Any = {"max_new_tokens": 100_000, "logit_bias": {EOS: -100.0}}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def threads() -> list[str]:
    """Those that write for coroutines."""
    names = ("structgen-requests", "structgen-model", "structgen-lane", "structgen-late")
    return [thread.name for thread in threading.enumerate() if thread.name in names]


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.01)
    assert condition()


def told(result: GenerationResult[Any]) -> tuple[Any, ...]:
    return result.value, result.text, result.token_ids, result.finish_reason, result.logprob, result.attempts


def test_what_is_written_is_what_single_calls_write() -> None:
    tasks: list[tuple[str, Any, dict[str, Any]]] = [
        ("one", SCHEMA, {"temperature": 1.0, "seed": 1}),
        ("two", ["red", "green", "grey"], {"temperature": 1.0, "seed": 2}),
        ("three", None, {"temperature": 0.7, "seed": 3, "max_new_tokens": 30, "top_p": 0.9, "stop": ["e"]}),
        ("four", structgen.regex("[a-f]{3,9}"), {"draft": "ngram"}),
        ("five", SCHEMA, {"prediction": '{"a": 17}', "draft": "ngram"}),
    ]
    gen = generator()
    single = [gen.generate(prompt, constraint, **options) for prompt, constraint, options in tasks]

    async def together() -> Any:
        calls = [gen.agenerate(prompt, constraint, **options) for prompt, constraint, options in tasks * 3]
        return await asyncio.gather(*calls)

    assert [told(result) for result in run(together())] == [told(result) for result in single] * 3


@pytest.mark.full
def test_calls_that_are_under_way_together_share_the_models_calls() -> None:
    gen = generator()
    model: Any = gen.model
    gen.generate("p0", SCHEMA, temperature=1.0, seed=0)
    before = model.forwards

    async def calls(count: int) -> None:
        await asyncio.gather(*(gen.agenerate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed) for seed in range(count)))

    run(calls(24))
    together = model.forwards - before
    for seed in range(24):
        gen.generate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed)
    alone = model.forwards - before - together
    assert together < alone / 3


class PaddedModel(TinyModel):
    """A model whose rows are read padded, the rows of a batch from start to end together."""

    def ragged_reader(self) -> Any:
        return PaddedReader(self)


@pytest.mark.full
def test_padded_rows_that_are_asked_for_together_are_read_together() -> None:
    gen = Generator(PaddedModel(VOCABULARY.size), ByteTokenizer(), vocabulary=VOCABULARY)
    single = [gen.generate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed) for seed in range(12)]
    reads: list[int] = []
    read = gen.reader.read

    def first_waits(parts: Any) -> Any:
        if not reads:
            time.sleep(1)  # the others are asked for meanwhile, however busy the machine is
        reads.append(len(parts))
        return read(parts)

    gen.reader.read = first_waits  # type: ignore[method-assign]

    async def together() -> Any:
        calls = (gen.agenerate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed) for seed in range(12))
        return await asyncio.gather(*calls)

    assert [result.text for result in run(together())] == [result.text for result in single]
    assert max(reads) >= 8


def test_a_stream_is_that_of_the_generator() -> None:
    gen = generator()
    expected = list(gen.stream("p", SCHEMA, temperature=1.0, seed=5))

    async def events() -> Any:
        return [event async for event in gen.astream("p", SCHEMA, temperature=1.0, seed=5)]

    found = run(events())
    assert "".join(event.delta for event in found) == found[-1].text == expected[-1].text
    assert [event.partial for event in found][-1] == expected[-1].partial == found[-1].result.value
    assert told(found[-1].result) == told(expected[-1].result)  # type: ignore[arg-type]
    assert [event.delta for event in found] == [event.delta for event in expected]


def test_captures_come_with_the_events() -> None:
    grammar = structgen.lark('start: "<" name ">"\nname[capture]: /[a-c]{9}/\n', dialect="llguidance")

    async def events() -> Any:
        return [event async for event in generator().astream("p", grammar, seed=1, temperature=1.0)]

    found = run(events())
    assert any(event.captures["name"] and not event.captures["name"].complete for event in found[:-1])
    assert found[-1].captures["name"].complete and found[-1].captures == found[-1].result.captures


def test_bad_options_raise_at_the_call_and_bad_constraints_where_it_is_awaited() -> None:
    gen = generator(context_length=200)

    async def scenario() -> None:
        with pytest.raises(OptionsError, match="did you mean 'temperature'"):
            await gen.agenerate("p", temprature=1)  # type: ignore[call-overload]
        with pytest.raises(OptionsError, match="one attempt"):
            gen.astream("p", SCHEMA, attempts=2)
        with pytest.raises(SchemaError):
            await gen.agenerate("p", {"type": "strin"})
        with pytest.raises(GenerationError, match="shorten it"):
            await gen.agenerate("p" * 999)
        stream = gen.astream("p", {"type": "strin"})
        with pytest.raises(SchemaError):
            await anext(stream)
        assert (await gen.agenerate("p", SCHEMA)).value["a"] >= 0

    run(scenario())


def test_an_error_of_one_call_leaves_the_others_alone() -> None:
    gen = generator()

    async def scenario() -> Any:
        calls = [gen.agenerate("p", SCHEMA, max_new_tokens=count, seed=1) for count in (2, 40)]
        return await asyncio.gather(*calls, return_exceptions=True)

    failed, whole = run(scenario())
    assert isinstance(failed, IncompleteOutputError) and "a" in whole.value


def test_a_cancelled_task_stops_the_work_and_leaves_nothing() -> None:
    gen = generator(0.001)
    model: Any = gen.model

    async def scenario() -> int:
        tasks = [asyncio.ensure_future(gen.agenerate("p", **ENDLESS)) for _ in range(4)]
        other = asyncio.ensure_future(gen.agenerate("q", SCHEMA))
        await until(lambda: model.forwards > 10)
        for task in tasks:
            task.cancel()
        assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True))
        await other
        await until(lambda: not threads())
        before = int(model.forwards)
        await asyncio.sleep(0.1)
        return int(model.forwards) - before

    assert run(scenario()) == 0
    assert not AsyncWriter(gen).coroutines._open and AsyncWriter(gen).coroutines._scheduler.is_idle


def test_a_task_that_is_cancelled_before_it_began_writes_nothing() -> None:
    gen = generator()
    model: Any = gen.model

    async def scenario() -> None:
        for wait in (0, 1, 2):
            task = asyncio.ensure_future(gen.agenerate("p", SCHEMA, temperature=1.0))
            for _ in range(wait):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not threads())

    run(scenario())
    assert (
        AsyncWriter(gen).coroutines._scheduler.is_idle and not AsyncWriter(gen).coroutines._open and model.forwards < 10
    )


@pytest.mark.full
def test_leaving_a_stream_stops_it() -> None:
    gen = generator(0.001)

    async def scenario() -> None:
        async with aclosing(gen.astream("p", seed=1, **ENDLESS)) as events:
            async for event in events:
                if len(event.text) > 3:
                    break
        await until(lambda: not threads())
        async for _ in gen.astream("p", seed=1, **ENDLESS):  # left to the loop, which closes it
            break
        gc.collect()
        await until(lambda: not threads())

    run(scenario())
    assert AsyncWriter(gen).coroutines._scheduler.is_idle


@pytest.mark.full
def test_the_loop_goes_on_meanwhile() -> None:
    gen = generator(0.1)
    model: Any = gen.model

    async def scenario() -> int:
        task, turns = asyncio.ensure_future(gen.agenerate("p", SCHEMA)), 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        return turns

    run(scenario())  # compiles
    before = int(model.forwards)
    assert run(scenario()) > 5 * (model.forwards - before)  # of some 90 that there is time for


@pytest.mark.full
def test_it_may_be_used_beside_other_calls_and_from_several_loops() -> None:
    gen = generator(0.0005)
    expected = [gen.generate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed).text for seed in range(8)]
    found: dict[str, list[str]] = {}

    async def together() -> list[str]:
        calls = (gen.agenerate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed) for seed in range(8))
        return [result.text for result in await asyncio.gather(*calls)]

    def in_a_loop(name: str) -> None:
        found[name] = asyncio.run(together())

    def without() -> None:
        found["without"] = [gen.generate(f"p{seed}", SCHEMA, temperature=1.0, seed=seed).text for seed in range(8)]

    workers = [threading.Thread(target=in_a_loop, args=(name,)) for name in "ab"] + [threading.Thread(target=without)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert found == {"a": expected, "b": expected, "without": expected}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python's own, of such a loop
def test_a_loop_that_is_closed_with_work_under_way() -> None:
    gen = generator(0.001)

    async def begin() -> None:
        task = asyncio.ensure_future(gen.agenerate("p", **ENDLESS))
        await asyncio.sleep(0.05)
        kept.append(task)

    kept: list[Any] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    loop.close()  # nobody cancels the task
    assert asyncio.run(gen.agenerate("q", SCHEMA)).value["a"] >= 0
    kept[0]._log_destroy_pending = False
    kept.clear()
    gc.collect()
    end = time.monotonic() + 20
    while threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not threads() and AsyncWriter(gen).coroutines._scheduler.is_idle


def test_what_the_model_raises_is_raised() -> None:
    gen = generator()
    model: Any = gen.model

    async def scenario() -> None:
        model.error = ZeroDivisionError("broken")
        with pytest.raises(ZeroDivisionError, match="broken"):
            await gen.agenerate("p", SCHEMA)
        model.error = None
        assert (await gen.agenerate("p", SCHEMA)).finish_reason == "stop"

    run(scenario())


def test_attempts_are_those_of_generate() -> None:
    def small(value: int) -> int:
        if value > 300:
            raise ValueError("too large")
        return value

    kind: Any = Annotated[int, pydantic.Field(ge=0, le=999), pydantic.AfterValidator(small)]
    gen = generator()
    for seed in range(6):
        options: Any = {"temperature": 1.0, "seed": seed, "attempts": 50}
        assert told(run(gen.agenerate("p", kind, **options))) == told(gen.generate("p", kind, **options))
    with pytest.raises(RefusedValueError):
        for seed in range(50):
            run(gen.agenerate("p", kind, temperature=1.0, seed=seed))


def test_nobody_keeps_a_generator_that_was_used() -> None:
    gen = generator()
    run(gen.agenerate("p", SCHEMA))
    while threads():
        time.sleep(0.01)
    gone = weakref.ref(gen)
    gc.disable()
    try:
        del gen
        assert gone() is None
    finally:
        gc.enable()


def test_progress_goes_to_whom_the_generator_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    from structgen import progress

    monkeypatch.setattr(progress, "SECONDS", 0.03)
    monkeypatch.setattr(progress, "_WATCH", progress._Watch())
    events: list[ProgressEvent] = []
    model = SlowModel(VOCABULARY.size)
    model.seconds = 0.03
    gen = Generator(model, ByteTokenizer(), vocabulary=VOCABULARY, progress=events.append)
    run(gen.agenerate("p", max_new_tokens=9))
    assert "writing an output" in {event.what for event in events} and events[-1].is_over
