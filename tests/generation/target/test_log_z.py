"""The estimate of log Z never lies where the bounds say that Z is not, and samples have values."""

from __future__ import annotations

import math
import random
from typing import Any

import pydantic
import pytest

from structgen import Generator, RefusedValueError, json_schema, regex
from structgen.generation.models.tiny import TinyModel
from structgen.generation.target import METHODS, Budget, PrefixStore, Sampler
from structgen.generation.target.results import log_mean_exp
from tests.fakes import CharTokenizer, vocabulary
from tests.generation.target import closed_forms as cf

EPS = 1e-9


def random_case(rng: random.Random) -> cf.Case:
    """A finite language over a few tokens, and a model that is random after every prefix; Z by enumeration."""
    tokens = [b"a", b"b", *rng.sample([b"ab", b"ba", b"aa"], rng.randint(0, 2))]
    words = ["".join(rng.choice("ab") for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 5))]
    seed, sharp = rng.random(), rng.choice((0.3, 1.0, 4.0))

    def probs(prefix: cf.Tokens) -> list[float]:
        own = random.Random(f"{seed} {prefix}")
        weights = [own.random() ** sharp + 1e-6 for _ in range(len(tokens) + 1)]
        return [weight / sum(weights) for weight in weights]

    case = cf.Case(f"random {seed}", tokens, probs, cf.finite(words), 0.0, max_tokens=8)
    for ids in cf.sequences(case):
        path = [probs(tuple(ids[:place]))[token] for place, token in enumerate([*ids, 0])]
        case.z += math.prod(path)
    return case


@pytest.mark.parametrize("seed", range(40))
def test_the_estimate_lies_within_the_bounds(seed: int) -> None:
    rng = random.Random(f"log z {seed}")
    case = random_case(rng)
    for method in METHODS:
        store = case.store()
        store.expand_best_first(rng.choice((0, 0, 1, 5, 50)))
        sampler = Sampler(store, method, seed=seed, particles=4, mh_steps=2)
        for attempts in (0, 1, 2, 5, 40):
            run = sampler.draw(rng.randint(1, 5), Budget(attempts=attempts))
            low, high = run.log_z_bounds
            assert low <= high and math.exp(low) - EPS <= case.z <= math.exp(high) + EPS
            if run.attempts == 0 or method in ("asap", "mh"):
                assert math.isnan(run.log_z)
                continue
            assert low <= run.log_z <= high
            if run.log_weights:  # the nearest point of the bounds is at most as far from Z as the mean of the weights
                raw = log_mean_exp(run.log_weights)
                assert abs(math.exp(run.log_z) - case.z) <= abs(math.exp(raw) - case.z) + EPS


def test_the_mean_of_the_weights_alone_would_lie_outside() -> None:
    """What the property above rules out does happen: where Z is known already, those of few walks still vary."""
    case = cf.skewed(0.1)
    store = case.store()
    store.expand_best_first(1000)
    run = Sampler(store, "local", seed=0).draw(1)
    assert abs(math.exp(log_mean_exp(run.log_weights)) - case.z) > 0.03
    assert math.exp(run.log_z) == pytest.approx(case.z)


class Digits(pydantic.BaseModel):
    n: int = pydantic.Field(ge=0, le=9)

    @pydantic.field_validator("n")
    @classmethod
    def is_even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


def test_samples_have_values() -> None:
    tokens = vocabulary()
    generator = Generator(TinyModel(tokens.size, scale=1.0), CharTokenizer(), vocabulary=tokens)
    options: Any = {"schema_in_prompt": False, "max_new_tokens": 20, "seed": 3}
    run = generator.sample("p", Digits, 12, "local", **options)
    even, odd = 0, 0
    for sample in run.samples:
        try:
            assert sample.value == Digits.model_validate_json(sample.text)
            even += 1
        except RefusedValueError as error:
            assert error.text == sample.text
            odd += 1
    assert even and odd
    assert (
        generator.sample("p", ["ab", "b"], 2, **options).values
        == generator.sample("p", regex("ab|b"), 2, **options).texts
    )
    assert set(generator.sample("p", {"enum": [1, [2]]}, 4, **options).texts) <= {"1", "[2]"}
    target = generator.target("p", json_schema(int | None), schema_in_prompt=False, max_new_tokens=6)
    for sample in Sampler(PrefixStore(target), seed=0).draw(3).samples:
        assert sample.value is None or isinstance(sample.value, int)
