"""The engine: what single calls write, for many callers at once; cancelled, late, failing and too many."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
import threading
import time
from contextlib import aclosing
from typing import Any

import pytest

import structgen
from structgen.errors import GenerationError, IncompleteOutputError, MaskTimeoutError, OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.threads import Asking, at_once
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.server.engine import AsyncEngine
from structgen.server.errors import RequestError, as_request_error
from structgen.server.fair_pool import KINDER
from structgen.server.sequences import SequenceRequest
from structgen.server.settings import ServingSettings
from tests.fakes import FakeConstraint, NestedMatcher
from tests.server.tiny import EOS, VOCABULARY, ByteTokenizer, SlowModel, generator

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 999}}, "required": ["a"]}
ENUM = structgen.choice(["red", "green", "grey"])


def run(scenario: Any, gen: Any = None, **settings: Any) -> Any:
    """The result of a coroutine function of an engine."""
    engine = AsyncEngine(gen or generator(), ServingSettings(**settings))

    async def whole() -> Any:
        return await asyncio.wait_for(scenario(engine), 60)

    try:
        return asyncio.run(whole())
    finally:
        engine.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no niceness of their own")
def test_the_models_thread_gives_way_to_nobody() -> None:
    """The threads that make outputs do."""

    async def scenario(engine: AsyncEngine) -> dict[str, int]:
        await engine.agenerate("one", ENUM)
        threads = [thread for thread in threading.enumerate() if thread.native_id is not None]
        return {thread.name: os.getpriority(os.PRIO_PROCESS, int(thread.native_id or 0)) for thread in threads}

    niceness, usual = run(scenario), os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness["structgen-model"] == usual and niceness["structgen-outputs-0"] == min(19, usual + KINDER)


@pytest.mark.full
def test_many_at_once_are_what_single_calls_write() -> None:
    tasks: list[tuple[str, Any, dict[str, Any]]] = [
        ("one", SCHEMA, {"temperature": 1.0, "seed": 1}),
        ("two", ENUM, {"temperature": 1.0, "seed": 2}),
        ("three", None, {"temperature": 0.7, "seed": 3, "max_new_tokens": 30, "top_p": 0.9}),
        ("four", structgen.regex("[a-f]{3,9}"), {}),
    ]
    gen = generator()
    single = [gen.generate(prompt, constraint, **options) for prompt, constraint, options in tasks for _ in range(4)]

    async def scenario(engine: AsyncEngine) -> Any:
        calls = [
            engine.agenerate(prompt, constraint, **options) for prompt, constraint, options in tasks for _ in range(4)
        ]
        return await asyncio.gather(*calls)

    results = run(scenario)
    assert [(r.value, r.token_ids, r.finish_reason, r.logprob) for r in results] == [
        (r.value, r.token_ids, r.finish_reason, r.logprob) for r in single
    ]


def test_a_stream_adds_up() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        return [event async for event in engine.astream("p", SCHEMA, temperature=1.0, seed=5)]

    events = run(scenario)
    assert "".join(event.delta for event in events) == events[-1].text
    assert events[-1].result.value == json.loads(events[-1].text)
    assert events[-1].result.value == generator().generate("p", SCHEMA, temperature=1.0, seed=5).value


def test_captures_are_those_of_the_generator() -> None:
    pytest.importorskip("lark")
    grammar = structgen.lark('start: "<" name ">"\nname[capture]: /[a-c]{2}/\n', dialect="llguidance")
    single = generator().generate("p", grammar, seed=1, temperature=1.0)
    result = run(lambda engine: engine.agenerate("p", grammar, seed=1, temperature=1.0))
    assert dict(result.captures) == dict(single.captures) and set(result.captures) == {"name"}


def test_a_rows_error_stays_in_its_row() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        calls = [engine.agenerate("p", SCHEMA, max_new_tokens=count, seed=1) for count in (2, 40)]
        return await asyncio.gather(*calls, return_exceptions=True)

    failed, whole = run(scenario)
    assert isinstance(failed, IncompleteOutputError) and "a" in whole.value


def test_bad_options_raise_before_anything_is_written() -> None:
    async def scenario(engine: AsyncEngine) -> None:
        with pytest.raises(OptionsError, match="did you mean 'temperature'"):
            await engine.agenerate("p", temprature=1)
        for name in ("log_mass", "fields", "choose", "spelling", "guidance"):  # which its results would not have
            with pytest.raises(OptionsError, match=name):
                await engine.agenerate("p", SCHEMA, **{name: True})
        with pytest.raises(structgen.SchemaError):
            await engine.agenerate("p", {"type": "strin"})
        with pytest.raises(GenerationError, match="shorten it"):
            await engine.agenerate("p" * 999)
        assert engine.is_idle

    run(scenario, generator(context_length=200))


def test_leaving_a_stream_cancels_it() -> None:
    model: Any = None

    async def scenario(engine: AsyncEngine) -> int:
        async with aclosing(engine.astream("p", max_new_tokens=100_000, seed=1)) as events:
            async for event in events:
                if len(event.text) > 3:
                    break
        for _ in range(200):
            if engine.is_idle:
                break
            await asyncio.sleep(0.01)
        assert engine.is_idle
        before = model.forwards
        await asyncio.sleep(0.1)
        return int(model.forwards - before)

    gen = generator(0.001)
    model = gen.model
    assert run(scenario, gen) == 0


def test_cancelling_a_task_cancels_its_output() -> None:
    async def scenario(engine: AsyncEngine) -> bool:
        task = asyncio.ensure_future(engine.agenerate("p", max_new_tokens=100_000))
        await asyncio.sleep(0.1)
        assert engine.running == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for _ in range(200):
            if engine.is_idle:
                break
            await asyncio.sleep(0.01)
        return engine.is_idle

    assert run(scenario, generator(0.001))


def requests(count: int, **fields: Any) -> list[SequenceRequest]:
    return [SequenceRequest(**{"prompt_ids": [1, 2], **fields}) for _ in range(count)]


def held() -> tuple[Generator, threading.Event]:
    """A generator that writes nothing before the event is set."""
    gen = generator()
    model: Any = gen.model
    model.may_read = threading.Event()
    return gen, model.may_read


def test_a_full_queue_turns_away() -> None:
    gen, may_write = held()

    async def scenario(engine: AsyncEngine) -> None:
        streams = [engine.submit(requests(1, max_new_tokens=30)) for _ in range(3)]
        with pytest.raises(RequestError) as caught:
            engine.submit(requests(2))
        assert caught.value.status == 429 and caught.value.retry_after is not None and caught.value.retry
        may_write.set()
        ended = await asyncio.gather(*(stream.last() for stream in streams))
        assert all(events[0].end is not None for events in ended)

    run(scenario, gen, max_rows=1, max_waiting=3)


@pytest.mark.full
def test_a_caller_who_fills_the_queue_makes_way() -> None:
    """Its last request is turned away; requests of which something came are not."""

    async def scenario(engine: AsyncEngine) -> None:
        greedy = [engine.submit(requests(1, max_new_tokens=60), "greedy") for _ in range(5)]
        reading = [asyncio.ensure_future(stream.last()) for stream in greedy]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestError):
            while True:
                greedy.append(engine.submit(requests(1, max_new_tokens=60), "greedy"))
                reading.append(asyncio.ensure_future(greedy[-1].last()))
        good = engine.submit(requests(1, max_new_tokens=5), "good")
        end = (await good.last())[0].end
        assert end is not None and len(end.token_ids) == 5
        ended = await asyncio.gather(*reading, return_exceptions=True)
        assert isinstance(ended[-1], RequestError) and ended[-1].status == 429
        assert not any(isinstance(each, Exception) for each in ended[:-1])
        assert engine.is_idle and engine.unbegun.excess("anybody") == 0

    run(scenario, generator(0.002), max_rows=1, max_waiting=5)


def test_rows_that_are_free_do_not_count_as_waiting() -> None:
    gen, may_write = held()

    async def scenario(engine: AsyncEngine) -> list[int]:
        streams, turned_away = [], 0
        for _ in range(12):  # before any of them can have ended
            try:
                streams.append(engine.submit(requests(1, max_new_tokens=30)))
            except RequestError:
                turned_away += 1
        may_write.set()
        await asyncio.gather(*(stream.last() for stream in streams))
        return [len(streams), turned_away]

    assert run(scenario, gen, max_rows=4, max_waiting=3) == [7, 5]


class SlowToBegin:
    """A grammar whose matchers take long to make."""

    def __init__(self, seconds: float) -> None:
        self._grammar: Any = structgen.compile_regex("[ab]{3}", VOCABULARY)
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grammar, name)

    def matcher(self) -> Any:
        time.sleep(self._seconds)
        return self._grammar.matcher()


def test_an_output_that_is_slow_to_begin_holds_up_nobody_who_is_written() -> None:
    async def scenario(engine: AsyncEngine) -> tuple[float, str]:
        times: list[float] = []

        async def writing() -> None:
            async for _ in engine.astream("p", max_new_tokens=100_000, logit_bias={EOS: -100.0}):
                times.append(time.monotonic())

        other = asyncio.ensure_future(writing())
        while len(times) < 3:
            await asyncio.sleep(0.01)
        slow = engine.submit(requests(1, grammar=SlowToBegin(0.6)))
        ended = (await slow.last())[0]
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        return max(late - early for early, late in itertools.pairwise(times)), ended.text

    gap, text = run(scenario, generator(0.002))
    assert gap < 0.4 and re.fullmatch("[ab]{3}", text)


def test_an_output_that_is_given_up_before_it_was_made_never_enters() -> None:
    async def scenario(engine: AsyncEngine) -> tuple[int, bool, Any]:
        stream = engine.submit(requests(1, grammar=SlowToBegin(0.2), max_new_tokens=50))
        engine.cancel(stream)
        waited = engine.waiting
        await engine.agenerate("p", max_new_tokens=2)  # beside it
        for _ in range(1_000):
            if engine.is_idle:
                break
            await asyncio.sleep(0.01)
        return waited, engine.is_idle, engine._handles

    assert run(scenario) == (1, True, {})


def test_closing_fails_what_is_still_being_made() -> None:
    async def scenario(engine: AsyncEngine) -> None:
        await engine.agenerate("p", max_new_tokens=2)
        stream = engine.submit(requests(1, grammar=SlowToBegin(0.2), max_new_tokens=50))
        await asyncio.to_thread(engine.close)
        with pytest.raises(GenerationError, match="stops"):
            await stream.last()

    run(scenario)


def test_who_waits_too_long_is_turned_away() -> None:
    gen, may_write = held()

    async def scenario(engine: AsyncEngine) -> None:
        first = engine.submit(requests(1, max_new_tokens=60))
        late = engine.submit(requests(1, max_new_tokens=3, queue_seconds=0.02))
        await asyncio.sleep(0.03)
        may_write.set()
        with pytest.raises(RequestError, match="has waited") as caught:
            await late.last()
        assert caught.value.status == 429 and caught.value.code == "queue_timeout"
        assert (await first.last())[0].end is not None

    run(scenario, gen, max_rows=1)


def test_lower_priority_numbers_go_first() -> None:
    async def scenario(engine: AsyncEngine) -> list[str]:
        order: list[str] = []

        async def one(name: str, priority: int) -> None:
            await engine.submit(requests(1, max_new_tokens=20, priority=priority)).last()
            order.append(name)

        first = asyncio.ensure_future(one("first", 0))
        await asyncio.sleep(0.02)
        await asyncio.gather(first, one("later", 5), one("sooner", -5))
        return order

    assert run(scenario, generator(0.002), max_rows=1) == ["first", "sooner", "later"]


def test_after_its_deadline_an_output_is_closed_validly() -> None:
    many = {"type": "array", "items": {"type": "integer"}, "minItems": 3}

    async def scenario(engine: AsyncEngine) -> Any:
        grammar = await engine.compile(structgen.json_schema(many))
        params = SamplingParams(temperature=1.0, seed=1, logit_bias={byte: 5.0 for byte in b"[0123456789, "})
        late = requests(1, grammar=grammar, params=params, max_new_tokens=100_000, seconds=0.2)
        return await engine.submit(late).last()

    (event,) = run(scenario, generator(0.002))
    assert event.end.finish_reason == "length" and len(json.loads(event.text)) >= 3


class ByTheToken(TinyReader):
    """Rows that take their time for every token that they read."""

    def read(self, parts: Any) -> Any:
        time.sleep(0.002 * sum(len(part.tokens) for part in parts))
        return super().read(parts)


class SlowReader(TinyModel):
    """A model with such rows."""

    def ragged_reader(self) -> TinyReader:
        return ByTheToken(self)


def slow_reader() -> Generator:
    return Generator(SlowReader(VOCABULARY.size), ByteTokenizer(), vocabulary=VOCABULARY)


LONG = 2000  # tokens of a prompt: four seconds


def test_a_small_request_does_not_wait_for_a_long_prompt() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        await engine.submit(requests(1, max_new_tokens=2)).last()
        long = engine.submit(requests(1, prompt_ids=[5] * LONG, max_new_tokens=1))
        await asyncio.sleep(0.5)
        started = time.monotonic()
        await engine.submit(requests(1, prompt_ids=[6] * 10, max_new_tokens=5)).last()
        seconds, busy = time.monotonic() - started, engine.running
        engine.cancel(long)
        return seconds, busy, engine.is_healthy

    seconds, busy, is_healthy = run(scenario, slow_reader())
    assert seconds < 1.5 and busy == 1 and is_healthy


def test_a_deadline_ends_the_reading_of_a_prompt() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        await engine.submit(requests(1, max_new_tokens=2)).last()
        started = time.monotonic()
        with pytest.raises(RequestError, match=r"of the prompt's 2000 tokens were read within 0\.3 seconds") as caught:
            await engine.submit(requests(1, prompt_ids=[5] * LONG, seconds=0.3)).last()
        return time.monotonic() - started, caught.value, engine.running

    seconds, error, running = run(scenario, slow_reader())
    assert seconds < 1.5 and running == 0
    assert (error.status, error.code, error.retry) == (429, "queue_timeout", True)


def test_a_client_that_leaves_ends_the_reading_of_its_prompt() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        await engine.submit(requests(1, max_new_tokens=2)).last()
        task = asyncio.ensure_future(engine.submit(requests(1, prompt_ids=[5] * LONG)).last())
        await asyncio.sleep(0.5)
        started = time.monotonic()
        task.cancel()
        while not engine.is_idle:
            await asyncio.sleep(0.01)
        return time.monotonic() - started

    assert run(scenario, slow_reader()) < 1.0


def test_hurry_closes_everything() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        grammar = await engine.compile(structgen.json_schema({"type": "string", "minLength": 2}))
        streams = [engine.submit(requests(1, max_new_tokens=100_000)), engine.submit(requests(1, grammar=grammar))]
        await asyncio.sleep(0.05)
        engine.hurry()
        return [(await stream.last())[0] for stream in streams]

    free, constrained = run(scenario, generator(0.002))
    assert free.end.finish_reason == "length" and len(json.loads(constrained.text)) >= 2


def test_a_slow_reader_gets_what_it_missed_at_once() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        stream = engine.submit(requests(1, max_new_tokens=50))
        async with aclosing(stream.events()) as events:
            seen = [await anext(events)]
            await asyncio.sleep(0.5)
            seen += [event async for event in events]
        return seen

    seen = run(scenario)
    assert len(seen) <= 3 and sum(len(event.tokens) for _, event in seen) == 50
    assert [token.token_id for _, event in seen for token in event.tokens] == list(seen[-1][1].end.token_ids)


def test_logprobs_are_those_of_the_generator() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        grammar = await engine.compile(structgen.json_schema(SCHEMA))
        row = SequenceRequest(list(b"p"), grammar, max_new_tokens=40, top_logprobs=3)
        return await engine.submit([row]).last()

    (event,) = run(scenario)
    assert [choice.token_id for choice in event.tokens] == list(event.end.token_ids)
    closing = event.end.logprob - sum(choice.logprob for choice in event.tokens)
    assert closing <= 1e-9  # what is left is the end of sequence
    for choice in event.tokens:  # greedy: what was taken is the likeliest
        assert choice.top[0] == (choice.token_id, pytest.approx(choice.logprob, abs=1e-6))
        assert all(one[1] >= other[1] for one, other in zip(choice.top, choice.top[1:], strict=False))


def test_logprobs_against_the_models_own_logits() -> None:
    """Of free text: log-softmax of the logits after each prefix."""
    import numpy as np

    async def scenario(engine: AsyncEngine) -> Any:
        return await engine.submit([SequenceRequest([1, 2], max_new_tokens=6, top_logprobs=2)]).last()

    (event,) = run(scenario)
    model, ids = SlowModel(VOCABULARY.size), [1, 2]
    for choice in event.tokens:
        logits = model.prefill([ids])[0][0].astype(float)
        logprobs = logits - np.logaddexp.reduce(logits)
        assert choice.logprob == pytest.approx(logprobs[choice.token_id], abs=1e-5)
        best = np.argsort(-logprobs)[:2]
        assert [token for token, _ in choice.top] == best.tolist()
        ids.append(choice.token_id)
    assert EOS not in ids


def test_drafts_change_nothing_but_what_traces_tell() -> None:
    row = SequenceRequest(list(b"abcabcabcabc"), max_new_tokens=120, traced=True)

    async def scenario(engine: AsyncEngine) -> Any:
        return (await engine.submit([row]).last())[0]

    plain = run(scenario, generator(order=1))
    drafted = run(scenario, generator(order=1, draft="ngram"))
    assert plain.end.token_ids == drafted.end.token_ids and not any(token.drafted for token in plain.tokens)
    agreed = sum(token.drafted for token in drafted.tokens)
    assert agreed > 20 and agreed == max(drafted.end.stats.accepted.values())
    assert all(token.allowed == VOCABULARY.size for token in drafted.tokens)


def test_a_dead_model_thread_fails_all_and_is_told() -> None:
    def dying() -> None:
        raise MemoryError("gone")

    engine = AsyncEngine(generator())
    engine._writer.step = dying  # type: ignore[assignment, method-assign]

    async def scenario() -> None:
        with pytest.raises(GenerationError, match="gone"):
            await engine.agenerate("p")
        assert not engine.is_healthy
        with pytest.raises(RequestError) as caught:
            await engine.agenerate("p")
        assert caught.value.status == 503

    asyncio.run(scenario())
    engine.close()


def test_one_compile_for_many() -> None:
    compiled = []

    class Slow:
        def content_key(self) -> Any:
            return "slow"

        def compile(self, vocabulary: Any) -> Any:
            compiled.append(self)
            time.sleep(0.1)
            return structgen.compile_regex("a", vocabulary)

    async def scenario(engine: AsyncEngine) -> None:
        found = await asyncio.gather(*(engine.compile(Slow()) for _ in range(5)))  # type: ignore[arg-type]
        assert len({id(grammar) for grammar in found}) == 1

    run(scenario)
    assert len(compiled) == 1


def test_nothing_is_left_behind() -> None:
    async def scenario(engine: AsyncEngine) -> Any:
        for number in range(20):
            await asyncio.gather(*(engine.agenerate("p", ENUM, seed=number) for _ in range(4)))
        return engine._handles, set(engine._writer._handles), engine.is_idle  # type: ignore[attr-defined]

    assert run(scenario) == ({}, set(), True)


@pytest.mark.full
def test_a_late_mask_fails_by_name_and_delays_nobody() -> None:
    """One constraint never says what may follow; the others are written meanwhile."""
    gate = threading.Event()

    class Stuck(NestedMatcher):
        def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
            assert gate.wait(30)
            super().fill_next_token_bitmask(bitmask, index)

    async def scenario(engine: AsyncEngine) -> Any:
        stuck = FakeConstraint(lambda vocabulary: Stuck(vocabulary))
        late = asyncio.ensure_future(engine.agenerate("p", stuck, max_new_tokens=20))
        others = await asyncio.gather(*(engine.agenerate("p", max_new_tokens=5, temperature=1.0) for _ in range(4)))
        assert not late.done()
        with pytest.raises(MaskTimeoutError, match="max_mask_seconds"):
            await late
        return others

    assert len(run(scenario, max_mask_seconds=1.0)) == 4
    gate.set()
    assert as_request_error(MaskTimeoutError("x")).code == "grammar_too_complex"


def test_late_masks_are_counted() -> None:
    class Slow(NestedMatcher):
        def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
            time.sleep(0.05)
            super().fill_next_token_bitmask(bitmask, index)

    async def scenario(engine: AsyncEngine) -> list[int]:
        counts = []
        for kind in (Slow, NestedMatcher):
            constraint = FakeConstraint(lambda vocabulary, kind=kind: kind(vocabulary))
            request = await engine._request("p", constraint, max_new_tokens=8, temperature=1.0)
            (event,) = await engine.submit([request]).last()
            assert event.end is not None
            counts.append(event.end.late_masks)
        return counts

    late, quick = run(scenario)
    assert late > 0 and quick < late


def test_an_output_that_takes_long_to_begin_holds_up_no_other_caller() -> None:
    """Whether the shortest text fits is told beside others, and once for a grammar and a budget."""
    begun = threading.Event()
    gate = threading.Event()

    async def scenario(engine: AsyncEngine) -> None:
        make = engine._writer.output

        def output(request: SequenceRequest, asking: Asking = at_once) -> Any:
            if request.key == "greedy":
                begun.set()
                gate.wait(20)
            return make(request, asking)

        engine._writer.output = output  # type: ignore
        greedy = [engine.submit([SequenceRequest([1], max_new_tokens=3, key="greedy")], "greedy") for _ in range(8)]
        await asyncio.to_thread(begun.wait, 10)
        other = engine.submit([SequenceRequest([1], max_new_tokens=3)], "other")
        assert (await asyncio.wait_for(other.last(), 10))[0].end is not None
        for stream in greedy[4:]:
            engine.cancel(stream)
        gate.set()
        for stream in greedy[:4]:
            assert (await stream.last())[0].end is not None
        assert engine.waiting == 0

    run(scenario)


def test_a_budget_that_did_not_do_is_refused_at_once() -> None:
    grammar = structgen.json_schema({"type": "string", "minLength": 300_000}).compile(VOCABULARY)

    async def scenario(engine: AsyncEngine) -> None:
        writer: Any = engine._writer
        for budget in (2_000, 2_000, 30):
            with pytest.raises(IncompleteOutputError, match=f"{budget} of {budget} tokens .* 300,002 bytes"):
                await engine.submit([SequenceRequest([1], grammar, max_new_tokens=budget)]).last()
        started = time.process_time()
        for _ in range(200):
            with pytest.raises(IncompleteOutputError):
                writer.output(SequenceRequest([1], grammar, max_new_tokens=2_000))
        assert time.process_time() - started < 0.5
        with pytest.raises(IncompleteOutputError, match="2001 of 2001"):
            writer.output(SequenceRequest([1], grammar, max_new_tokens=2_001))

    run(scenario)
