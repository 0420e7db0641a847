"""Outputs that an engine draws from masks within a budget: whole and valid, judged by python-jsonschema
and by all texts."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CompletionTooLongError, StructgenError
from structgen.generation.decoding.closing_budget import closing_tokens
from structgen.integrations.budgets import BudgetedMask
from structgen.integrations.engine_matcher import RequestMatcher
from structgen.integrations.engine_settings import OnBudget
from tests.core.json_schema.random_schemas import Schemas
from tests.integrations.engine_world import unpacked
from tests.many import cases

WORDS = [
    b'": ',
    b'", "',
    b'{"',
    b'"}',
    b", ",
    b"abc",
    b"ab",
    b"true",
    b"null",
    b"[[",
    b"]]",
    b"10",
    b"the ",
    "é".encode(),
]
LETTERS = Vocabulary([*(bytes([byte]) for byte in range(256)), *WORDS, None], eos_token_ids=256 + len(WORDS))
END = LETTERS.eos_token_ids[0]


def least(grammar: Any) -> int | None:
    """Tokens of the shortest output known."""
    try:
        found = closing_tokens(grammar.vocabulary).fewest(grammar.matcher().shortest_completion())
    except CompletionTooLongError:
        return None
    return None if found is None else len(found)


def budgeted(grammar: Any, total: int) -> RequestMatcher:
    request = RequestMatcher(grammar)
    request.budget = BudgetedMask(request.matcher, lambda taken: total)
    return request


def mask_of(request: RequestMatcher) -> Any:
    bitmask = allocate_token_bitmask(1, request.matcher.grammar.vocabulary.size)
    request.fill(bitmask, 0)
    return np.flatnonzero(unpacked(bitmask[0]))


def written(request: RequestMatcher, total: int, rng: random.Random, drafts: bool = False) -> bytes:
    """A text drawn from the masks, the longer tokens rather; with drafts, of which some are rolled back."""
    tokens: list[int] = []
    while True:
        allowed = [int(token) for token in mask_of(request)]
        assert allowed, tokens
        going_on = [token for token in allowed if token != END]
        token = rng.choice(going_on) if going_on and rng.random() < 0.95 else rng.choice(allowed)
        if drafts and rng.random() < 0.4:
            depth = 0
            while depth < 4 and not request.matcher.is_terminated():
                assert request.accept(int(rng.choice(mask_of(request))))
                depth += 1
            request.rollback(depth)
        assert request.accept(token)
        tokens.append(token)
        assert len(tokens) <= total
        if token == END:
            return request.matcher.grammar.vocabulary.decode(tokens)


def check_schema(seed: int, drafts: bool = False) -> int:
    rng = random.Random(seed)
    schema = Schemas("draft2020-12", seed, without=("dependencies",)).root()  # which the judge does not read there
    try:
        grammar = structgen.compile_json_schema(schema, LETTERS)
    except StructgenError:
        return 0
    fewest = least(grammar)
    if fewest is None or fewest > 400:
        return 0
    judge = jsonschema.Draft202012Validator(schema)
    for total in sorted({fewest + 1, fewest + 2, fewest + 5, 3 * fewest // 2 + 1, 4 * fewest + 1}):
        request = budgeted(grammar, total)
        text = written(request, total, rng, drafts)
        assert judge.is_valid(json.loads(text)), (schema, total, text)
        assert request.budget is not None and request.budget.lost == 0, (schema, total, text)
    return 1


@pytest.mark.parametrize("seed", range(3))
def test_any_budget_from_the_least_on_is_enough(seed: int) -> None:
    """Random schemas: a token more than the shortest output takes, a few, half again, four times."""
    assert sum(check_schema(1000 * seed + number) for number in range(6))


@pytest.mark.full
@pytest.mark.parametrize("seed", cases(20, 3))
def test_any_budget_of_many_schemas(seed: int) -> None:
    assert sum(check_schema(5000 + 50 * seed + number, drafts=number % 2 == 1) for number in range(50)) > 20


@pytest.mark.parametrize("seed", range(2))
def test_under_drafts(seed: int) -> None:
    assert sum(check_schema(300 * seed + number, drafts=True) for number in range(5))


TINY = Vocabulary([b"a", b"b", b"ab", b"ba", b"bb", None], eos_token_ids=5)
BYTES = Vocabulary([b"a", b"b", None, None, None, None], eos_token_ids=5)
PATTERNS = ["a{0,4}b", "(ab|ba)*", "a(bb)*|b{3}", "(a|bb)+b", "(abb|b)*a?"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("total", (2, 3, 5))
@pytest.mark.parametrize("vocabulary", [TINY, BYTES], ids=["words", "bytes"])
def test_masks_are_those_of_all_texts(pattern: str, total: int, vocabulary: Vocabulary) -> None:
    """With a tiny vocabulary: a token stays only if some list of tokens with it is whole within the budget. Where
    tokens are bytes, all of those do; else the shortest text is looked at, which may
    take more tokens than a longer one."""
    grammar = structgen.compile_regex(pattern, vocabulary)
    whole = set()
    for count in range(total):
        for tokens in itertools.product(range(5), repeat=count):
            walker = grammar.matcher()
            if (
                all(vocabulary.tokens[token] for token in tokens)
                and all(walker.accept_token(token) for token in tokens)
                and walker.is_accepting()
            ):
                whole.add(tokens)
    fewest = least(grammar)
    assert fewest is not None
    if fewest >= total:
        return
    for tokens in whole:
        request = budgeted(grammar, total)
        for number, token in enumerate((*tokens, 5)):
            begun = tokens[:number]
            wanted = {text[number] for text in whole if text[:number] == begun and len(text) > number}
            wanted |= {5} if begun in whole else set()
            found = set(mask_of(request).tolist())
            assert found and (found == wanted if vocabulary is BYTES else found <= wanted), (begun, found, wanted)
            assert request.accept(token)
            if token not in found:
                break


def test_far_from_the_end_masks_are_the_matchers() -> None:
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"abc": {"type": "string"}}, "required": ["abc"]},
    }
    grammar = structgen.compile_json_schema(schema, LETTERS)
    for seed in range(5):
        rng = random.Random(seed)
        request, plain = budgeted(grammar, 5000), RequestMatcher(grammar)
        for _ in range(400):
            allowed = mask_of(request)
            assert (allowed == mask_of(plain)).all()
            token = int(rng.choice(allowed))
            assert request.accept(token) and plain.accept(token)
            if token == END:
                break


@pytest.mark.parametrize("mode, count", [("close", 5), ("length", 6)])
def test_the_end_may_take_the_last_token(mode: OnBudget, count: int) -> None:
    """Six tokens: five and the end, or six, of which the engine says "length"."""
    grammar = structgen.compile_json_schema({"type": "string"}, LETTERS)
    request = RequestMatcher(grammar)
    request.budget = BudgetedMask(request.matcher, lambda taken: 6, mode)
    tokens: list[int] = []
    while going_on := [int(token) for token in mask_of(request) if token != END]:
        tokens.append(going_on[-1])
        assert request.accept(tokens[-1])
    assert len(tokens) == count and isinstance(json.loads(LETTERS.decode(tokens)), str)


def test_a_budget_that_nothing_fits_in_leaves_masks_as_they_are() -> None:
    grammar = structgen.compile_json_schema({"const": "a long text"}, LETTERS)
    request, plain = budgeted(grammar, 3), RequestMatcher(grammar)
    assert (mask_of(request) == mask_of(plain)).all()
    assert request.budget is not None and request.budget.lost == 1


def test_drafts_end_where_the_output_could_not_be_closed_any_more() -> None:
    grammar = structgen.compile_json_schema({"type": "array", "items": {"const": "ab"}}, LETTERS)
    tokens = [LETTERS.tokens.index(text) for text in (b"[", b'"', b"ab", b'", "', b"ab", b'"', b"]")]
    for total in range(5, 10):
        request, kept = budgeted(grammar, total), []
        for token in tokens:  # by the masks, one after the other
            if token not in mask_of(request):
                break
            kept.append(token)
            assert request.accept(token)
        assert budgeted(grammar, total).valid_prefix(tokens) == kept
