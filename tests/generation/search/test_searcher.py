"""`Generator.search`: values, merging, stats, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

import structgen
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError, RefusedValueError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search import METHODS
from structgen.generation.search.beam import Beam
from tests.fakes import CharTokenizer, vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}, "n": {"type": "integer", "minimum": 0, "maximum": 20}},
    "required": ["size", "n"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def generator() -> Generator:
    tokens = vocabulary(b'{"', b'": ', b"size", b"ar", b"12")
    return Generator(TinyModel(tokens.size, scale=1.0), CharTokenizer(), vocabulary=tokens)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_valid_values_and_repeats_itself(generator: Generator, method: str) -> None:
    more: dict[str, Any] = {"phrases": ["large"], "bonus": 5.0} if method == "phrases" else {}
    if "critic" in {one.name for one in fields(METHODS[method])}:
        more = {"critic": lambda some: [1 / (1 + len(each.text)) for each in some]}
    run = generator.search("p", SCHEMA, method=method, n=3, max_new_tokens=60, seed=5, **more)
    assert run.method == method and 1 <= len(run.results) <= 3
    for result in run.results:
        assert set(result.value) == {"size", "n"} and 0 <= result.value["n"] <= 20
        assert result.finish_reason in ("stop", "length") and len(result.token_ids) <= 60
        assert result.log_prob_global <= result.text_logprob + 1e-9 and result.log_prob_global <= result.logprob + 1e-9
    assert run.stats.model_calls and run.stats.tokens_read and run.stats.expansions
    again = generator.search("p", SCHEMA, method=method, n=3, max_new_tokens=60, seed=5, **more)
    assert again.texts == run.texts


def test_spellings_are_merged_as_asked_for(generator: Generator) -> None:
    spaced = structgen.regex(r'\{"a": ?(1|2)\}')
    texts = generator.search("p", spaced, n=4, num_beams=16, early_stopping="never").texts
    values = generator.search("p", spaced, n=4, num_beams=16, merge="value", early_stopping="never").texts
    spellings = generator.search("p", spaced, n=16, num_beams=16, merge="none", early_stopping="never")
    assert len(texts) == len(set(texts)) == 4 and len(values) == 2
    assert len(spellings.results) >= len(set(spellings.texts)) == 4


def test_the_best_of_exact_is_the_best_of_all(generator: Generator) -> None:
    run = generator.search("p", structgen.choice(["yes", "no", "maybe"]), method="exact", n=3, schema_in_prompt=False)
    assert run.gap == 0 and sorted(run.texts) == ["maybe", "no", "yes"]
    scores = [result.score for result in run.results]
    assert scores == sorted(scores, reverse=True)
    probs = generator.choice("p", ["yes", "no", "maybe"]).logprobs
    for result in run.results:
        assert result.text_logprob >= probs[result.text] - 1e-4


def test_values_that_validators_refuse_are_left_out(generator: Generator) -> None:
    from pydantic import BaseModel, field_validator

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    class Never(Even):
        @field_validator("n")
        @classmethod
        def never(cls, n: int) -> int:
            raise ValueError("no number will do")

    run = generator.search("p", Even, n=8, num_beams=64, max_new_tokens=20)
    assert all(value.n % 2 == 0 for value in run.values)
    with pytest.raises(RefusedValueError, match="no number will do"):
        generator.search("p", Never, max_new_tokens=20)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "beem"}, OptionsError, "expected one of beam"),
        ({"beam": 3}, OptionsError, "beam"),
        ({"num_return_sequences": 3}, OptionsError, "use n"),
        ({"method": Beam(), "num_beams": 3}, OptionsError, "give its name"),
        ({"n": 0}, OptionsError, "n must"),
        ({"n": 9, "num_beams": 3}, OptionsError, "num_beams=3"),
        ({"max_new_tokens": 3}, IncompleteOutputError, "raise max_new_tokens"),
        ({"method": "exact", "max_new_tokens": 3}, IncompleteOutputError, "max_new_tokens"),
        ({"stop": [""]}, OptionsError, "stop must be"),
        ({"stop": ""}, OptionsError, "stop must be"),
        ({"stop": 3}, OptionsError, "stop must be"),
        ({"method": "quality", "utility": lambda one, other: None}, GenerationError, "utility of .* is None"),
    ],
)
def test_bad_calls_are_refused_by_name(
    generator: Generator, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        generator.search("p", SCHEMA, **options)


def test_free_text_is_not_searched(generator: Generator) -> None:
    with pytest.raises(GenerationError, match="needs a constraint"):
        generator.search("p", None)


def test_methods_may_be_given_as_values(generator: Generator) -> None:
    run = generator.search("p", SCHEMA, method=Beam(num_beams=2), max_new_tokens=60)
    assert run.method == "beam" and math.isfinite(run.results[0].score)
