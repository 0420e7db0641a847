"""Matchers that move to another memory when theirs is outgrown: nothing shows it but the bytes that are held."""

from __future__ import annotations

import random
import weakref

import numpy as np
import pytest

from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.engines.lalr.machine import LalrMachine
from structgen.core.engines.lalr.matcher import LalrMatcher
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
NESTED = """
start: item+
item: "(" item* ")" | "[" item* "]" | WORD
WORD: /[a-zé]+/
%ignore " "
"""
PYTHON = """
def f(a, *b, c=1, **d) -> int:
    while a[0]:
        try:
            x = {1: [2, (3, "é\\n")], **y}  # why
        finally:
            return lambda: (yield)
""".encode()
ROW_BYTES = "structgen.core.engines.lalr.compiled.ROW_BYTES"


def tokens_of(seed: int, alphabet: str) -> Vocabulary:
    """All bytes, and random words over an alphabet, some cut within a character."""
    rng = random.Random(seed)
    words = {"".join(rng.choices(alphabet, k=rng.randrange(2, 6))).encode() for _ in range(400)}
    words |= {word[:-1] for word in words if word[-1] >= 128}
    return Vocabulary([*(bytes([b]) for b in range(256)), *sorted(words), b""], eos_token_ids=256 + len(words))


@pytest.mark.parametrize("name", ["indented", "unicode"])
def test_laws_hold_across_moves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROW_BYTES, 1 << 15)
    text, alphabet = GRAMMARS[name]
    check_laws(compile_contextual(text, tokens_of(1, alphabet)), steps=12, walks=1, seed=2, likely=alphabet.encode())


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("text", "start", "alphabet", "row_bytes"),
    [(NESTED, "start", "([])aé ", 1 << 14), (bundled("python.lark"), "file_input", "if x:\n =(1)é", 1 << 17)],
)
def test_a_walk_is_that_of_a_matcher_that_stays(
    text: str, start: str, alphabet: str, row_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks, completions, forks, and steps back to states before a move."""
    rng, vocabulary = random.Random(3), tokens_of(3, alphabet)
    stays = compile_contextual(text, vocabulary, start).matcher()
    monkeypatch.setattr(ROW_BYTES, row_bytes)
    moves = compile_contextual(text, vocabulary, start).matcher()
    machines, forks = {id(moves._machine): moves._machine}, list[tuple[LalrMatcher, LalrMatcher]]()
    for step in range(25):
        allowed = mask_of(stays)
        assert np.array_equal(allowed, mask_of(moves))
        assert moves.is_accepting() == stays.is_accepting()
        assert moves.completion_bound() >= len(moves.shortest_completion())
        following = np.setdiff1d(np.flatnonzero(allowed), vocabulary.eos_token_ids)
        if step % 7 == 6 or not len(following):
            back = rng.randrange(min(step, 9))
            if back <= len(stays._history):
                stays.rollback(back)
                moves.rollback(back)
        else:
            token = int(rng.choice(following.tolist()))
            assert stays.accept_token(token) and moves.accept_token(token)
        machines[id(moves._machine)] = moves._machine
        if step % 12 == 0:
            forks.append((stays.fork(), moves.fork()))
    assert len(machines) > 1
    for one, other in forks:
        assert np.array_equal(mask_of(one), mask_of(other))
    for one, other in [*forks, (stays, moves)]:
        assert len(one._history) == len(other._history)
        while one._history:
            one.rollback()
            other.rollback()
            assert np.array_equal(mask_of(one), mask_of(other))


def test_the_end_is_rolled_back_across_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROW_BYTES, 1 << 15)
    matcher = compile_contextual(NESTED, BYTES).matcher()
    machine = matcher._machine
    assert matcher.accept_bytes(b"(a)") and matcher.accept_token(256) and matcher.is_terminated()
    assert matcher.accept_bytes(b"") and matcher.is_terminated()  # a step that ended is in the history
    matcher.rollback(2)
    for _ in range(50):
        assert matcher.accept_bytes(b"([a")
    assert matcher._machine is not machine
    matcher.rollback(50)
    assert matcher.is_accepting() and matcher.accept_token(256)


def nested(rng: random.Random, size: int) -> bytes:
    """A text of so many brackets, whose depth goes up and down; hardly a stack of it comes twice."""
    text, closing = bytearray(), bytearray()
    while len(text) < size:
        if closing and (len(closing) > 60 or rng.random() < 0.48):
            text.append(closing.pop())
        else:
            kind = rng.randrange(2)
            text.append(b"(["[kind])
            closing.append(b")]"[kind])
    return bytes(text + closing[::-1])


def test_bytes_held_for_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not grow with it: of the memories that were left none stays."""
    most = 1 << 20
    monkeypatch.setattr(ROW_BYTES, most)
    made: list[weakref.ref[LalrMachine]] = []
    begin = LalrMachine.__init__

    def counted(machine: LalrMachine, *arguments: object) -> None:
        begin(machine, *arguments)  # type: ignore[arg-type]
        made.append(weakref.ref(machine))

    monkeypatch.setattr(LalrMachine, "__init__", counted)
    text = nested(random.Random(4), 200_000)
    grammar = compile_contextual(NESTED, BYTES)
    matcher, highest = grammar.matcher(), 0
    for first in range(0, len(text), 1000):
        assert matcher.accept_bytes(text[first : first + 1000])
        alive = [machine for machine in (reference() for reference in made) if machine is not None]
        assert len(alive) == 1
        highest = max(highest, alive[0].memory_bytes)
        del alive
    assert matcher.is_accepting() and len(made) > 10
    assert highest <= 4 * most


def test_a_state_that_is_not_known_to_live_keeps_the_matcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROW_BYTES, 1 << 15)
    matcher = compile_contextual(NESTED, BYTES).matcher()
    machine = matcher._machine
    monkeypatch.setattr(LalrMachine, "is_live", lambda *_: False)
    for _ in range(30):
        assert matcher.accept_bytes(b"([a")
    assert matcher._machine is machine and matcher.accept_bytes(b"])" * 30) and matcher.is_accepting()


@pytest.mark.full
def test_python_across_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indentations, brackets and fallbacks go along."""
    monkeypatch.setattr(ROW_BYTES, 1 << 16)
    matcher = compile_contextual(bundled("python.lark"), BYTES, "file_input").matcher()
    machines = {id(matcher._machine): matcher._machine}
    for i in range(len(PYTHON)):
        assert matcher.accept_bytes(PYTHON[i : i + 1]), PYTHON[:i]
        machines[id(matcher._machine)] = matcher._machine
    assert matcher.is_accepting() and len(machines) > 1
