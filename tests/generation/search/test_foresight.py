"""Foresight: its degenerate settings by counting, what it leads to, and which outputs it takes to be alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.critics import Candidate
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.clusters import clusters_of, tf_idf
from structgen.generation.search.foresight import Foresight
from tests.generation.search.small_worlds import VOCABULARY, Tokens, World, tokens_of, world
from tests.generation.target import closed_forms as cf
from tests.many import cases


def ends_in_b(text: str) -> bool:
    return text.endswith("b")


def cooled(made: World, temperature: float) -> dict[str, float]:
    """What drawing token by token gives, at a temperature: masked, closed in time, by the list of all outputs."""
    shares = dict[str, float]()
    waiting: list[tuple[Tokens, float]] = [((), 1.0)]
    while waiting:
        prefix, share = waiting.pop()
        following = [t for t in made.allowed(prefix) if any(o[: len(prefix) + 1] == (*prefix, t) for o in made.outputs)]
        following += [0] if prefix in made.outputs else []
        weights = np.exp(made.log_probs(prefix)[following] / temperature)
        for token, weight in zip(following, weights / weights.sum(), strict=True):
            if token:
                waiting.append(((*prefix, token), share * float(weight)))
            else:
                shares[str(prefix)] = share * float(weight)
    return shares


@pytest.mark.first_case
@pytest.mark.parametrize("temperature", [0.6, 1.3])
def test_one_beam_of_one_step_is_sampling(temperature: float) -> None:
    made = world(1, limit=3)
    share = cooled(made, temperature)
    method = Foresight(beams=1, steps=1, boundary=ends_in_b, temperature=temperature)
    runs = Counter(str(tokens_of(made.run(method, seed=seed))[0]) for seed in range(200))
    counts = {one: float(count) for one, count in runs.items()}
    assert cf.g_statistic(counts, share) <= cf.null_quantile(share, 200)


@pytest.mark.parametrize("case", cases(200, 8))
def test_one_step_of_one_beam_that_a_critic_judges_has_its_choice(case: int) -> None:
    """Where the first step is the whole output, all draws are seen at once, and what goes on is what they were."""
    made = world(case)
    run = made.run(Foresight(beams=3, steps=3, boundary=lambda text: False, most_steps=1), 3, seed=case)
    assert len(run.finished) == 3 and set(tokens_of(run)) <= set(made.outputs)
    for score, node in run.finished:
        tokens = node.hypothesis.tokens
        choices = sum(len(made.choices(tokens[:place])) > 1 for place in range(len(tokens) + 1))
        assert score == pytest.approx(made.outputs[tokens][1] / max(1, choices), abs=1e-4)


@pytest.mark.full
def test_a_critic_leads_it() -> None:
    """Outputs have more of the letter b with a critic that likes it than with one that does not."""

    def bees(candidates: Sequence[Candidate]) -> list[float]:
        return [3.0 * each.text.count("b") for each in candidates]

    made = World(structgen.compile_regex("[abc]{4,6}", VOCABULARY), TinyModel(6, scale=0.3), 6)

    def count(**options: Any) -> int:
        method = Foresight(boundary=lambda text: len(text) % 2 == 0, **options)
        runs = [made.run(method, seed=seed).finished[0][1] for seed in range(25)]
        return sum(node.hypothesis.text.count("b") for node in runs)

    assert count(critic=bees) > count(critic=lambda some: [-score for score in bees(some)]) + 25
    with pytest.raises(GenerationError, match="raised"):
        made.run(Foresight(critic=lambda some: [1 / 0 for _ in some]))


def test_outputs_are_alike_by_value_else_by_their_words() -> None:
    schema = structgen.json_schema({"type": "array"})
    values = [Candidate(text, constraint=schema) for text in ("[1, 2]", "[1,2]", "[3]")]
    one, other, third = clusters_of(values, 3)
    assert one == other != third
    texts = ["the red cat sat", "a red cat sits", "stocks fell in Paris", "stocks rose in Paris", "rain", "more rain"]
    kinds = clusters_of([Candidate(text) for text in texts], 3)
    assert kinds[0] == kinds[1] != kinds[2] == kinds[3] != kinds[4] == kinds[5]
    assert len(set(clusters_of([Candidate(text) for text in ("a", "b")], 5))) == 2
    assert np.allclose(np.linalg.norm(tf_idf(texts), axis=1), 1.0) and math.isclose(float(tf_idf([""]).sum()), 0.0)


@pytest.mark.parametrize(
    "options",
    [
        {"beams": 0},
        {"steps": 0},
        {"most_steps": 0},
        {"boundary": 3},
        {"settled_share": 0},
        {"clusters": 0},
        {"critic": 3},
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError, match=next(iter(options))):
        Foresight(**options)
