"""The scheduler against the plain loop: whatever joins, leaves, is read in pieces, drafted, preempted or cancelled
beside it, each row is token for token what it is alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from structgen.errors import CancelledError, GenerationError, IncompleteOutputError, QueueError
from structgen.generation.decoding.output import Output
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Event, Handle, Request, State
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.length import CostAware, Fixed
from structgen.generation.speculative.speculator import Speculator
from tests.fakes import NestedMatcher, WordsMatcher, vocabulary
from tests.generation.decoding import plain_loop
from tests.generation.speculative.test_exactness import drafters

VOCABULARY = vocabulary(b"nd", b"]e", b"[a", b"xx", b"<x")
WORDS = [b"[" + bytes(pair) + b"]end" for pair in zip(b"aabbccdd", b"xyxyxyxy", strict=True)]
MODEL = TinyModel(VOCABULARY.size, seed=3, order=2, scale=3.0)


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fresh(seed: int, budget: int | None = None) -> Output:
    """An output of one of four kinds."""
    matcher = [lambda: None, lambda: WordsMatcher(VOCABULARY, WORDS), lambda: NestedMatcher(VOCABULARY)][seed % 3]()
    params = [
        SamplingParams(),
        SamplingParams(0.8, top_k=20, seed=seed),
        SamplingParams(1.1, seed=seed, repetition_penalty=1.2),
        SamplingParams(1.3, seed=seed, top_p=0.9),
    ][seed % 4]
    stop = ("qq", "z") if seed % 5 == 0 else ()
    return Output(VOCABULARY, matcher, params, max_new_tokens=budget or 8 + seed % 17, stop=stop)


def prompt(seed: int) -> list[int]:
    """Of all lengths, some with a long common beginning."""
    rng = random.Random(seed)
    shared = [5, 6, 7] * 14 if seed % 2 else []
    return [*shared, *(rng.randrange(130) for _ in range(rng.randrange(1, 50)))]


def outcome(output: Output) -> tuple[Any, ...]:
    return output.token_ids, output.finish_reason, output.text, round(output.log_prob, 9)


def alone(seed: int) -> tuple[Any, ...]:
    output = fresh(seed)
    plain_loop.decode(MODEL, [prompt(seed)], [output])
    return outcome(output)


def run(scheduler: Scheduler, steps: int = 2000) -> list[Event]:
    events: list[Event] = []
    for _ in range(steps):
        if scheduler.is_idle:
            return events
        events += scheduler.step()
    raise AssertionError("the scheduler comes to no end")


READERS: dict[str, Any] = {"packed": lambda: TinyReader(MODEL), "padded": lambda: PaddedReader(MODEL)}


@pytest.mark.first_case
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("round_", range(8))
def test_rows_are_what_they_are_alone(reader: str, round_: int) -> None:
    """Random joins, cancellations, chunk sizes, memory and drafters."""
    rng = random.Random(round_)
    limits = SchedulerLimits(
        sequences=rng.choice([1, 2, 5, 9]),
        step_tokens=rng.choice([8, 30, 4096]),
        least_chunk=rng.choice([1, 5, 16]),
        max_bytes=rng.choice([None, 250, 400]) if reader == "packed" else None,
    )
    scheduler = Scheduler(READERS[reader](), limits, overlapped=rng.random() < 0.3)
    speculators: list[Any] = [
        None,
        Speculator(drafters(VOCABULARY, "all"), CostAware()),
        Speculator(drafters(VOCABULARY, "random"), Fixed(5)),
        Speculator(drafters(VOCABULARY, "ngram"), CostAware()),
    ]
    seeds, handles, cancelled = list(range(24)), dict[int, Handle](), set[int]()
    events: list[Event] = []
    while seeds or not scheduler.is_idle:
        for _ in range(rng.randrange(4)):
            if seeds:
                seed = seeds.pop()
                request = Request(
                    prompt(seed),
                    fresh(seed),
                    rng.choice(speculators),
                    priority=rng.randrange(3),
                    key=rng.choice("ab"),
                    streams=True,
                )
                handles[seed] = scheduler.submit(request)
        if handles and rng.random() < 0.03:
            seed = rng.choice(sorted(handles))
            scheduler.cancel(handles[seed])
            cancelled.add(seed)
        events += scheduler.step()
    for seed, handle in handles.items():
        own = [event for event in events if event.handle is handle]
        assert [event.is_last for event in own] == [False] * (len(own) - 1) + [True]
        assert sum((event.token_ids for event in own), ()) == tuple(handle.output.token_ids)
        assert len(sum((event.log_probs for event in own), ())) == len(handle.output.token_ids)
        if isinstance(handle.error, CancelledError):
            assert seed in cancelled
            continue
        assert handle.error is None and outcome(handle.output) == alone(seed)
        rest = handle.output.log_prob - sum(handle.output.token_log_probs)  # of the end
        assert rest <= 1e-9 and (rest > -1e-9 or handle.output.finish_reason == "stop")
        assert "".join(event.text for event in own) == handle.output.text
        assert handle.state is State.DONE
    assert scheduler.running == scheduler.waiting == 0
    scheduler.reader.forget_prefixes()
    if reader == "packed":
        assert scheduler.reader.bytes == 0


@pytest.mark.parametrize("window", [None, 12])
def test_a_transformers_model_writes_the_same(window: int | None) -> None:
    """Packed rows in float64, where ties do not happen: the tokens of single calls, under little memory."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from structgen.generation.models.transformers_model import TransformersModel

    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=VOCABULARY.size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.3, sliding_window=window,
    )  # fmt: skip
    model = TransformersModel(transformers.MistralForCausalLM(config).double())
    reader = ragged_reader(model)
    assert reader.reads_apart
    scheduler = Scheduler(reader, SchedulerLimits(sequences=4, step_tokens=40, max_bytes=500 * reader.token_bytes))
    speculator = Speculator(drafters(VOCABULARY, "ngram"), CostAware())
    handles = {}
    for seed in range(8):
        handles[seed] = scheduler.submit(Request(prompt(seed), fresh(seed), speculator if seed % 2 else None))
        scheduler.step()
    run(scheduler)
    for seed, handle in handles.items():
        single = fresh(seed)
        plain_loop.decode(model, [prompt(seed)], [single])
        assert handle.error is None and handle.output.token_ids == single.token_ids
    assert sum(handle.cached_tokens for handle in handles.values()) > 0


