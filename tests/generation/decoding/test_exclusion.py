"""Attempts never write a value again that was refused, as long as it can be taken out of the schema."""

from __future__ import annotations

import random
from typing import Any, Literal

import pydantic
import pytest

import structgen
from structgen.core.constraints.json import json_schema
from structgen.errors import RefusedValueError
from structgen.generation.decoding.refusals import compiled_without
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary
from tests.many import cases

VOCABULARY = vocabulary(b'{"', b'":', b'",', b"1.", eos=1)


def refusing(taken: set[tuple[int, str]], seen: list[tuple[int, str]]) -> Any:
    """A type whose validator takes these pairs only, and notes what it is asked about."""

    class Pair(pydantic.BaseModel):
        a: Literal[1, 2, 3]
        b: Literal["x", "y"]

        @pydantic.model_validator(mode="after")
        def checked(self) -> Pair:
            seen.append((self.a, self.b))
            if (self.a, self.b) not in taken:
                raise ValueError("refused")
            return self

    return Pair


@pytest.mark.parametrize("seed", cases(1000, 20))
def test_no_refused_value_comes_twice(seed: int) -> None:
    rng = random.Random(seed)
    pairs = [(a, b) for a in (1, 2, 3) for b in "xy"]
    taken = set(rng.sample(pairs, rng.randint(0, 3)))
    seen: list[tuple[int, str]] = []
    generator = Generator(TinyModel(VOCABULARY.size, seed=seed), CharTokenizer(eos=1), vocabulary=VOCABULARY)
    kind = refusing(taken, seen)
    options: dict[str, Any] = {"attempts": 20, "temperature": rng.choice([0.0, 1.0]), "seed": seed}
    if taken:
        result = generator.generate("p", kind, **options)
        assert (result.value.a, result.value.b) in taken
    else:
        with pytest.raises(RefusedValueError, match="every value that there is"):
            generator.generate("p", kind, **options)
        assert len(seen) == len(pairs)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("value", "spellings"),
    [({"n": 1}, ['{"n": 1}', '{"n":1}']), ({"n": 12}, ['{"n": 12}']), ({"n": 3.5}, ['{"n": 3.5}'])],
)
def test_values_go_in_every_spelling_and_others_stay(value: Any, spellings: list[str]) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    grammar = compiled_without(json_schema(schema), [value], VOCABULARY)
    assert grammar is not None
    for text in spellings:
        matcher = grammar.matcher()
        assert not (matcher.accept_bytes(text.encode()) and matcher.is_accepting())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'{"n": 77}') and matcher.is_accepting()


def test_what_cannot_be_taken_out_is_left() -> None:
    assert compiled_without(structgen.regex("a+"), ["a"], VOCABULARY) is None
    assert compiled_without(json_schema({"enum": [1, 2]}), [], VOCABULARY) is None
