"""The matcher: no dead ends, completions, flat rows, embedded terminals, errors, threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.laws import check_state
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.kernels.cfg import machine as k
from structgen.core.regex.dfa import empty, from_strings
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarError, MatcherStateError, TokenError
from tests.concurrency import together
from tests.core.engines.cfg.lark_grammars import GRAMMARS, JSON, normal_form
from tests.core.engines.cfg.reference import Reference

pytest.importorskip("lark")
BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)


def grammar_of(
    rules: list[tuple[int, tuple[int, ...]]], terminals: list[str], ignored: tuple[int, ...] = ()
) -> ContextFreeGrammar:
    """A normal form by hand: rules by number, terminals as patterns."""
    symbols = [s for lhs, rhs in rules for s in (lhs, *rhs)]
    return ContextFreeGrammar(
        tuple(Terminal(f"T{i}", full_match_dfa(p) if p else empty(), p) for i, p in enumerate(terminals)),
        tuple(f"n{i}" for i in range(max(symbols) + 1)),
        tuple(Rule(lhs, rhs) for lhs, rhs in rules),
        0,
        ignored,
    )


def rows(grammar: CfgGrammar) -> int:
    """Rows that the machine has made."""
    heap, table = grammar.machine().heap, grammar.machine()._hash
    return sum(int(heap[r + 1]) >> 40 == k.ROW for r in table.tolist() if r)


@pytest.mark.parametrize("name", GRAMMARS)
def test_no_dead_end_and_shortest_completions(name: str) -> None:
    """From each live prefix the completion is accepted and none is shorter; forced text is what all must write."""
    text, alphabet = GRAMMARS[name]
    form = normal_form(text)
    grammar, reference = compile_grammar(form, BYTES), Reference(form)
    alive = [b""]
    for _ in range(3):
        for prefix in alive:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(prefix)
            rest = matcher.shortest_completion()
            assert reference.run(prefix + rest) == (True, True)
            letters = alphabet.encode() if name != "unicode" else "éüx".encode()
            for shorter in range(min(len(rest), 4)):
                for word in itertools.product(letters, repeat=shorter):
                    assert not reference.run(prefix + bytes(word))[1], (prefix, word)
            check_state(matcher, text=prefix)
        alive = [
            prefix + bytes([byte])
            for prefix in alive[:40]
            for byte in sorted({*alphabet.encode()})
            if reference.run(prefix + bytes([byte]))[0]
        ]


SCALING = {  # grammar, unit, and the rows that 400 more units may add
    "left": ('start: start "a" | "b"', b"b", b"a", 0),
    "right": ('start: "a" start | "b"', b"", b"a", 0),
    "twice": ('start: start start | "a"', b"", b"a", 0),
    "expression": ('start: e\ne: e "+" e | e "*" e | "a"', b"a", b"+a", 0),
    "nullable": ('start: "a" start tail | "b"\ntail: "c" |', b"", b"a", 400),
    "centre": ('start: "a" start "b" | "c"', b"", b"a", 400),
    "json_list": (JSON, b"[1", b', {"a": [true, 2.5]}', 0),
    "json_nested": (JSON, b"", b'{"a": [', 1600),
}


@pytest.mark.parametrize("name", SCALING)
def test_rows_are_flat_or_linear(name: str) -> None:
    text, first, unit, bound = SCALING[name]
    grammar = compile_grammar(normal_form(text), BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(first + 100 * unit)
    before = rows(grammar)
    assert matcher.accept_bytes(400 * unit)
    assert rows(grammar) - before <= bound
    assert len(matcher._machine.key(matcher._state, k.CONFIG_KEY)) <= 3
    assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting()


def test_masks_of_nested_contexts_are_shared() -> None:
    """Rows that differ only far below have the same masks: what deeper nesting adds is small."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)] + [b"]" * n for n in range(2, 9)] + [b""], eos_token_ids=263
    )
    grammar = compile_grammar(normal_form(JSON), vocabulary)
    matcher, bitmask = grammar.matcher(), np.zeros(9, np.int32)
    used, walked = [], []
    for _ in range(60):
        assert matcher.accept_bytes(b"[")
        matcher.fill_next_token_bitmask(bitmask)
        used.append(int(matcher._machine.heap[k.H_MTOP]))
        walked.append(int(matcher._machine.heap[k.H_WALKED]))
    assert used[59] - used[29] <= 30 * 40
    assert walked[59] - walked[29] <= 30 * 20


