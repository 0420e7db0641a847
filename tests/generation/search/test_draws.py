"""Draws without replacement, arithmetic sampling and diverse beams against what they promise, by counting."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.beam import Beam
from structgen.generation.search.diverse import Diverse
from structgen.generation.search.gumbel import Gumbel, conditioned
from structgen.generation.target.results import Budget
from tests.generation.search.small_worlds import VOCABULARY, World, tokens_of, world
from tests.generation.target import closed_forms as cf
from tests.many import cases

Tokens = tuple[int, ...]
SHARE = 0.999


def small(seed: int = 0) -> World:
    return World(structgen.compile_regex("a|b|ab|ca?", VOCABULARY), TinyModel(6, seed=seed, scale=1.0), 2)


def share_of(made: World, kind: int) -> dict[Tokens, float]:
    mass = {tokens: math.exp(pair[kind]) for tokens, pair in made.outputs.items()}
    return {tokens: one / sum(mass.values()) for tokens, one in mass.items()}


def named(counts: Any) -> dict[str, float]:
    return {str(key): value for key, value in counts.items()}


@pytest.mark.parametrize("kind", ["global", "local"])
@pytest.mark.parametrize("count", [300, 4000][: len(cases(2, 1))])
def test_draws_without_replacement_are_distributed_so(kind: Any, count: int) -> None:
    """First draws, and ordered pairs."""
    made = small()
    runs = [tokens_of(made.run(Gumbel(target=kind), 2, seed=seed)) for seed in range(count)]
    share = share_of(made, ["global", "local"].index(kind))
    first = named(share)
    assert cf.g_statistic(named(Counter(run[0] for run in runs)), first) <= cf.null_quantile(first, count)
    pairs = named({(a, b): share[a] * share[b] / (1 - share[a]) for a, b in permutations(share, 2)})
    assert cf.g_statistic(named(Counter(map(tuple, runs))), pairs) <= cf.null_quantile(pairs, count)


@pytest.mark.parametrize("case", cases(200, 12))
def test_all_outputs_are_drawn_once(case: int) -> None:
    made = world(case, limit=4)
    drawn = tokens_of(made.run(Gumbel(read_ahead=1 + case % 3), 10_000))
    assert sorted(drawn) == sorted(made.outputs)
    assert tokens_of(made.run(Gumbel(read_ahead=5), 10_000)) == drawn  # what is read when changes nothing
    few = made.run(Gumbel(budget=Budget(model_tokens=3), read_ahead=1), 10_000)
    assert (few.stopped_by == "model_tokens") == (len(few.finished) < len(drawn))


def test_gumbels_given_their_greatest() -> None:
    rng = np.random.default_rng(0)
    noisy = rng.gumbel(size=1000) + np.log(rng.random(1000))
    for wanted in (-30.0, 0.0, 30.0):
        shifted = conditioned(noisy, float(noisy.max()), wanted)
        assert shifted.max() == pytest.approx(wanted)
        assert (np.diff(shifted[np.argsort(noisy)]) >= -1e-9).all()


def probability(made: World, beginning: Tokens) -> float:
    """Of the beginning of an output; 0 ends it."""
    log_prob = 0.0
    for number, token in enumerate(beginning):
        allowed, log_probs = made.allowed(beginning[:number]), made.log_probs(beginning[:number])
        log_prob += float(log_probs[token] - np.logaddexp.reduce([log_probs[one] for one in allowed]))
    return math.exp(log_prob)


@pytest.mark.parametrize("case", cases(200, 16))
def test_of_every_beginning_there_are_as_many_as_expected(case: int) -> None:
    made = World(structgen.compile_regex("[abc]{1,4}(ab)?", VOCABULARY), TinyModel(6, seed=case, scale=1.0), 12)
    n = (7, 16, 100, 333)[case % 4]
    outputs = [(*tokens, 0) for tokens in tokens_of(made.run(Arithmetic(), n, seed=case))]
    assert len(outputs) == n
    beginnings = Counter(output[:length] for output in outputs for length in range(1, len(output) + 1))
    for beginning, times in beginnings.items():
        assert abs(times - n * probability(made, beginning)) < 1 + 1e-4
        for token in made.allowed(beginning[:-1]):  # and of those that did not come
            assert n * probability(made, (*beginning[:-1], token)) < beginnings[(*beginning[:-1], token)] + 1 + 1e-4


def test_each_output_is_distributed_as_one_that_is_drawn_alone() -> None:
    made, share, counts = small(), share_of(small(), 1), Counter[Tokens]()
    for seed in range(400):
        counts.update(tokens_of(made.run(Arithmetic(), 5, seed=seed))[:1])
    assert cf.g_statistic(named(counts), named(share)) <= cf.null_quantile(named(share), 400)
    cold = made.run(Arithmetic(temperature=0.01), 5)
    assert len(set(tokens_of(cold))) == 1
    assert len(set(tokens_of(made.run(Arithmetic(top_k=1), 5)))) == 1


@pytest.mark.parametrize("case", cases(200, 24))
def test_draws_keep_the_budget(case: int) -> None:
    made = world(case)
    for limit in range(min(map(len, made.outputs)), 6):
        narrow = World(made.grammar, made.model, limit)
        if not narrow.closes:
            continue
        for method in (Arithmetic(), Gumbel(), Diverse()):
            outputs = tokens_of(narrow.run(method, 6))
            assert outputs and set(outputs) <= set(narrow.outputs)


def naive(made: World, groups: int, size: int, weight: float) -> list[list[tuple[float, Tokens]]]:
    """Diverse beams in plain lists, whole prefixes read anew."""
    run: list[list[tuple[float, Tokens]]] = [[(0.0, ())] for _ in range(groups)]
    done: list[list[tuple[float, Tokens]]] = [[] for _ in range(groups)]
    for length in range(1, made.limit + 2):
        chosen = Counter[int]()
        for group in range(groups):
            pool = []
            for rank, (score, tokens) in enumerate(run[group]):
                allowed, log_probs = made.allowed(tokens), made.log_probs(tokens)
                for token in allowed:
                    less = weight * chosen[token or -1] if len(allowed) > 1 else 0.0
                    pool.append((-(score + float(log_probs[token]) - less), rank, token, tokens))
            best = sorted(pool)[: 2 * size]
            ends = [(-score / length, tokens) for score, _, token, tokens in best[:size] if token == 0]
            done[group] = sorted(done[group] + ends, key=lambda one: -one[0])[:size]
            run[group] = [(-score, (*tokens, token)) for score, _, token, tokens in best if token][:size]
            chosen.update(tokens[-1] for _, tokens in run[group])
            if run[group] and len(done[group]) == size and run[group][0][0] / length <= done[group][-1][0]:
                run[group] = []
    return done


@pytest.mark.parametrize("case", cases(200, 24))
def test_diverse_beams_are_those_of_plain_lists(case: int) -> None:
    made = World(world(case).grammar, world(case).model, 24)
    groups, size, weight = 1 + case % 3, 1 + case // 3 % 3, (0.0, 0.5, 2.0)[case % 3]
    method = Diverse(num_beams=groups * size, num_beam_groups=groups, diversity_penalty=weight)
    theirs = naive(made, groups, size, weight)
    flat = sorted(score for group in theirs for score, _ in group)
    if any(len(tokens) > 18 for group in theirs for _, tokens in group) or not all(theirs):
        return
    mine = made.run(method).finished
    if any(len(node.hypothesis.tokens) > 18 for _, node in mine):  # closed at the end of its budget
        return
    assert sorted(score for score, _ in mine) == pytest.approx(flat, abs=1e-4)
    if groups == 1:
        assert tokens_of(made.run(Beam(num_beams=size))) == tokens_of(made.run(method))


def test_what_draws_cannot_do_is_refused_by_name() -> None:
    for options, message in (({"temperature": 0}, "above 0"), ({"top_n_sigma": 1.0}, "top_n_sigma")):
        with pytest.raises(OptionsError, match=message):
            Arithmetic(**options)
    with pytest.raises(OptionsError, match="target"):
        Gumbel(target="both")  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match="shared out"):
        small().run(Diverse(num_beams=5, num_beam_groups=2))
