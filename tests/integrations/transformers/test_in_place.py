"""Where masked scores lie: recycled memory that nobody holds, the given scores where nobody looks at them again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.integrations.transformers import GrammarLogitsProcessor, callers
from structgen.integrations.transformers.calls import HostIds
from structgen.integrations.transformers.masking import KEPT, Buffers, Masker
from structgen.integrations.transformers.row import ConstrainedRow
from tests.integrations.transformers.small import CASES, VOCABULARY, WIDTH, ids, llama

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

PROMPTS = ids("Name it:", "ab", "What then, if not that?")
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True, "top_k": 0},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
    "assistant": {"assistant_model": 1},
}


class Watched(GrammarLogitsProcessor):
    """Counts the calls whose scores were masked where they lay."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls = self.same = 0
        masker, masked = self._masker, self._masker.masked

        def watched(scores: Any, rows: Any, *, in_place: bool = False) -> Any:
            self.calls, self.same = self.calls + 1, self.same + in_place
            return masked(scores, rows, in_place=in_place)

        masker.masked = watched  # type: ignore[method-assign]


def run(processor: Any, way: str, **options: Any) -> Any:
    torch.manual_seed(3)
    more = dict(WAYS[way])
    if "assistant_model" in more:
        more["assistant_model"] = llama(1)
    prompts = PROMPTS if way in ("greedy", "sampled", "beams") else {k: v[2:] for k, v in PROMPTS.items()}
    settings: dict[str, Any] = {"do_sample": False, "max_new_tokens": 40, "return_dict_in_generate": True}
    return llama().generate(**prompts, logits_processor=[processor], **settings | more | options)


@pytest.mark.parametrize("way", WAYS)
def test_texts_do_not_depend_on_where_scores_are_masked(way: str) -> None:
    found = {}
    for in_place in (None, True, False):
        processor = Watched(CASES["pairs"].constraint, VOCABULARY, in_place=in_place)
        found[in_place] = run(processor, way, output_scores=True)
        assert processor.same == {None: processor.same, True: processor.calls, False: 0}[in_place]
        if in_place is None:
            assert processor.same >= processor.calls // 2  # all but the drafts of prompt lookup
    for other in (None, True):
        assert torch.equal(found[other].sequences, found[False].sequences)
        for one, two in zip(found[other].scores, found[False].scores, strict=True):
            assert torch.equal(one, two), "scores of former steps stay as they were"


@pytest.mark.parametrize("way", ["greedy", "sampled", "beams"])
def test_logits_that_are_asked_for_are_the_models(way: str) -> None:
    processor = Watched(CASES["object"].constraint, VOCABULARY)
    found = run(processor, way, output_logits=True, output_scores=True)
    assert processor.same == 0
    assert all(torch.isfinite(logits).all() for logits in found.logits)
    assert any(torch.isneginf(scores).any() for scores in found.scores)


def test_a_call_from_elsewhere_changes_nothing_unless_told() -> None:
    prompt, scores = PROMPTS["input_ids"], torch.randn(3, WIDTH)
    before = scores.clone()
    for caller in (lambda one: one, lambda one: transformers.LogitsProcessorList([one])):
        masked = caller(GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY))(prompt, scores)
        assert torch.equal(scores, before) and masked is not scores
    masked = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY, in_place=True)(prompt, scores)
    assert masked is scores and torch.isneginf(scores).any()
    with pytest.raises(OptionsError, match="in_place must be True, False or None"):
        GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY, in_place="yes")  # type: ignore[arg-type]


def test_columns_that_do_not_lie_side_by_side_are_copied() -> None:
    wide = torch.randn(WIDTH, 3)
    before = wide.clone()
    processor = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY, in_place=True)
    masked = processor(PROMPTS["input_ids"], wide.T)
    assert torch.equal(wide, before) and torch.isneginf(masked).any()
    assert torch.equal(masked[torch.isfinite(masked)], before.T[torch.isfinite(masked)])


