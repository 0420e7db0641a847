"""Outputs with drafts are those of the plain loop: the same tokens where no draft is drawn at random, else the same
distribution, against its enumeration. Broken loops are caught."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import LogProbs, SamplingParams, filtered_probs, masked_log_probs
from structgen.generation.scheduler import step
from structgen.generation.speculative import model_drafter, verification
from structgen.generation.speculative.copying import CopyDrafter
from structgen.generation.speculative.cost import LearnedCost
from structgen.generation.speculative.datastore import Datastore, RetrievalDrafter
from structgen.generation.speculative.drafter import Drafter, Proposal, Source
from structgen.generation.speculative.followed import ClosingDrafter
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.length import Bandit, CostAware, Fixed, LengthPolicy, Threshold
from structgen.generation.speculative.lookahead import LookaheadDrafter
from structgen.generation.speculative.model_drafter import ModelDrafter
from structgen.generation.speculative.ngram import MemoryDrafter, NgramDrafter
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.shape import ShapeDrafter
from structgen.generation.speculative.speculator import Speculator
from structgen.generation.speculative.structure import StructureDrafter
from structgen.generation.speculative.tree import Node
from tests.fakes import CharTokenizer, FakeMatcher, NestedMatcher, WordsMatcher, vocabulary
from tests.generation.decoding.plain_loop import decode as plain
from tests.generation.decoding.writing import decode
from tests.generation.speculative.worlds import ALPHA, TableModel, g_test, matcher, outcomes, samples, small_vocabulary
from tests.many import nightly

TARGET = TableModel(5, seed=1, scale=2.0)
DRAFT = TableModel(5, seed=2, scale=2.0)
WARM = SamplingParams(temperature=1.0)
FILTERED = SamplingParams(temperature=0.8, top_k=3, top_p=0.9)
SAMPLES = 1500


class RandomDrafter:
    """Proposes random tokens, some of them forbidden ones; of the target's state it knows nothing."""

    name = "random"

    def __init__(self, size: int, seed: int = 0) -> None:
        self._size, self._random = size, random.Random(seed)

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        return _RandomSource(self._size, self._random)


class _RandomSource(Source):
    name = "random"

    def __init__(self, size: int, random_: random.Random) -> None:
        self._size, self._random = size, random_

    def propose(self, node: Node) -> list[Proposal]:
        tokens = self._random.sample(range(self._size), min(3, self._size))
        return [Proposal(token, (self.name, rank), 0.5) for rank, token in enumerate(tokens)]


def drafters(words: Vocabulary, kind: str) -> list[Drafter]:
    store = Datastore.build([[5, 6, 7, 5, 6], [9, 8, 7]], words)
    made: dict[str, Callable[[], Drafter]] = {
        "forced": lambda: ForcedDrafter(CanonicalTokens(CharTokenizer(), words)),
        "structure": lambda: StructureDrafter(CanonicalTokens(CharTokenizer(), words)),
        "copy": lambda: CopyDrafter(CanonicalTokens(CharTokenizer(), words), words),
        "shape": lambda: ShapeDrafter(words),
        "closing": ClosingDrafter,
        "ngram": NgramDrafter,
        "memory": MemoryDrafter,
        "retrieval": lambda: RetrievalDrafter(store),
        "recycling": lambda: RecyclingDrafter(words.size),
        "lookahead": LookaheadDrafter,
        "model": lambda: ModelDrafter(TinyModel(words.size, seed=5, order=1), branches=2),
        "random": lambda: RandomDrafter(words.size),
    }
    return [make() for name, make in made.items() if kind in (name, "all")]


KINDS = [
    "forced",
    "structure",
    "copy",
    "shape",
    "closing",
    "ngram",
    "memory",
    "retrieval",
    "recycling",
    "lookahead",
    "model",
    "random",
    "all",
]
POLICIES: list[Callable[[], LengthPolicy]] = [
    lambda: Fixed(12),
    Threshold,
    CostAware,
    lambda: CostAware(LearnedCost()),
    lambda: Bandit(arms=(0, 3, 9)),
]
WORD_LIST = [b"[" + bytes(pair) + b"]end" for pair in zip(b"aabbccdd", b"xyxyxyxy", strict=True)]


def states(words: Vocabulary) -> list[Callable[[], FakeMatcher | None]]:
    return [lambda: WordsMatcher(words, WORD_LIST), lambda: NestedMatcher(words), lambda: None]


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("kind", "policy"), [*((kind, POLICIES[0]) for kind in KINDS), *(("all", policy) for policy in POLICIES[1:])]
)
def test_same_tokens_as_the_plain_loop(kind: str, policy: Callable[[], LengthPolicy]) -> None:
    """Greedy and sampled, alone and in a batch, with budgets that steer, with stop strings: equal to the last bit."""
    words = vocabulary(b"nd", b"]e", b"[a", b"xx", b"<x")
    model = TinyModel(words.size, seed=3, order=1, scale=3.0)
    one = Speculator(drafters(words, kind), policy())
    for seed, temperature in ((0, 0.0), (1, 0.8), (2, 1.2)):

        def write(loop: Any, *extra: Any, seed: int = seed, temperature: float = temperature) -> list[Any]:
            params = SamplingParams(temperature, top_k=20, seed=seed)
            outputs = [
                Output(words, make(), params, max_new_tokens=size, stop=stop)
                for make in states(words)
                for size, stop in ((9, ()), (24, ("qq", "z")))
            ]
            prompts = [[5, 6, 7], [8], [9, 5, 6], [1] * 7, [3, 4], [2]]
            for group in [range(6)] if extra else [[row] for row in range(6)]:
                for _ in loop(model, [prompts[row] for row in group], [outputs[row] for row in group], *extra):
                    pass
            return [
                (output.token_ids, output.finish_reason, output.text, round(output.log_prob, 9)) for output in outputs
            ]

        assert write(decode, one) == write(plain)


