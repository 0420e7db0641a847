"""``Generator.sample`` and ``Generator.target``."""

from __future__ import annotations

from typing import Any

import pytest

from structgen import Generator, regex
from structgen.errors import GenerationError, OptionsError
from structgen.generation.models.tiny import TinyModel
from structgen.generation.target import Budget, PrefixStore, Sampler
from tests.fakes import CharTokenizer, vocabulary, words


def generator(**options: Any) -> Generator:
    tokens = vocabulary()
    return Generator(TinyModel(tokens.size, scale=1.0, **options), CharTokenizer(), vocabulary=tokens)


@pytest.mark.parametrize("method", ["exact", "weighted", "asap", "local", "smc", "mh"])
def test_samples_satisfy_the_constraint(method: Any) -> None:
    run = generator().sample("Hi", words("ab", "abc", "b"), 5, method, seed=1, schema_in_prompt=False)
    assert run.method == method and len(run.samples) >= 5 and set(run.texts) <= {"ab", "abc", "b"}
    assert run.complete and run.model_calls > 0


def test_a_target_and_its_store_can_be_kept() -> None:
    target = generator().target("Hi", regex("[ab]{1,3}"), max_new_tokens=3, temperature=0.8)
    store = PrefixStore(target)
    store.expand_best_first(1000)
    run = Sampler(store, "exact", seed=0).draw(20)
    assert run.model_calls == 0 and run.tv_bound == pytest.approx(0, abs=1e-9)


def test_budget_and_errors() -> None:
    run = generator().sample("Hi", regex("[a-f]{6}"), 10**6, seed=0, budget=Budget(seconds=0.2))
    assert run.stopped_by == "seconds" and not run.complete
    with pytest.raises(GenerationError, match="needs a constraint"):
        generator().sample("Hi", None, 1)
    with pytest.raises(OptionsError, match="temperature"):
        generator().sample("Hi", words("a"), 1, temperature=0)
    with pytest.raises(OptionsError, match="max_tokens"):
        generator(context_length=10).sample("Hello, you", words("a"), 1, schema_in_prompt=False)
