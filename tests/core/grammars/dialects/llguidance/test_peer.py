"""Every documented feature means what it means to llguidance: the same masks on walks, the same verdicts on mutants."""

from __future__ import annotations

import random

import numpy as np
import pytest

from structgen.core.compilers import compile_lark
from structgen.core.engines.laws import check_laws
from structgen.core.engines.protocols import Grammar
from tests.core.grammars.dialects.llguidance.grammars import GRAMMARS
from tests.core.grammars.dialects.llguidance.peers import BYTES, Peer, chosen, mask, mutants

pytest.importorskip("llguidance")


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


def accepts(grammar: Grammar, text: bytes) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


def walk(grammar: Grammar, peer: Peer, source: str, rng: random.Random, steps: int = 30) -> bytes:
    """A text along which both allow the same."""
    ours, theirs, text = grammar.matcher(), peer.matcher('%llguidance {"no_forcing": true}\n' + source), b""
    assert not theirs.is_error(), theirs.get_error()
    for _ in range(steps):
        allowed = ours.next_bytes()
        if theirs.is_stopped():
            assert not allowed.any() and ours.is_accepting()
            return text
        assert np.array_equal(allowed.astype(bool), mask(theirs)), (
            text,
            bytes(np.flatnonzero(allowed != mask(theirs)).tolist()),
        )
        assert ours.is_accepting() == theirs.is_accepting(), text
        if not allowed.any():
            return text
        byte = chosen(allowed, rng)
        assert ours.accept_token(byte) and theirs.consume_token(byte)
        text += bytes([byte])
    return text


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_language(name: str, peer: Peer) -> None:
    source = GRAMMARS[name]
    grammar = compile_lark(source, BYTES, dialect="llguidance")
    rng = random.Random(name)
    for _ in range(10):
        text = walk(grammar, peer, source, rng)
        for mutant in mutants(text, rng):
            assert accepts(grammar, mutant) == peer.accepts(source, mutant), mutant
    check_laws(grammar, walks=2, steps=8, exact=True, seed=len(name))