class Broken(NestedMatcher):
    """Fails at its third token."""

    def accept_token(self, token_id: int) -> bool:
        if len(self.history) > 3:
            raise RuntimeError("broken matcher")
        return super().accept_token(token_id)


@pytest.mark.parametrize("reader", READERS)
def test_an_error_stays_in_its_row(reader: str) -> None:
    scheduler = Scheduler(READERS[reader]())
    speculator = Speculator(drafters(VOCABULARY, "ngram"), CostAware())
    bad = Output(VOCABULARY, Broken(VOCABULARY), SamplingParams(1.0, seed=1), max_new_tokens=20)
    incomplete = Output(
        VOCABULARY, WordsMatcher(VOCABULARY, [b"axxxb", b"axxxc"]), SamplingParams(), max_new_tokens=9, stop=("x",)
    )
    broken = [scheduler.submit(Request([3], bad, speculator)), scheduler.submit(Request([4], incomplete))]
    handles = {seed: scheduler.submit(Request(prompt(seed), fresh(seed), speculator)) for seed in range(5)}
    run(scheduler)
    assert isinstance(broken[0].error, RuntimeError) and isinstance(broken[1].error, IncompleteOutputError)
    assert all(outcome(handle.output) == alone(seed) for seed, handle in handles.items())


def test_preempted_rows_are_read_again() -> None:
    reader = TinyReader(MODEL)
    scheduler = Scheduler(reader, SchedulerLimits(max_bytes=230))
    most = 0
    handles = {seed: scheduler.submit(Request(prompt(seed)[-20:], fresh(seed, 60))) for seed in (0, 3, 6, 9, 12, 15)}
    while not scheduler.is_idle:
        scheduler.step()
        most = max(most, reader.bytes)
    assert sum(handle.preemptions for handle in handles.values()) > 0 and most <= 230 + 60
    for seed, handle in handles.items():
        single = fresh(seed, 60)
        plain_loop.decode(MODEL, [prompt(seed)[-20:]], [single])
        assert outcome(handle.output) == outcome(single)


