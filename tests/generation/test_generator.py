"""The generator over a tiny model: results, streams, batches, choices, prompts."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import structgen.generation.api
from structgen.errors import GenerationError, IncompleteOutputError, ModelError, OptionsError, RefusedValueError
from structgen.generation.decoding.prompts import prompt_token_ids, telling
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, FakeConstraint, vocabulary, words

VOCABULARY = vocabulary(b'{"', b'":', eos=1)
PEOPLE = words('{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}', '{"name": "Al"}')


def generator(chat_template: str | None = None, **options: Any) -> Generator:
    model = TinyModel(VOCABULARY.size, **options)
    return Generator(model, CharTokenizer(eos=1, chat_template=chat_template), vocabulary=VOCABULARY)


def test_a_result_holds_value_text_and_statistics() -> None:
    result = generator().generate("p", PEOPLE, temperature=1.0, seed=2)
    assert result.value == json.loads(result.text)
    assert result.finish_reason == "stop" and result.logprob <= 0
    assert result.stats.prompt_tokens == len("p\n\nAnswer in JSON.\n\n")
    assert result.stats.output_tokens == len(result.token_ids)
    assert 0 < result.stats.mask_seconds <= result.stats.seconds


def test_the_schema_in_the_prompt_can_be_switched_off() -> None:
    result = generator().generate("four", PEOPLE, schema_in_prompt=False)
    assert result.stats.prompt_tokens == 4


def test_free_text_needs_no_constraint() -> None:
    result = generator().generate("p", max_new_tokens=5, temperature=1.0, seed=0)
    assert result.value == result.text and result.finish_reason == "length"


def test_chat_template_and_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Recording(CharTokenizer):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            seen.append(text)
            return super().encode(text)

    gen = Generator(TinyModel(VOCABULARY.size), Recording(eos=1, chat_template="yes"), vocabulary=VOCABULARY)
    gen.generate([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], PEOPLE)
    gen.generate("u", PEOPLE, schema_in_prompt=False)
    assert seen == ["<system>s\n<user>Answer in JSON.\n\nu\n<assistant>", "<user>u\n<assistant>"]
    seen.clear()
    gen.generate(
        [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], PEOPLE, schema_in_prompt="system"
    )
    gen.generate("u", PEOPLE, schema_in_prompt="system")
    assert seen == [
        "<system>s\n\nAnswer in JSON.\n<user>u\n<assistant>",
        "<system>Answer in JSON.\n<user>u\n<assistant>",
    ]
    assert prompt_token_ids(CharTokenizer(eos=1), "u", "Do.", "system") == CharTokenizer(eos=1).encode("Do.\n\nu\n\n")
    with pytest.raises(OptionsError, match="schema_in_prompt"):
        gen.generate("u", PEOPLE, schema_in_prompt="assistant")  # type: ignore[call-overload]
    with pytest.raises(OptionsError, match="pass schema_form='skeleton'"):
        gen.generate("u", PEOPLE, schema_in_prompt="skeleton")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("parameters", "form", "begins"),
    [
        (None, "auto", "Answer with JSON that matches this JSON Schema:"),
        (999_999_999, "auto", 'Answer with JSON: {"a": integer}'),
        (1_000_000_000, "auto", "Answer with JSON that matches this JSON Schema:"),
        (5, "skeleton", 'Answer with JSON: {"a": integer}'),
        (7_000_000_000, "skeleton", 'Answer with JSON: {"a": integer}'),
    ],
)
def test_the_form_in_which_a_model_is_told_of_a_schema(parameters: int | None, form: Any, begins: str) -> None:
    class Sized(TinyModel):
        parameter_count = parameters

    seen: list[str] = []

    class Recording(CharTokenizer):
        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            seen.append(text)
            return super().encode(text)

    gen = Generator(Sized(VOCABULARY.size), Recording(eos=1), vocabulary=VOCABULARY)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert gen._prompt_ids("u", structgen.json_schema(schema), telling(True, form))
    assert seen[0].startswith(begins) and seen[0].endswith("\n\nu\n\n")
    seen.clear()
    gen._prompt_ids("u", words("abc"), telling(True, form))  # which has one form only
    assert seen == ["Answer in JSON.\n\nu\n\n"]


@pytest.mark.parametrize("prompt", [[], [{"role": "user"}]])
def test_prompts_that_are_none_raise(prompt: Any) -> None:
    with pytest.raises(GenerationError, match="A prompt is a string or messages"):
        generator("yes").generate(prompt)


def test_messages_need_a_chat_template() -> None:
    with pytest.raises(GenerationError, match="no chat template"):
        generator().generate([{"role": "user", "content": "u"}])


def test_the_stream_adds_up_to_the_result() -> None:
    gen = generator()
    events = list(gen.stream("p", PEOPLE, temperature=1.0, seed=5))
    result = gen.generate("p", PEOPLE, temperature=1.0, seed=5)
    assert "".join(event.delta for event in events) == result.text == events[-1].text
    assert [event.result is None for event in events] == [True] * (len(events) - 1) + [False]
    last = events[-1].result
    assert last is not None and (last.value, last.token_ids) == (result.value, result.token_ids)
    for early, late in itertools.pairwise(event.partial or {} for event in events):
        assert all(str(late[key]).startswith(str(value)) for key, value in early.items())
    assert events[-1].partial == result.value


def test_bad_arguments_of_a_stream_raise_at_the_call() -> None:
    for bad in ({"temperature": -1.0}, {"max_new_tokens": 0}, {"top_p": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            generator().stream("p", PEOPLE, **bad)


def test_batch_rows_are_what_generate_gives() -> None:
    gen = generator()
    prompts, constraints = ["a", "bcd", "ef", "g"], [PEOPLE, None, words("1", "22", "333"), PEOPLE]
    rows = gen.batch(prompts, constraints, temperature=1.0, seed=10, max_new_tokens=40)
    for row, (prompt, constraint) in enumerate(zip(prompts, constraints, strict=True)):
        alone = gen.generate(prompt, constraint, temperature=1.0, seed=10 + row, max_new_tokens=40)
        assert (alone.token_ids, alone.value, alone.logprob) == (
            rows[row].token_ids,
            rows[row].value,
            rows[row].logprob,
        )


def test_batch_wants_one_constraint_or_one_a_prompt() -> None:
    with pytest.raises(GenerationError, match="2 prompts, but 1 constraints"):
        generator().batch(["a", "b"], [PEOPLE])
    assert [row.value for row in generator().batch(["a", "b"], words("7"))] == [7, 7]
    assert generator().batch([]) == []


def test_choice_probabilities_are_exact() -> None:
    """Against the chain rule written out over the raw softmax."""
    gen = generator(seed=4)
    options = ["yes", "no", "n", "maybe so"]
    weights = []
    for option in options:
        ids = [ord(c) + 1 for c in "Q?"]
        weight = 1.0
        for token in [*(ord(c) + 1 for c in option), 0]:
            logits = TinyModel(VOCABULARY.size, seed=4).prefill([ids])[0][0].astype(float)
            weight *= math.exp(logits[token]) / np.exp(logits).sum()
            ids.append(token)
        weights.append(weight)
    result = gen.choice("Q?", options)
    assert np.allclose(list(result.probs.values()), np.array(weights) / sum(weights))
    assert np.allclose(list(result.logprobs.values()), np.log(weights))
    assert result.value == options[int(np.argmax(weights))]


@pytest.mark.parametrize("options", [[], ["a", "a"], ["a", ""]])
def test_choices_that_are_none_raise(options: list[str]) -> None:
    with pytest.raises(GenerationError, match="different, non-empty options"):
        generator().choice("Q?", options)


def test_a_prompt_that_fills_the_context_raises() -> None:
    with pytest.raises(GenerationError, match="The prompt has 10 tokens, the model reads 10"):
        generator(context_length=10).generate("x" * 10)


def test_the_context_limits_the_budget() -> None:
    result = generator(context_length=12).generate("x" * 10, temperature=1.0, seed=0)
    assert len(result.token_ids) <= 2
    with pytest.raises(IncompleteOutputError):
        generator(context_length=12).generate("x" * 10, PEOPLE, schema_in_prompt=False)


def test_a_loaded_model_needs_its_tokenizer() -> None:
    with pytest.raises(ModelError, match="needs its tokenizer"):
        Generator(TinyModel(10))


def test_generate_json_takes_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structgen.generation.api, "json_schema", lambda schema: schema)
    assert structgen.generation.api.generate_json("p", words("[1]"), model=generator()) == [1]


def refusing(*refused: str) -> Any:
    """A constraint of the letters a to h whose type's validators refuse some of them."""

    class Refusing(FakeConstraint):
        def parse(self, text: str) -> Any:
            if text in refused:
                raise RefusedValueError(f"not {text}", text=text, value=text)
            return text

    return Refusing(words(*"abcdefgh").factory)


