"""The number of bytes to the end: never less than what is written, whatever has been asked before; ways to the end."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.lalr.compiled import LalrGrammar, compile_contextual
from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.matcher import LalrMatcher
from structgen.core.kernels.heaps import Heap
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.concurrency import together
from tests.core.engines.cfg.lark_grammars import JSON

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)


def next_byte(matcher: LalrMatcher, rng: random.Random, likely: bytes) -> bytes:
    """A byte that may come next; mostly a likely one. None left: no bytes."""
    following = np.flatnonzero(matcher.next_bytes()).tolist()
    nice = [byte for byte in following if byte in likely]
    return bytes([rng.choice(nice if nice and rng.random() < 0.8 else following)]) if following else b""


def check_walk(grammar: LalrGrammar, rng: random.Random, likely: bytes, steps: int, start: bytes = b"") -> None:
    """A random walk with steps back and forks. The number stays what it was, and the text is never longer."""
    matcher, seen = grammar.matcher(), []
    assert matcher.accept_bytes(start)
    for _ in range(steps):
        asked_first = rng.random() < 0.5
        bound = matcher.completion_bound() if asked_first else -1
        text = matcher.shortest_completion()
        bound = bound if asked_first else matcher.completion_bound()
        assert len(text) <= bound
        assert (bound == 0) == (text == b"") == matcher.is_accepting()
        seen.append((matcher.fork(), bound))
        if rng.random() < 0.1 and matcher._history:
            matcher.rollback(rng.randint(1, len(matcher._history)))
        elif byte := next_byte(matcher, rng, likely):
            assert matcher.accept_bytes(byte)
        else:
            matcher.reset()
    for before, bound in seen:  # once more, with all that was found since
        assert before.completion_bound() == bound >= len(before.shortest_completion())


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_text_is_never_longer(name: str) -> None:
    text, alphabet = GRAMMARS[name]
    grammar = compile_contextual(text, BYTES)
    for seed in range(4):
        check_walk(grammar, random.Random(seed), alphabet.encode(), 40)


PYTHON = b"""class A:
    def f(self, x):
        if not isinstance(x, int):
            try:
                y = [x for x in (1, 2) if x]
            except A as e:
                raise B(\"\"\"a
b\"\"\") from None
            finally:
                pass
        return {"a": x[1:2], **y}

@g
async def h():
    with a as b, c:
        while True: break
    else_ = lambda *a, k=1: a if k else \\
        None
"""


@pytest.mark.full
def test_every_state_of_python_can_be_completed() -> None:
    """The newline token at which a block begins, and strings of several lines, among them."""
    grammar = compile_contextual(bundled("python.lark"), BYTES, "file_input")
    matcher = grammar.matcher()
    for i in range(len(PYTHON)):
        bound, text = matcher.completion_bound(), matcher.shortest_completion()
        assert len(text) <= bound, PYTHON[:i]
        walker = matcher.copy()
        assert walker.accept_bytes(text) and walker.is_accepting(), (PYTHON[:i], text)
        assert matcher.accept_bytes(PYTHON[i : i + 1]), PYTHON[:i]


@pytest.mark.parametrize(
    "start", [b"def f():\n  if x:\n    try:\n", b"class A:\n  def f():\n    if x:\n      try:\n      "]
)
def test_a_newline_token_has_a_completion(start: bytes) -> None:
    """However much text its block still needs: a search gives up before it has found that."""
    matcher = compile_contextual(bundled("python.lark"), BYTES, "file_input").matcher()
    assert matcher.accept_bytes(start)
    completion = matcher._machine.liveness._completions.complete(matcher._state)
    assert completion is not None and len(completion) == matcher.completion_bound()
    assert matcher.accept_bytes(completion.encode()) and matcher.is_accepting()


@pytest.mark.parametrize("name", ["arithmetic", "list", "indented", "unicode", "json"])
def test_kept_completions_complete(name: str) -> None:
    """The text of a completion that is kept completes the output, whether a search finds a shorter one or not."""
    text, alphabet = GRAMMARS.get(name, (JSON, '[{"a:1, '))
    grammar, rng = compile_contextual(text, BYTES), random.Random(name)
    for _ in range(4):
        matcher = grammar.matcher()
        for _ in range(30):
            first, whole = matcher._whole_character()
            completion, walker = whole._machine.liveness._completions.complete(whole._state), matcher.copy()
            assert completion is not None and walker.accept_bytes(first + completion.encode()) and walker.is_accepting()
            if not matcher.accept_bytes(next_byte(matcher, rng, alphabet.encode())):
                break


def test_within_a_character() -> None:
    text, _ = GRAMMARS["unicode"]
    grammar = compile_contextual(text, BYTES)
    starts = [data for point in (0xE9, 0x20AC, 0x1F600) for data in [chr(point).encode()]]
    for data in starts:
        for n in range(1, len(data)):
            matcher = grammar.matcher()
            if matcher.accept_bytes(data[:n]):
                assert matcher.completion_bound() >= len(matcher.shortest_completion()) >= 1


@pytest.mark.parametrize("unit", [b"[", b'{"a": [', b'[1, "x"], ', b'{"a": {}, "b":'])
def test_the_cost_does_not_grow_with_the_text(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the kernel, and stacks that are looked at, for the number in every state of a text."""
    matcher = compile_contextual(JSON, BYTES).matcher()
    assert matcher.accept_bytes(b"[")
    stacks, costs = matcher._machine.liveness.stacks, []
    looked, begin, search = 0, Heap.call, type(stacks)._search

    def count_call(self: Heap, *arguments: Any) -> int:
        nonlocal looked
        looked += 1
        return begin(self, *arguments)

    def count_search(self: Any, first: Any) -> None:
        nonlocal looked
        looked -= len(self._completions)
        search(self, first)
        looked += len(self._completions)

    monkeypatch.setattr(type(stacks), "_search", count_search)
    for number in range(400):
        for byte in unit:
            assert matcher.accept_bytes(bytes([byte]))
            monkeypatch.setattr(Heap, "call", count_call)
            matcher.completion_bound()
            monkeypatch.setattr(Heap, "call", begin)
        costs += [looked] if number in (99, 199, 299, 399) else []
    assert costs[3] - costs[2] <= costs[2] - costs[1] + 8 <= costs[1] - costs[0] + 16, costs
    assert costs[3] - costs[2] <= 100 * 12 * len(unit)


def test_deep_brackets_are_counted_at_once() -> None:
    matcher = compile_contextual(JSON, BYTES).matcher()
    assert matcher.accept_bytes(b"[" * 20_000)
    assert 20_000 <= matcher.completion_bound() <= 3 * 20_000


def test_states_that_are_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """New matchers begin in a new memory; the old one has its numbers still."""
    monkeypatch.setattr("structgen.core.engines.lalr.compiled.ROW_BYTES", 1)
    grammar = compile_contextual(GRAMMARS["centre"][0], BYTES)
    old = grammar.matcher()
    assert old.accept_bytes(b"aa") and old.completion_bound() == 3
    for n in range(1, 5):
        fresh = grammar.matcher()
        assert fresh._machine is not old._machine
        assert fresh.accept_bytes(b"a" * n) and fresh.completion_bound() == n + 1
    assert old.accept_bytes(b"c") and old.completion_bound() == 2


def test_threads_share_the_numbers() -> None:
    grammar, start, failures = compile_contextual(JSON, BYTES), threading.Barrier(4), list[str]()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        start.wait()
        try:
            for _ in range(4):
                check_walk(grammar, rng, b'[{"a:1, ', 30)
        except BaseException as error:
            failures.append(f"thread {seed}: {error!r}")

    together(work)
    assert not failures


@pytest.mark.parametrize(
    ("rules", "start"),
    [
        ('start: "WORD" NUMBER\nNUMBER: /[0-9]+/', b""),
        ('start: "WORD" NAME\nNAME: /[a-z]+/\n%ignore " "', b"a"),
        ('start: "WORD" NAME\nNAME: /[a-z]+/', b"a"),
    ],
)
def test_a_long_keyword_is_searched_once(rules: str, start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """How its end is reached is not looked for anew behind each of its characters."""
    seen = 0

    def search(self: Lexemes, q: int) -> list[tuple[int, ...]]:
        nonlocal seen
        found = original(self, q)
        seen += sum(map(len, found))
        return found

    original = Lexemes._search
    matcher = compile_contextual(rules.replace("WORD", "abc" * 100), BYTES).matcher()
    assert matcher.accept_bytes(start)
    monkeypatch.setattr(Lexemes, "_search", search)
    forced = matcher.forced_bytes()
    assert (start + forced).startswith(b"abc" * 99) and seen < 3000
