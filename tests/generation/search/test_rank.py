"""`Generator.rank` and `extract`: as enumeration of all spellings has it, and bounds where the search is stopped."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.tokenization.canonical import BytePairEncoding, CanonicalSpelling
from structgen.core.tokenization.merges import Merges
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.hypothesis import Hypothesis, Rules
from structgen.generation.generator import Generator
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.canonical import CanonicalFollowing
from structgen.generation.search.rank import RankWalk
from structgen.generation.search.scores import Scoring
from structgen.generation.search.space import Space
from structgen.generation.target.results import Budget
from tests.fakes import CharTokenizer, vocabulary
from tests.generation.search.small_worlds import PROMPT, VOCABULARY, World
from tests.many import cases


def by_text(world: World) -> dict[bytes, float]:
    """The probability of each text: of all its spellings, one by one."""
    texts = defaultdict[bytes, float](float)
    for tokens, (log_prob, _) in world.outputs.items():
        texts[b"".join(world.vocabulary.tokens[token] or b"" for token in tokens)] += math.exp(log_prob)
    return texts


def space(world: World, **budget: int) -> Space:
    root = Hypothesis.root(Rules(world.grammar), world.limit)
    return Space(make_reader(world.model, PROMPT, world.limit), root, Scoring(), budget=Budget(**budget))


def worlds(seed: int) -> World:
    """Names, or quotes of a document, and a model."""
    rng = random.Random(seed)
    text = "".join(rng.choice("abc") for _ in range(6))
    names = {"".join(rng.choice("abc") for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(2, 30))}
    constraint: Any = structgen.one_of(names) if seed % 2 else structgen.substring_of(text, max_chars=4)
    return World(
        constraint.compile(VOCABULARY), TinyModel(VOCABULARY.size, seed=seed, scale=rng.choice([0.3, 1, 3])), 6
    )


@pytest.mark.parametrize("seed", cases(600, 24))
def test_it_is_what_enumeration_says(seed: int) -> None:
    world = worlds(seed)
    whole, k = by_text(world), seed % 7 + 1
    tree = space(world)
    tree.most_kept = seed % 3 + 1  # so that what was not kept is asked for again
    outcome = RankWalk(tree, k).outcome()
    assert outcome.exact and outcome.stopped_by is None
    best = sorted(whole.values(), reverse=True)[:k]
    np.testing.assert_allclose([whole[one.node.hypothesis.data] for one in outcome.texts], best, rtol=1e-5)
    for one in outcome.texts:
        assert one.least * (1 - 1e-5) <= whole[one.node.hypothesis.data] <= one.most * (1 + 1e-5)
    most = sum(one.most for one in outcome.texts) + outcome.open + outcome.others
    assert sum(whole.values()) <= most * (1 + 1e-5)


@pytest.mark.parametrize("seed", cases(600, 24))
def test_bounds_hold_wherever_it_is_stopped(seed: int) -> None:
    world = worlds(seed)
    whole = by_text(world)
    tree = space(world, attempts=random.Random(seed).randint(1, 12))
    outcome = RankWalk(tree, 4).outcome()
    returned = {one.node.hypothesis.data for one in outcome.texts}
    for one in outcome.texts:
        assert one.least * (1 - 1e-5) <= whole[one.node.hypothesis.data] <= one.most * (1 + 1e-5)
    others = sum(each for data, each in whole.items() if data not in returned)
    assert others <= (outcome.open + outcome.others) * (1 + 1e-5)
    if outcome.exact:
        best = sorted(whole.values(), reverse=True)[: len(returned)]
        np.testing.assert_allclose([whole[one.node.hypothesis.data] for one in outcome.texts], best, rtol=1e-5)


def spelled(tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens of a text over "abc" where "ab" is merged first, then "bc": what byte pair encoding says."""
    text = b"".join(VOCABULARY.tokens[token] or b"" for token in tokens).decode()
    numbers = {"a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5}
    return tuple(numbers[piece] for piece in re.findall("ab|bc|a|b|c", text))


@pytest.mark.parametrize("seed", cases(600, 24))
def test_canonical_spellings_alone(seed: int) -> None:
    """As enumeration of the outputs that the tokenizer would spell so; what is missed is of these alone."""
    world = worlds(seed)
    merges = Merges.of_pairs([(1, 2, 4, 0), (2, 3, 5, 1)])
    encoding = BytePairEncoding([token or b"" for token in VOCABULARY.tokens], merges, ())
    following = CanonicalFollowing(CanonicalSpelling(encoding, VOCABULARY.size, [0]))
    whole = {tokens: math.exp(one) for tokens, (one, _) in world.outputs.items() if spelled(tokens) == tokens}
    root = Hypothesis.root(Rules(world.grammar), world.limit)
    budget = Budget(attempts=random.Random(seed).randint(1, 12)) if seed % 3 == 0 else Budget()
    tree = Space(make_reader(world.model, PROMPT, world.limit), root, Scoring(), budget=budget, weigh=following)
    outcome = RankWalk(tree, 4, has_one_spelling=True).outcome()
    returned = {one.node.hypothesis.tokens for one in outcome.texts}
    assert returned <= whole.keys() and (outcome.exact or outcome.stopped_by)
    others = sum(each for tokens, each in whole.items() if tokens not in returned)
    assert others <= (outcome.open + outcome.others) * (1 + 1e-5)
    if outcome.exact:
        best = sorted(whole.values(), reverse=True)[:4]
        np.testing.assert_allclose([whole[one.node.hypothesis.tokens] for one in outcome.texts], best, rtol=1e-5)


@pytest.fixture(scope="module")
def generator() -> Generator:
    tokens = vocabulary(b"roof", b"the ", b" leaks", b"lea")
    return Generator(TinyModel(tokens.size, scale=1.0), CharTokenizer(), vocabulary=tokens)


def test_the_likeliest_span(generator: Generator) -> None:
    """Of all spans; its value says where it stands."""
    text = "the roof leaks"
    found = generator.extract("p", text, boundary="word", max_chars=10)
    ranked = generator.rank("p", structgen.substring_of(text, boundary="word", max_chars=10), 50)
    spans = {text[a:b] for a, b in itertools.combinations(sorted({0, 3, 4, 8, 9, 14}), 2) if b - a <= 10}
    assert {each.text for each in ranked.values} == {span for span in spans if not span.startswith(" ")}
    assert ranked.exact and found.exact and found.values[0].text == ranked.values[0].text
    (place,) = found.values[0].value.places
    assert text[place.start : place.end] == found.values[0].value == found.values[0].text
    assert ranked.missed < 1e-9 and found.missed < 1 and found.stats.tokens_read


def test_values_of_types_and_what_is_refused(generator: Generator) -> None:
    from typing import Literal

    ranked = generator.rank("p", Literal["roof", "leaks"], 5, schema_in_prompt=False)
    assert {each.value for each in ranked.values} == {"roof", "leaks"} and ranked.exact
    assert all(each.logprob <= each.most <= 0 for each in ranked.values)
    stopped = generator.rank("p", structgen.regex("[a-z]{40}"), 3, model_tokens=20)
    assert not stopped.exact and stopped.stopped_by == "model_tokens" and 0 < stopped.missed <= 1
    with pytest.raises(OptionsError, match="spelling must be"):
        generator.rank("p", ["a"], spelling="shortest")
    with pytest.raises(OptionsError, match="k must be"):
        generator.rank("p", ["a"], 0)
    with pytest.raises(GenerationError, match="needs a constraint"):
        generator.rank("p", None)