def test_refused_values_are_written_again_with_other_seeds() -> None:
    first = [generator().generate("p", refusing(), temperature=1.0, seed=seed).value for seed in range(9)]
    picky = refusing(first[3], generator().generate("p", refusing()).value)
    with pytest.raises(RefusedValueError) as caught:
        generator().generate("p", picky, temperature=1.0, seed=3)
    assert caught.value.text == first[3] and caught.value.value == first[3]
    found = generator().generate("p", picky, temperature=1.0, seed=3, attempts=200)
    assert found.value != first[3] and found.attempts > 1
    again = generator().generate("p", picky, temperature=1.0, seed=3, attempts=found.attempts)
    assert (again.value, again.attempts) == (found.value, found.attempts)
    with pytest.raises(RefusedValueError):
        generator().generate("p", picky, temperature=1.0, seed=3, attempts=found.attempts - 1)
    assert generator().generate("p", picky, seed=0, attempts=200).attempts > 1  # greedy at first only


def test_batches_write_refused_rows_again() -> None:
    picky = refusing(generator().generate("p", refusing(), temperature=1.0, seed=5).value)
    prompts = ["p", "q", "r", "s"]
    found = generator().batch(prompts, picky, temperature=1.0, seed=5, attempts=100)
    alone = [
        generator().generate(prompt, picky, temperature=1.0, seed=5 + row, attempts=100)
        for row, prompt in enumerate(prompts)
    ]
    assert [(result.value, result.attempts) for result in found] == [(one.value, one.attempts) for one in alone]
    assert found[0].attempts > 1


def test_streams_have_one_attempt() -> None:
    with pytest.raises(OptionsError, match="a stream has one attempt"):
        generator().stream("p", words("a"), attempts=2)
    with pytest.raises(OptionsError, match="attempts must be"):
        generator().generate("p", words("a"), attempts=0)
