"""Macros of tokens mean what they mean to XGrammar, where a token is a character or special: the same masks."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

from structgen.core.compilers import compile_gbnf
from structgen.core.engines.laws import mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarWarning

xgrammar = pytest.importorskip("xgrammar")

SPECIAL = ["</s>", "<tool>", "<call>", "<end>"]
CHARACTERS = "ab12()<>tol"
VOCABULARY = Vocabulary(
    [*[None] * len(SPECIAL), *map(str.encode, CHARACTERS)],
    eos_token_ids=0,
    special_token_ids=range(len(SPECIAL)),
    special_tokens={name: i for i, name in enumerate(SPECIAL)},
)
R = '\na ::= "1"\nb ::= "(" b ")" | "2"'
GRAMMARS = [
    "root ::= Token(1) [ab]+ Token(2, 3, 2)?",
    'root ::= (Token(1) | "a" Token(2)* )+ "b"',
    'root ::= ("<" ExcludeToken(1, 3) ">")*',
    'root ::= ExcludeToken(2)* Token(2) "a"',
    f"root ::= TokenTagDispatch((1, a), (2, b)){R}",
    f"root ::= TokenTagDispatch((1, a), (1, b), loop_after_dispatch=false){R}",
    f"root ::= TokenTagDispatch((1, a), (2, b), excludes=(3,)) Token(3){R}",
    f"root ::= TokenTagDispatch((1, a), loop_after_dispatch=false, excludes=(2, 3)) Token(2)?{R}",
    'root ::= TokenTagDispatch(excludes=(1,)) Token(1) "a"',
    'root ::= x\nx ::= Token(1) "(" TokenTagDispatch((1, x), excludes=(2,)) Token(2)',
]


class Peer:
    """XGrammar's masks, as ours."""

    def __init__(self, source: str) -> None:
        tokens = [*(name.encode() for name in SPECIAL), *map(str.encode, CHARACTERS)]
        info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[0])
        compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(source)
        self.matcher: Any = xgrammar.GrammarMatcher(compiled)
        self.bitmask = xgrammar.allocate_token_bitmask(1, len(tokens))

    def mask(self) -> Any:
        """bool[V]."""
        self.matcher.fill_next_token_bitmask(self.bitmask)
        bits = np.unpackbits(self.bitmask.numpy().view(np.uint8), bitorder="little")
        return bits[: VOCABULARY.size].astype(bool)


@pytest.mark.parametrize("source", GRAMMARS)
def test_same_masks_as_xgrammar(source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        grammar = compile_gbnf(source, VOCABULARY, dialect="xgrammar")
    rng = random.Random(source)
    for _ in range(15):
        ours, theirs = grammar.matcher(), Peer(source)
        for _ in range(15):
            mask = mask_of(ours)
            assert [int(i) for i in np.flatnonzero(mask)] == [int(i) for i in np.flatnonzero(theirs.mask())]
            allowed = np.flatnonzero(mask[1:]) + 1
            if not len(allowed):
                break
            special = [token for token in allowed.tolist() if token < len(SPECIAL)]
            token = int(rng.choice(special if special and rng.random() < 0.4 else allowed.tolist()))
            assert ours.accept_token(token) and theirs.matcher.accept_token(token)
