"""Drafts of many rows: what is read of them, and that what was drawn at random is never cut for what it is."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.drafting import Drafting
from structgen.generation.speculative.cost import CostCurve
from structgen.generation.speculative.drafter import Written
from structgen.generation.speculative.length import CostAware, Fixed
from structgen.generation.speculative.model_drafter import ModelDrafter
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.speculator import DraftedSequence, Speculator
from tests.fakes import vocabulary

VOCABULARY = vocabulary()
STEEP = CostCurve((1, 2, 3), (1.0, 3.0, 5.0))  # nothing pays
FLAT = CostCurve((1, 64), (1.0, 1.01))  # all does
TEXT = [5, 6, 7, 8] * 6


def rows(speculator: Speculator, count: int) -> list[DraftedSequence]:
    made = []
    for seed in range(count):
        output = Output(VOCABULARY, None, SamplingParams(1.0, seed=seed), max_new_tokens=30)
        output.advance_forced()
        made.append(speculator.start(TEXT, output))
    return made


def choose(drafting: Drafting, drafted: list[DraftedSequence], room: int = 100) -> list[int]:
    def failed(output: Output, error: Exception) -> None:
        raise error

    count = len(drafted)
    trees = drafting.choose(drafted, other_tokens=count, writing=count, room=room, failed=failed)
    return [len(tree.nodes) for tree in trees if tree is not None]


def test_what_was_drawn_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[int] = []

    def grow(self: DraftedSequence, *args: Any, **options: Any) -> Any:
        tree = right(self, *args, **options)
        grown.append(len(tree.nodes))
        assert tree.sampled
        return tree

    right = DraftedSequence.grow
    monkeypatch.setattr(DraftedSequence, "grow", grow)
    model = ModelDrafter(TinyModel(VOCABULARY.size, scale=9.0), drawing="chain", stop=0.0)
    whole = 0
    for policy in (CostAware(FLAT, rate=1.0), Fixed(5)):
        for count in (1, 3, 3):
            grown.clear()
            assert choose(Drafting(), rows(Speculator([model], policy), count), room=1) == grown
            whole += sum(grown)
    assert whole > 14, "more than there was room for"


def test_drafts_are_read_where_they_pay() -> None:
    for count in (1, 2, 8):
        assert sum(choose(Drafting(), rows(Speculator([NgramDrafter()], CostAware(STEEP)), count))) == 0
        assert sum(choose(Drafting(), rows(Speculator([NgramDrafter()], CostAware(FLAT)), count))) >= 4 * count
    assert sum(choose(Drafting(), rows(Speculator([NgramDrafter()], CostAware(FLAT)), 3), room=5)) == 5


def test_a_drafter_that_fails_fails_its_row() -> None:
    class Failing(NgramDrafter):
        def start(self, prompt: Any, output: Written) -> Any:
            source = super().start(prompt, output)
            source.propose = None  # type: ignore[method-assign, assignment]
            return source

    both = [*rows(Speculator([Failing()], CostAware(FLAT)), 1), *rows(Speculator([NgramDrafter()], CostAware(FLAT)), 1)]
    lost = []
    trees = Drafting().choose(
        both, other_tokens=2, writing=2, room=9, failed=lambda output, error: lost.append((output, type(error)))
    )
    assert trees[0] is None and trees[1] is not None and lost == [(both[0].output, TypeError)]
