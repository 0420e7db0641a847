"""The number of bytes to the end: that of a shortest completion, in every state, however it was reached."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.cfg.matcher import MAX_BYTES, CfgMatcher
from structgen.core.engines.protocols import TOO_LONG
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.heaps import Heap
from structgen.errors import CompletionTooLongError, EmptyLanguageError
from tests.concurrency import together
from tests.core.engines.cfg.lark_grammars import GRAMMARS, JSON, SQL, normal_form
from tests.core.engines.cfg.test_matcher import BYTES, SCALING, grammar_of
from tests.core.engines.cfg.test_random_grammars import ROUNDS, random_grammar

pytest.importorskip("lark")


def follow(matcher: CfgMatcher, rng: random.Random, steps: int, likely: bytes = b"") -> Iterator[tuple[int, bytes]]:
    """A random walk with steps back, forks and resets: the number and the text in each state."""
    for _ in range(steps):
        yield matcher.completion_bound(), matcher.shortest_completion()
        following = np.flatnonzero(matcher.next_bytes()).tolist()
        if rng.random() < 0.1 and matcher._history:
            matcher.rollback(rng.randint(1, len(matcher._history)))
        elif rng.random() < 0.1:
            matcher = matcher.fork()
        elif not following:
            matcher.reset()
        else:
            nice = [byte for byte in following if byte in likely]
            byte = rng.choice(nice if nice and rng.random() < 0.7 else following)
            assert matcher.accept_bytes(bytes([byte]))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_grammars(seed: int) -> None:
    """As long as a shortest text, which is one by the recogniser of `test_random_grammars`."""
    rng = random.Random(seed)
    try:
        grammar = compile_grammar(random_grammar(rng), BYTES)
    except EmptyLanguageError:
        return
    for bound, text in follow(grammar.matcher(), rng, 120, b"abc"):
        assert bound == len(text)


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars(name: str) -> None:
    text, alphabet = GRAMMARS[name]
    rng = random.Random(name)
    for bound, rest in follow(compile_grammar(normal_form(text), BYTES).matcher(), rng, 150, alphabet.encode()):
        assert bound == len(rest)


@pytest.mark.parametrize("text", [JSON, SQL], ids=["json", "sql"])
def test_the_order_of_questions_does_not_matter(text: str) -> None:
    """Numbers that were found one by one are those that are found at the end of the text."""
    form, rng = normal_form(text), random.Random(5)
    asked, silent = compile_grammar(form, BYTES), compile_grammar(form, BYTES)
    for _ in range(6):
        one, other = asked.matcher(), silent.matcher()
        for _ in range(60):
            bound = one.completion_bound()
            byte = bytes([int(rng.choice(np.flatnonzero(one.next_bytes()).tolist()))])
            assert one.accept_bytes(byte) and other.accept_bytes(byte)
            assert bound <= 1 + one.completion_bound()
            if one.completion_bound() == 0:
                break
        assert other.completion_bound() == one.completion_bound() == len(one.shortest_completion())


def test_the_end() -> None:
    matcher = compile_grammar(grammar_of([(0, (~0,))], ["ab+"]), BYTES).matcher()
    assert matcher.completion_bound() == 2
    assert matcher.accept_bytes(b"a") and matcher.completion_bound() == 1
    assert matcher.accept_bytes(b"b") and matcher.completion_bound() == 0
    assert matcher.accept_token(256) and matcher.completion_bound() == 0
    matcher.rollback(2)
    assert matcher.completion_bound() == 1
    matcher.reset()
    assert matcher.completion_bound() == 2


def test_embedded_terminals_count_as_nothing() -> None:
    form = grammar_of([(0, (~0, 1, ~1)), (1, (~2,)), (1, (~3, ~4))], ["<", ">", "", "", "!", " "], ignored=(5,))
    matcher = compile_grammar(form, BYTES, embedded=[2, 3]).matcher()
    assert matcher.completion_bound() == 2 and matcher.accept_bytes(b"<")
    assert matcher.completion_bound() == 1
    assert matcher.after_embedded(3).completion_bound() == 2


def doubling(levels: int, word: str) -> ContextFreeGrammar:
    """One text of 2 ** levels words (perhaps no bytes), or a bracket around "x"."""
    rules: list[tuple[int, tuple[int, ...]]] = [(0, (1,)), (0, (~1, 0, ~1)), (0, (~2,))]
    rules += [(n, (n + 1, n + 1)) for n in range(1, levels + 1)]
    return grammar_of([*rules, (levels + 1, (~0,) if word else ())], [word or "y", "-", "x"])


def test_texts_that_are_too_long_to_be_written() -> None:
    """They are numbers like others: what is not written costs nothing, and what cannot be is said so."""
    matcher = compile_grammar(doubling(60, "ab"), BYTES).matcher()
    assert matcher.accept_bytes(b"---") and matcher.completion_bound() == 4
    assert matcher.shortest_completion() == b"x---"
    matcher.reset()
    assert matcher.accept_bytes(b"a") and matcher.completion_bound() == TOO_LONG > MAX_BYTES
    with pytest.raises(CompletionTooLongError, match="16,777,216 bytes"):
        matcher.shortest_completion()
    matcher = compile_grammar(doubling(12, "ab"), BYTES).matcher()
    assert matcher.accept_bytes(b"a") and matcher.completion_bound() == 8191 == len(matcher.shortest_completion())
    matcher = compile_grammar(doubling(60, ""), BYTES).matcher()
    assert matcher.completion_bound() == 0 and matcher.accept_bytes(b"---") and matcher.shortest_completion() == b"-"


def settled(grammar: CfgGrammar) -> int:
    """Continuations whose number was found."""
    heap, table = grammar.machine().heap, grammar.machine()._hash
    return sum(int(heap[r + 1]) >> 40 == k.CONT and bool(heap[r + k.CONT_REMAINING]) for r in table.tolist() if r)


@pytest.mark.parametrize("name", SCALING)
def test_each_continuation_is_settled_once(name: str) -> None:
    """However deep the text is, what a step adds is what is looked at: the rows are flat or linear, and so is this."""
    text, first, unit, rows = SCALING[name]
    grammar = compile_grammar(normal_form(text), BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(first)
    counts: list[int] = []
    for _ in range(500):
        for byte in unit:
            assert matcher.accept_bytes(bytes([byte]))
            matcher.completion_bound()
        counts.append(settled(grammar) if len(counts) % 100 == 99 else 0)
    added = counts[499] - counts[99]
    assert added <= max(rows, 0), counts


def test_deep_brackets_are_counted_at_once() -> None:
    """Without recursion: as deep as the text is."""
    grammar = compile_grammar(normal_form(JSON), BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'[{"a": ' * 20_000)
    assert matcher.completion_bound() == 40_001
    assert matcher.accept_bytes(b"[") and matcher.completion_bound() == 40_001
    assert matcher.accept_bytes(b"]}") and matcher.completion_bound() == 39_999


def test_memory_that_is_forgotten() -> None:
    """Masks that are evicted, states that are left to the matchers that use them: numbers stay right."""
    form = normal_form(JSON)
    grammar = compile_grammar(form, BYTES, mask_bytes=1 << 12, state_bytes=1)
    old, bitmask, rng = grammar.matcher(), np.zeros(9, np.int32), random.Random(3)
    assert old.accept_bytes(b'{"a": [[')
    for _ in range(5):
        matcher = grammar.matcher()
        assert matcher._machine is not old._machine
        for _ in range(60):
            matcher.fill_next_token_bitmask(bitmask)
            following = np.flatnonzero(matcher.next_bytes()).tolist()
            matcher.accept_bytes(bytes([rng.choice([byte for byte in following if byte in b'[{"a:,'] or following)]))
            assert matcher.completion_bound() == len(matcher.shortest_completion())
    assert old.completion_bound() == 3 == len(old.shortest_completion())


def test_threads_share_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They find them at once, while the memory grows under them."""
    begin = Heap.__init__

    def small(self: Heap, run: Any, rehash: int, header: int, sink: int, words: int, slots: int) -> None:
        begin(self, run, rehash, header, sink, header + sink + 64, 16)

    monkeypatch.setattr(Heap, "__init__", small)
    monkeypatch.setattr("structgen.core.engines.cfg.machine.FIRST_SCRATCH", 16)
    grammar, start = compile_grammar(normal_form(JSON), BYTES), threading.Barrier(4)
    failures: list[str] = []

    def work(seed: int) -> None:
        start.wait()
        for turn in range(6):
            matcher, depth = grammar.matcher(), 20 + 13 * seed + turn
            for n in range(depth):
                if matcher.accept_bytes(b'{"a": [') and matcher.completion_bound() != 2 * n + 2:
                    failures.append(f"thread {seed}, turn {turn}, depth {n}: {matcher.completion_bound()}")

    together(work)
    assert not failures
