"""Random grammars of the dialect against llguidance.

No text of a terminal begins another one, so that its lexer, which takes the longest match, has no choice either.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from structgen.core.compilers import compile_lark
from structgen.errors import EmptyLanguageError
from tests.core.grammars.dialects.llguidance.peers import BYTES, Peer, chosen, mask, mutants

pytest.importorskip("llguidance")
pytestmark = pytest.mark.filterwarnings("ignore::structgen.errors.GrammarWarning")

TERMINALS = [
    '"a"',
    '"ba"',
    '"bb"i',
    "/c+d/",
    "/[0-9]{2}/",
    '"e" "f"{1,2} "!"',
    "/[g-h]*j/",
    '%regex {"substring_words": "x.y.x"} ";"',
]
TIMES = ["?", "*", "+", "{2}", "{1,3}", "{2,}", "{,2}", "~2"]
INNER = ["/[kl]*/", '"k"', '"kl"{1,2}', "/(?s:.*)kk(?s:.*)/", "/l?k*/", "/[klm]{0,3}/"]


def expression(rng: random.Random, depth: int) -> str:
    """An expression over k, l and m."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(INNER)
    parts = [expression(rng, depth - 1) for _ in range(2)]
    kind = rng.randrange(5)
    if kind == 0:
        return f"({parts[0]} & {parts[1]})"
    if kind == 1:
        return f"(/[klm]*/ & ~{parts[0] if parts[0][0] in '(/' else f'({parts[0]})'})"
    if kind == 2:
        return f"({parts[0]} | {parts[1]})"
    if kind == 3:
        return f"({parts[0]}){rng.choice(TIMES)}"
    return f"({parts[0]} {parts[1]})"


def body(rng: random.Random, names: list[str], depth: int) -> str:
    """A rule's body."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice([*names, *names, *TERMINALS[:4]])
    kind = rng.randrange(5)
    if kind == 0:
        return f"({body(rng, names, depth - 1)} | {body(rng, names, depth - 1)})"
    if kind == 1:
        return f"({body(rng, names, depth - 1)}){rng.choice(TIMES)}"
    if kind == 2:
        return f"[{body(rng, names, depth - 1)}]"
    return f"{body(rng, names, depth - 1)} {body(rng, names, depth - 1)}"


def random_grammar(rng: random.Random) -> str:
    """A grammar whose texts end with ``$``."""
    rules = ["one", "two-more", "_three"][: rng.randrange(1, 4)]
    terminals = ["A", "B-C", "_D"][: rng.randrange(1, 4)]
    lines = [f'start: {body(rng, rules, 2)} "$"']
    for rule in rules:
        attributes = rng.choice(["", "", "[capture]", '[capture="x"]'])
        lines.append(f"{rule}{attributes}: {body(rng, [*rules, *terminals], 2)} | {rng.choice(terminals)}")
    for terminal in terminals:
        if rng.random() < 0.5:
            lines.append(f'{terminal}: "<" {expression(rng, 3)} ">"')
        else:
            lines.append(f"{terminal}: {rng.choice(TERMINALS)}")
    if rng.random() < 0.4:
        lines.append('%ignore " "')
    if rng.random() < 0.3:
        lines.append("%ignore /-[0-9]*-/")
    if rng.random() < 0.3:
        lines[0] = f'start: "^" %lark {{\n  start: "(" inner{{1,2}} ")"\n  inner: "i" | "n" inner\n}} {rules[0]} "$"'
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(80))
def test_the_same_language(seed: int) -> None:
    rng, peer = random.Random(seed), Peer()
    source = random_grammar(rng)
    try:
        grammar = compile_lark(source, BYTES, dialect="llguidance")
    except EmptyLanguageError:
        return
    assert not peer.error(source), (source, peer.error(source))
    for _ in range(6):
        ours, theirs, text = grammar.matcher(), peer.matcher('%llguidance {"no_forcing": true}\n' + source), b""
        for _ in range(25):
            if theirs.is_stopped():
                break
            allowed = ours.next_bytes().astype(bool)
            possible = mask(theirs)
            assert not (allowed & ~possible).any(), (source, text, bytes(np.flatnonzero(allowed & ~possible).tolist()))
            assert ours.is_accepting() == theirs.is_accepting(), (source, text)
            byte = chosen(allowed, rng)
            assert ours.accept_token(byte) and theirs.consume_token(byte)
            text += bytes([byte])
        for mutant in mutants(text, rng):
            matcher = grammar.matcher()
            accepted = matcher.accept_bytes(mutant) and matcher.is_accepting()
            assert accepted == peer.accepts(source, mutant), (source, mutant)