@pytest.mark.full
def test_ten_thousand_choices() -> None:
    words = [f"option number {n * 7919 % 10_000}" for n in range(10_000)]
    form = ContextFreeGrammar(
        tuple(Terminal(f"T{i}", from_strings([word])) for i, word in enumerate(words)),
        ("start",),
        tuple(Rule(0, (~i,)) for i in range(len(words))),
        0,
    )
    grammar = compile_grammar(form, BYTES)
    assert len(grammar.tables.classes) == 1
    matcher = grammar.matcher()
    assert matcher.forced_bytes() == b"option number "
    assert matcher.accept_bytes(b"option number 12") and matcher.is_accepting()
    assert matcher.accept_bytes(b"34") and not matcher.next_bytes().any()
    assert not matcher.accept_bytes(b"5")


def test_language_without_text_and_unproductive_rules() -> None:
    with pytest.raises(EmptyLanguageError, match="n0"):
        compile_grammar(grammar_of([(0, (~0, 0))], ["a"]), BYTES)
    with pytest.raises(EmptyLanguageError):
        compile_grammar(grammar_of([(0, (~0, ~1))], ["a", ""]), BYTES)
    with pytest.raises(GrammarError, match="T0 can be empty"):
        compile_grammar(grammar_of([(0, (~0,))], ["a*"]), BYTES)
    # "b" leads into a rule that never ends: it must not be offered
    grammar = compile_grammar(grammar_of([(0, (~0,)), (0, (~1, 1)), (1, (1, ~0))], ["a", "b"]), BYTES)
    assert np.flatnonzero(grammar.matcher().next_bytes()).tolist() == [ord("a")]
    only_empty = compile_grammar(grammar_of([(0, ())], ["a"]), BYTES).matcher()
    assert only_empty.is_accepting() and not only_empty.next_bytes().any()


def test_tokens_and_states_that_cannot_be() -> None:
    matcher = compile_grammar(grammar_of([(0, (~0,))], ["a"]), BYTES).matcher()
    with pytest.raises(TokenError, match="257"):
        matcher.accept_token(257)
    with pytest.raises(MatcherStateError, match="0 were accepted"):
        matcher.rollback(1)
    assert not matcher.accept_token(256)
    assert matcher.accept_token(ord("a")) and matcher.accept_token(256) and matcher.is_terminated()
    assert not matcher.accept_token(ord("a")) and not matcher.accept_bytes(b"a")
    bits = np.full(9, -1, np.int32)
    matcher.fill_next_token_bitmask(bits)
    assert not bits.any() and not matcher.next_bytes().any() and not matcher.is_accepting()
    assert matcher.accept_bytes(b"") and matcher.is_terminated()
    matcher.rollback(1)
    assert matcher.is_terminated()
    matcher.rollback(1)
    assert not matcher.is_terminated() and matcher.is_accepting()


def test_embedded_terminals() -> None:
    """``start: "<" (X | Y "!") ">"`` with blanks ignored, where X and Y are read by others."""
    form = grammar_of(
        [(0, (~0, 1, ~1)), (1, (~2,)), (1, (~3, ~4))],
        ["<", ">", "", "", "!", " "],
        ignored=(5,),
    )
    grammar = compile_grammar(form, BYTES, embedded=[2, 3])
    matcher = grammar.matcher()
    assert matcher.embedded_here() == frozenset()
    assert matcher.accept_bytes(b"<")
    assert matcher.embedded_here() == {2, 3}
    assert np.flatnonzero(matcher.next_bytes()).tolist() == [ord(" ")]
    assert matcher.forced_bytes() == b""
    assert matcher.accept_bytes(b"  ") and matcher.embedded_here() == {2, 3}
    after_x, after_y = matcher.after_embedded(2), matcher.after_embedded(3)
    assert not after_x.accept_bytes(b"!") and after_x.accept_bytes(b" >") and after_x.is_accepting()
    assert not after_y.accept_bytes(b">") and after_y.shortest_completion() == b"!>"
    assert matcher.shortest_completion() == b">"
    with pytest.raises(MatcherStateError):
        after_y.after_embedded(2)


def test_threads_share_a_grammar() -> None:
    """Many matchers in many threads over one machine that keeps growing: each reads its own text."""
    grammar = compile_grammar(normal_form(JSON), BYTES, mask_bytes=1 << 14)
    failures: list[str] = []

    def work(seed: int) -> None:
        bitmask = np.zeros(9, np.int32)
        for turn in range(10):
            matcher = grammar.matcher()
            depth = 20 + 13 * seed + turn
            text = b'{"a": [' * depth + b"1" + b"]}" * depth
            for byte in text:
                matcher.fill_next_token_bitmask(bitmask)
                if not bitmask[byte >> 5] >> (byte & 31) & 1 or not matcher.accept_token(byte):
                    failures.append(f"thread {seed}, turn {turn}")
                    return
            if not matcher.is_accepting():
                failures.append(f"thread {seed} did not end")

    together(work)
    assert not failures