@pytest.mark.parametrize("kind", [TinyReader, PaddedReader])
def test_memory_that_runs_out_halves_the_rows(kind: Any) -> None:
    class Small(kind):
        def read(self, parts: Any) -> Any:
            if len(parts) > 3:
                raise MemoryError
            return super().read(parts)

    scheduler = Scheduler(Small(MODEL))
    handles = {seed: scheduler.submit(Request(prompt(seed), fresh(seed))) for seed in range(10)}
    run(scheduler)
    assert all(outcome(handle.output) == alone(seed) for seed, handle in handles.items())


def test_a_model_that_fails_fails_what_it_reads() -> None:
    class Failing(TinyReader):
        def read(self, parts: Any) -> Any:
            raise ValueError("dead")

    scheduler = Scheduler(Failing(MODEL), SchedulerLimits(sequences=1))
    handles = [scheduler.submit(Request([1], fresh(seed))) for seed in (0, 3)]
    scheduler.step()
    assert isinstance(handles[0].error, ValueError) and handles[1].state is State.WAITING


def test_outputs_that_hurry_close_validly() -> None:
    """At any time: constrained text is whole within a few steps, free text ends at once."""
    for seconds in range(1, 9):
        clock = Clock()
        scheduler = Scheduler(TinyReader(MODEL), clock=clock)
        nested = Output(VOCABULARY, NestedMatcher(VOCABULARY), SamplingParams(1.0, seed=2), max_new_tokens=500)
        free = Output(VOCABULARY, None, SamplingParams(1.0, seed=seconds), max_new_tokens=500)
        handles = [scheduler.submit(Request([1, 2], output, seconds=seconds - 0.5)) for output in (nested, free)]
        for _ in range(200):
            scheduler.step()
            clock.now += 1
        assert all(handle.error is None and handle.state is State.DONE for handle in handles)
        assert NestedMatcher(VOCABULARY).completion(nested.text.encode()) == b""
        assert len(free.token_ids) <= seconds and free.finish_reason in ("length", "stop")


def test_the_queue_has_ends() -> None:
    clock = Clock()
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=1, waiting=2), clock=clock)
    first = scheduler.submit(Request([1], Output(VOCABULARY, None, SamplingParams(), max_new_tokens=5)))
    scheduler.step()
    late = scheduler.submit(Request([1], fresh(3), queue_seconds=1.0))
    scheduler.submit(Request([1], fresh(6)))
    with pytest.raises(QueueError, match="2 requests wait"):
        scheduler.submit(Request([1], fresh(9)))
    clock.now = 2.0
    run(scheduler)
    assert isinstance(late.error, QueueError) and first.error is None
    with pytest.raises(GenerationError, match="no tokens"):
        scheduler.submit(Request([], fresh(3)))
    with pytest.raises(GenerationError, match="fit in memory"):
        Scheduler(TinyReader(MODEL), SchedulerLimits(max_bytes=10)).submit(Request([1] * 8, fresh(3)))


def order_of(requests: list[Request], **limits: Any) -> list[int]:
    """In which order requests that come at once are begun."""
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=1, **limits))
    handles = [scheduler.submit(request) for request in requests]
    begun: list[int] = []
    while not scheduler.is_idle:
        scheduler.step()
        begun += [row for row, handle in enumerate(handles) if handle.state is not State.WAITING and row not in begun]
    return begun


def test_priorities_and_keys_take_turns() -> None:
    def request(priority: int, key: str) -> Request:
        output = Output(VOCABULARY, None, SamplingParams(1.0, seed=1), max_new_tokens=6)
        return Request([1], output, priority=priority, key=key)

    assert order_of([request(1, ""), request(0, ""), request(2, ""), request(0, "")]) == [1, 3, 0, 2]
    assert order_of([request(0, "a"), request(0, "a"), request(0, "a"), request(0, "b")]) == [0, 3, 1, 2]


