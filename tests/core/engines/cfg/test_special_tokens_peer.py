"""Special tokens mean what they mean to llguidance, whose notation it is: the same masks on random walks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from structgen.core.compilers import LarkDialect, compile_lark
from structgen.core.engines.laws import mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarError

llguidance = pytest.importorskip("llguidance")
pytest.importorskip("lark")

SPECIAL = ["<|eos|>", "<|x|>", "<y>", "<|call|>", "<think>", "</think>"]
WORDS = ["é", "ab", "ba", "1}", '{"', "think", "</", "a</", ': "', '",', "12", "<y", "nk>"]
TEXTS = [*(chr(byte) for byte in range(32, 127)), *WORDS, "\n"]
VOCABULARY = Vocabulary(
    [*[None] * len(SPECIAL), *map(str.encode, TEXTS)],
    eos_token_ids=0,
    special_token_ids=range(len(SPECIAL)),
    special_tokens={name: i for i, name in enumerate(SPECIAL)},
)


class Peer:
    """What `llguidance.TokenizerWrapper` asks of a tokenizer."""

    eos_token_id, bos_token_id = 0, None
    special_token_ids = tuple(range(len(SPECIAL)))
    tokens = (*map(str.encode, SPECIAL), *map(str.encode, TEXTS))

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self.tokens.index(bytes([byte])) for byte in data]


GRAMMARS = [
    "start: <think> /[ab]+/ </think>",
    'start: <[1-3]>+ "a"',
    'start: (<|x|> "ab" | <[2,4-5]> "b")* <|call|>',
    'start: <[3]> %json {"enum": [12, "a1", true]} <y>',
    'start: "<y>" <y> | <y> "<y"',
    'start: /(.|\\n)+/? </think> "b"',
    'start: <think> "\\n" /(.|\\n)+/? </think> %json {"enum": ["ab", "a b", 1]}',
    'start: item+\nitem: "a" | <|x|> item* <y>',
    'start: <[4]> pair ("," pair)* <[5]>\npair: /[a-z]+/ ":" (<|x|> | /[0-9]+/)',
    'start: TEXT | call\nTEXT: /[^{](.|\\n)*/\ncall: <|call|> %json {"enum": ["ab", 12]} <y>',
    "start: text (<think> text </think>)? <y>\ntext: /[a-d ]+/?",
    'start: "a" <|x|>? "b" <[1,3]>*',
    'start: <[6-8]> "a"',  # tokens of text, by id
    'start: <think> <[^5]>* </think> "a"',
    "start: <[^2-3]>* <y>",
    "start: <|x|> (<[^1-2,5]>)+ <[1-2]> /[ab]+/?",
]
NEGATED = GRAMMARS[-3:]


def peer_mask(matcher: Any) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
    return bits[: VOCABULARY.size].astype(bool)


@pytest.mark.parametrize("dialect", ["lark", "llguidance"])
@pytest.mark.parametrize("source", GRAMMARS)
def test_the_same_token_sequences(source: str, dialect: LarkDialect) -> None:
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Peer()), n_vocab=VOCABULARY.size)
    grammar = compile_lark(source, VOCABULARY, dialect=dialect)
    theirs_source = '%llguidance {"no_forcing": true}\n' + source  # all spellings, not only the tokenizer's own
    rng = random.Random(source)
    for _ in range(12):
        ours, theirs = (
            grammar.matcher(),
            llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_lark(theirs_source)),
        )
        assert not theirs.is_error(), theirs.get_error()
        for step in range(14):
            if theirs.is_stopped():
                break
            expected, mask = peer_mask(theirs), mask_of(ours)
            if source in NEGATED:  # where the end of sequence is any token too
                expected[0] = theirs.is_accepting()
            assert ours.is_accepting() == theirs.is_accepting()
            assert np.array_equal(mask, expected), (step, np.flatnonzero(mask != expected))
            special = np.flatnonzero(mask[1 : len(SPECIAL)]) + 1
            allowed = special if len(special) and rng.random() < 0.4 else np.flatnonzero(mask)
            token = int(rng.choice(allowed.tolist()))
            assert ours.accept_token(token) and theirs.consume_token(token)


def test_both_refuse_an_unknown_token() -> None:
    with pytest.raises(GrammarError, match="no special token '<|z|>'; there are ".replace("|", r"\|")):
        compile_lark("start: <|z|>", VOCABULARY)
