"""Methods that ask a critic, judged by the list of all outputs; and cautious next token."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import structgen
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate, critic
from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.attribute import Attribute
from structgen.generation.search.beam import Beam
from structgen.generation.search.cautious import Cautious
from structgen.generation.search.exact import Exact
from structgen.generation.search.planning import Planning
from structgen.generation.search.quality import Quality
from structgen.generation.search.rerank import BestOf, Rerank
from tests.generation.search.small_worlds import Tokens, World, tokens_of, world
from tests.generation.target import closed_forms as cf
from tests.many import cases
from tests.server.tiny import generator

WIDE = 4096


def bees(candidates: Sequence[Candidate]) -> list[float]:
    """Likes the letter b."""
    return [float(one.text.count("b")) for one in candidates]


def nothing(candidates: Sequence[Candidate]) -> list[float]:
    return [0.0] * len(candidates)


def share_of_a(candidates: Sequence[Candidate]) -> list[float]:
    """A value from 0 to 1 that differs from output to output."""
    return [(1 + one.text.count("a")) / (2 + len(one.text)) for one in candidates]


def text_of(made: World, tokens: Tokens) -> str:
    return b"".join(made.vocabulary.tokens[token] or b"" for token in tokens).decode()


@pytest.mark.parametrize("case", cases(200, 12))
def test_a_constant_attribute_is_beam(case: int) -> None:
    made = world(case)
    options: dict[str, Any] = {"num_beams": 1 + case % 4, "length_penalty": (0.0, 1.0)[case % 2]}
    plain = tokens_of(made.run(Beam(**options)))
    assert tokens_of(made.run(Attribute(critic=nothing, **options))) == plain
    assert tokens_of(made.run(Attribute(critic=critic(bees, weight=0, prefixes=True), **options))) == plain


@pytest.mark.parametrize("case", cases(200, 12))
def test_many_beams_with_an_attribute_find_the_best_of_all(case: int) -> None:
    made = world(case)
    best = {one: pair[0] + text_of(made, one).count("b") for one, pair in made.known.items()}
    run = made.run(Attribute(critic=bees, num_beams=WIDE, length_penalty=0.0))
    assert {node.hypothesis.tokens: score for score, node in run.finished} == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("case", cases(200, 12))
def test_reranking_is_by_both_scores(case: int) -> None:
    made, weight = world(case), (0.0, 1.0, -0.5)[case % 3]
    scores = {one: weight * pair[0] + text_of(made, one).count("b") for one, pair in made.known.items()}
    run = made.run(Rerank(critic=bees, of=Beam(num_beams=WIDE), candidates=WIDE, logprob_weight=weight))
    assert [score for score, _ in run.finished] == pytest.approx(sorted(scores.values(), reverse=True), abs=1e-4)
    drawn = made.run(BestOf(critic=bees, candidates=5), seed=case)
    plain = tokens_of(made.run(Arithmetic(), 5, seed=case))
    assert sorted(tokens_of(drawn)) == sorted(plain)
    counts = [text_of(made, one).count("b") for one in tokens_of(drawn)]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("case", cases(200, 12))
def test_planning_finds_the_greatest_value_when_it_has_seen_all(case: int) -> None:
    made = world(case, limit=4)
    run = made.run(Planning(critic=share_of_a, rollouts=5000, width=WIDE))
    values = {one: share_of_a([Candidate(text_of(made, one))])[0] for one in made.known}
    assert {node.hypothesis.tokens: score for score, node in run.finished} == pytest.approx(values)
    assert run.finished[0][0] == pytest.approx(max(values.values()))
    greedy = tokens_of(made.run(Beam(num_beams=1, early_stopping=True)))[0]
    assert tokens_of(made.run(Planning(critic=share_of_a, rollouts=1))) == [greedy]


@pytest.mark.parametrize("case", cases(200, 12))
def test_a_vote_is_the_most_frequent_draw(case: int) -> None:
    made = world(case)
    drawn = [text_of(made, one) for one in tokens_of(made.run(Arithmetic(), 9, seed=case))]
    run = made.run(Quality(candidates=9), seed=case)
    assert run.finished[0][0] == pytest.approx(max(Counter(drawn).values()) / 9)
    assert Counter(drawn)[text_of(made, tokens_of(run)[0])] == max(Counter(drawn).values())


def test_one_trial_is_sampling() -> None:
    """By counting, with a choice of the first token and of the second."""
    made = world(1, limit=3)
    share = {str(one): math.exp(pair[1]) for one, pair in made.outputs.items()}
    share = {one: mass / sum(share.values()) for one, mass in share.items()}
    runs = Counter(str(tokens_of(made.run(Cautious(max_trials=1), seed=seed))[0]) for seed in range(200))
    counts = {one: float(count) for one, count in runs.items()}
    assert cf.g_statistic(counts, share) <= cf.null_quantile(share, 200)


@pytest.mark.parametrize("case", cases(200, 20))
def test_cautious_outputs_are_valid_and_fit(case: int) -> None:
    made = world(case, limit=2 + case % 4)
    for one in tokens_of(made.run(Cautious(boundary=lambda text: text.endswith("b")), 2, seed=case)):
        assert one in made.outputs


def test_trials_that_are_more_fluent_are_taken() -> None:
    """Of many ways to the end of a word, the mean log-probability is higher than of one."""
    tiny, words = generator(template=None), "(red|green|blue) (cat|dog)"

    def mean(**options: Any) -> float:
        runs = [
            tiny.search("A pet: ", structgen.regex(words), method="cautious", seed=seed, **options).results[0]
            for seed in range(40)
        ]
        return sum(one.logprob for one in runs) / len(runs)

    assert mean(max_trials=20, boundary=lambda text: " " in text) > mean(max_trials=1)


def test_what_a_critic_refuses_does_not_come() -> None:
    made = world(5)
    refusing = critic(lambda some: [-math.inf if "b" in one.text else 0.0 for one in some], prefixes=True)
    left = {one for one in made.outputs if "b" not in text_of(made, one)}
    for method in (Attribute(critic=refusing, num_beams=WIDE), Rerank(critic=refusing, of=Beam(num_beams=WIDE))):
        if left:
            assert set(tokens_of(made.run(method))) <= left
    never = critic(lambda some: [-math.inf] * len(some), prefixes=True)
    for method in (Attribute(critic=never), BestOf(critic=never)):
        with pytest.raises(GenerationError, match="refuses all"):
            made.run(method)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("rerank", {}, "needs the option critic"),
        ("attribute", {"critic": 3}, "critic is a function"),
        ("attribute", {"critic": critic(bees)}, "judges prefixes"),
        ("planning", {"critic": bees, "width": 0}, "width"),
        ("rerank", {"critic": bees, "of": Exact()}, "expected a method"),
        ("quality", {"utility": None}, "utility is a function"),
        ("cautious", {"max_trials": 0}, "max_trials"),
    ],
)
def test_bad_options_are_refused_by_name(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        generator(template=None).search("x", ["a", "b"], method=method, **options)
    with pytest.raises(GenerationError, match="from 0 to 1"):
        world(1).run(Planning(critic=lambda some: [2.0] * len(some)))