def test_waiting_is_worth_a_class() -> None:
    clock = Clock()
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=1), clock=clock)
    busy = scheduler.submit(Request([1], Output(VOCABULARY, None, SamplingParams(1.0, seed=1), max_new_tokens=9)))
    scheduler.step()
    old = scheduler.submit(Request([1], fresh(3), priority=1))
    scheduler.step()
    clock.now = 25.0
    new = scheduler.submit(Request([1], fresh(3), priority=0))
    while old.state is State.WAITING:
        scheduler.step()
    assert new.state is State.WAITING and busy.state is State.DONE


def test_a_key_has_so_many_rows() -> None:
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=4, sequences_a_key=1))
    handles = [scheduler.submit(Request([1], fresh(3, 30), key=key)) for key in "aab"]
    scheduler.step()
    assert [handle.state is State.WAITING for handle in handles] == [False, True, False]
    run(scheduler)


def test_one_key_has_not_all_rows() -> None:
    """Who has fewer rows is given one of the key that has most; that one is taken up again, and is what it is alone."""
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=4))
    seeds = [1, 4, 7, 10, 13, 16]
    greedy = [scheduler.submit(Request(prompt(seed), fresh(seed, 40), key="greedy")) for seed in seeds]
    while scheduler.running < 4 or any(handle.state is State.READING for handle in greedy):
        scheduler.step()
    good = [scheduler.submit(Request(prompt(seed), fresh(seed, 12), key="good")) for seed in (3, 6, 9)]
    scheduler.step()
    assert [handle.state is State.WAITING for handle in good] == [False, False, True], "until both have as many"
    for _ in range(3):
        scheduler.step()
    assert sum(handle.preemptions for handle in greedy) == 2
    run(scheduler)
    for seed, handle in zip(seeds, greedy, strict=True):
        output = fresh(seed, 40)
        plain_loop.decode(MODEL, [prompt(seed)], [output])
        assert handle.error is None and outcome(handle.output) == outcome(output)


def test_priorities_are_of_one_key() -> None:
    def request(priority: int, key: str) -> Request:
        output = Output(VOCABULARY, None, SamplingParams(1.0, seed=1), max_new_tokens=6)
        return Request([1], output, priority=priority, key=key)

    found = order_of([request(0, "good"), *(request(-1000, "greedy") for _ in range(3)), request(0, "good")])
    assert found.index(0) <= 1 and found.index(4) <= 3, found


def test_what_others_read_is_waited_for() -> None:
    """Requests with one long prompt: it is read once."""
    model = TinyModel(VOCABULARY.size)
    scheduler = Scheduler(ragged_reader(model), SchedulerLimits(step_tokens=30))
    handles = [scheduler.submit(Request([9] * 100, fresh(seed))) for seed in range(4)]
    run(scheduler)
    assert [handle.cached_tokens for handle in handles] == [0, 99, 99, 99]


def test_what_others_have_read_of_a_long_prompt_is_taken_over_at_once() -> None:
    """A short prompt that begins like a long one waits for what both have, not for the rest."""
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(step_tokens=20))
    long = scheduler.submit(Request([9] * 40 + [8] * 1000, fresh(0)))
    scheduler.step()
    short = scheduler.submit(Request([9] * 40 + [7] * 5, fresh(0)))
    for _ in range(5):
        scheduler.step()
    assert short.state is not State.WAITING and short.cached_tokens == 40 and long.state is State.READING
    run(scheduler)
    assert outcome(short.output) == outcome(plain([9] * 40 + [7] * 5)), "it is what it is alone"


def plain(tokens: list[int]) -> Output:
    output = fresh(0)
    plain_loop.decode(MODEL, [tokens], [output])
    return output


