"""What a model is told of an answer that was refused: read back from the prompts that the model gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest

from structgen.errors import OptionsError, RefusedValueError
from structgen.generation.decoding.prompts import prompt_token_ids
from structgen.generation.decoding.refusals import MAX_SHOWN, Refusal, reason_of
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.server.tiny import VOCABULARY, ByteTokenizer, generator


class Trip(pydantic.BaseModel):
    days: int = pydantic.Field(ge=0, le=99)

    @pydantic.field_validator("days")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("days come in pairs")
        return value


def refused_by(kind: Any, text: str) -> RefusedValueError:
    from structgen import json_schema

    with pytest.raises(RefusedValueError) as caught:
        json_schema(kind).parse(text)
    return caught.value


def test_the_reason_is_what_validators_say_and_where() -> None:
    assert reason_of(refused_by(Trip, '{"days": 3}')) == "days: Value error, days come in pairs"
    found = reason_of(refused_by(list[Trip], '[{"days": 2}, {"days": 3}, {"days": 5}]'))
    assert found.splitlines() == [f"{row}.days: Value error, days come in pairs" for row in (1, 2)]
    assert reason_of(ZeroDivisionError()) == "ZeroDivisionError" and reason_of(ValueError("no")) == "no"
    assert "http" not in found


def test_long_answers_are_cut() -> None:
    first, second = Refusal("a" * 9_999, "b" * 9_999).messages()
    assert len(first["content"]) < MAX_SHOWN + 9 and len(second["content"]) < MAX_SHOWN + 200
    assert [message["role"] for message in Refusal("", "b").messages()] == ["user"]


def test_it_stands_behind_the_prompt_which_begins_as_before() -> None:
    refused = Refusal('{"days": 3}', "days: odd")
    for template in ("{{ messages }}", None):
        tokenizer = ByteTokenizer(template)
        plain = bytes(prompt_token_ids(tokenizer, "A trip.", "Answer so.")).decode()
        told = bytes(prompt_token_ids(tokenizer, "A trip.", "Answer so.", refused=refused)).decode()
        assert told.startswith(plain.removesuffix("<assistant>"))
        rest = told[len(plain.removesuffix("<assistant>")) :]
        assert rest.index('{"days": 3}') < rest.index("days: odd") and "Answer so." not in rest


def reading(**options: Any) -> tuple[Generator, list[str]]:
    """A generator, and the prompts that it makes."""
    gen = generator(**options)
    prompts: list[str] = []
    attempt_ids = gen._attempt_ids

    def kept(*arguments: Any) -> list[int]:
        found = attempt_ids(*arguments)
        prompts.append(bytes(found).decode())
        return found

    gen._attempt_ids = kept  # type: ignore[method-assign,assignment]
    return gen, prompts


def seed_of_a_refusal(least: int = 2, **options: Any) -> int:
    """One whose first outputs are refused."""
    for seed in range(200):
        try:
            generator(**options).generate("p", Trip, temperature=1.0, seed=seed, attempts=least - 1)
        except RefusedValueError:
            return seed
    raise AssertionError("none is refused")


@pytest.mark.parametrize("template", ["{{ messages }}", None])
def test_an_attempt_is_told_of_the_one_before(template: str | None) -> None:
    seed = seed_of_a_refusal(3, template=template)
    gen, prompts = reading(template=template)
    result = gen.generate("A trip.", Trip, temperature=1.0, seed=seed, attempts=50, refusal_in_prompt=True)
    assert result.value.days % 2 == 0 and len(prompts) == result.attempts
    assert all("days come in pairs" in prompt for prompt in prompts[1:]) and "pairs" not in prompts[0]
    assert all(prompt.count("does not fit") == 1 for prompt in prompts[1:])  # of the last one, not of all
    again, plain = reading(template=template)
    again.generate("A trip.", Trip, temperature=1.0, seed=seed, attempts=50)
    assert len(set(plain)) == 1 and plain[0] == prompts[0]


def test_batches_and_coroutines_tell_it_too() -> None:
    seed = seed_of_a_refusal()
    options: Any = {"temperature": 1.0, "attempts": 50, "refusal_in_prompt": True}
    gen, prompts = reading()
    alone = gen.generate("p", Trip, seed=seed, **options)
    gen, in_batch = reading()
    (row,) = gen.batch(["p"], Trip, seeds=[seed], **options)
    gen, in_loop = reading()
    coroutine = asyncio.run(gen.agenerate("p", Trip, seed=seed, **options))
    assert prompts == in_batch == in_loop and len(prompts) > 1
    assert alone.text == row.text == coroutine.text and alone.attempts == row.attempts == coroutine.attempts


def test_where_there_is_no_room_it_is_drawn_again_as_before() -> None:
    seed = seed_of_a_refusal()
    plain, expected = reading()
    found = plain.generate("p", Trip, temperature=1.0, seed=seed, attempts=50, max_new_tokens=40)
    gen, prompts = reading(context_length=len(expected[0]) + 60)
    options: Any = {"temperature": 1.0, "seed": seed, "attempts": 50, "max_new_tokens": 40}
    result = gen.generate("p", Trip, refusal_in_prompt=True, **options)
    assert (result.text, result.attempts) == (found.text, found.attempts) and set(prompts) == set(expected)


def test_a_template_that_takes_no_answers() -> None:
    class Strict(ByteTokenizer):
        def apply_chat_template(self, messages: Any, *arguments: Any, **options: Any) -> str:
            if any(message["role"] == "assistant" for message in messages):
                raise ValueError("users only")
            return super().apply_chat_template(messages, *arguments, **options)

    seed = seed_of_a_refusal()
    gen = Generator(TinyModel(VOCABULARY.size), Strict(), vocabulary=VOCABULARY)
    assert gen.generate("p", Trip, temperature=1.0, seed=seed, attempts=50, refusal_in_prompt=True).attempts > 1


def test_the_option_is_a_truth_value() -> None:
    with pytest.raises(OptionsError, match="refusal_in_prompt must be True or False"):
        generator().generate("p", Trip, refusal_in_prompt="yes")  # type: ignore[call-overload]
    with pytest.raises(OptionsError, match="refusal_in_prompt=True"):
        generator().generate("p", Trip, max_retries=3)  # type: ignore[call-overload]
