"""Thinking with a budget: whole outputs taken apart by hand, with drafts and without, in vocabularies whose tokens cut
marks and characters in all ways."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import choice, regex
from structgen.core.constraints.thinking import Thinking, think
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, IncompleteOutputError, OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.results import GenerationResult
from structgen.server.engine import AsyncEngine

BYTES = [bytes([byte]) for byte in range(256)]
PIECES = [
    b"<think>",
    b"</",
    b"think",
    b">",
    b"<",
    b"nk>",
    b"e</th",
    b"></",
    b">a",
    "é".encode(),
    b"\x80\x99",
    b'>"',
    b"ab",
]
VOCABULARIES = {
    "bytes": Vocabulary([*BYTES, None], eos_token_ids=256),
    "pieces": Vocabulary([*BYTES, None, *PIECES], eos_token_ids=256),
    "special": Vocabulary(
        [*BYTES, None, None, None, *PIECES[1:]], eos_token_ids=256, special_tokens={"<think>": 257, "</think>": 258}
    ),
}
ANSWERS: dict[str, Constraint] = {
    "choice": choice(["yes", "no"]),
    "schema": json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    "blank": regex(" ?[ab]{2}"),
}


class Template:
    """A byte a token, or a special one by its name; the prompt may begin the thinking."""

    chat_template = None
    eos_token_id = 256

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._special = dict(vocabulary.special_tokens)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        for name, token in self._special.items():
            if text.endswith(name):
                return [*text[: -len(name)].encode(), token]
        return list(text.encode())


def written(name: str, prompt: str, constraint: Any, seed: int, draft: Any = None, **options: Any) -> GenerationResult:
    vocabulary = VOCABULARIES[name]
    model = TinyModel(vocabulary.size, seed=seed % 7, scale=3.0)
    generator = Generator(model, Template(vocabulary), vocabulary=vocabulary, draft=draft)
    options = {"max_new_tokens": 120, "temperature": 1.0, "seed": seed, "schema_in_prompt": False, **options}
    return generator.generate(prompt, constraint, **options)


def taken_apart(name: str, result: GenerationResult, begun: bool) -> tuple[str, str, int]:
    """Thinking, answer, and how many tokens hold some of the thinking: by the bytes of the tokens."""
    vocabulary = VOCABULARIES[name]
    spelled = [vocabulary.tokens[token] or vocabulary.names_of(token).encode() for token in result.token_ids]
    data = b"".join(spelled)
    assert data.decode() == result.text
    begin = 0 if begun else len(b"<think>")
    assert data.startswith(b"" if begun else b"<think>")
    end = data.index(b"</think>", begin)
    count, at = 0, 0
    for token in spelled:
        count += at < end and at + len(token) > begin and end > begin
        at += len(token)
    return data[begin:end].decode(), data[end + len(b"</think>") :].decode(), count


@pytest.mark.full
@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(sorted(VOCABULARIES)), answer=st.sampled_from(sorted(ANSWERS)), most=st.integers(0, 12),
    seed=st.integers(0, 10_000), begun=st.booleans(), bias=st.sampled_from([None, b"<", "é".encode(), b"\xe2", b"</"]),
    budget=st.integers(30, 80),
)  # fmt: skip
def test_any_budget_is_kept_and_the_output_is_valid(
    name: str, answer: str, most: int, seed: int, begun: bool, bias: bytes | None, budget: int
) -> None:
    """Tokens that cut characters and marks are made likely, so that the budget ends within them."""
    ids = [token for token, data in enumerate(VOCABULARIES[name].tokens) if bias is not None and data == bias]
    options: dict[str, Any] = {"logit_bias": dict.fromkeys(ids, 6.0), "max_new_tokens": budget}
    prompt, constraint = "Hi<think>" if begun else "Hi", think(ANSWERS[answer], max_think_tokens=most)
    result = written(name, prompt, constraint, seed, **options)
    _, rest, count = taken_apart(name, result, begun)
    assert count <= most
    if answer == "choice":
        assert result.value in ("yes", "no") and rest.strip() == result.value
    elif answer == "schema":
        floats = json.loads(json.dumps(result.value, default=float))  # numbers that no float is are decimals
        assert json.loads(rest) == floats and type(result.value["a"]) is int
    else:
        assert rest.endswith(result.value) and len(result.value.strip(" ")) == 2
    drafted = written(name, prompt, constraint, seed, draft="ngram", **options)
    assert drafted.token_ids == result.token_ids and drafted.finish_reason == result.finish_reason


def test_where_thinking_is_shorter_the_budget_changes_nothing() -> None:
    options: dict[str, Any] = {"max_new_tokens": 400, "logit_bias": {258: 6.0}}  # the closing mark
    for seed in range(12):
        free = written("special", "Hi", think(ANSWERS["choice"]), seed, **options)
        _, _, count = taken_apart("special", free, False)
        same = written("special", "Hi", think(ANSWERS["choice"], max_think_tokens=count + 4), seed, **options)
        assert same.token_ids == free.token_ids and same.finish_reason == free.finish_reason == "stop"


def test_a_thinking_that_was_closed_is_no_output_that_was_cut() -> None:
    result = written("bytes", "Hi", think(ANSWERS["choice"], max_think_tokens=3), 1)
    assert result.finish_reason == "stop" and taken_apart("bytes", result, False)[2] == 3
    tight = written("bytes", "Hi", think(ANSWERS["choice"]), 1, max_new_tokens=40)
    assert tight.finish_reason == "length" and len(tight.token_ids) <= 40
    with pytest.raises(IncompleteOutputError):
        written("bytes", "Hi", think(ANSWERS["choice"], max_think_tokens=3), 1, max_new_tokens=10)


def test_values_and_partial_values() -> None:
    constraint = think({"type": "object"}, max_think_tokens=9)
    assert constraint.parse('<think>a{}</think>\n\n{"b": 1}') == constraint.parse('a</think>{"b": 1}') == {"b": 1}
    assert constraint.parse_partial("<think>{") is None and constraint.parse_partial('x</think> {"b": 1 ') == {"b": 1}
    assert think().parse("<think>a</think>\nb") == "b" and think(ANSWERS["blank"]).parse("</think>   ab") == "ab"
    may = Thinking(ANSWERS["choice"], "may")
    assert may.parse("yes") == "yes" and may.parse("<think></think>yes") == "yes" and may.parse_partial("<th") is None


def test_free_text_behind_thinking() -> None:
    result = written("pieces", "Hi", think(max_think_tokens=2), 3, max_new_tokens=40)
    assert taken_apart("pieces", result, False)[2] <= 2 and result.text.endswith(result.value)


def test_streams_batches_and_the_engine_keep_it() -> None:
    vocabulary = VOCABULARIES["pieces"]
    constraint = think(ANSWERS["choice"], max_think_tokens=4)

    def generator() -> Generator:
        return Generator(TinyModel(vocabulary.size, scale=3.0), Template(vocabulary), vocabulary=vocabulary)

    options: dict[str, Any] = {"temperature": 1.0, "seed": 5, "max_new_tokens": 60, "schema_in_prompt": False}
    single = generator().generate("Hi", constraint, **options)
    streamed = list(generator().stream("Hi", constraint, **options))[-1].result
    batched = generator().batch(["Hi", "Ho<think>"], constraint, **options)
    assert streamed is not None and single.token_ids == streamed.token_ids == batched[0].token_ids
    assert taken_apart("pieces", batched[1], True)[2] <= 4

    async def ask() -> GenerationResult:
        engine = AsyncEngine(generator())
        try:
            return await engine.agenerate("Hi", constraint, **options)
        finally:
            engine.close()

    assert asyncio.run(ask()).token_ids == single.token_ids


def test_what_cannot_be_kept_is_refused() -> None:
    vocabulary = VOCABULARIES["bytes"]
    generator = Generator(TinyModel(vocabulary.size), Template(vocabulary), vocabulary=vocabulary)
    budgeted = think(ANSWERS["choice"], max_think_tokens=1)
    for use in (
        lambda: generator.sample("Hi", budgeted, 1),
        lambda: budgeted.compile(vocabulary),
        lambda: structgen.tag_dispatch({"<a>": budgeted}).compile(vocabulary),
    ):
        with pytest.raises(ConstraintError, match="max_think_tokens"):
            use()
    with pytest.raises(OptionsError, match="max_think_tokens"):
        structgen.think(max_think_tokens=-1)


def test_blanks_that_begin_an_answer_are_shown_while_it_is_written() -> None:
    for pattern, shown in ((r" a+", " aaa"), (r"\s*a+", "aaa"), (r"  ?a+|b", " aaa")):
        constraint = think(structgen.regex(pattern))
        text = f"<think>x</think>\n{' ' if pattern[0] == ' ' else '  '}aaa"
        seen = [constraint.parse_partial(text[:length]) for length in range(len(text) + 1)]
        assert constraint.parse(text) == seen[-1] == shown
        assert all(shown.startswith(part) for part in seen if part is not None)
