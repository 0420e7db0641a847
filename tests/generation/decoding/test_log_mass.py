"""The mass that the mask leaves, token by token: against the model's own softmax, read again after the fact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary
from tests.many import cases

VOCABULARY = vocabulary(b'{"', b'": ', b'":', b'",', b'"}', b"true", b"lab", b"el", b"low", b"high", b"gh", eos=2)
SCHEMA = {
    "type": "object",
    "properties": {"label": {"enum": ["low", "high", "hi"]}, "ok": {"type": "boolean"}, "n": {"type": "integer"}},
    "required": ["label", "ok", "n"],
    "additionalProperties": False,
}


def generator(seed: int = 0, **options: Any) -> Generator:
    return Generator(TinyModel(VOCABULARY.size, seed=seed), CharTokenizer(eos=1), vocabulary=VOCABULARY, **options)


def own_log_probs(gen: Generator, prompt: str, tokens: tuple[int, ...]) -> list[float]:
    """The model's log-probability of each token, by a softmax in float64."""
    text, found = gen._prompt_ids(prompt, None, None), []
    for token in tokens:
        row = gen.model.prefill([text])[0][0].astype(np.float64)[: VOCABULARY.size]
        found.append(float(row[token] - row.max() - math.log(np.exp(row - row.max()).sum())))
        text = [*text, token]
    return found


@pytest.mark.parametrize("seed", cases(30, 10))
@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.7, "top_p": 0.9, "seed": 1}]
)
def test_masked_plus_mass_is_the_models_own(seed: int, options: dict[str, Any]) -> None:
    gen = generator(seed)
    told: dict[str, Any] = {"schema_in_prompt": False, "log_mass": True, **options}
    result = gen.generate("p", structgen.json_schema(SCHEMA), max_new_tokens=40, **told)
    own = own_log_probs(gen, "p", result.token_ids)
    assert len(result.token_log_mass) == len(result.token_log_probs) == len(result.token_ids)
    pairs = zip(result.token_log_probs, result.token_log_mass, own, strict=True)
    for log_prob, mass, model in pairs:
        assert mass is None or abs(log_prob + mass - model) < 1e-6
    assert result.log_mass is not None
    assert result.log_mass <= sum(mass for mass in result.token_log_mass if mass is not None) + 1e-9
    assert any(mass is not None for mass in result.token_log_mass)


def test_drafts_and_penalties_keep_the_mass() -> None:
    told: dict[str, Any] = {"schema_in_prompt": False, "log_mass": True, "temperature": 0.8, "seed": 4}
    schema = structgen.json_schema(SCHEMA)
    plain = generator().generate("p", schema, **told)
    drafted = generator(draft="ngram").generate("p", schema, prediction=plain.text, **told)
    assert drafted.token_ids == plain.token_ids and drafted.token_log_mass == pytest.approx(plain.token_log_mass)
    adjusted = generator().generate("p", schema, frequency_penalty=0.5, **told)
    assert all(mass is None or mass <= 0 for mass in adjusted.token_log_mass)


def test_free_text_keeps_all_of_it() -> None:
    result = generator().generate("p", max_new_tokens=6, log_mass=True)
    assert result.token_log_mass == pytest.approx([0.0] * 6, abs=1e-6) and not result.surprises()


def test_surprises_say_what_the_model_wanted() -> None:
    result = generator(7).generate("p", structgen.json_schema(SCHEMA), schema_in_prompt=False, log_mass=True)
    found = result.surprises()
    assert found and all(0 <= each.kept < 0.5 for each in found)
    for each in found:
        assert each.index == len(result.token_ids) or each.kept == pytest.approx(
            math.exp(result.token_log_mass[each.index] or 0.0)
        )
        probs = [prob for _, prob in each.wanted]
        assert probs == sorted(probs, reverse=True) and len(probs) == 3
    assert len(result.surprises(1e-3)) <= len(found)


def test_what_is_not_asked_for_is_not_there() -> None:
    result = generator().generate("p", structgen.json_schema(SCHEMA))
    assert result.token_log_mass == () and result.log_mass is None and len(result.token_log_probs)
    with pytest.raises(OptionsError, match="log_mass=True"):
        result.surprises()


@pytest.mark.parametrize("below", [0, 0.7, -1, float("nan"), "x", None])
def test_bad_limits_of_surprises(below: Any) -> None:
    result = generator().generate("p", structgen.json_schema(SCHEMA), log_mass=True)
    with pytest.raises(OptionsError, match="below must be"):
        result.surprises(below)


def test_bad_options() -> None:
    with pytest.raises(OptionsError, match="log_mass must be True or False"):
        generator().generate("p", log_mass="drawn")  # type: ignore[call-overload]
