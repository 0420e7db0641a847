"""Vocabularies that lack bytes: every state that tokens lead to is left by a token, or the text may stop there."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from structgen.core.compilers import compile_choice, compile_gbnf, compile_lark, compile_regex
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.spelling import missing_characters
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError


def vocabulary(*texts: str | bytes) -> Vocabulary:
    tokens = [text if isinstance(text, bytes) else text.encode() for text in texts]
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


def walk(grammar: Grammar, rng: random.Random, steps: int = 12) -> bool:
    """A random walk by tokens; whether no state on it is a dead end."""
    words = grammar.vocabulary
    matcher, bitmask = grammar.matcher(), allocate_token_bitmask(1, words.size)
    for _ in range(steps):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
        if not len(allowed):
            return False
        token = int(rng.choice(allowed.tolist()))
        assert matcher.accept_token(token)
        if token in words.eos_token_ids:
            break
    return True


@pytest.mark.parametrize("lexer", ["dynamic", "contextual"])
def test_a_language_that_cannot_be_spelled(lexer: str) -> None:
    words = vocabulary("a", "b", "ab")
    for compile_one in (
        lambda: compile_regex("a,b", words),
        lambda: compile_gbnf('root ::= "a" root? ","', words),
        lambda: compile_choice(["a,", ","], words),
        lambda: compile_lark('start: "a" start* ","', words, lexer=lexer),
    ):
        with pytest.raises(EmptyLanguageError, match=r"0x2C \(','\)"):
            compile_one()


def test_what_cannot_be_finished_is_not_begun() -> None:
    words = vocabulary("a", "b", "c", "é", "b,")
    for grammar, taken in (
        (compile_regex("a(b|,c)|bb,", words), ["a", "b"]),
        (compile_regex("a(b|,c)|bc,", words), ["a"]),
        (compile_gbnf('root ::= "a" x | "b"\nx ::= "," | "c" x? ","', words), ["b"]),
        (compile_lark('start: "a" ("b" "," | "c") | "b" ","', words), ["a", "b,"]),
        (compile_lark('start: "a" ("b" "," | "c") | "b" ","', words, lexer="contextual"), ["a"]),
        (compile_regex("[é]{2}", words), ["é"]),
        (compile_lark("start: A\nA: /[éü]+c/", words, lexer="contextual"), ["é"]),
    ):
        matcher, bitmask = grammar.matcher(), allocate_token_bitmask(1, words.size)
        matcher.fill_next_token_bitmask(bitmask)
        allowed = [words.tokens[t].decode() for t in range(words.size) if bitmask[0, 0] >> t & 1]
        assert allowed == taken, grammar
    with pytest.raises(ConstraintError):
        compile_regex("ü", words)


@pytest.mark.parametrize("seed", range(60))
def test_no_dead_ends(seed: int) -> None:
    rng = random.Random(seed)
    singles = rng.sample("abc,", rng.randint(1, 3)) + rng.choices(["é", "a,", ",b", "bc", "cé"], k=2)
    words = vocabulary(*singles)
    pieces = ["a", "b", "c", ",", "é", "[^a]", "[bc]+", "(a,)?", "(b|,)", "é*"]
    pattern = "|".join("".join(rng.choices(pieces, k=rng.randint(1, 4))) for _ in range(2))
    tokens = " | ".join(f"/{p}/" for p in rng.sample(["a", "b", ",", "é", "[bc]", "a,", "c+"], 3))
    source = (
        f"start: x (x | y)* y?\nx: {tokens}\ny: {rng.choice(['x y', 'x', ''])} {rng.choice(['/,/', '/b/', '/cé/'])}\n"
    )
    for compile_one in (
        lambda: compile_regex(pattern, words),
        lambda: compile_lark(source, words),
        lambda: compile_lark(source, words, lexer="contextual"),
    ):
        try:
            grammar = compile_one()
        except ConstraintError:
            continue
        for _ in range(8):
            assert walk(grammar, rng), (singles, pattern, source)


def test_vocabularies_of_models_lose_nothing() -> None:
    """All bytes, or all but those of no UTF-8, or without rare ones that no token has: the automata stay."""
    rare = {0x04, 0x06, 0xF1, 0xF2}
    whole = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
    utf8 = vocabulary(*(bytes([b]) for b in range(256) if b not in (0xC0, 0xC1, *range(0xF5, 256))))
    model = vocabulary(*(bytes([b]) for b in range(256) if b not in rare))
    for pattern, words in itertools.product([".*", "[^a]+|é{2}", r'"(\w| )*"'], (whole, utf8, model)):
        grammar = compile_regex(pattern, words)
        assert grammar.source.terminals[0].dfa.digest == compile_regex(pattern, whole).source.terminals[0].dfa.digest
    assert not missing_characters(whole) and not missing_characters(utf8)
    assert missing_characters(model) == ((4, 4), (6, 6), (0x40000, 0xBFFFF))
    assert missing_characters(vocabulary("a", "é")) == ((0, 96), (98, 232), (234, 0xD7FF), (0xE000, 0x10FFFF))


@pytest.mark.parametrize("seed", range(80))
def test_no_dead_ends_inside_characters(seed: int) -> None:
    """Vocabularies with pieces of characters and some of their bytes: whatever is begun can be finished."""
    rng = random.Random(f"pieces {seed}")
    characters = [c.encode() for c in "😀😁éÀ€"]
    pieces = [data[i:j] for data in characters for i in range(len(data)) for j in range(i + 1, len(data) + 1)]
    words = vocabulary(*dict.fromkeys([b"a", b"b", *rng.sample(pieces, rng.randint(3, 14)), "é€".encode()[1:4]]))
    for source in ('("a" | "ab" | "😀")* "b"', '[😀😁é]+ "a"?', '"€" | "É" | "a" [À-é]* "b"', '[^a]{1,3} | "a" root'):
        for compile_one in (
            lambda source=source: compile_gbnf("root ::= " + source, words),
            lambda source=source: compile_lark(f"start: A\nA: /{_SAME[source]}/", words, lexer="contextual"),
        ):
            try:
                grammar = compile_one()
            except ConstraintError:
                continue
            for _ in range(8):
                assert walk(grammar, rng), (words.tokens, source)


_SAME = {
    '("a" | "ab" | "😀")* "b"': "(a|ab|😀)*b",
    '[😀😁é]+ "a"?': "[😀😁é]+a?",
    '"€" | "É" | "a" [À-é]* "b"': "€|É|a[À-é]*b",
    '[^a]{1,3} | "a" root': "a*[^a]{1,3}",
}


def test_characters_that_are_tokens_are_kept_where_no_token_ends_inside_them() -> None:
    whole = vocabulary("a", "😀", "é", b"\xf0\x9f")
    assert compile_regex("[😀é]", vocabulary("a", "😀", "é")).matcher().accept_bytes("😀".encode())
    with pytest.raises(EmptyLanguageError):
        compile_lark("start: /😀/", whole, lexer="contextual")
    for lexer, allowed in (("dynamic", 0b110), ("contextual", 0b100)):
        matcher = compile_lark("start: /[😀é]+/", whole, lexer=lexer).matcher()
        bitmask = allocate_token_bitmask(1, whole.size)
        matcher.fill_next_token_bitmask(bitmask)
        assert bitmask[0, 0] & 0xF == allowed
