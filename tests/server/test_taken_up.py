"""Outputs that another process goes on with: from every place what an unbroken one writes; what is new is told."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import structgen
from structgen.errors import GenerationError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.server.sequence_writer import SequenceWriter
from structgen.server.sequences import SequenceEvent, SequenceRequest, WrittenSoFar
from tests.fakes import CharTokenizer, vocabulary

VOCABULARY = vocabulary(b'{"', b'":', b"ab", b"12", eos=1)
CONSTRAINTS = [
    None,
    structgen.regex("[a-z]{3,60}"),
    structgen.json_schema({"type": "array", "items": {"type": "string"}}),
    structgen.json_schema(
        {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["age"]}
    ),
    structgen.lark('start: ("ab" | "[" start "]" | /[0-9]{3}/)+'),
]
PARAMS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0},
    {"temperature": 1.5, "top_p": 0.9, "repetition_penalty": 1.4, "frequency_penalty": 0.5},
]


def row(rng: random.Random) -> SequenceRequest:
    constraint = rng.choice(CONSTRAINTS)
    return SequenceRequest(
        [rng.randrange(1, 100) for _ in range(rng.randrange(1, 60))],
        None if constraint is None else constraint.compile(VOCABULARY),
        SamplingParams(seed=rng.randrange(1 << 64), **rng.choice(PARAMS)),
        max_new_tokens=rng.randrange(12, 60),
        stop=("zz", "q]") if constraint is None else (),
        top_logprobs=rng.choice([0, 2]),
        streams=True,
    )


def written_by(rows: list[SequenceRequest]) -> list[list[SequenceEvent]]:
    """The events of each row, from a writer of their own."""
    generator = Generator(TinyModel(VOCABULARY.size), CharTokenizer(eos=1), vocabulary=VOCABULARY)
    writer = SequenceWriter(generator, SchedulerLimits(sequences=4, waiting=None))
    handles = [writer.submit(each, writer.output(each)) for each in rows]
    found: dict[Any, list[SequenceEvent]] = {handle: [] for handle in handles}
    while not writer.is_idle:
        for handle, event in writer.step():
            found[handle].append(event)
    return [found[handle] for handle in handles]


def whole(events: list[SequenceEvent]) -> tuple[Any, ...]:
    last = events[-1]
    assert last.end is not None and last.error is None, last.error
    tokens = [choice.token_id for event in events for choice in event.tokens]
    logprobs = [round(choice.logprob, 9) for event in events for choice in event.tokens]
    end = last.end
    return tokens, logprobs, last.text, end.token_ids, end.finish_reason, round(end.logprob, 9)


@pytest.mark.parametrize("seed", range(40))
def test_an_output_that_is_taken_up_is_an_unbroken_one(seed: int) -> None:
    rng = random.Random(seed)
    rows = [row(rng) for _ in range(6)]
    unbroken = written_by(rows)
    expected = [whole(events) for events in unbroken]
    told: list[list[SequenceEvent]] = [events[: rng.randrange(len(events))] for events in unbroken]
    again: list[SequenceRequest] = []
    for request, events in zip(rows, told, strict=True):
        written = WrittenSoFar()
        for event in events:
            written = written.and_then(event)
        again.append(replace(request, written=written))
    rest = written_by(again)
    assert [whole([*before, *after]) for before, after in zip(told, rest, strict=True)] == expected


@pytest.mark.full
def test_an_output_that_the_budget_shaped_is_still_that_one_token_before_its_end() -> None:
    """What was turned down for the budget is told by ``steered``: it ends with "length" wherever it is taken up."""
    rng = random.Random(39)
    request = [row(rng) for _ in range(6)][2]
    (unbroken,) = written_by([request])
    assert whole(unbroken)[4] == "length"
    for count in range(len(unbroken)):
        written = WrittenSoFar()
        for event in unbroken[:count]:
            written = written.and_then(event)
        (rest,) = written_by([replace(request, written=written)])
        assert whole([*unbroken[:count], *rest]) == whole(unbroken)


def test_tokens_of_another_request_are_refused() -> None:
    request = row(random.Random(0))
    for grammar, tokens in (
        (structgen.regex("[a-z]+").compile(VOCABULARY), (ord("7") + 1,)),
        (structgen.regex("abc").compile(VOCABULARY), (ord("b") + 1,)),
        (structgen.choice(["a"]).compile(VOCABULARY), (ord("a") + 1,) * 2),
    ):
        with pytest.raises(GenerationError):
            written_by([replace(request, grammar=grammar, written=WrittenSoFar(tokens, (0.0,) * len(tokens)))])
