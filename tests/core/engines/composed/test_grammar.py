"""Embedded grammars: random grammars around random contents against the inlined grammar, token by token."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.compilers import compile_gbnf, compile_regex
from structgen.core.engines.composed import composition, masks
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import empty
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, MatcherStateError, TokenError
from structgen.options import JsonOptions
from tests.core.engines.composed.oracle import allowed, check_walks, inlined, remembered, vocabulary

COMPACT = JsonOptions(whitespace="compact")
# Schemas and expressions (ECMA) with the expression of the same language.
CONTENTS: list[tuple[Any, str]] = [
    ({"type": "integer", "minimum": 1, "maximum": 12}, "[1-9]|1[0-2]"),
    ({"enum": ["a", "ab", [1]]}, r'"a"|"ab"|\[1\]'),
    ({"type": "array", "items": {"const": 1}, "maxItems": 2}, r"\[(1(,1)?)?\]"),
    ({"type": "string", "pattern": "^[ab]*$"}, '"[ab]*"'),
    ("a*b?", "a*b?"),
    ("(ab)+", "(ab)+"),
    ("1|11|21", "1|11|21"),
    ("", ""),
    ("[^1]*", "[^1]*"),
    ("[^a]+1", "[^a]+1"),
]
LETTERS = 'ab12[],"'


def compiled(content: Any, words: Vocabulary) -> Grammar:
    if isinstance(content, str):
        return compile_regex(content, words, "ecma")
    return compile_json_schema(content, words, COMPACT)


def random_grammar(rng: random.Random) -> ContextFreeGrammar:
    """Terminals 0 to 3 are texts, 4 and 5 embedded; up to three nonterminals with up to three rules each."""
    patterns = rng.sample(["a", "b", "1", "[ab]+", "a+", '"', ",", "[^a]", "a[12]*", "1+,"], 4)
    terminals = [Terminal(f"T{i}", full_match_dfa(pattern), pattern) for i, pattern in enumerate(patterns)]
    terminals += [Terminal("X", empty()), Terminal("Y", empty())]
    count = rng.randint(1, 3)
    rules = []
    for lhs in range(count):
        for _ in range(rng.randint(1, 3)):
            rhs = [rng.choice([~4, ~5, *(~t for t in range(4)), *range(count)]) for _ in range(rng.randint(0, 3))]
            rules.append(Rule(lhs, tuple(rhs)))
    rules.append(Rule(rng.randrange(count), (~4,)))
    return ContextFreeGrammar(
        tuple(terminals), tuple("stu"[:count]), tuple(rules), 0, (rng.randrange(4),) if rng.random() < 0.2 else ()
    )


@pytest.mark.parametrize("seed", range(54))
def test_random_grammars(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(masks, "MANY", 0 if seed % 2 else masks.MANY)
    monkeypatch.setattr(composition, "WIDE", -1 if seed % 3 == 0 else composition.WIDE)
    words = vocabulary(LETTERS, rng)
    source = random_grammar(rng)
    (x, x_pattern), (y, y_pattern) = rng.choices(CONTENTS, k=2)
    try:
        grammar = embed(source, {4: compiled(x, words), 5: compiled(y, words)})
    except EmptyLanguageError:
        assert not inlined(source, {4: x_pattern, 5: y_pattern}).run(b"")[0]
        return
    check_walks(grammar, remembered(inlined(source, {4: x_pattern, 5: y_pattern}).run), rng)


def lines_of(content: str) -> ContextFreeGrammar:
    """``s: X | s X``, with a terminal that is not used."""
    terminals = (Terminal("X", empty()), Terminal("SPACE", full_match_dfa(content), content))
    return ContextFreeGrammar(terminals, ("s",), (Rule(0, (~0,)), Rule(0, (0, ~0))), 0)


def test_embedded_in_embedded() -> None:
    """``((ab)+ c)+`` as a composed grammar inside another."""
    rng = random.Random(1)
    words = vocabulary("abc", rng)
    pair = ContextFreeGrammar(
        (Terminal("X", empty()), Terminal("C", full_match_dfa("c"), "c")), ("s",), (Rule(0, (~0, ~1)),), 0
    )
    inner = embed(pair, {0: compile_regex("(ab)+", words)})
    source = lines_of("c")
    judge = remembered(inlined(source, {0: "(ab)+c"}).run)
    check_walks(embed(source, {0: inner}), judge, rng, walks=10)


@pytest.mark.full
def test_every_split_counts_in_long_texts() -> None:
    """Numbers one after the other: 2 ** n splits, few branches."""
    words = Vocabulary([bytes([byte]) for byte in range(256)] + [b"123456789" * 3, None], eos_token_ids=257)
    grammar = embed(lines_of(" "), {0: compile_json_schema({"type": "integer", "minimum": 1}, words)})
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"12" * 200) and all(matcher.accept_token(256) for _ in range(50))
    assert matcher.is_accepting() and not any(matcher.stats.values())
    assert not matcher.accept_bytes(b"1" * 40 + b"x" + b"1" * 20) and matcher.is_accepting()
    matcher.rollback(51)
    assert not matcher.is_accepting()
    with pytest.raises(MatcherStateError):
        matcher.rollback(1)


def test_nested_json_keeps_its_frames_through_forks() -> None:
    rng = random.Random(2)
    words = vocabulary('[]{}:"ab,1 ', rng, longer=60)
    grammar = embed(lines_of(" "), {0: compile_json_schema({"type": ["array", "object"]}, words, COMPACT)})
    plain = compile_gbnf(
        r"""root ::= (array | object)+
        array ::= "[" (value ("," value)*)? "]"
        object ::= "{" (string ":" value ("," string ":" value)*)? "}"
        value ::= array | object | string | "0" | "1" "1"*
        string ::= "\"" [^"\\\x00-\x1f]* "\""
        """,
        words,
    )
    for _ in range(6):
        matcher, other = grammar.matcher(), plain.matcher()
        stack = [(matcher, other)]
        for _ in range(25):
            # keys of an object must differ in JSON: only what it allows is compared
            both = sorted(allowed(matcher))
            assert set(both) <= allowed(other)
            token = rng.choice(both)
            stack.append((matcher.fork(), other.fork()))
            if not words.tokens[token]:
                break
            assert matcher.accept_token(token) and other.accept_token(token)
        for fork, twin in stack:
            assert allowed(fork) <= allowed(twin)
            rest = fork.shortest_completion()
            assert twin.accept_bytes(rest) and twin.is_accepting()


def test_end_of_sequence_and_bad_calls() -> None:
    words = vocabulary("ab1", random.Random(3))
    grammar = embed(lines_of(" "), {0: compile_regex("1", words)})
    matcher = grammar.matcher()
    assert grammar.memory_bytes > 0
    assert not matcher.accept_token(0) and matcher.accept_bytes(b"1") and matcher.accept_token(0)
    assert matcher.is_terminated() and not matcher.is_accepting() and allowed(matcher) == set()
    assert not matcher.next_bytes().any() and matcher.shortest_completion() == b"" == matcher.forced_bytes()
    assert not matcher.accept_token(0) and not matcher.accept_bytes(b"1") and matcher.accept_bytes(b"")
    assert matcher.fork().is_terminated() and matcher.copy().is_terminated()
    matcher.rollback(2)
    assert not matcher.is_terminated() and matcher.is_accepting()
    with pytest.raises(TokenError, match="out of range"):
        matcher.accept_token(words.size)


def test_errors_of_embed() -> None:
    words, others = vocabulary("ab", random.Random(4)), vocabulary("abc", random.Random(4))
    source = lines_of(" ")
    with pytest.raises(ConstraintError, match="no terminal 7"):
        embed(source, {7: compile_regex("a", words)})
    with pytest.raises(ConstraintError, match="another vocabulary"):
        embed(source, {0: compile_regex("a", words)}, others)
    with pytest.raises(ConstraintError, match="ignored"):
        embed(
            ContextFreeGrammar(source.terminals, source.nonterminals, source.rules, 0, (1,)),
            {1: compile_regex("a", words)},
        )
    with pytest.raises(ConstraintError, match="a vocabulary is needed"):
        embed(source, {})