def test_gradients_pass_through() -> None:
    scores = torch.randn(3, WIDTH, requires_grad=True)
    masked = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY)(PROMPTS["input_ids"], scores)
    masked[torch.isfinite(masked)].sum().backward()
    assert torch.equal(scores.grad, torch.isfinite(masked).float())


def test_memory_is_taken_again_only_when_nobody_holds_it() -> None:
    rng, buffers, held = random.Random(6), Buffers(), list[tuple[Any, float]]()
    scores = torch.zeros(2, 5)
    for number in range(300):
        buffer = buffers.like(scores)
        assert buffer.shape == scores.shape and buffer.dtype == scores.dtype
        buffer.fill_(float(number))
        kept = rng.choice([buffer, buffer[1], buffer.numpy(), buffer.view(-1)[3:]])
        held.append((kept, float(number)))
        while len(held) > rng.randrange(1, 2 + KEPT):
            held.pop(rng.randrange(len(held)))
        assert all(bool((one == value).all()) for one, value in held)
    del held[:], kept, buffer
    places = {buffers.like(scores).data_ptr() for _ in range(20)}
    assert len(places) == 1, "with nobody else, one is enough"
    assert buffers.like(torch.zeros(3, 4, dtype=torch.float16)).dtype == torch.float16


def test_memory_is_fresh_where_torch_does_not_say_who_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_storage_Use_Count")
    buffers = Buffers()
    first = buffers.like(torch.zeros(2, 5)).fill_(1.0)
    second = buffers.like(torch.zeros(2, 5)).fill_(2.0)
    assert bool((first == 1).all()) and bool((second == 2).all())


def test_ids_on_a_device_are_those_ids() -> None:
    """Where only the last column comes over, and where all do."""
    rng, host = random.Random(8), HostIds()
    current = torch.tensor([[1, 2], [3, 4]])
    for _ in range(200):
        assert np.array_equal(host.fetched(current), current.numpy())
        change = rng.randrange(6)
        if change < 4:
            current = torch.cat([current, torch.randint(9, (len(current), 1))], dim=1)
        elif change == 4:
            current = current[torch.randperm(len(current))][:, : rng.randrange(1, current.shape[1] + 1)]
        else:
            current = torch.randint(9, (rng.randrange(1, 4), rng.randrange(1, 5)))


def test_on_a_device_is_as_on_the_host() -> None:
    """The path for devices, on the processor: masked, free and blocked rows."""
    rng, torch_rng = random.Random(9), torch.Generator().manual_seed(9)
    for in_place in (False, True):
        one, two = Masker(VOCABULARY), Masker(VOCABULARY)
        for _ in range(20):
            rows = [_row(rng) if rng.random() < 0.8 else None for _ in range(rng.randrange(1, 5))]
            if not any(rows):
                continue
            scores = torch.randn(len(rows), WIDTH, generator=torch_rng)
            if rng.random() < 0.4:
                scores[0] = -float("inf")
            expected = one.masked(scores, rows)
            bitmask = two._fill(rows)
            given = scores.clone()
            places = [place for place, row in enumerate(rows) if row is not None]
            found = two._on_device(given, bitmask, places, in_place)
            assert (found is given) == in_place and torch.equal(found, expected)


def _row(rng: random.Random) -> ConstrainedRow:
    matcher = structgen.regex("[a-c]{2,9}").compile(VOCABULARY).matcher()
    row = ConstrainedRow(matcher, None)
    row.follow(np.array([3 + ord(rng.choice("abc")) for _ in range(rng.randrange(4))], np.int64))
    return row


def test_another_transformers_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    callers._known.cache_clear()
    monkeypatch.setattr(callers, "LOOPS", ("_no_such_loop",))
    processor = Watched(CASES["pairs"].constraint, VOCABULARY)
    run(processor, "greedy")
    assert processor.same == 0
    callers._known.cache_clear()