@pytest.mark.full
@pytest.mark.parametrize("drawing", ["likeliest", "chain", "with replacement", "without replacement"])
@pytest.mark.parametrize(("shape", "params", "batch"), [(None, WARM, 1), ((3, 2, 1), FILTERED, 1), (None, WARM, 3)])
def test_distribution(drawing: Any, shape: Any, params: SamplingParams, batch: int) -> None:
    def make() -> Speculator:
        drafts: list[Drafter] = [ModelDrafter(DRAFT, drawing=drawing, branches=3, stop=0.0), NgramDrafter()]
        return Speculator(drafts, CostAware(), shape=shape)

    found = samples(TARGET, make, params, SAMPLES, batch=batch)
    assert g_test(found, outcomes(TARGET, params, (1, 2))) > ALPHA


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
def test_distribution_whatever_the_length(policy: Callable[[], LengthPolicy]) -> None:
    """A policy may not bias what is drawn."""

    def make() -> Speculator:
        return Speculator([ModelDrafter(DRAFT, drawing="without replacement", branches=2, stop=0.2)], policy())

    assert g_test(samples(TARGET, make, WARM, SAMPLES), outcomes(TARGET, WARM, (1, 2))) > ALPHA


def chain() -> Speculator:
    return Speculator([ModelDrafter(DRAFT, drawing="chain", stop=0.0)], Fixed(4))


def p_value(params: SamplingParams = WARM) -> float:
    return g_test(samples(TARGET, chain, params, 2 * SAMPLES), outcomes(TARGET, params, (1, 2)))


@pytest.mark.full
def test_the_unbroken_loop_passes() -> None:
    assert p_value() > ALPHA and p_value(FILTERED) > ALPHA


@pytest.mark.full
@nightly
def test_no_residual_correction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "structgen.generation.speculative.rules._sample_or",
        lambda weights, otherwise, rng: int(rng.choice(len(otherwise), p=otherwise)),
    )
    assert p_value() < ALPHA


@pytest.mark.full
def test_an_unmasked_draft_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities of the draft before its mask, for what was drawn after it."""

    def unmasked(self: Any, node: Node) -> list[Proposal]:
        logits = np.asarray(self._reader.logits(node.path()))[: self._size]
        allowed = self._allowed(node)
        right = filtered_probs(masked_log_probs(logits, allowed), self._params)
        wrong = filtered_probs(masked_log_probs(logits, None), self._params)[allowed]
        node.draws = speculator_draws(wrong, right, self._drafter.rng)
        return self._proposals(node.draws.positions, right, allowed)

    def speculator_draws(wrong: LogProbs, right: LogProbs, rng: np.random.Generator) -> Any:
        from structgen.generation.speculative import rules

        return rules.Draws(wrong, rules.draw_with_replacement(right, 1, rng), rules.chain)

    monkeypatch.setattr(model_drafter._ModelSource, "propose", unmasked)
    assert p_value() < ALPHA


@pytest.mark.full
@nightly
def test_a_mask_after_the_filter_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft's top-k taken over all tokens, the mask put on what is left."""

    def late(log_probs: LogProbs, params: SamplingParams) -> LogProbs:
        right = filtered_probs(log_probs, params)
        cut = np.where(right == right.max(), right, right * 1e-3)  # tokens lost to ones that the mask forbids
        return cut / cut.sum()

    def propose(self: Any, node: Node) -> list[Proposal]:
        allowed = self._allowed(node)
        log_probs = masked_log_probs(np.asarray(self._reader.logits(node.path()))[: self._size], allowed)
        from structgen.generation.speculative import rules

        positions = rules.draw_with_replacement(late(log_probs, self._params), 1, self._drafter.rng)
        node.draws = rules.Draws(filtered_probs(log_probs, self._params), positions, rules.chain)
        return self._proposals(positions, node.draws.probs, allowed)

    monkeypatch.setattr(model_drafter._ModelSource, "propose", propose)
    assert p_value() < ALPHA


@pytest.mark.full
@nightly
def test_an_off_by_one_node_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits of the node before."""
    right = verification.verify
    monkeypatch.setattr(
        step,
        "verify",
        lambda rows, logits, *more: right(rows, np.concatenate([logits[:1], logits[:-1]]), *more),
    )
    assert p_value() < ALPHA


@pytest.mark.full
@nightly
def test_dropping_draws_for_what_they_are_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verifying as if nothing had been drawn where the draw was an unlikely one."""
    right = model_drafter._ModelSource._draw

    def picky(self: Any, probs: LogProbs) -> Any:
        draws = right(self, probs)
        return draws if probs[draws.positions[0]] > 0.4 else None

    def propose(self: Any, node: Node) -> list[Proposal]:
        log_probs = masked_log_probs(
            np.asarray(self._reader.logits(node.path()))[: self._size], allowed := self._allowed(node)
        )
        probs = filtered_probs(log_probs, self._params)
        node.draws = picky(self, probs)
        return [] if node.draws is None else self._proposals(node.draws.positions, probs, allowed)

    monkeypatch.setattr(model_drafter._ModelSource, "propose", propose)
    assert p_value() < ALPHA


def test_the_matcher_is_left_alone() -> None:
    """Drafting moves copies only."""
    state = matcher()
    output = Output(small_vocabulary(), state, WARM, max_new_tokens=8)
    output.advance_forced()
    row = chain().start([1, 2], output)
    row.grow()
    assert state.text == b""