def test_written_rows_do_not_wait_for_prompts() -> None:
    """While a long prompt is read in pieces, every step gives the others a token."""
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(step_tokens=40))
    rows = [Output(VOCABULARY, None, SamplingParams(1.0, seed=seed), max_new_tokens=40) for seed in range(3)]
    handles = [scheduler.submit(Request([1], output)) for output in rows]
    scheduler.step()
    scheduler.submit(Request([7] * 400, replace_budget(5)))
    for _ in range(8):
        before = [len(handle.output.token_ids) for handle in handles]
        scheduler.step()
        now = [len(handle.output.token_ids) for handle in handles]
        assert all(
            later > early for early, later, handle in zip(before, now, handles, strict=True) if handle.sequence >= 0
        )


def replace_budget(budget: int) -> Output:
    return Output(VOCABULARY, None, replace(SamplingParams(), seed=1), max_new_tokens=budget)


def test_who_came_first_goes_first() -> None:
    """What was asked for before, and was compiled till now, has kept its place, and its time has run."""
    clock = Clock()
    scheduler = Scheduler(TinyReader(MODEL), SchedulerLimits(sequences=1), clock=clock)
    busy = scheduler.submit(Request([1], fresh(3, 30)))
    scheduler.step()
    clock.now = 5.0
    second = scheduler.submit(Request([1], fresh(6)))
    first = scheduler.submit(Request([1], fresh(9), arrived=1.0))
    late = scheduler.submit(Request([1], fresh(12), arrived=1.0, queue_seconds=3.0))
    while first.state is State.WAITING:
        scheduler.step()
    assert second.state is State.WAITING and busy.state is State.DONE
    run(scheduler)
    assert isinstance(late.error, QueueError) and first.error is None and second.error is None


class Counting(TinyReader):
    """Counts the tokens that are read."""

    def __init__(self) -> None:
        super().__init__(MODEL)
        self.tokens = 0

    def read(self, parts: Any) -> Any:
        self.tokens += sum(len(part.tokens) for part in parts)
        return super().read(parts)


@pytest.mark.parametrize("drafted", [False, True])
def test_the_next_turn_reads_only_what_is_new(drafted: bool) -> None:
    """What was written is known, and not only the prompt; to others than the tenant it is not."""
    speculator = Speculator(drafters(VOCABULARY, "all"), CostAware()) if drafted else None
    scheduler = Scheduler(reader := Counting())
    first = scheduler.submit(Request([5, 6, 7] * 20, fresh(6, 60), speculator, salt="a"))
    run(scheduler)
    whole = [*first.request.prompt, *first.output.token_ids]
    for salt, known in (("a", len(whole) - 2), ("b", 0)):
        read = reader.tokens
        turn = scheduler.submit(Request([*whole, 9, 9, 9], fresh(3, 20), salt=salt))
        run(scheduler)
        assert turn.cached_tokens >= known and (known or not turn.cached_tokens)
        assert reader.tokens - read <= len(whole) + 3 - turn.cached_tokens + len(turn.output.token_ids)


def test_what_failed_is_not_kept() -> None:
    scheduler = Scheduler(TinyReader(MODEL))
    handle = scheduler.submit(Request([5, 6, 7] * 20, fresh(6, 60)))
    for _ in range(6):
        scheduler.step()
    scheduler.cancel(handle)
    run(scheduler)
    assert handle.output.token_ids
    again = scheduler.submit(Request([*handle.request.prompt, *handle.output.token_ids, 9], fresh(3, 20)))
    run(scheduler)
    assert again.cached_tokens == len(handle.request.prompt)


def test_room_is_made_of_the_oldest_prefixes_only() -> None:
    """Prefixes go one by one: the latest chat goes on, whatever others were before."""
    asked: list[int] = []

    class Told(TinyReader):
        max_bytes = 200
        token_bytes = 1

        @property
        def bytes(self) -> int:
            return 190

        def forget_prefixes(self, until: int = 0) -> None:
            asked.append(until)

    scheduler = Scheduler(Told(MODEL))
    scheduler.submit(Request([5, 6], fresh(3, 8)))
    scheduler.step()
    scheduler.submit(Request([7, 6], fresh(3, 8)))
    for _ in range(3):
        scheduler.step()
    assert asked and max(asked) > 100
