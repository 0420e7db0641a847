"""What masks read of tries, besides their nodes: tokens in the order of nodes, and nodes as single words."""

from __future__ import annotations

import numpy as np
import pytest

from structgen.core.engines.json.masks.token_index import JsonLexicon, build_lexicon
from structgen.core.kernels.json import layout
from structgen.core.vocabulary.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def lexicon() -> JsonLexicon:
    random = np.random.default_rng(7)
    pieces = [b"a", b"b", b'"', b"\\", b" ", b",", b"1", "é".encode(), b"\n", b"}", b'":']
    tokens = [bytes([byte]) for byte in range(256)]
    for _ in range(400):
        tokens.append(b"".join(pieces[i] for i in random.integers(0, len(pieces), random.integers(1, 5))))
    assert len(set(tokens)) < len(tokens) - 50  # some spell the same
    return build_lexicon(Vocabulary([*tokens, None], eos_token_ids=len(tokens)), True)


def test_the_tokens_below_a_node_lie_together(lexicon: JsonLexicon) -> None:
    order, starts = lexicon.order
    for trie, (lo, hi) in enumerate(lexicon.tries.tolist()):
        for i in range(lo, hi):
            expected = []
            for token in lexicon.nodes[i : lexicon.nodes[i, layout.NODE_END], layout.NODE_TOKEN].tolist():
                while token >= 0:
                    expected.append(token)
                    token = -1 if trie == layout.REMAINDERS else int(lexicon.next_same[token])
            found = order[starts[i] : starts[lexicon.nodes[i, layout.NODE_END]]]
            assert sorted(found.tolist()) == sorted(expected)
    assert starts[-1] == len(order)


def test_a_node_as_one_word(lexicon: JsonLexicon) -> None:
    assert len(lexicon.plain_nodes) == lexicon.tries[layout.TEXT, 1]
    for word, (byte, depth, end, _) in zip(lexicon.plain_nodes.tolist(), lexicon.nodes.tolist(), strict=False):
        assert (word < 0) == (byte < 0x20 or byte in b'"\\')
        assert word & 255 == byte
        assert word >> layout.PLAIN_DEPTH & layout.DEPTH_MASK == depth
        assert word >> layout.PLAIN_END & layout.END_MASK == end
