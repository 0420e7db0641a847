"""Masks are what ``accept_token`` does; fork, rollback, the end; errors."""

from __future__ import annotations

import random

import pytest

import structgen
from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.engines.lalr.matcher import LalrMatcher
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarError, MatcherStateError, OptionsError, TokenError

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled


def small_vocabulary(alphabet: str, seed: int = 0) -> Vocabulary:
    """All bytes, and random words over an alphabet and a few other characters; some twice, some cut in a character."""
    rng = random.Random(seed)
    characters = alphabet * 3 + "x \n\"'é()"
    words = {"".join(rng.choices(characters, k=rng.randrange(2, 7))).encode() for _ in range(1500)}
    cut = [word[:-1] for word in sorted(words) if word[-1] >= 128]
    tokens = [bytes([b]) for b in range(256)] + sorted(words) + sorted(words)[:20] + cut[:20]
    return Vocabulary([*tokens, b""], eos_token_ids=len(tokens))


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_what_acceptance_is(name):
    text, alphabet = GRAMMARS[name]
    vocabulary = small_vocabulary(alphabet)
    for seed in range(3):
        check_laws(compile_contextual(text, vocabulary), walks=1, seed=seed, likely=alphabet.encode())


@pytest.mark.full
def test_masks_of_python():
    vocabulary = small_vocabulary("if x:\n  =(1)#'\"\t")
    grammar = compile_contextual(bundled("python.lark"), vocabulary, "file_input")
    check_laws(grammar, walks=3, seed=5)


def test_masks_survive_eviction(monkeypatch):
    monkeypatch.setattr("structgen.core.engines.lalr.compiled.MASK_BYTES", 1)
    text, alphabet = GRAMMARS["arithmetic"]
    check_laws(compile_contextual(text, small_vocabulary(alphabet)), steps=15, seed=1)


def test_matcher_protocol():
    vocabulary = small_vocabulary("ifthen ")
    matcher = structgen.compile_lark(GRAMMARS["keyword"][0], vocabulary, lexer="contextual").matcher()
    assert isinstance(matcher, LalrMatcher)
    assert matcher.forced_bytes() == b""  # blanks may come first
    assert matcher.accept_bytes(b"if x then")
    assert not matcher.accept_bytes(b"if y then z")  # no keyword is looked for here: "if" is the name
    assert matcher.shortest_completion() == b"a"  # nor a name where "then" must stand
    matcher.accept_bytes(matcher.shortest_completion())
    eos = vocabulary.eos_token_ids[0]
    assert matcher.accept_token(eos)
    assert matcher.is_terminated()
    assert not matcher.is_accepting()
    assert not mask_of(matcher).any()
    assert not matcher.next_bytes().any()
    assert matcher.forced_bytes() == b""
    assert not matcher.accept_token(eos)
    assert not matcher.accept_bytes(b"x")
    matcher.rollback()
    assert matcher.is_accepting()
    copy = matcher.copy()
    matcher.reset()
    assert not matcher.is_accepting()
    assert copy.is_accepting()
    with pytest.raises(MatcherStateError):
        copy.rollback()
    with pytest.raises(TokenError):
        copy.accept_token(vocabulary.size)
    assert copy.stats == {"undecided": 0}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ('start: "a" | b', GrammarError, "b"),
        ('start: a | b\na: "x"\nb: "x"', GrammarError, "Reduce/Reduce"),
        ("start: A\nA: /a(?=bc)/", GrammarError, "more than one character"),
        ("start: A\nA: /\\bx/", GrammarError, "looks behind"),
        ("start: A\nA: /(?<=xy)b/", GrammarError, "lookaround"),
        ("start: A\nA: /(a)\\1/", GrammarError, "backreference"),
        ('start: "a" start', EmptyLanguageError, "no text"),
        ('start: NAME "end"\nNAME: /[a-z]+/', EmptyLanguageError, "no text"),
        ("start: A\nA: /x", GrammarError, "line 2"),
        ("start: %json {}", GrammarError, "json"),
    ],
)
def test_errors(text, error, words):
    with pytest.raises(error, match=words):
        structgen.compile_lark(text, small_vocabulary("ab"), lexer="contextual")


def test_unknown_lexer():
    with pytest.raises(OptionsError, match="contextual"):
        structgen.compile_lark('start: "a"', small_vocabulary("ab"), lexer="basic")


def test_states_are_bounded(monkeypatch):
    monkeypatch.setattr("structgen.core.engines.lalr.compiled.ROW_BYTES", 1)
    grammar = compile_contextual(GRAMMARS["centre"][0], small_vocabulary("abc"))
    old = grammar.matcher()
    assert old.accept_bytes(b"aac")
    fresh = grammar.matcher()
    assert fresh.accept_bytes(b"aacbb")
    assert old.accept_bytes(b"bb")
    assert old.is_accepting()
    assert grammar.memory_bytes > 0
