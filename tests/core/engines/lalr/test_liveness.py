"""What is live can be completed, what cannot be finished is not entered, and every search ends."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.engines.lalr.lexer_simulation import IGNORED, UNSURE, Lexemes
from structgen.core.engines.lalr.liveness_tables import with_dead_ends
from structgen.core.engines.lalr.tables import LalrTables, read_tables
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarTooComplexError

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, judge

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
SHIFTED_FOR_EVER = 'start: s\n?s: "(" (s~2)~0..2'  # behind "((" Lark's parser shifts, and always lacks another s
SWALLOWED_WITHIN = 'start: "a" | "b" start | "(" start T\nT: /[a-c]+/'  # behind "((" always lacks another T


def lexemes(tables: LalrTables, terminals: str, word: str) -> int:
    """What a word ends as at the start of a lexeme of a grammar with one lexer for these terminals."""
    found = Lexemes(tables)
    lexer = next(
        i for i, lexer in enumerate(tables.lexers) if {tables.terminals[t] for t in lexer} == set(terminals.split())
    )
    return found.ends_as(lexer, found.start(lexer), found.classes(word))


@pytest.mark.parametrize(
    ("text", "distrusted"),
    [
        ('start: "a" start | "b"', False),
        (GRAMMARS["arithmetic"][0], False),
        ('start: "(" T ")"\nT: /[ab]+/\n%ignore " "', False),
        ('start: "(" T "b"\nT: /[ab]+/', True),
        ('start: T "(" | "(" T\nT: /[ab]+/', True),
        ('start: T "(" | "("\nT: /[ab]+/', False),  # no rule asks for T behind its first symbol
        (GRAMMARS["swallowed_by_a_blank"][0], False),
    ],
)
def test_trust(text, distrusted):
    tables = read_tables(text)
    assert not tables.distrust
    assert with_dead_ends(tables).distrust == distrusted


def test_what_words_end_as():
    tables = read_tables("start: (A | B | C)+\nA: /a+ ?/\nB: /b(?!c)/\nC: /cc?/\nWS: / +/\n%ignore WS")
    number = tables.terminals.index
    assert lexemes(tables, "A B C WS", "a") == number("A")  # takes a blank in, then ends
    assert lexemes(tables, "A B C WS", "aa ") == number("A")
    assert lexemes(tables, "A B C WS", "b") == number("B")
    assert lexemes(tables, "A B C WS", "bb") == UNSURE  # two lexemes
    assert lexemes(tables, "A B C WS", " ") == IGNORED
    tables = read_tables("start: (A | B)+\nA: /a+/\nB: /b/")
    assert lexemes(tables, "A B", "a") == UNSURE  # another may follow, and be part of it
    assert lexemes(tables, "A B", "b") == tables.terminals.index("B")


@pytest.mark.parametrize("name", [name for name in GRAMMARS if "swallow" in name or "shift" in name or "far" in name])
def test_a_prefix_is_live_only_if_lark_accepts_its_completion(name):
    text, alphabet = GRAMMARS[name]
    grammar, right = compile_contextual(text, BYTES), judge(text)
    for n in range(6):
        for letters in itertools.product(alphabet, repeat=n):
            matcher, string = grammar.matcher(), "".join(letters)
            if matcher.accept_bytes(string.encode()):
                assert right(string + matcher.shortest_completion().decode()), string
                assert matcher.is_accepting() or matcher.next_bytes().any()


def test_long_rows_of_states_are_completed():
    text, _ = GRAMMARS["far_end"]
    matcher = compile_contextual(text, BYTES).matcher()
    assert matcher.accept_bytes(b"," * 40)
    rest = matcher.shortest_completion()
    assert matcher.accept_bytes(rest)
    assert matcher.is_accepting()


@pytest.mark.parametrize("proved", [True, False])
def test_what_cannot_be_finished_is_dead(proved, monkeypatch):
    """Proofs tell; without them a search gives up, which is counted."""
    if not proved:
        monkeypatch.setattr("structgen.core.engines.lalr.compiled.prove", lambda tables: None)
    grammar = compile_contextual(SHIFTED_FOR_EVER, BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"(")
    assert matcher.is_accepting()
    assert not matcher.next_bytes().any()
    assert not grammar.matcher().accept_bytes(b"((")
    assert not grammar.matcher().accept_bytes(b"(((")
    assert (matcher.stats["undecided"] > 0) != proved


@pytest.mark.full
def test_an_empty_language_is_told_from_one_that_is_not_decided():
    with pytest.raises(EmptyLanguageError):
        compile_contextual('start: "(" T "b"\nT: /b+/', BYTES)
    with pytest.raises(GrammarTooComplexError, match="search steps"):
        compile_contextual('start: ("a" ((/[a-c]+/ | start))~2..2) | ("-" start)', BYTES)


def test_all_on_the_way_to_a_live_state_is_live():
    """Masks stop at the first byte that is dead; so does acceptance, in whatever order they are asked."""
    rng = random.Random(6)
    for _ in range(20):
        string = "".join(rng.choices("abc(", k=6)).encode()
        whole = compile_contextual(SWALLOWED_WITHIN, BYTES).matcher().accept_bytes(string)
        matcher = compile_contextual(SWALLOWED_WITHIN, BYTES).matcher()
        step_by_step = True
        for byte in string:
            step_by_step = step_by_step and bool(matcher.next_bytes()[byte]) and matcher.accept_bytes(bytes([byte]))
        assert whole == step_by_step
        assert np.flatnonzero(matcher.next_bytes()).size or matcher.is_accepting()
