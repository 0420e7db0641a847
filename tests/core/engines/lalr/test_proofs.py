"""What proofs say of stacks, against a parser that tries all terminals; masks with and without them."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.engines.lalr.liveness_tables import prove
from structgen.core.engines.lalr.machine import LalrMachine
from structgen.core.engines.lalr.tables import LalrTables, read_tables
from structgen.core.engines.laws import mask_of
from structgen.core.kernels.lalr import machine as k
from structgen.core.kernels.lalr import tables as kt
from structgen.core.vocabulary.vocabulary import Vocabulary

pytest.importorskip("lark")
from tests.core.engines.lalr.lalr_grammars import GRAMMARS, bundled

BYTES = Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
FAR, MOST = 14, 20_000
Stack = tuple[int, ...]


def read(tables: LalrTables, stack: Stack, terminal: int) -> Stack | None:
    """The stack after a terminal, by the parse table; the empty one once the whole text is read."""
    end = len(tables.terminals) - 1
    for _ in range(200):
        action = int(tables.action[stack[-1], terminal])
        if action == 0:
            return None
        if action & 1 == 0:
            return (*stack, (action >> 1) - 1)
        origin, body = tables.rules[(action >> 1) - 1]
        stack = stack[: len(stack) - len(body)]
        stack = (*stack, int(tables.goto[stack[-1], origin]))
        if terminal == end and stack[-1] == tables.end:
            return ()
    return None  # round and round without a symbol


def is_completed(tables: LalrTables, following: list[set[int]], stack: Stack, terminal: int) -> bool | None:
    """Whether a stack takes a terminal and then, by terminals that may be written, the end; None: not soon."""
    first = read(tables, stack, terminal)
    queue = deque([(first, 0)])
    seen = {first}
    while queue:
        current, length = queue.popleft()
        if current == ():
            return True
        if current is None:
            continue
        if length == FAR or len(seen) > MOST:
            return None
        for t in following[current[-1]]:
            after = read(tables, current, t)
            if after not in seen:
                seen.add(after)
                queue.append((after, length + 1))
    return False


def following_of(machine: LalrMachine) -> list[set[int]]:
    """The terminals that may be written behind each state, as the kernel has them."""
    words = machine.bit_words
    rows = machine._arrays[kt.following_at].reshape(-1, words).tolist()
    return [{64 * w + bit for w in range(words) for bit in range(64) if row[w] >> bit & 1} for row in rows]


@pytest.mark.first_case
@pytest.mark.parametrize("name", [name for name, (text, _) in GRAMMARS.items() if "%declare" not in text])
def test_classes_tell_what_completes_a_stack(name):
    text, _ = GRAMMARS[name]
    machine = compile_contextual(text, BYTES).machine()
    tables, rng = machine.tables, random.Random(name)
    following, end = following_of(machine), len(tables.terminals) - 1
    checked = 0
    for _ in range(6):
        stack: Stack = (tables.start,)
        parser = machine.config(machine.start)[0]
        for _ in range(10):
            node = machine.parser(parser)[0]
            group = int(machine.heap[node + k.NODE_CLASS])
            fits = set()
            for terminal in range(end + 1):
                word = int(machine.heap[group + k.CLASS_FITS + (terminal >> 6)])
                expected = is_completed(tables, following, stack, terminal)
                if expected is not None:
                    checked += 1
                    assert (word >> (terminal & 63) & 1 != 0) == expected, (stack, tables.terminals[terminal])
                if expected and terminal != end:
                    fits.add(terminal)
            if not fits:
                break
            terminal = rng.choice(sorted(fits))
            stack = read(tables, stack, terminal) or ()
            parser = machine.call(k.FEED_TERMINAL, parser, terminal, k.NO_COLUMN)
            assert machine.pair(machine.parser(parser)[0])[1] == stack[-1]
    assert checked > 3


def vocabulary_of(letters: str) -> Vocabulary:
    """All bytes, and words over some letters."""
    rng = random.Random(letters)
    words = {"".join(rng.choices(letters, k=rng.randrange(2, 9))).encode() for _ in range(2000)}
    tokens = [bytes([b]) for b in range(256)] + sorted(words)
    return Vocabulary([*tokens, b""], eos_token_ids=len(tokens))


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("text", "letters"),
    [(GRAMMARS[name][0], GRAMMARS[name][1]) for name in ("arithmetic", "list", "indented", "brackets", "centre")]
    + [(bundled("python.lark"), "if x:\n  =(1)[]#'\"")],
)
def test_masks_are_those_without_proofs(text, letters, monkeypatch):
    """Whether they are found for all stacks with the same top, or for each anew."""
    start, vocabulary = "file_input" if "file_input" in text else "start", vocabulary_of(letters)
    grammar = compile_contextual(text, vocabulary, start)
    monkeypatch.setattr("structgen.core.engines.lalr.compiled.prove", lambda tables: None)
    plain = compile_contextual(text, vocabulary, start)
    assert grammar.machine().heap[k.H_PROVED]
    assert not plain.machine().heap[k.H_PROVED]
    rng = random.Random(text)
    for _ in range(4):
        one, other = grammar.matcher(), plain.matcher()
        for _ in range(12):
            mask = mask_of(one)
            assert (mask == mask_of(other)).all()
            token = int(rng.choice(np.flatnonzero(mask)))
            assert one.accept_token(token) and other.accept_token(token)
            if one.is_terminated():
                break


def test_lines_within_brackets_are_not_proved():
    """An indenter passes over newlines in brackets, so what a grammar says of them there is no way to the end."""
    unbalanced = 'start: "(" _NL ")" _NL\n_NL: /(\\r?\\n[\\t ]*)+/\nLPAR: "("\nRPAR: ")"\n%declare _INDENT _DEDENT'
    assert prove(read_tables(unbalanced)) is None
    assert prove(read_tables(GRAMMARS["indented"][0])) is not None
