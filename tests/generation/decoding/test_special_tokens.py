"""Outputs with special tokens: plain, with drafts, in batches, streamed, closed in time, and exact samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from structgen import Generator, SpecialToken, TagPart, lark, tag_dispatch
from structgen.core.constraints.base import Constraint
from structgen.core.engines.laws import mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import masked_log_probs
from structgen.generation.target import PrefixStore, Sampler
from tests.fakes import CharTokenizer

pytest.importorskip("lark")

NAMES = {"<think>": 129, "</think>": 130, "<|call|>": 131, "<tool>": 132, "<|end|>": 0}
TOKENS = [None, *(bytes([byte]) for byte in range(128)), None, None, None, b"<tool>", b"ab", b"12", b"</", b'":']
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=[0, 131], special_token_ids=[129, 130], special_tokens=NAMES)
THINK, UNTHINK, CALL, TOOL = (SpecialToken(name) for name in list(NAMES)[:4])


def model(seed: int = 0) -> TinyModel:
    bias = np.zeros(VOCABULARY.size)
    bias[[0, 129, 130, 131, 132]] = 3
    return TinyModel(VOCABULARY.size, seed=seed, bias=bias, order=3)


def generator(seed: int = 0, **options: Any) -> Generator:
    return Generator(model(seed), CharTokenizer(eos=1), vocabulary=VOCABULARY, **options)


CONSTRAINTS: dict[str, Constraint] = {
    "tags": tag_dispatch({(TOOL, CALL): {"type": "integer"}, (THINK, UNTHINK): lark("start: /[ab]+/")}, min_uses=1),
    "lark": lark('start: (<think> <[^130]>* </think>)? %json {"type": "array", "items": {"type": "integer"}} <|call|>'),
    "forced": lark('start: <think> "ab" </think> "abab12" (<|call|> | <tool>) "12" <tool>'),
    "nested": lark('start: "a" | <think> start </think>'),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_drafts_and_batches_write_what_the_plain_loop_writes(name: str) -> None:
    constraint = CONSTRAINTS[name]
    options: dict[str, Any] = {"max_new_tokens": 24, "temperature": 1.0, "schema_in_prompt": False}
    grammar = constraint.compile(VOCABULARY)
    plain = [generator().generate("Hi", constraint, seed=seed, **options) for seed in range(6)]
    for seed, result in enumerate(plain):
        matcher = grammar.matcher()
        assert all(map(matcher.accept_token, result.token_ids)) and matcher.is_accepting(), result.text
        assert grammar.vocabulary.rendered(grammar.vocabulary.decode(result.token_ids)).decode() == result.text
        for draft in ("forced", "auto"):
            assert generator(draft=draft).generate("Hi", constraint, seed=seed, **options).token_ids == result.token_ids
        *_, last = generator().stream("Hi", constraint, seed=seed, **options)
        assert last.text == result.text and constraint.parse(result.text) == result.value
    batch = generator().batch(["Hi"] * 6, constraint, seed=0, **options)
    assert [row.token_ids for row in batch] == [result.token_ids for result in plain]


def test_text_shows_names_and_values_are_taken_apart_by_them() -> None:
    for seed in range(20):
        result = generator(seed).generate("Hi", CONSTRAINTS["tags"], max_new_tokens=30, schema_in_prompt=False)
        parts = [piece for piece in result.value if isinstance(piece, TagPart)]
        assert len(parts) == sum(token in (129, 132) for token in result.token_ids) >= 1
        assert {part.trigger for part in parts} <= {"<think>", "<tool>"} and parts[0].trigger in result.text


def test_streams_show_whole_names() -> None:
    shown = [event.delta for event in generator().stream("Hi", CONSTRAINTS["forced"], schema_in_prompt=False)]
    assert "".join(shown).startswith("<think>ab</think>abab12")
    assert not any("\ufffd" in delta for delta in shown)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_outputs_close_within_their_budget(name: str) -> None:
    """One token less than the least is refused before anything is written; from there on all is valid."""
    constraint, fits = CONSTRAINTS[name], False
    for budget in range(1, 16):
        try:
            result = generator(2).generate("Hi", constraint, max_new_tokens=budget, temperature=1.0, seed=budget)
        except IncompleteOutputError:
            assert not fits
            continue
        fits = True
        matcher = constraint.compile(VOCABULARY).matcher()
        assert len(result.token_ids) <= budget
        assert all(map(matcher.accept_token, result.token_ids)) and matcher.is_accepting()
    assert fits


def test_forced_special_tokens_ask_no_model() -> None:
    result = generator().generate("Hi", lark('start: <think> "x" </think> <|call|>'), schema_in_prompt=False)
    assert list(result.token_ids) == [129, 121, 130, 131] and result.text == "<think>x</think><|call|>"
    assert result.stats.forced_tokens == 4 and result.finish_reason == "stop"


def _mass(tiny: TinyModel, matcher: Any, history: list[int], left: int, ends: tuple[int, ...]) -> float:
    """The probability of all texts behind a prefix, by enumeration."""
    log_probs = masked_log_probs(tiny.prefill([history])[0][0], None)
    total = sum(math.exp(log_probs[end]) for end in ends) if matcher.is_accepting() else 0.0
    for token in np.flatnonzero(mask_of(matcher)).tolist() if left else ():
        if token not in ends:
            assert matcher.accept_token(token)
            total += math.exp(log_probs[token]) * _mass(tiny, matcher, [*history, token], left - 1, ends)
            matcher.rollback(1)
    return total


def test_samples_of_the_target_are_exact() -> None:
    constraint = lark('start: <think> ("a" | "ab" | "b" <|call|>) </think> | "b" <tool> | <[131]> "12"?')
    gen = generator(3)
    target = gen.target("Hi", constraint, max_new_tokens=5, schema_in_prompt=False)
    store = PrefixStore(target)
    store.expand_best_first(1000)
    run = Sampler(store, "exact", seed=1).draw(60)
    assert target.ends == (0,)
    mass = _mass(model(3), target.matcher(), list(target.prompt_ids), 5, (0,))
    assert run.z_bounds[0] == pytest.approx(mass, rel=1e-6) and run.z_bounds[1] == pytest.approx(mass, rel=1e-6)
    texts = {"<think>a</think>", "<think>ab</think>", "<think>b<|call|></think>", "b<tool>", "<|call|>", "<|call|>12"}
    assert set(run.texts) <= texts
