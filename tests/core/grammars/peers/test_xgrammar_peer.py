"""Grammars in XGrammar's EBNF mean what they mean to XGrammar: the same texts, of walks of both and mutations."""

from __future__ import annotations

import itertools
import random
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from structgen.core.compilers import compile_gbnf
from structgen.core.engines.laws import check_laws
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarWarning
from tests.core.grammars.peers.walks import Ours, accepts, texts
from tests.core.grammars.peers.xgrammar_grammars import GRAMMARS, random_grammar

xgrammar = pytest.importorskip("xgrammar")

END = 256
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=END)


SHORT = ["".join(text) for size in range(5) for text in itertools.product("abc", repeat=size)]


class Theirs:
    """A matcher of XGrammar over bytes."""

    def __init__(self, compiled: Any) -> None:
        self.matcher = xgrammar.GrammarMatcher(compiled)
        self.bitmask = xgrammar.allocate_token_bitmask(1, END + 1)

    def _mask(self) -> Any:
        self.matcher.fill_next_token_bitmask(self.bitmask)
        return np.unpackbits(self.bitmask.numpy().view(np.uint8), bitorder="little")[: END + 1]

    def allowed(self) -> list[int]:
        """See Reader."""
        found: list[int] = np.flatnonzero(self._mask()[:END]).tolist()
        return found

    def accept(self, byte: int) -> bool:
        """See Reader."""
        return bool(self.matcher.accept_token(byte))

    def ends(self) -> bool:
        """See Reader."""
        return bool(self._mask()[END])

    def rest(self) -> bytes:
        """See Reader: it knows none."""
        return b""


@cache
def compiler() -> Any:
    """XGrammar's compiler over bytes."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[END])
    return xgrammar.GrammarCompiler(info, max_threads=1)


@pytest.mark.parametrize("name", GRAMMARS)
def test_same_texts_as_xgrammar(name: str) -> None:
    source, words = GRAMMARS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        ours = compile_gbnf(source, BYTES, dialect="xgrammar")
    theirs = compiler().compile_grammar(source)
    rng = random.Random(name)
    asked = texts([lambda: Ours(ours), lambda: Theirs(theirs)], words, rng)
    taken = {text for text in asked if accepts(lambda: Ours(ours), text)}
    assert taken == {text for text in asked if accepts(lambda: Theirs(theirs), text)}
    assert taken
    assert len(asked) > len(taken)


@pytest.mark.parametrize("seed", range(80))
def test_random_grammars_as_xgrammar(seed: int) -> None:
    rng = random.Random(seed)
    source = random_grammar(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        ours = compile_gbnf(source, BYTES, dialect="xgrammar")
    theirs = compiler().compile_grammar(source)
    asked = rng.sample(SHORT, 25) + texts([lambda: Ours(ours), lambda: Theirs(theirs)], "abc", rng, walks=3)[:25]
    for text in asked:
        assert len(text) > 14 or accepts(lambda: Ours(ours), text) == accepts(lambda: Theirs(theirs), text), (
            source,
            text,
        )


@pytest.mark.parametrize("name", GRAMMARS)
def test_laws_over_longer_tokens(name: str) -> None:
    source, words = GRAMMARS[name]
    rng = random.Random(name)
    tokens = {"".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(40)} | set(words)
    vocabulary = Vocabulary(
        [*BYTES.tokens[:END], *map(str.encode, sorted(tokens)), None], eos_token_ids=END + len(tokens)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        grammar = compile_gbnf(source, vocabulary, dialect="xgrammar")
    check_laws(grammar, walks=1, steps=8, likely="".join(words).encode(), seed=rng.getrandbits(32))


def test_there_are_thirty() -> None:
    assert len({source for source, _ in GRAMMARS.values()}) >= 30
