"""``spelling="canonical"``, judged by tokenizers: what is written is what they make of its text, and all can be."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, cast

import pytest

import structgen as sg
from structgen.core.constraints.json import as_constraint
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError, TokenizerError
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.options import checked_settings
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.request import Request
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.model_drafter import ModelDrafter
from tests.core.tokenization.small_tokenizers import PATTERNS, encode, tokenizers, trained
from tests.many import cases

pytestmark = pytest.mark.full
SOME = list(PATTERNS)[: len(cases(len(PATTERNS), 2))]
SCHEMA = {
    "type": "object",
    "properties": {
        "the": {"type": "string", "maxLength": 9},
        "12": {"type": "number"},
        "ll": {"enum": ["the the", "ab"]},
    },
    "required": ["the", "ll"],
}
CONSTRAINTS: dict[str, Any] = {
    "nothing": None,
    "object": SCHEMA,
    "blanks": sg.regex(r"[ \n]{0,4}(the|12)?[ ]{1,3}[a-z!]{1,5}"),
    "words": ["the the", "the  the", "tha", " ab\n\n", "12ab'll", "日本é👩"],
    "cut": sg.regex(r"(th|the |日|é){1,3}e"),
    "grammar": sg.lark('start: (WORD " "?)+ "\\n"\nWORD: /[a-z\']+/'),
}


class Tokenizer:
    """What ``Generator`` uses of one."""

    def __init__(self, backend: Any) -> None:
        self.backend_tokenizer, self.eos_token_id, self.chat_template = backend, backend.token_to_id("<e>"), None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids."""
        return encode(self.backend_tokenizer, text)


@cache
def generator(name: str, seed: int = 0, draft: str | None = None) -> Generator:
    """Of random logits."""
    tokenizer = Tokenizer(trained(PATTERNS[name]))
    vocabulary = Vocabulary.from_transformers(tokenizer.backend_tokenizer, eos_token_ids=tokenizer.eos_token_id)
    return Generator(TinyModel(vocabulary.size, seed=seed), tokenizer, vocabulary=vocabulary, draft=draft)


def check(made: Generator, result: Any) -> None:
    """Its tokens are those of its text."""
    text = made.vocabulary.decode(result.token_ids).decode()
    assert encode(made.tokenizer.backend_tokenizer, text) == list(result.token_ids), text


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_outputs_encode_to_themselves(name: str, kind: str) -> None:
    made, rng = generator(name), random.Random(11)
    for seed in cases(100, 2):
        budget = rng.choice([12, 18, 30])
        options: Any = {"temperature": 1.0, "seed": seed, "max_new_tokens": budget, "schema_in_prompt": False}
        try:
            result = made.generate("the", CONSTRAINTS[kind], spelling="canonical", **options)
        except IncompleteOutputError as error:
            assert "Even the shortest" in str(error) and kind == "object"
            continue
        check(made, result)


@pytest.mark.parametrize("name", SOME)
def test_every_text_can_be_written_and_nothing_else(name: str) -> None:
    made, texts = generator(name), CONSTRAINTS["words"]
    found = set()
    for seed in range(50):
        result = made.generate("the", texts, temperature=3.0, seed=seed, spelling="canonical")
        check(made, result)
        found.add(result.text)
    assert found == set(texts)


def test_streams_batches_and_drafts_write_the_same() -> None:
    options: Any = {"temperature": 1.0, "seed": 3, "max_new_tokens": 40, "spelling": "canonical"}
    for kind in CONSTRAINTS:
        alone = generator("gpt2").generate("the", CONSTRAINTS[kind], **options)
        *_, last = generator("gpt2").stream("the", CONSTRAINTS[kind], **options)
        (batched,) = generator("gpt2").batch(["the"], [CONSTRAINTS[kind]], **options)
        drafted = generator("gpt2", draft="ngram").generate("the", CONSTRAINTS[kind], **options)
        assert last.result is not None
        assert {alone.token_ids} == {each.token_ids for each in (last.result, batched, drafted)}
        assert {alone.finish_reason} == {each.finish_reason for each in (last.result, batched, drafted)}


