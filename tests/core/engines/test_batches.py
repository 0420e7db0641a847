"""Batches of matchers of different engines: what each does alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import BitmaskError, MatcherStateError, TokenError
from tests.core.engines.fixed_texts import FixedTexts

VOCABULARY = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
GRAMMARS: list[Any] = [
    structgen.compile_json_schema({"type": ["integer", "boolean"]}, VOCABULARY),
    structgen.compile_lark('start: "1"+ | "true"', VOCABULARY),
    structgen.compile_lark('start: "1"+ | "true"', VOCABULARY, lexer="contextual"),
    structgen.compile_tag_dispatch({("1", "2"): structgen.compile_regex("[1t]+", VOCABULARY)}, VOCABULARY),
    FixedTexts((b"111", b"true"), VOCABULARY),
]


def batch() -> list[Any]:
    """A matcher of each grammar and a row without one."""
    return [*(grammar.matcher() for grammar in GRAMMARS), None]


def masks(matchers: list[Any]) -> list[list[int]]:
    bitmask = structgen.allocate_token_bitmask(len(matchers), VOCABULARY.size)
    structgen.fill_next_token_bitmasks(matchers, bitmask)
    return bitmask.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_each_row_as_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    together, alone = batch(), batch()
    steps = [0] * len(together)
    for _ in range(12):
        if rng.random() < 0.6:
            tokens = rng.choice([*b"1true2", 256], len(together))
            took = structgen.batch_accept_token(together, tokens)
            assert took == [m is None or m.accept_token(int(t)) for m, t in zip(alone, tokens, strict=True)]
        elif rng.random() < 0.6:
            texts = [[b"1", b"tr", b"ue", b"12", b""][i] for i in rng.integers(0, 5, len(together))]
            took = structgen.batch_accept_bytes(together, texts)
            assert took == [m is None or m.accept_bytes(t) for m, t in zip(alone, texts, strict=True)]
        else:
            took = [False] * len(together)
            counts = [int(rng.integers(0, each + 1)) for each in steps]
            structgen.batch_rollback(together, counts)
            for matcher, count in zip(alone, counts, strict=True):
                if matcher is not None:
                    matcher.rollback(count)
            steps = [each - count for each, count in zip(steps, counts, strict=True)]
        assert all(type(each) is bool for each in took) and took[-1] in (True, False)
        steps = [each + one for each, one in zip(steps, took, strict=True)]
        assert masks(together) == masks(alone)


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_a_batch_are_steps_and_masks(seed: int) -> None:
    """Refused tokens, ends and rows without a matcher among them; a large batch takes several threads."""
    rng = np.random.default_rng(seed)
    together, alone = batch() * 30, batch() * 30
    together, alone = ([None if m is None else m.fork() for m in each] for each in (together, alone))
    rows = structgen.allocate_token_bitmask(len(together), VOCABULARY.size)
    wanted = rows.copy()
    for _ in range(8):
        tokens = rng.choice([*b"1true2", 256], len(together))
        took = structgen.batch_advance_and_fill(together, tokens, rows)
        for place, (matcher, token) in enumerate(zip(alone, tokens.tolist(), strict=True)):
            accepted = matcher is None or matcher.accept_token(token)
            assert took[place] is bool(accepted)
            if accepted and matcher is not None:
                matcher.fill_next_token_bitmask(wanted, place)
        assert (rows == wanted).all()
        assert masks(together) == masks(alone)


def test_bad_steps_move_no_matcher() -> None:
    matchers = batch()
    before, rows = masks(matchers), structgen.allocate_token_bitmask(6, VOCABULARY.size)
    with pytest.raises(TokenError):
        structgen.batch_advance_and_fill(matchers, [49] * 4 + [257, 49], rows)
    bad: Any
    for bad in (rows[:4], rows[:, :-1], rows.astype(np.int64), np.zeros((6, 99), np.int32)):
        with pytest.raises(BitmaskError):
            structgen.batch_advance_and_fill(matchers, [49] * 6, bad)
    with pytest.raises(BitmaskError, match="twice"):
        structgen.batch_advance_and_fill([matchers[0]] * 2, [49] * 2, rows)
    assert masks(matchers) == before and (rows == -1).all()
    assert structgen.batch_advance_and_fill([], [], rows) == []


def test_one_count_for_all() -> None:
    matchers = batch()
    before = masks(matchers)
    assert all(structgen.batch_accept_bytes(matchers, [b"1"] * 6)) and masks(matchers) != before
    structgen.batch_rollback(matchers)
    assert masks(matchers) == before
    assert structgen.batch_accept_token([], []) == structgen.batch_accept_bytes([], []) == []
    structgen.batch_rollback([], 3)


@pytest.mark.parametrize(
    "tokens", [[49] * 5, [49] * 7, [49] * 4 + [257, 49], [49] * 4 + [-1, 49], [49.0] * 6, [[49] * 6], None]
)
def test_bad_tokens_move_no_matcher(tokens: Any) -> None:
    matchers = batch()
    before = masks(matchers)
    with pytest.raises(TokenError):
        structgen.batch_accept_token(matchers, tokens)
    assert masks(matchers) == before
    with pytest.raises(MatcherStateError):
        matchers[0].rollback()


def test_a_row_without_a_matcher_takes_any_id() -> None:
    assert structgen.batch_accept_token(batch(), [49] * 5 + [10**6]) == [True] * 6


def test_bad_texts_and_counts_move_no_matcher() -> None:
    matchers = batch()
    assert all(structgen.batch_accept_bytes(matchers, [b"1"] * 6))
    before = masks(matchers)
    with pytest.raises(TokenError, match="got 2 texts for 6 matchers"):
        structgen.batch_accept_bytes(matchers, [b"1", b"1"])
    for counts in ([1] * 5, [0, 0, 0, 0, -1, 0], -1, 0.5, [0.5] * 6, [[1], [1, 2]], None):
        with pytest.raises(MatcherStateError, match=r"of 6 matchers|one-dimensional integers"):
            structgen.batch_rollback(matchers, counts)
    assert masks(matchers) == before
    with pytest.raises(MatcherStateError, match="1 were accepted"):
        structgen.batch_rollback(matchers, [0, 0, 2, 1, 1, 0])
    assert masks(matchers) == before  # those behind have not moved
