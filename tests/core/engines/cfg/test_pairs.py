"""Pairs of configurations and automaton states, judged by the product of both written as a grammar of its own."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.capture import Capture
from structgen.core.engines.cfg import pair_rows
from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.cfg.paired import PairedGrammar
from structgen.core.engines.laws import check_laws
from structgen.core.grammars.phrases import phrase_dfa
from structgen.core.grammars.regular_product import ByteAutomaton, ProductBounds, product_grammar
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, TooComplexError
from tests.many import cases

SQL = (Path(__file__).parents[4] / "grammars" / "sql_select.lark").read_text()
GRAMMARS = {
    "nested": 'start: e\n?e: e "+" t | t\n?t: "(" e ")" | X\nX: /[ab]+/\n%ignore /[ \\n]+/',
    "ambiguous": 'start: s\ns: s s | "a" | "b" | "(" s ")" | "+" |',
    "right": 'start: "(" start ")" start | /a+b?/ start |\n%ignore " "',
    "palindromes": 'start: "a" start "a" | "b" start "b" | "+"',
    "words": 'start: (N "=" (N | TEXT) ";"?)+\nN: /[a-c]+/\nTEXT: /"[^"]*"/\n%ignore /#[^\\n]*\\n/\n%ignore " "',
}
SEARCHES = {
    "none": structgen.avoiding(["ab", "+a", "é"]),
    "any": structgen.including(["ba", "a a"], "any"),
    "all": structgen.including(["a", "b", ")"]),
    "word": structgen.avoiding("a", words=True),
    "few": structgen.including(["a", "aa"], "ordered", at_most=5),
}
VOCABULARY = Vocabulary(
    [
        *(bytes([byte]) for byte in range(256)),
        b"(a",
        b"a+",
        b"b)",
        b")+(",
        b"aa",
        b"ab+",
        b"((",
        b" (",
        b'="a',
        b"</s>",
    ],
    eos_token_ids={265},
)


def paired(source: str, dfa: Dfa, vocabulary: Vocabulary = BYTES) -> tuple[CfgGrammar, PairedGrammar]:
    grammar: Any = structgen.lark(source).compile(vocabulary)
    return grammar, PairedGrammar(grammar, dfa)


def mask(matcher: Any) -> list[int]:
    bits = allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(bits)
    return bits.tolist()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", GRAMMARS)
def test_prefixes_against_the_written_product(name: str, search: str) -> None:
    """Every mask, and whether the text may stop, along random walks: 25 pairs of a grammar and an automaton."""
    dfa = phrase_dfa(SEARCHES[search].search)
    try:
        grammar, both = paired(GRAMMARS[name], dfa, VOCABULARY)
    except EmptyLanguageError:
        form = structgen.lark(GRAMMARS[name]).compile(BYTES).normal_form()
        assert (
            form is not None
            and not product_grammar(form[0], ByteAutomaton(dfa.transitions, dfa.accepting), BOUNDS).rules
        )
        return
    form = grammar.normal_form()
    assert form is not None
    judge = compile_grammar(product_grammar(form[0], ByteAutomaton(dfa.transitions, dfa.accepting), BOUNDS), VOCABULARY)
    rng, seen = random.Random(f"{name} {search}"), 0
    while seen < len(cases(2_600, 40)):
        one, two = both.matcher(), judge.matcher()
        for _ in range(30):
            found = mask(one)
            assert found == mask(two)
            assert one.is_accepting() == two.is_accepting()
            seen += 1
            allowed = np.flatnonzero(np.unpackbits(np.array(found, np.int32).view(np.uint8), bitorder="little"))
            token = int(rng.choice([t for t in allowed if t > 255 or chr(t) in 'ab+() \n=;#"'] or allowed))
            assert one.accept_token(token) and two.accept_token(token)
            if one.is_terminated():
                break
        if not one.is_terminated():
            assert one.accept_bytes(one.shortest_completion()) and one.is_accepting()


BOUNDS = ProductBounds(1 << 18, 1 << 18, 1 << 23)


def test_laws() -> None:
    for search in SEARCHES.values():
        check_laws(paired(GRAMMARS["words"], phrase_dfa(search.search), VOCABULARY)[1], walks=1, steps=6)


def test_twenty_words_and_sql() -> None:
    """What the written product is too large for."""
    words = ["secret", "password", "token", "delete", "insert", "drop", "alter", "grant", "salary", "ssn", "card"]
    words += ["passport", "admin", "root", "shadow", "user", "null", "like", "'x", "0000"]
    both = structgen.lark(SQL) & structgen.avoiding(words)
    matcher = both.compile(BYTES).matcher()
    assert matcher.accept_bytes(b"select a, passwor") and not matcher.accept_bytes(b"d")
    assert matcher.accept_bytes(b" from t") and matcher.is_accepting()
    assert not matcher.accept_bytes(b" where a is n")  # only "null" could follow
    assert not matcher.accept_bytes(b" where a is")  # "null" is all that could end it
    assert not matcher.accept_bytes(b" where a lik") and matcher.accept_bytes(b" where a li")
    assert not matcher.is_accepting() and matcher.forced_bytes() == b"mit"
    needed = structgen.lark(SQL) & structgen.including(words[:10], "any")
    matcher = needed.compile(BYTES).matcher()
    assert not matcher.accept_bytes(b"select a from t limit 5")  # no word can come any more
    assert matcher.accept_bytes(b"select a from t")
    text = b"select a from t" + matcher.shortest_completion()
    assert any(word.encode() in text for word in words[:10])
    assert structgen.lark(SQL).compile(BYTES).matcher().accept_bytes(text)


def test_ignored_text_beside_captures() -> None:
    source = 'start: "(" start ")" | name\nname: /[a-z]+/\n%ignore /[ ]+/'
    both = structgen.lark(source, captures=["name"]) & structgen.avoiding(["ab", ") )"])
    for compiled in (both.compile(BYTES), pickle.loads(pickle.dumps(both.compile(BYTES)))):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(b"( ( xa ))") and matcher.captures()["name"] == Capture("xa", "xa", 4, 6)
        matcher.reset()
        assert not matcher.accept_bytes(b"((ab") and not matcher.accept_bytes(b"( (a) )")


def test_inside_another_constraint() -> None:
    """A small one is put into the grammar around as rules; a large one is read by its matcher."""
    for source in (GRAMMARS["nested"], SQL):
        inner = structgen.lark(source) & structgen.avoiding("b")
        around = "<" + inner + ">"
        matcher = around.compile(BYTES).matcher()
        text = inner.compile(BYTES).matcher().shortest_completion()
        assert matcher.accept_bytes(b"<" + text + b">") and matcher.is_accepting()
        assert matcher.rollback() is None and not matcher.accept_bytes(b"<(b")


def test_rows_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_rows, "FIRST_ROWS", 2)
    both = paired(GRAMMARS["nested"], phrase_dfa(SEARCHES["any"].search), VOCABULARY)[1]
    matcher = both.matcher()
    matcher.accept_bytes(b"((")
    before = mask(matcher)
    monkeypatch.setattr(pair_rows, "MOST_ROWS", 1)
    assert matcher.accept_bytes(b"a") and mask(matcher) == mask(_fresh(both, b"((a"))
    matcher.rollback()
    assert mask(matcher) == before


def _fresh(grammar: PairedGrammar, text: bytes) -> Any:
    matcher = pickle.loads(pickle.dumps(grammar)).matcher()
    assert matcher.accept_bytes(text)
    return matcher


def test_what_is_too_large_is_refused_by_name() -> None:
    source = GRAMMARS["nested"]
    with pytest.raises(TooComplexError, match="states of the automaton"):
        paired(source, full_match_dfa("(a{40}|b{41}){40}"))
    with pytest.raises(EmptyLanguageError, match="allowed by all"):
        paired(source, phrase_dfa(structgen.including(["+)"]).search))