def test_a_draft_that_is_drawn_at_random_leaves_outputs_canonical() -> None:
    made = generator("gpt2")
    random_draft = ModelDrafter(TinyModel(made.vocabulary.size, seed=5), drawing="chain")
    for seed in cases(100, 4):
        options: Any = {"temperature": 1.0, "seed": seed, "max_new_tokens": 40, "draft": random_draft}
        check(made, made.generate("the", SCHEMA, spelling="canonical", **options))


def test_a_budget_is_kept_to_the_token() -> None:
    made = generator("gpt2")
    for text in CONSTRAINTS["words"]:
        least = len(encode(made.tokenizer.backend_tokenizer, text))
        result = made.generate("the", [text], max_new_tokens=least, spelling="canonical")
        assert (result.text, result.finish_reason) == (text, "stop")
        if least > 1:
            with pytest.raises(IncompleteOutputError, match=f"to at least {least}"):
                made.generate("the", [text], max_new_tokens=least - 1, spelling="canonical")


def test_what_has_no_canonical_spelling_is_refused() -> None:
    made, wrong = generator("gpt2"), cast("Any", "proper")
    with pytest.raises(GenerationError, match="No canonical spelling"):
        made.generate("the", ["a<e>b"], spelling="canonical")
    assert made.generate("the", ["a<e>b", "ab"], spelling="canonical").text == "ab"
    with pytest.raises(OptionsError, match="choose"):
        made.generate("the", SCHEMA, spelling="canonical", choose="value")
    with pytest.raises(OptionsError, match="any or canonical"):
        checked_settings(spelling=wrong)
    unigram = Tokenizer(tokenizers.Tokenizer(tokenizers.models.Unigram([("<e>", 0.0), ("a", -1.0)], 0)))
    other = Generator(made.model, unigram, vocabulary=made.vocabulary)
    with pytest.raises(TokenizerError, match="Unigram"):
        other.generate("a", SCHEMA, spelling="canonical")


class Counting(TinyReader):
    """Counts the tokens that are read."""

    tokens = 0

    def read(self, parts: Any) -> Any:
        self.tokens += sum(len(part.tokens) for part in parts)
        return super().read(parts)


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_the_next_turn_reads_no_token_again(kind: str) -> None:
    """The tokenizer makes of the chat what was read: what the model has written is in the scheduler's cache."""
    made, constraint = generator("gpt2"), as_constraint(CONSTRAINTS[kind]) or sg.regex(r"[\s\S]*")
    backend = made.tokenizer.backend_tokenizer
    canonical = canonical_spelling(made.tokenizer, made.vocabulary)
    for seed in cases(50, 3):
        scheduler = Scheduler(reader := Counting(TinyModel(made.vocabulary.size, seed=0)))
        asked = "the ab, the 12! " * 12 + "<e>"
        output = Output(
            made.vocabulary, constraint.compile(made.vocabulary).matcher(), SamplingParams(1.0, seed=seed),
            max_new_tokens=30, spelling=canonical,
        )  # fmt: skip
        first = scheduler.submit(Request(encode(backend, asked), output))
        while not scheduler.is_idle:
            scheduler.step()
        written = made.vocabulary.decode(output.token_ids).decode()
        read, chat = reader.tokens, encode(backend, f"{asked}{written}<e>the next<e>")
        assert chat[: len(first.request.prompt) + len(output.token_ids)] == [*first.request.prompt, *output.token_ids]
        turn = scheduler.submit(Request(chat, Output(made.vocabulary, None, SamplingParams(), max_new_tokens=1)))
        while not scheduler.is_idle:
            scheduler.step()
        assert turn.cached_tokens == read >= len(first.request.prompt)  # (what had to come was written, and not read)
