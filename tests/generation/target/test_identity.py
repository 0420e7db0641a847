"""Names of values: equal values have equal names, whatever they are compared by tells them apart."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from referencing import Registry

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.target.target import Target, is_lasting, model_id, value_id

VOCABULARY = Vocabulary([None, b"a", b"b"], eos_token_ids=0)


@dataclass(frozen=True)
class WiderParams(SamplingParams):
    """What a filter that is added one day would do."""

    novelty: float = 0.0


def test_all_fields_are_in_the_name() -> None:
    base = SamplingParams(0.5, 3, 0.9, 7)
    changed = {
        "temperature": 0.6, "top_k": 4, "top_p": 0.8, "seed": 8, "min_p": 0.1, "typical_p": 0.9, "epsilon_cutoff": 0.1,
        "eta_cutoff": 0.1, "top_n_sigma": 1.0, "top_h": 0.4, "bregman_cost": 0.1, "dry_multiplier": 0.1, "dry_base": 2,
        "dry_allowed_length": 3, "dry_sequence_breakers": ("a",), "repetition_penalty": 1.1, "presence_penalty": 0.1,
        "frequency_penalty": 0.1, "logit_bias": {3: 1.0}, "order": ("temperature", "top_p", "top_k"),
    }  # fmt: skip
    assert set(changed) == {field.name for field in dataclasses.fields(SamplingParams)}
    others = [dataclasses.replace(base, **{name: value}) for name, value in changed.items()]  # type: ignore[arg-type]
    assert len({value_id(params) for params in (base, *others)}) == 21
    assert value_id(WiderParams(0.5, novelty=0.1)) != value_id(WiderParams(0.5, novelty=0.2))


def test_a_new_field_tells_targets_apart() -> None:
    def key(params: SamplingParams) -> str:
        return Target(None, [1], None, VOCABULARY, params, model_id="m", constraint_id="c").key

    assert key(WiderParams(1.0, novelty=0.1)) != key(WiderParams(1.0, novelty=0.2))
    assert key(WiderParams(1.0, novelty=0.1)) == key(WiderParams(1, novelty=0.1, seed=3))


@dataclass
class Small:
    """A type with a schema."""

    n: int


def test_constraints_by_content(tmp_path: Path) -> None:
    number, text = structgen.json_schema({"type": "number"}), structgen.json_schema({"type": "string"})
    constraints: list[Any] = [
        number,
        text,
        structgen.json_schema({"type": "number"}, structgen.JsonOptions(max_number_length=3)),
        structgen.json_schema(Small),
        structgen.json_schema(list[int]),
        structgen.regex("a+"),
        structgen.regex("a+", syntax="ecma"),
        structgen.choice(["a", "b"]),
        structgen.tag_dispatch({("<n>", ""): number}),
        structgen.tag_dispatch({("<n>", ""): text}),
        structgen.json_lines({"type": "number"}),
    ]
    names = [value_id(constraint) for constraint in constraints]
    assert len(set(names)) == len(names) and all(map(is_lasting, names))
    assert value_id(structgen.tag_dispatch({("<n>", ""): structgen.json_schema({"type": "number"})})) == names[8]
    grammar = tmp_path / "g.lark"
    grammar.write_text('start: "a"')
    before = value_id(structgen.lark(grammar))
    grammar.write_text('start: "b"')
    assert value_id(structgen.lark(grammar)) != before  # the file's content counts


@pytest.mark.parametrize(
    "value",
    [
        structgen.json_schema({"type": "number"}, registry=Registry()),
        structgen.tag_dispatch({("<n>", ""): structgen.json_schema({"type": "number"}, registry=Registry())}),
        structgen.compile_regex("a", VOCABULARY),
    ],
)
def test_what_has_no_content_to_go_by_does_not_last(value: Any) -> None:
    assert not is_lasting(value_id(value))
    assert is_lasting(value_id(("this process: ", {"\0this process: ": 1})))


def test_numbers_that_are_equal_have_equal_names() -> None:
    assert value_id(1) == value_id(1.0) == value_id(np.float64(1.0)) != value_id("1")
    assert value_id(0.5) == value_id(np.float32(0.5)) != value_id(0.25)


def test_models_by_what_they_say() -> None:
    assert not is_lasting(model_id(TinyModel(3)))

    class Named:
        def fingerprint(self) -> str:
            return "abc"

    assert model_id(Named()) == "abc"
